#include <cmath>
#include <limits>

#include "tw/kernels/rows/rows.h"
#include "tw/lang/lang.h"

namespace tw::kernels {

static const char* name_of(RowReduction r, bool rows) {
  switch (r) {
    case RowReduction::sum:
      return rows ? "row_sum" : "column_sum";
    case RowReduction::max:
      return rows ? "row_max" : "column_max";
    case RowReduction::mean:
      return rows ? "row_mean" : "column_mean";
    case RowReduction::argmax:
      return rows ? "row_argmax" : "column_argmax";
  }
  return "";
}

static constexpr int64_t kNone = std::numeric_limits<int64_t>::max();

/// The running result of a reduction over chunks along an axis. Pairs of argmax are kept for each
/// place of a chunk where reads are to be few, and meet once, behind the last.
class Accumulator {
 public:
  Accumulator(Trace& k, RowReduction r, const RowTiling& t, int axis)
      : kind_(r),
        axis_(axis),
        by_place_(t.few_reads && r == RowReduction::argmax),
        value_(k.full(f32, extents(t), identity(r))),
        index_(k.full(i64, extents(t), kNone)) {}

  static float identity(RowReduction r) {
    return r == RowReduction::max || r == RowReduction::argmax ? -INFINITY : 0.f;
  }

  /// Two chunks as one, for kinds that do not ask where elements are.
  Tile both(const Tile& x, const Tile& y) const {
    return kind_ == RowReduction::max ? max(x, y) : x + y;
  }

  /// x: f32 chunk; position: i64 index of its elements along the axis.
  void add(const Tile& x, const Tile& position) {
    switch (kind_) {
      case RowReduction::sum:
      case RowReduction::mean:
        value_ = value_ + reduce(x, axis_, Combiner::sum);
        return;
      case RowReduction::max:
        value_ = max(value_, reduce(x, axis_, Combiner::max));
        return;
      case RowReduction::argmax:
        add_argmax(x, position);
        return;
    }
  }

  Tile result(const Tile& n, DType type) const {
    switch (kind_) {
      case RowReduction::sum:
      case RowReduction::max:
        return cast(value_, type);
      case RowReduction::mean:
        return cast(value_ / n, type);
      case RowReduction::argmax:
        return index();
    }
    return index_;
  }

 private:
  Extents extents(const RowTiling& t) const {
    Extents e{t.rows, t.cols};
    if (!by_place_) e[static_cast<size_t>(axis_)] = 1;
    return e;
  }

  void add_argmax(const Tile& x, const Tile& position) {
    const Tiles<2> chunk{x, position};
    auto [value, index] = argmax_pair(
        {value_, index_}, by_place_ ? chunk : reduce({x, position}, axis_, argmax_pair));
    value_ = value;
    index_ = index;
  }

  Tile index() const {
    Tile at = by_place_ ? reduce({value_, index_}, axis_, argmax_pair)[1] : index_;
    return where(eq(at, kNone), -1, at);
  }

