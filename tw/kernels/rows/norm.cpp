#include <algorithm>
#include <optional>

#include "tw/kernels/rows/rows.h"
#include "tw/lang/lang.h"

namespace tw::kernels {
namespace {

constexpr float kHuge = 0x1p127f;    // a sum of squares past this is near overflow
constexpr float kScale = 0x1p-100f;  // (largest f32 * kScale)^2 * 2^40 terms is finite

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

  /// As many squares of d as `weight` says.
  void add(const Tile& d, const Tile& weight) {
    Tile small = d * kScale;
    plain_ = plain_ + d * weight * d;  // a weight of 0 counts nothing, whatever d is
    scaled_ = scaled_ + small * weight * small;
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

/// What the kernels of this file do with a row: its sums, chunk by chunk, then its result.
struct Norm {
  Trace& k;
  RowTiling t;
  float eps;
  Index r, N;

  /// An f32 chunk of the row.
  Tile chunk(const TensorRef& x, const Index& j) const {
    return cast(load(x.tile({r, j}, {t.rows, t.cols})), f32);
  }
  void put(const TensorRef& y, const Index& j, const Tile& v, DType type) const {
    store(y.tile({r, j}, {t.rows, t.cols}), cast(v, type));
  }
  /// f32[1, cols] of a parameter of the columns.
  Tile columns(const TensorRef& x, const Index& j) const {
    return as_row(load(x.tile({j}, {t.cols})));
  }
  /// True where column c of chunk j lies in the row. Elements past the row must not count as (0 -
  /// mean)^2.
  Tile inside(const Index& j) const { return k.iota({1, t.cols}, 1) + j * t.cols < N; }
  /// n as an f32 tile that divides sums over a row.
  Tile length() const { return k.zeros(f32, {1, 1}) + N; }

  /// Rows that a chunk holds in one way, longer ones in another: by chunks that leave registers for
  /// the sums of their places.
  template <class Whole, class Chunks>
  void when_whole(const Whole& whole, const Chunks& chunks) const {
    if (!t.few_reads) return chunks(*this);
    const int64_t most = t.parts ? 4096 : 2048;
    const Norm shorter{k, {t.rows, std::min(t.cols, most), true}, eps, r, N};
    if (t.parts) return chunks(shorter);
    k.when(
        t.cols < N, [&] { chunks(shorter); }, [&] { whole(*this); });
  }
};

/// Mean and 1 / standard deviation.
struct Moments {
  Tile mean, rstd;
};

/// Sums over two reads.
Moments moments(const Norm& c, const TensorRef& X) {
  Tile n = c.length().named("n");
  Tile sum = c.k.zeros(f32, {c.t.rows, 1}).named("sum");
  for (Index j : c.k.range(cdiv(c.N, c.t.cols))) sum = sum + row_sum(c.chunk(X, j));
  Tile mean = (sum / n).named("mean");

  SquareSum squares(c.k, c.t.rows);
  for (Index j : c.k.range(cdiv(c.N, c.t.cols)))
    squares.add(where(c.inside(j), c.chunk(X, j) - mean, 0.f));
  return {mean, squares.inverse_root(n, c.eps).named("rstd")};
}

/// Means of chunks and squares around them, merged with those of the chunks before.
Moments merged_moments(const Norm& c, const TensorRef& X) {
  Tile mean = c.k.zeros(f32, {c.t.rows, 1}).named("mean");
  SquareSum squares(c.k, c.t.rows);
  for (Index j : c.k.range(cdiv(c.N, c.t.cols))) {
    const Index before = j * c.t.cols;
    Tile x = c.chunk(X, j);
    Tile seen = c.k.zeros(f32, {1, 1}) + before;
    Tile all = c.k.zeros(f32, {1, 1}) + min(before + c.t.cols, c.N);
    Tile count = all - seen;
    Tile own = row_sum(x) / count;
    squares.add(where(c.inside(j), x - own, 0.f));
    Tile step = own - mean;
    squares.add(step, seen * (count / all));
    mean = mean + step * (count / all);
  }
  return {mean, squares.inverse_root(c.length(), c.eps).named("rstd")};
}

/// rmsnorm of X, or of X + R, whose sums are stored in S.
struct RootMeanSquare {
  DType type;
  TensorRef X, gamma, Y;
  std::optional<TensorRef> R = {}, S = {};

  Tile sums(const Norm& c, const Index& j) const {
    return R ? c.chunk(X, j) + c.chunk(*R, j) : c.chunk(X, j);
  }
  void keep(const Norm& c, const Index& j, const Tile& x) const {
    if (S) c.put(*S, j, x, type);
  }
  void give(const Norm& c, const Index& j, const Tile& x, const Tile& rstd) const {
    c.put(Y, j, x * rstd * c.columns(gamma, j), type);
  }

  void whole(const Norm& c) const {
    Tile x = sums(c, 0);
    keep(c, 0, x);
    SquareSum squares(c.k, c.t.rows);
    squares.add(x);
    give(c, 0, x, squares.inverse_root(c.length(), c.eps));
  }

  void by_chunks(const Norm& c) const {
    SquareSum squares(c.k, c.t.rows);
    for (Index j : c.k.range(cdiv(c.N, c.t.cols))) {
      Tile x = sums(c, j);
      keep(c, j, x);
      squares.add(x);
    }
    Tile rstd = squares.inverse_root(c.length(), c.eps).named("rstd");
    for (Index j : c.k.range(cdiv(c.N, c.t.cols))) give(c, j, sums(c, j), rstd);
  }

  void emit(const Norm& row) const {
    row.when_whole([&](const Norm& c) { whole(c); }, [&](const Norm& c) { by_chunks(c); });
  }
};

}  // namespace

Program layernorm(DType type, const RowTiling& t, float eps) {
  Trace k("layernorm");
  Index M = k.dim("M"), N = k.dim("N");
  TensorRef X = k.input("X", type, {M, N});
  TensorRef gamma = k.input("gamma", f32, {N}), beta = k.input("beta", f32, {N});
  TensorRef Y = k.output("Y", type, {M, N});

  const Norm row{k, t, eps, k.grid(cdiv(M, t.rows))[0], N};
  const auto give = [&](const Norm& c, const Index& j, const Tile& normal) {
    c.put(Y, j, normal * c.columns(gamma, j) + c.columns(beta, j), type);
  };
  const auto whole = [&](const Norm& c) {
    Tile x = c.chunk(X, 0);
    Tile d = where(c.inside(0), x - row_sum(x) / c.length(), 0.f);
    SquareSum squares(k, c.t.rows);
    squares.add(d);
    give(c, 0, d * squares.inverse_root(c.length(), c.eps));
  };
  const auto by_chunks = [&](const Norm& c) {
    const Moments m = t.few_reads ? merged_moments(c, X) : moments(c, X);
    for (Index j : k.range(cdiv(N, c.t.cols))) give(c, j, (c.chunk(X, j) - m.mean) * m.rstd);
  };
  row.when_whole(whole, by_chunks);
  return k.finish();
}

Program rmsnorm(DType type, const RowTiling& t, float eps) {
  Trace k("rmsnorm");
  Index M = k.dim("M"), N = k.dim("N");
  TensorRef X = k.input("X", type, {M, N});
  TensorRef gamma = k.input("gamma", f32, {N});
  TensorRef Y = k.output("Y", type, {M, N});
  RootMeanSquare{type, X, gamma, Y}.emit({k, t, eps, k.grid(cdiv(M, t.rows))[0], N});
  return k.finish();
}

Program add_rmsnorm(DType type, const RowTiling& t, float eps) {
  Trace k("add_rmsnorm");
  Index M = k.dim("M"), N = k.dim("N");
  TensorRef X = k.input("X", type, {M, N}), R = k.input("R", type, {M, N});
  TensorRef gamma = k.input("gamma", f32, {N});
  TensorRef S = k.output("S", type, {M, N}), Y = k.output("Y", type, {M, N});
  RootMeanSquare{type, X, gamma, Y, R, S}.emit({k, t, eps, k.grid(cdiv(M, t.rows))[0], N});
  return k.finish();
}

}  // namespace tw::kernels
