#include "tw/kernels/index/index.h"

#include <fmt/format.h>

#include "tw/base/error.h"
#include "tw/lang/lang.h"

namespace tw::kernels {

Program embedding(DType t, DType id_type, const IndexTiling& tile) {
  Trace k("embedding");
  Index V = k.dim("V"), D = k.dim("D"), N = k.dim("N");
  TensorRef table = k.input("table", t, {V, D}), ids = k.input("ids", id_type, {N});
  TensorRef Y = k.output("Y", t, {N, D});

  auto [n, d] = k.grid(cdiv(N, tile.rows), cdiv(D, tile.cols));
  Tile id = as_col(load(ids.tile({n}, {tile.rows})));
  Tile column = k.iota({1, tile.cols}, 1) + d * tile.cols;
  store(Y.tile({n, d}, {tile.rows, tile.cols}), gather(table, {id, column}));
  return k.finish();
}

/// Adds the rows of X to the columns of block d of Y, one after the other.
static void add_rows(Trace& k, const TensorRef& ids, const TensorRef& X, const TensorRef& Y,
                     const Index& N, const Index& d, int64_t cols) {
  Tile column = k.iota({1, cols}, 1) + d * cols;
  for (Index i : k.range(N)) {
    Tile id = reshape(gather(ids, {i}), {1, 1});
    Tile sum = gather(Y, {id, column}) + load(X.tile({i, d}, {1, cols}));
    scatter(Y, {id, column}, sum);
  }
}

Program index_add(DType id_type, const IndexTiling& tile) {
  Trace k("index_add");
  Index V = k.dim("V"), D = k.dim("D"), N = k.dim("N");
  TensorRef base = k.input("base", f32, {V, D}), ids = k.input("ids", id_type, {N});
  TensorRef X = k.input("X", f32, {N, D}), Y = k.output("Y", f32, {V, D});

  auto [d] = k.grid(cdiv(D, tile.cols));
  for (Index v : k.range(cdiv(V, tile.rows))) {
    Tile rows = load(base.tile({v, d}, {tile.rows, tile.cols}));
    store(Y.tile({v, d}, {tile.rows, tile.cols}), rows);
  }
  add_rows(k, ids, X, Y, N, d, tile.cols);
  return k.finish();
}

Program index_add_in_place(DType id_type, const IndexTiling& tile) {
  Trace k("index_add_in_place");
  Index V = k.dim("V"), D = k.dim("D"), N = k.dim("N");
  TensorRef ids = k.input("ids", id_type, {N}), X = k.input("X", f32, {N, D});
  TensorRef Y = k.inout("Y", f32, {V, D});

  auto [d] = k.grid(cdiv(D, tile.cols));
  add_rows(k, ids, X, Y, N, d, tile.cols);
  return k.finish();
}

/// The first place of ids (ascending, n of them) whose id is not below each of `row`.
static Tile first_not_below(Trace& k, const TensorRef& ids, const Index& n, const Tile& row) {
  Tile low = (row - row).named("low"), high = (low + n).named("high");
  While loop(k);
  while (loop(any(low < high))) {
    Tile middle = (low + high) / 2;
    Tile open = low < high;
    Tile below = cast(gather(ids, {middle}, {.mask = open}), i64) < row;
    low = where(open & below, middle + 1, low);
    high = where(open & ~below, middle, high);
  }
  return low;
}

Program index_add_sorted(DType id_type, const IndexTiling& tile) {
  Trace k("index_add_sorted");
  Index V = k.dim("V"), D = k.dim("D"), N = k.dim("N");
  TensorRef base = k.input("base", f32, {V, D}), ids = k.input("ids", id_type, {N});
  TensorRef X = k.input("X", f32, {N, D}), Y = k.output("Y", f32, {V, D});

  auto [v, d] = k.grid(cdiv(V, tile.rows), cdiv(D, tile.cols));
  Tile row = k.iota({tile.rows, 1}, 0) + v * tile.rows;
  Tile column = k.iota({1, tile.cols}, 1) + d * tile.cols;
  Tile i = first_not_below(k, ids, N, row).named("i");
  Tile end = first_not_below(k, ids, N, row + 1).named("end");
  Tile sum = load(base.tile({v, d}, {tile.rows, tile.cols})).named("sum");
  While loop(k);
  while (loop(any(i < end))) {
    Tile left = i < end;
    sum = where(left, sum + gather(X, {i, column}, {.mask = left}), sum);
    i = i + 1;
  }
  store(Y.tile({v, d}, {tile.rows, tile.cols}), sum);
  return k.finish();
}

/// The first row of a block and its columns, with the sums of both.
struct RowSums {
  RowSums(Trace& k, const TensorRef& base, const Index& v, const Index& d, const IndexTiling& t)
      : first(k.zeros(i64, {1, 1}) + v * t.rows),
        row(k.iota({t.rows, 1}, 0)),
        column(k.iota({1, t.cols}, 1) + d * t.cols),
        sum(load(base.tile({v, d}, {t.rows, t.cols})).named("sum")) {}
  /// Adds x to the row of the block that `id` names, if any.
  void add(const Tile& id, const Tile& x) { sum = where(eq(row, id - first), sum + x, sum); }

