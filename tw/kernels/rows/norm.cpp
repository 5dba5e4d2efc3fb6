#include <algorithm>
#include <optional>

#include "tw/kernels/rows/rows.h"
#include "tw/lang/lang.h"

namespace tw::kernels {
namespace {

constexpr float kHuge = 0x1p127f;    // a sum of squares past this is near overflow
constexpr float kScale = 0x1p-100f;  // (largest f32 * kScale)^2 * 2^40 terms is finite

Tile row_squares(const Tile& d) { return row_sum(d * d); }

/// 1 / sqrt(sum / n + eps) of sums of squares of rows. Where one is huge, `scaled` gives the sums
/// of the values times kScale, which cannot overflow.
template <class Scaled>
Tile inverse_root(Trace& k, const Tile& sum, const Tile& n, float eps, const Scaled& scaled) {
  Tile fits = sum < kHuge;
  Tile one = k.full(f32, {sum.extent(0), 1}, 1.f), small = k.zeros(f32, {sum.extent(0), 1});
  Tile left = any(~fits);
  While loop(k);
  while (loop(left)) {
    small = scaled();
    left = k.full(b1, {}, 0);
  }
  Tile factor = where(fits, one, kScale);
  return factor / sqrt(where(fits, sum, small) / n + eps * factor * factor);
}

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
    return as_row(cast(load(x.tile({j}, {t.cols})), f32));
  }
  /// True where column c of chunk j lies in the row. Elements past the row must not count as (0 -
  /// mean)^2.
  Tile inside(const Index& j) const { return k.iota({1, t.cols}, 1) + j * t.cols < N; }
  /// n as an f32 tile that divides sums over a row.
  Tile length() const { return k.zeros(f32, {1, 1}) + N; }

  /// The sum of what `of` gives for each chunk of the row.
  template <class Of>
  Tile over_chunks(const Of& of) const {
    Tile sum = k.zeros(f32, {t.rows, 1});
    for (Index j : k.range(cdiv(N, t.cols))) sum = sum + of(j);
    return sum;
  }
  /// The chunks again. From the last on where reads cost: caches have the end of the row.
  template <class Of>
  void again(const Of& of) const {
    const Index chunks = cdiv(N, t.cols);
    for (Index i : k.range(chunks)) of(t.few_reads ? chunks - 1 - i : i);
  }
  /// Sum of squares of (x - mean) * scale.
  Tile squares_around(const Tile& mean, const TensorRef& x, float scale) const {
    return over_chunks([&](const Index& j) {
      Tile d = where(inside(j), chunk(x, j) - mean, 0.f);
      return row_squares(scale == 1 ? d : d * scale);
    });
  }
  Tile rstd_around(const Tile& mean, const TensorRef& x, const Tile& squares) const {
    return inverse_root(k, squares, length(), eps, [&] { return squares_around(mean, x, kScale); })
        .named("rstd");
  }

  /// Rows that a chunk holds in one way, longer ones in another: by chunks that leave registers for
  /// the sums of their places.
  template <class Whole, class Chunks>
  void when_whole(const Whole& whole, const Chunks& chunks) const {
    if (!t.few_reads) return chunks(*this);
    const int64_t most = t.parts ? 8192 : std::max<int64_t>(2048, t.cols / 8);
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
  Tile sum = c.over_chunks([&](const Index& j) { return row_sum(c.chunk(X, j)); }).named("sum");
  Tile mean = (sum / n).named("mean");
  return {mean, c.rstd_around(mean, X, c.squares_around(mean, X, 1))};
}

/// Means of chunks and squares around them, merged with those of the chunks before.
Moments merged_moments(const Norm& c, const TensorRef& X) {
  Tile mean = c.k.zeros(f32, {c.t.rows, 1}).named("mean");
  Tile squares = c.k.zeros(f32, {c.t.rows, 1}).named("squares");
  for (Index j : c.k.range(cdiv(c.N, c.t.cols))) {
    const Index before = j * c.t.cols;
    Tile x = c.chunk(X, j);
    Tile seen = c.k.zeros(f32, {1, 1}) + before;
    Tile all = c.k.zeros(f32, {1, 1}) + min(before + c.t.cols, c.N);
    Tile count = all - seen;
    Tile own = row_sum(x) / count;
    squares = squares + row_squares(where(c.inside(j), x - own, 0.f));
    Tile step = own - mean;
    // A weight of 0 counts nothing, whatever the step is.
    squares = squares + step * (seen * (count / all)) * step;
    mean = mean + step * (count / all);
  }
  return {mean, c.rstd_around(mean, X, squares)};
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
    give(c, 0, x, inverse_root(c.k, row_squares(x), c.length(), c.eps, [&] {
           return row_squares(x * kScale);
         }));
  }

