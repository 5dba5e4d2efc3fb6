// 3. Movement of data is the compiler's too: the program says which element goes where; that a GPU
// wants both sides read and written by lines, through shared memory, it need not say.
#include "examples/ladder/ladder.h"

using namespace tw;

static Program transpose_program(int64_t side) {
  Trace k("transpose");
  Index M = k.dim("M"), N = k.dim("N");
  TensorRef X = k.input("X", f32, {M, N}), Y = k.output("Y", f32, {N, M});
  auto [i, j] = k.grid(cdiv(M, side), cdiv(N, side));
  store(Y.tile({j, i}, {side, side}), transpose(load(X.tile({i, j}, {side, side}))));
  return k.finish();
}

int ladder::transpose(Bench& b) {
  const int64_t m = b.size(4001, 70), n = b.size(3000, 33);
  const Tensor X = b.numbers({m, n}), Y = b.zeros(f32, {n, m});
  b.run(transpose_program(64), {X}, {Y}, 8. * static_cast<double>(m * n), "byte");
  const float* x = X.data<float>();
  return b.check(
      Y, [&](int64_t i) { return x[i % m * n + i / m]; }, [](int64_t) { return 0; });
}
