// 4. A loop on the device: a Tile that is assigned in its body is carried from one iteration to the
// next. The compiler finds that the loads of an iteration may be on their way in the one before.
#include "examples/ladder/ladder.h"

using namespace tw;

static Program matmul_program(int64_t bm, int64_t bn, int64_t bk) {
  Trace k("matmul");
  Index M = k.dim("M"), N = k.dim("N"), K = k.dim("K");
  TensorRef A = k.input("A", f32, {M, K}), B = k.input("B", f32, {K, N});
  TensorRef C = k.output("C", f32, {M, N});
  auto [m, n] = k.grid(cdiv(M, bm), cdiv(N, bn));
  Tile acc = k.zeros(f32, {bm, bn});
  for (Index i : k.range(cdiv(K, bk)))
    acc = dot(load(A.tile({m, i}, {bm, bk})), load(B.tile({i, n}, {bk, bn})), acc);
  store(C.tile({m, n}, {bm, bn}), max(acc, 0.f));  // an epilogue costs no pass over C
  return k.finish();
}

int ladder::matmul(Bench& b) {
  const int64_t m = b.size(500, 20), n = b.size(600, 40), kk = b.size(700, 35);
  const Tensor A = b.numbers({m, kk}), B = b.numbers({kk, n}), C = b.zeros(f32, {m, n});
  const Program p = b.on_gpu() ? matmul_program(64, 64, 16) : matmul_program(96, 256, 256);
  b.run(p, {A, B}, {C}, 2. * static_cast<double>(m * n * kk), "operation");
  const float *a = A.data<float>(), *x = B.data<float>();
  const auto sum = [&](int64_t i, bool magnitudes) {
    double all = 0;
    for (int64_t j = 0; j < kk; ++j) {
      const double term = double{a[i / n * kk + j]} * double{x[j * n + i % n]};
      all += magnitudes ? std::abs(term) : term;
    }
    return all;
  };
  return b.check(
      C, [&](int64_t i) { return std::max(sum(i, false), 0.); },
      [&](int64_t i) { return static_cast<double>(kk) * kUlp / 2 * sum(i, true); });
}