  RowReduction kind_;
  int axis_;
  bool by_place_;
  Tile value_, index_;
};

static DType result_type(RowReduction r, DType type) {
  return r == RowReduction::argmax ? i64 : type;
}

/// Whether x is the most of its row, where NaN is more than all.
static Tile is_most(const Tile& x, const Tile& most) { return eq(x, most) | is_nan(x); }

/// Of each place of a chunk the most of all chunks, and the chunk that had it first; then of the
/// places that have the most of all the first.
static Tile first_of_chunks(Trace& k, const TensorRef& X, const Index& i, const RowTiling& t,
                            const Index& N) {
  const Extents whole{t.rows, t.cols};
  const auto chunk = [&](const Index& j) {
    return cast(load(X.tile({i, j}, whole), {.pad = -INFINITY}), f32);
  };
  Tile most = chunk(0).named("most"), seen = k.zeros(i32, whole).named("seen");
  for (Index j : k.range(1, cdiv(N, t.cols))) {
    Tile x = chunk(j);
    Tile more = ~(x <= most) & eq(most, most);
    most = where(more, x, most);
    seen = where(more, k.zeros(i32, {1, 1}) + j, seen);
  }
  Tile at = cast(seen, i64) * t.cols + k.iota(whole, 1);
  const Tile first = is_most(most, reduce(most, 1, Combiner::max));
  return reduce(where(first, at, kNone), 1, Combiner::min);
}

/// Rows that a chunk holds are kept: the most first, then where it is, without pairs.
static Program row_argmax(DType type, const RowTiling& t) {
  Trace k("row_argmax");
  Index M = k.dim("M"), N = k.dim("N");
  TensorRef X = k.input("X", type, {M, N}), Y = k.output("Y", i64, {M});

  const Index i = k.grid(cdiv(M, t.rows))[0];  // not a binding: lambdas may not capture those
  Tile at = k.zeros(i64, {t.rows, 1}).named("at");
  const auto one_chunk = [&] {
    Tile x = cast(load(X.tile({i, 0}, {t.rows, t.cols}), {.pad = -INFINITY}), f32);
    Tile place = cast(k.iota({t.rows, t.cols}, 1), i32);
    Tile mine = is_most(x, reduce(x, 1, Combiner::max));
    at = cast(reduce(where(mine, place, static_cast<int32_t>(t.cols)), 1, Combiner::min), i64);
  };
  // What places hold of chunks takes more than a row that is kept.
  const RowTiling part{t.rows, t.cols >= 1024 ? t.cols / 4 : t.cols};
  k.when(
      t.cols < N, [&] { at = first_of_chunks(k, X, i, part, N); }, one_chunk);
  Tile none = k.zeros(i64, {1, 1}) + N;
  store(Y.tile({i}, {t.rows}), reshape(where(eq(none, 0), -1, at), {t.rows}));
  return k.finish();
}

Program row_reduce(RowReduction r, DType type, const RowTiling& t) {
  if (r == RowReduction::argmax && t.few_reads) return row_argmax(type, t);
  Trace k(name_of(r, true));
  Index M = k.dim("M"), N = k.dim("N");
  TensorRef X = k.input("X", type, {M, N});
  TensorRef Y = k.output("Y", result_type(r, type), {M});

  auto [i] = k.grid(cdiv(M, t.rows));
  Accumulator acc(k, r, t, 1);
  for (Index j : k.range(cdiv(N, t.cols))) {
    Tile x = load(X.tile({i, j}, {t.rows, t.cols}), {.pad = Accumulator::identity(r)});
    Tile position = k.iota({t.rows, t.cols}, 1) + j * t.cols;
    acc.add(cast(x, f32), position);
  }
  Tile n = k.zeros(f32, {1, 1}) + N;
  store(Y.tile({i}, {t.rows}), reshape(acc.result(n, type), {t.rows}));
  return k.finish();
}

Program column_reduce(RowReduction r, DType type, const RowTiling& t) {
  Trace k(name_of(r, false));
  Index M = k.dim("M"), N = k.dim("N");
  TensorRef X = k.input("X", type, {M, N});
  TensorRef Y = k.output("Y", result_type(r, type), {N});

  const Index j = k.grid(cdiv(N, t.cols))[0];  // not a binding: lambdas may not capture those
  Accumulator acc(k, r, t, 0);
  const auto chunk = [&](const Index& i) {
    return cast(load(X.tile({i, j}, {t.rows, t.cols}), {.pad = Accumulator::identity(r)}), f32);
  };
  const int64_t chunks = r == RowReduction::argmax ? 1 : t.chunks;
  for (Index i : k.range(cdiv(M, t.rows * chunks))) {
    Tile x = chunk(i * chunks);
    for (int64_t c = 1; c < chunks; ++c) x = acc.both(x, chunk(i * chunks + c));
    acc.add(x, k.iota({t.rows, t.cols}, 0) + i * t.rows);
  }
  Tile n = k.zeros(f32, {1, 1}) + M;
  store(Y.tile({j}, {t.cols}), reshape(acc.result(n, type), {t.cols}));
  return k.finish();
}

Program sum_pieces(DType type, int64_t cols) {
  constexpr int64_t kPiece = 8192;
  Trace k("sum");
  Index N = k.dim("N"), P = k.dim("P");
  TensorRef X = k.input("X", type, {N}), Y = k.output("Y", f32, {P});

  auto [p] = k.grid(P);
  const Index blocks = cdiv(cdiv(N, P), kPiece) * (kPiece / cols);
  Tile sum = k.zeros(f32, {1}).named("sum");
  for (Index j : k.range(blocks))
    sum = sum + reduce(cast(load(X.tile({p * blocks + j}, {cols})), f32), 0, Combiner::sum);
  store(Y.tile({p}, {1}), sum);
  return k.finish();
}

}  // namespace tw::kernels
