#include "tw/kernels/rows/rows.h"
#include "tw/lang/lang.h"

namespace tw::kernels {

static constexpr float kHuge = 0x1p127f;    // a sum of squares past this is near overflow
static constexpr float kScale = 0x1p-100f;  // (largest f32 * kScale)^2 * 2^40 terms is finite

/// Sum of squares that cannot overflow: a plain sum, and one of the values scaled down, used when
/// the plain one is huge.
class SquareSum {
 public:
  SquareSum(Trace& k, int64_t rows)
      : plain_(k.zeros(f32, {rows, 1})), scaled_(plain_), one_(k.full(f32, {rows, 1}, 1.f)) {}

  void add(const Tile& d) {
    Tile small = d * kScale;
    plain_ = plain_ + row_sum(d * d);
    scaled_ = scaled_ + row_sum(small * small);
  }

  /// 1 / sqrt(sum / n + eps).
  Tile inverse_root(const Tile& n, float eps) const {
    Tile fits = plain_ < kHuge;
    Tile factor = where(fits, one_, kScale);
    return factor / sqrt(where(fits, plain_, scaled_) / n + eps * factor * factor);
  }

 private:
  Tile plain_, scaled_, one_;
};

/// True where column c of chunk j lies in the row. Elements past the row must not count as (0 -
/// mean)^2.
static Tile inside(Trace& k, const Index& j, const Index& N, const RowTiling& t) {
  return k.iota({1, t.cols}, 1) + j * t.cols < N;
}

/// n as an f32 tile that divides sums over a row.
static Tile row_length(Trace& k, const Index& N) { return k.zeros(f32, {1, 1}) + N; }

Program layernorm(DType type, const RowTiling& t, float eps) {
  Trace k("layernorm");
  Index M = k.dim("M"), N = k.dim("N");
  TensorRef X = k.input("X", type, {M, N});
  TensorRef gamma = k.input("gamma", f32, {N}), beta = k.input("beta", f32, {N});
  TensorRef Y = k.output("Y", type, {M, N});

  auto [r] = k.grid(cdiv(M, t.rows));
  Tile n = row_length(k, N).named("n");

  Tile sum = k.zeros(f32, {t.rows, 1}).named("sum");
  for (Index j : k.range(cdiv(N, t.cols)))
    sum = sum + row_sum(cast(load(X.tile({r, j}, {t.rows, t.cols})), f32));
  Tile mean = (sum / n).named("mean");

  SquareSum squares(k, t.rows);
  for (Index j : k.range(cdiv(N, t.cols))) {
    Tile d = cast(load(X.tile({r, j}, {t.rows, t.cols})), f32) - mean;
    squares.add(where(inside(k, j, N, t), d, 0.f));
  }
  Tile rstd = squares.inverse_root(n, eps).named("rstd");

  for (Index j : k.range(cdiv(N, t.cols))) {
    Tile x = cast(load(X.tile({r, j}, {t.rows, t.cols})), f32);
    Tile g = as_row(load(gamma.tile({j}, {t.cols})));
    Tile b = as_row(load(beta.tile({j}, {t.cols})));
    store(Y.tile({r, j}, {t.rows, t.cols}), cast((x - mean) * rstd * g + b, type));
  }
  return k.finish();
}

Program rmsnorm(DType type, const RowTiling& t, float eps) {
  Trace k("rmsnorm");
  Index M = k.dim("M"), N = k.dim("N");
  TensorRef X = k.input("X", type, {M, N});
  TensorRef gamma = k.input("gamma", f32, {N});
  TensorRef Y = k.output("Y", type, {M, N});

  auto [r] = k.grid(cdiv(M, t.rows));

  SquareSum squares(k, t.rows);
  for (Index j : k.range(cdiv(N, t.cols)))
    squares.add(cast(load(X.tile({r, j}, {t.rows, t.cols})), f32));
  Tile rstd = squares.inverse_root(row_length(k, N), eps).named("rstd");

  for (Index j : k.range(cdiv(N, t.cols))) {
    Tile x = cast(load(X.tile({r, j}, {t.rows, t.cols})), f32);
    Tile g = as_row(load(gamma.tile({j}, {t.cols})));
    store(Y.tile({r, j}, {t.rows, t.cols}), cast(x * rstd * g, type));
  }
  return k.finish();
}

}  // namespace tw::kernels
