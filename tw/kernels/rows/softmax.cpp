#include <limits>

#include "tw/kernels/rows/rows.h"
#include "tw/lang/lang.h"

namespace tw::kernels {

static constexpr float kInf = std::numeric_limits<float>::infinity();

/// exp(x - m) of the row chunk j, as f32; elements past the row give exp(-inf).
static Tile weights(const TensorRef& X, const Index& r, const Index& j, const RowTiling& t,
                    const Tile& m) {
  Tile x = cast(load(X.tile({r, j}, {t.rows, t.cols}), {.pad = -kInf}), f32);
  return exp(x - m);
}

Program softmax(DType type, const RowTiling& t) {
  Trace k("softmax");
  Index M = k.dim("M"), N = k.dim("N");
  TensorRef X = k.input("X", type, {M, N});
  TensorRef Y = k.output("Y", type, {M, N});

  auto [r] = k.grid(cdiv(M, t.rows));

  Tile m = k.full(f32, {t.rows, 1}, -kInf).named("m");
  for (Index j : k.range(cdiv(N, t.cols))) {
    Tile x = load(X.tile({r, j}, {t.rows, t.cols}), {.pad = -kInf});
    m = max(m, row_max(cast(x, f32)));
  }

  // An f32 output holds the unscaled weights between the passes; a narrower one would round them
  // twice.
  const bool keeps = type == f32;
  Tile l = k.zeros(f32, {t.rows, 1}).named("l");
  for (Index j : k.range(cdiv(N, t.cols))) {
    Tile e = weights(X, r, j, t, m);
    if (keeps) store(Y.tile({r, j}, {t.rows, t.cols}), e);
    l = l + row_sum(e);
  }

  Tile scale = (1.f / l).named("scale");
  for (Index j : k.range(cdiv(N, t.cols))) {
    Tile e = keeps ? load(Y.tile({r, j}, {t.rows, t.cols})) : weights(X, r, j, t, m);
    store(Y.tile({r, j}, {t.rows, t.cols}), cast(e * scale, type));
  }
  return k.finish();
}

}  // namespace tw::kernels
