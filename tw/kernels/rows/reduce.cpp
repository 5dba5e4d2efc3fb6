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

/// The running result of a reduction over chunks.
class Accumulator {
 public:
  Accumulator(Trace& k, RowReduction r, const Extents& shape)
      : kind_(r), value_(k.full(f32, shape, identity(r))), index_(k.full(i64, shape, kNone)) {}

  static float identity(RowReduction r) {
    return r == RowReduction::max || r == RowReduction::argmax ? -INFINITY : 0.f;
  }

  /// x: f32 chunk; position: i64 index of its elements along the axis.
  void add(const Tile& x, const Tile& position, int axis) {
    switch (kind_) {
      case RowReduction::sum:
      case RowReduction::mean:
        value_ = value_ + reduce(x, axis, Combiner::sum);
        return;
      case RowReduction::max:
        value_ = max(value_, reduce(x, axis, Combiner::max));
        return;
      case RowReduction::argmax:
        add_argmax(x, position, axis);
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
        return where(eq(index_, kNone), -1, index_);
    }
    return index_;
  }

 private:
  void add_argmax(const Tile& x, const Tile& position, int axis) {
    Tiles<2> chunk = reduce({x, position}, axis, argmax_pair);
    auto [value, index] = argmax_pair({value_, index_}, chunk);
    value_ = value;
    index_ = index;
  }

  RowReduction kind_;
  Tile value_, index_;
};

static DType result_type(RowReduction r, DType type) {
  return r == RowReduction::argmax ? i64 : type;
}

Program row_reduce(RowReduction r, DType type, const RowTiling& t) {
  Trace k(name_of(r, true));
  Index M = k.dim("M"), N = k.dim("N");
  TensorRef X = k.input("X", type, {M, N});
  TensorRef Y = k.output("Y", result_type(r, type), {M});

  auto [i] = k.grid(cdiv(M, t.rows));
  Accumulator acc(k, r, {t.rows, 1});
  for (Index j : k.range(cdiv(N, t.cols))) {
    Tile x = load(X.tile({i, j}, {t.rows, t.cols}), {.pad = Accumulator::identity(r)});
    Tile position = k.iota({t.rows, t.cols}, 1) + j * t.cols;
    acc.add(cast(x, f32), position, 1);
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

  auto [j] = k.grid(cdiv(N, t.cols));
  Accumulator acc(k, r, {1, t.cols});
  for (Index i : k.range(cdiv(M, t.rows))) {
    Tile x = load(X.tile({i, j}, {t.rows, t.cols}), {.pad = Accumulator::identity(r)});
    Tile position = k.iota({t.rows, t.cols}, 0) + i * t.rows;
    acc.add(cast(x, f32), position, 0);
  }
  Tile n = k.zeros(f32, {1, 1}) + M;
  store(Y.tile({j}, {t.cols}), reshape(acc.result(n, type), {t.cols}));
  return k.finish();
}

}  // namespace tw::kernels
