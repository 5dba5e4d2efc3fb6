// 2. Reductions. A row lies in one tile; past its end lie -inf, whose exponentials are 0. Nothing
// says which thread or lane holds what: layouts, shuffles and barriers are the compiler's.
#include "examples/ladder/ladder.h"

using namespace tw;

static Program softmax_program(int64_t cols) {
  Trace k("softmax");
  Index M = k.dim("M"), N = k.dim("N");
  TensorRef X = k.input("X", f32, {M, N}), Y = k.output("Y", f32, {M, N});
  auto [r] = k.grid(M);
  Tile x = load(X.tile({r, 0}, {1, cols}), {.pad = -INFINITY});
  Tile e = exp(x - row_max(x));
  store(Y.tile({r, 0}, {1, cols}), e / row_sum(e));
  return k.finish();
}

int ladder::softmax(Bench& b) {
  const int64_t m = b.size(8192, 3), n = b.size(2000, 300);
  const Tensor X = b.numbers({m, n}), Y = b.zeros(f32, {m, n});
  b.run(softmax_program(b.size(2048, 512)), {X}, {Y}, 8. * static_cast<double>(m * n), "byte");
  const float* x = X.data<float>();
  std::vector<double> sum(static_cast<size_t>(m));
  for (int64_t i = 0; i < m * n; ++i) sum[static_cast<size_t>(i / n)] += std::exp(double{x[i]});
  const auto exact = [&](int64_t i) {
    return std::exp(double{x[i]}) / sum[static_cast<size_t>(i / n)];
  };
  // The difference to the largest is rounded, the exponential by 1 ulp; sums by their terms.
  const double ulps = 6 + std::log2(static_cast<double>(n));
  return b.check(Y, exact, [&](int64_t i) { return ulps * kUlp * exact(i); });
}