  Tile first, row, column, sum;
};

static Tile id_at(const TensorRef& ids, const Tile& i) { return cast(gather(ids, {i}), i64); }

Program index_add_rows(DType id_type, const IndexTiling& tile) {
  constexpr int64_t kIds = 2048;
  Trace k("index_add_rows");
  Index V = k.dim("V"), D = k.dim("D"), N = k.dim("N");
  TensorRef base = k.input("base", f32, {V, D}), ids = k.input("ids", id_type, {N});
  TensorRef X = k.input("X", f32, {N, D}), Y = k.output("Y", f32, {V, D});

  auto [v, d] = k.grid(cdiv(V, tile.rows), cdiv(D, tile.cols));
  RowSums sums(k, base, v, d, tile);
  Tile place = cast(k.iota({1, kIds}, 1), i32);
  for (Index t : k.range(cdiv(N, kIds))) {
    Tile row = cast(as_row(load(ids.tile({t}, {kIds}), {.pad = -1})), i64) - v * tile.rows;
    Tile mine = (row >= 0) & (row < tile.rows);
    Tile left = where(mine, place, kIds).named("left");
    Tile next = reduce(left, 1, Combiner::min).named("next");
    While loop(k);
    while (loop(any(next < kIds))) {
      Tile i = cast(next, i64) + t * kIds;
      Tile id = id_at(ids, i), x = gather(X, {i, sums.column});
      // While x is on its way.
      left = where(next < left, left, kIds);
      next = reduce(left, 1, Combiner::min);
      sums.add(id, x);
    }
  }
  store(Y.tile({v, d}, {tile.rows, tile.cols}), sums.sum);
  return k.finish();
}

/// The first place of ids (ascending, n of them) whose id is not below `least`, by looking at many
/// places at once.
static Tile first_place(Trace& k, const TensorRef& ids, const Index& n, const Tile& least) {
  constexpr int64_t kProbes = 512;
  Tile low = k.zeros(i64, {1, 1}).named("low"), high = (low + n).named("high");
  While loop(k);
  while (loop(any(low < high))) {
    Tile step = (high - low + (kProbes - 1)) / kProbes;
    Tile probe = low + k.iota({1, kProbes}, 1) * step;
    Tile inside = probe < high;
    Tile below = inside & (cast(gather(ids, {probe}, {.mask = inside}), i64) < least);
    Tile count = cast(reduce(cast(below, i32), 1, Combiner::sum), i64);
    Tile end = min(low + count * step, high);
    low = where(count > 0, low + (count - 1) * step + 1, low);
    high = end;
  }
  return low;
}

Program index_add_sorted_rows(DType id_type, const IndexTiling& tile) {
  Trace k("index_add_sorted_rows");
  Index V = k.dim("V"), D = k.dim("D"), N = k.dim("N");
  TensorRef base = k.input("base", f32, {V, D}), ids = k.input("ids", id_type, {N});
  TensorRef X = k.input("X", f32, {N, D}), Y = k.output("Y", f32, {V, D});

  auto [v, d] = k.grid(cdiv(V, tile.rows), cdiv(D, tile.cols));
  RowSums sums(k, base, v, d, tile);
  Tile i = first_place(k, ids, N, sums.first).named("i");
  Tile id = id_at(ids, i).named("id");
  While loop(k);
  while (loop(any((i < N) & (id < sums.first + tile.rows)))) {
    Tile x = gather(X, {i, sums.column});
    Tile next = id_at(ids, i + 1);
    sums.add(id, x);
    i = i + 1;
    id = next;
  }
  store(Y.tile({v, d}, {tile.rows, tile.cols}), sums.sum);
  return k.finish();
}

Program index_add_atomic(DType id_type, const IndexTiling& tile) {
  Trace k("index_add_atomic");
  Index V = k.dim("V"), D = k.dim("D"), N = k.dim("N");
  TensorRef ids = k.input("ids", id_type, {N}), X = k.input("X", f32, {N, D});
  TensorRef Y = k.inout("Y", f32, {V, D});

  auto [n, d] = k.grid(cdiv(N, tile.rows), cdiv(D, tile.cols));
  Tile id = as_col(load(ids.tile({n}, {tile.rows}), {.pad = -1}));
  Tile column = k.iota({1, tile.cols}, 1) + d * tile.cols;
  atomic(Y, {id, column}, load(X.tile({n, d}, {tile.rows, tile.cols})), AtomicOp::add);
  return k.finish();
}

void check_ids(const TensorView& ids, int64_t extent, const std::string& name) {
  if (ids.dtype != i32 && ids.dtype != i64)
    throw UserError(fmt::format("'{}' is {}, wanted i32 or i64", name, to_string(ids)));
  for (int64_t i = 0; i < ids.count(); ++i) {
    const double id = get(ids, i);
    if (id >= 0 && id < static_cast<double>(extent)) continue;
    throw UserError(
        fmt::format("'{}' holds {} at position {}, wanted 0 to {}", name, id, i, extent - 1));
  }
}

Program copy_tensor(DType t, const IndexTiling& tile) {
  Trace k("copy");
  Index B = k.dim("B"), M = k.dim("M"), N = k.dim("N");
  TensorRef X = k.input("X", t, {B, M, N}), Y = k.output("Y", t, {B, M, N});
  auto [b, i, j] = k.grid(B, cdiv(M, tile.rows), cdiv(N, tile.cols));
  store(Y[b].tile({i, j}, {tile.rows, tile.cols}), load(X[b].tile({i, j}, {tile.rows, tile.cols})));
  return k.finish();
}

Program transpose_matrix(DType t, int64_t tile) {
  Trace k("transpose");
  Index M = k.dim("M"), N = k.dim("N");
  TensorRef X = k.input("X", t, {M, N}), Y = k.output("Y", t, {N, M});
  auto [i, j] = k.grid(cdiv(M, tile), cdiv(N, tile));
  store(Y.tile({j, i}, {tile, tile}), transpose(load(X.tile({i, j}, {tile, tile}))));
  return k.finish();
}

}  // namespace tw::kernels
