#include <algorithm>
#include <bit>

#include "tw/kernels/block_tile.h"
#include "tw/kernels/quant/quant.h"
#include "tw/lang/lang.h"

namespace tw::kernels {

/// Elements of K in the largest tile: long enough to forget the end of a row, short enough for X to
/// stay in the core's first cache.
static constexpr int64_t kDepth = 4096;

/// Rows of an instance of a GPU: as many as leave each multiprocessor two blocks, at most 8.
static int64_t rows_of_block(int64_t n, const GpuMachine& gpu) {
  int64_t rows = 8;
  while (rows > 1 && n < rows * 2 * gpu.multiprocessors) rows /= 2;
  return rows;
}
/// Elements of K in a tile of a GPU: a few loads of 16 bytes for each of its threads.
static constexpr int64_t kBlockDepth = 1024;

GemvTiling int8_tiling(int64_t n, int64_t k, const Target& target) {
  if (const GpuMachine* gpu = target.gpu())
    return {rows_of_block(n, *gpu), extent_for(k, 64, kBlockDepth)};
  const auto fit =
      static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(std::max<int64_t>(k, 64))));
  return {.rows = 32, .depth = std::min(fit, kDepth)};
}

GemvTiling int4_tiling(int64_t n, int64_t k, const Int4Layout& layout, const Target& target) {
  if (const GpuMachine* gpu = target.gpu()) {
    const int64_t most = std::max<int64_t>(kBlockDepth / layout.group, 2);
    return {rows_of_block(n, *gpu), extent_for(groups_of(k, layout.group), 2, most)};
  }
  const auto all = static_cast<uint64_t>(std::max<int64_t>(groups_of(k, layout.group), 2));
  const int64_t most = std::max<int64_t>(kDepth / layout.group, 2);  // zero points lie in pairs
  return {.rows = 32, .depth = std::min(static_cast<int64_t>(std::bit_ceil(all)), most)};
}

Program gemv_int8(DType type, const GemvTiling& t) {
  Trace k("gemv_int8");
  Index M = k.dim("M"), N = k.dim("N"), K = k.dim("K");
  TensorRef X = k.input("X", type, {M, K}), W = k.input("W", i8, {N, K});
  TensorRef S = k.input("S", f32, {N}), Y = k.output("Y", type, {M, N});

  auto [m, n] = k.grid(M, cdiv(N, t.rows));
  Tile acc = k.zeros(f32, {t.rows, 1}).named("acc");
  for (Index j : k.range(cdiv(K, t.depth))) {
    Tile x = cast(as_row(load(X[m].tile({j}, {t.depth}))), f32);
    Tile w = cast(load(W.tile({n, j}, {t.rows, t.depth})), f32);
    acc += row_sum(x * w);
  }
  Tile y = reshape(acc, {t.rows}) * load(S.tile({n}, {t.rows}));
  store(Y[m].tile({n}, {t.rows}), cast(y, type));
  return k.finish();
}

namespace {

/// The weights of an instance: tiles of `groups` groups of `rows` rows, with axes [row, group, half
/// of the group, element of the half] or fewer.
class Int4Rows {
 public:
  Int4Rows(Trace& k, const Int4Layout& layout, const GemvTiling& t, const Index& N, const Index& G)
      : k_(k),
        layout_(layout),
        rows_(t.rows),
        groups_(t.depth),
        half_(layout.group / 2),
        codes_(k.input("W", u8, {N, G, half_})),
        scales_(k.input("S", layout.scale, {N, G})) {
    if (layout.zero_points) zeros_.push_back(k.input("Z", u8, {N, k.dim("ZB")}));
  }

  /// u8[rows, groups, 2, half].
  Tile codes(const Index& n, const Index& j) {
    Tile packed =
        reshape(load(codes_.tile({n, j, 0}, {rows_, groups_, half_})), {rows_, groups_, 1, half_});
    return where(k_.iota({1, 1, 2, 1}, 2) < 1, packed & 15, packed >> 4);
  }
  /// f32[rows, groups].
  Tile scales(const Index& n, const Index& j) {
    return cast(load(scales_.tile({n, j}, {rows_, groups_})), f32);
  }
  /// u8[rows, groups].
  Tile zero_points(const Index& n, const Index& j) {
    if (zeros_.empty()) return k_.full(u8, {rows_, groups_}, 8);
    Tile packed =
        reshape(load(zeros_[0].tile({n, j}, {rows_, groups_ / 2})), {rows_, groups_ / 2, 1});
    return reshape(where(k_.iota({1, 1, 2}, 2) < 1, packed & 15, packed >> 4), {rows_, groups_});
  }