  void by_chunks(const Norm& c) const {
    Tile squares = c.over_chunks([&](const Index& j) {
      Tile x = sums(c, j);
      keep(c, j, x);
      return row_squares(x);
    });
    const auto scaled = [&] {
      return c.over_chunks([&](const Index& j) { return row_squares(sums(c, j) * kScale); });
    };
    Tile rstd = inverse_root(c.k, squares, c.length(), c.eps, scaled).named("rstd");
    c.again([&](const Index& j) { give(c, j, sums(c, j), rstd); });
  }

  void emit(const Norm& row) const {
    row.when_whole([&](const Norm& c) { whole(c); }, [&](const Norm& c) { by_chunks(c); });
  }
};

}  // namespace

Program layernorm(DType type, const RowTiling& t, float eps, DType weights) {
  Trace k("layernorm");
  Index M = k.dim("M"), N = k.dim("N");
  TensorRef X = k.input("X", type, {M, N});
  TensorRef gamma = k.input("gamma", weights, {N}), beta = k.input("beta", weights, {N});
  TensorRef Y = k.output("Y", type, {M, N});

  const Norm row{k, t, eps, k.grid(cdiv(M, t.rows))[0], N};
  const auto give = [&](const Norm& c, const Index& j, const Tile& normal) {
    c.put(Y, j, normal * c.columns(gamma, j) + c.columns(beta, j), type);
  };
  const auto whole = [&](const Norm& c) {
    Tile x = c.chunk(X, 0);
    Tile d = where(c.inside(0), x - row_sum(x) / c.length(), 0.f);
    const auto scaled = [&] { return row_squares(d * kScale); };
    give(c, 0, d * inverse_root(k, row_squares(d), c.length(), c.eps, scaled));
  };
  const auto by_chunks = [&](const Norm& c) {
    const Moments m = t.few_reads ? merged_moments(c, X) : moments(c, X);
    c.again([&](const Index& j) { give(c, j, (c.chunk(X, j) - m.mean) * m.rstd); });
  };
  row.when_whole(whole, by_chunks);
  return k.finish();
}

Program rmsnorm(DType type, const RowTiling& t, float eps, DType weights) {
  Trace k("rmsnorm");
  Index M = k.dim("M"), N = k.dim("N");
  TensorRef X = k.input("X", type, {M, N});
  TensorRef gamma = k.input("gamma", weights, {N});
  TensorRef Y = k.output("Y", type, {M, N});
  RootMeanSquare{type, X, gamma, Y}.emit({k, t, eps, k.grid(cdiv(M, t.rows))[0], N});
  return k.finish();
}

Program add_rmsnorm(DType type, const RowTiling& t, float eps, DType weights) {
  Trace k("add_rmsnorm");
  Index M = k.dim("M"), N = k.dim("N");
  TensorRef X = k.input("X", type, {M, N}), R = k.input("R", type, {M, N});
  TensorRef gamma = k.input("gamma", weights, {N});
  TensorRef S = k.output("S", type, {M, N}), Y = k.output("Y", type, {M, N});
  RootMeanSquare{type, X, gamma, Y, R, S}.emit({k, t, eps, k.grid(cdiv(M, t.rows))[0], N});
  return k.finish();
}

}  // namespace tw::kernels
