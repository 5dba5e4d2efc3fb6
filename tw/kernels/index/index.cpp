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