 private:
  Trace& k_;
  Int4Layout layout_;
  int64_t rows_, groups_, half_;
  TensorRef codes_, scales_;
  std::vector<TensorRef> zeros_;
};

/// Y = X D^T, where steps(w, n, j), f32[rows, groups, 2, half], times the scales is a tile of D.
template <class Steps>
Program product_by_groups(const char* name, DType type, const Int4Layout& layout,
                          const GemvTiling& t, const Steps& steps) {
  Trace k(name);
  const int64_t half = layout.group / 2, rows = t.rows, groups = t.depth;
  Index M = k.dim("M"), N = k.dim("N"), K = k.dim("K"), G = k.dim("G");
  TensorRef X = k.input("X", type, {M, K});
  Int4Rows w(k, layout, t, N, G);
  TensorRef Y = k.output("Y", type, {M, N});

  auto [m, n] = k.grid(M, cdiv(N, rows));
  Tile acc = k.zeros(f32, {rows, 1}).named("acc");
  for (Index j : k.range(cdiv(G, groups))) {
    Tile x =
        reshape(cast(load(X[m].tile({j}, {groups * layout.group})), f32), {1, groups, 2, half});
    Tile terms = x * steps(w, n, j);
    Tile sums = reduce(terms, 2, Combiner::sum) * reshape(w.scales(n, j), {rows, groups, 1, 1});
    acc += row_sum(reshape(sums, {rows, groups * half}));
  }
  store(Y[m].tile({n}, {rows}), cast(reshape(acc, {rows}), type));
  return k.finish();
}

}  // namespace

Program gemv_int4(DType type, const Int4Layout& layout, const GemvTiling& t) {
  const auto steps = [&](Int4Rows& w, const Index& n, const Index& j) {
    Tile zero = reshape(cast(w.zero_points(n, j), f32), {t.rows, t.depth, 1, 1});
    return cast(w.codes(n, j), f32) - zero;
  };
  return product_by_groups("gemv_int4", type, layout, t, steps);
}

Program gemv_nf4(DType type, const Int4Layout& layout, const GemvTiling& t) {
  const auto steps = [](Int4Rows& w, const Index& n, const Index& j) {
    return lookup({f32, {std::begin(kNf4), std::end(kNf4)}}, w.codes(n, j));
  };
  return product_by_groups("gemv_nf4", type, layout, t, steps);
}

Program gemv_int4_int8(const Int4Layout& layout, const GemvTiling& t) {
  Trace k("gemv_int4_int8");
  const int64_t half = layout.group / 2, rows = t.rows, groups = t.depth, fours = half / 4;
  Index M = k.dim("M"), N = k.dim("N"), K = k.dim("K"), G = k.dim("G");
  TensorRef X = k.input("X", i8, {M, K}), SX = k.input("SX", f32, {M, G});
  Int4Rows w(k, layout, t, N, G);
  TensorRef Y = k.output("Y", f32, {M, N});
  // Both halves of a group, four elements each.
  const auto sum = [](const Tile& v) {
    return reduce(reduce(v, 4, Combiner::sum), 2, Combiner::sum);
  };

  auto [m, n] = k.grid(M, cdiv(N, rows));
  Tile acc = k.zeros(f32, {rows, 1}).named("acc");
  for (Index j : k.range(cdiv(G, groups))) {
    Tile x =
        cast(reshape(load(X[m].tile({j}, {groups * layout.group})), {1, groups, 2, half}), i32);
    Tile products = cast(w.codes(n, j), i32) * x;
    Tile zero = reshape(cast(w.zero_points(n, j), i32), {rows, groups, 1, 1, 1});
    Tile dots = sum(reshape(products, {rows, groups, 2, fours, 4})) -
                sum(reshape(x, {1, groups, 2, fours, 4})) * zero;
    Tile scale = w.scales(n, j) * as_row(load(SX[m].tile({j}, {groups})));
    Tile sums = cast(dots, f32) * reshape(scale, {rows, groups, 1, 1, 1});
    acc += row_sum(reshape(sums, {rows, groups * fours}));
  }
  store(Y[m].tile({n}, {rows}), reshape(acc, {rows}));
  return k.finish();
}

}  // namespace tw::kernels
