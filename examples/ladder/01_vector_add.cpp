// 1. A program computes a tile of each output. The grid says how many tiles there are; the vectors
// may have any length: what lies past their ends is read as zeros and not written.
#include "examples/ladder/ladder.h"

using namespace tw;

static Program vector_add_program(int64_t block) {
  Trace k("vector_add");
  Index N = k.dim("N");
  TensorRef A = k.input("A", f32, {N}), B = k.input("B", f32, {N}), C = k.output("C", f32, {N});
  auto [i] = k.grid(cdiv(N, block));
  store(C.tile({i}, {block}), load(A.tile({i}, {block})) + load(B.tile({i}, {block})));
  return k.finish();
}

int ladder::vector_add(Bench& b) {
  const int64_t n = b.size(50'000'003, 5003);
  const Tensor a = b.numbers({n}), c = b.numbers({n}), sum = b.zeros(f32, {n});
  b.run(vector_add_program(4096), {a, c}, {sum}, 12. * static_cast<double>(n), "byte");
  const float *x = a.data<float>(), *y = c.data<float>();
  const auto exact = [&](int64_t i) { return double{x[i]} + double{y[i]}; };
  return b.check(sum, exact, [&](int64_t i) { return kUlp / 2 * std::abs(exact(i)); });
}
