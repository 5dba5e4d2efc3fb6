#include <cmath>

#include "tw/kernels/rows/rows.h"
#include "tw/lang/lang.h"

namespace tw::kernels {

/// The row chunk j as f32; elements past the row are -inf, so their exponentials add 0.
static Tile chunk(const TensorRef& X, const Index& r, const Index& j, const RowTiling& t) {
  return cast(load(X.tile({r, j}, {t.rows, t.cols}), {.pad = -INFINITY}), f32);
}

/// Rows that one chunk holds: the weights stay in the instance's memory, Y is written once.
static void whole_row(const TensorRef& X, const TensorRef& Y, const Index& r, DType type,
                      const RowTiling& t) {
  Tile x = chunk(X, r, 0, t);
  Tile e = exp(x - row_max(x));
  Tile scale = 1.f / row_sum(e);
  store(Y.tile({r, 0}, {t.rows, t.cols}), cast(e * scale, type));
}

/// The largest element of a longer row, and the sum of its exponentials.
struct RowSums {
  Tile m, l;
};

static RowSums in_two_passes(Trace& k, const TensorRef& X, const Index& r, const Index& N,
                             const RowTiling& t) {
  Tile m = k.full(f32, {t.rows, 1}, -INFINITY).named("m");
  for (Index j : k.range(cdiv(N, t.cols))) m = max(m, row_max(chunk(X, r, j, t)));

  Tile l = k.zeros(f32, {t.rows, 1}).named("l");
  for (Index j : k.range(cdiv(N, t.cols))) l = l + row_sum(exp(chunk(X, r, j, t) - m));
  return {m, l};
}

static RowSums in_one_pass(Trace& k, const TensorRef& X, const Index& r, const Index& N,
                           const RowTiling& t) {
  Tile m = k.full(f32, {t.rows, 1}, -INFINITY).named("m");
  Tile l = k.zeros(f32, {t.rows, 1}).named("l");
  for (Index j : k.range(cdiv(N, t.cols))) {
    Tile x = chunk(X, r, j, t);
    Tile top = max(m, row_max(x));
    Tile base = where(eq(top, -INFINITY), 0.f, top);  // nothing but -inf yet: all weights are 0
    l = l * exp(m - base) + row_sum(exp(x - base));
    m = top;
  }
  return {m, l};
}

/// Longer rows: their sums, then the weights again.
static void by_chunks(Trace& k, const TensorRef& X, const TensorRef& Y, const Index& r,
                      const Index& N, DType type, const RowTiling& t) {
  const auto [m, l] = t.few_reads ? in_one_pass(k, X, r, N, t) : in_two_passes(k, X, r, N, t);
  Tile scale = (1.f / l).named("scale");
  const Index chunks = cdiv(N, t.cols);
  for (Index i : k.range(chunks)) {
    const Index j = t.few_reads ? chunks - 1 - i : i;  // caches have the end of the row
    Tile y = exp(chunk(X, r, j, t) - m) * scale;
    store(Y.tile({r, j}, {t.rows, t.cols}), cast(y, type));
  }
}

Program softmax(DType type, const RowTiling& t) {
  Trace k("softmax");
  Index M = k.dim("M"), N = k.dim("N");
  TensorRef X = k.input("X", type, {M, N});
  TensorRef Y = k.output("Y", type, {M, N});

  const Index r = k.grid(cdiv(M, t.rows))[0];  // not a binding: lambdas may not capture those
  const auto chunks = [&] { by_chunks(k, X, Y, r, N, type, t); };
  if (t.parts) {
    chunks();
  } else {
    k.when(t.cols < N, chunks, [&] { whole_row(X, Y, r, type, t); });
  }
  return k.finish();
}

}  // namespace tw::kernels
