#include "tw/kernels/select/select.h"

#include <cmath>
#include <limits>

#include "tw/lang/lang.h"

namespace tw::kernels {
namespace {

constexpr int64_t kNone = std::numeric_limits<int64_t>::max();

/// The k first of row i, over blocks of `cols`. Elements past the row's end, and those that are not
/// above `least` where `positive`, are like the ones the list starts with: of the least value and
/// the highest index.
Tiles<2> first_of_row(Trace& k, const TensorRef& x, DType t, const Index& i, const Index& n,
                      int64_t count, int64_t cols, bool positive) {
  const float least = -std::numeric_limits<float>::infinity();
  Tile value = k.full(t, {1, count}, least).named("value");
  Tile index = k.full(i64, {1, count}, kNone).named("index");
  for (Index j : k.range(cdiv(n, cols))) {
    Tile block = load(x.tile({i, j}, {1, cols}), {.pad = least});
    Tile column = k.iota({1, cols}, 1) + j * cols;
    Tile there = column < n;
    if (positive) there = there & (block > 0);
    column = where(there, column, kNone);
    if (positive) block = where(there, block, least);
    auto [v, at] = top_k({value, index}, {block, column}, count);
    value = v;
    index = at;
  }
  return {value, index};
}

}  // namespace

Program top_k_rows(DType t, int64_t count, int64_t cols) {
  Trace k("top_k");
  Index M = k.dim("M"), N = k.dim("N");
  TensorRef X = k.input("X", t, {M, N});
  TensorRef V = k.output("V", t, {M, count}), I = k.output("I", i64, {M, count});
  auto [i] = k.grid(M);
  auto [value, index] = first_of_row(k, X, t, i, N, count, cols, false);
  store(V.tile({i, 0}, {1, static_cast<int>(count)}), value);
  store(I.tile({i, 0}, {1, static_cast<int>(count)}), index);
  return k.finish();
}

Program sample_rows(int64_t count, int64_t cols) {
  Trace k("sample");
  Index M = k.dim("M"), N = k.dim("N");
  TensorRef P = k.input("P", f32, {M, N}), TopP = k.input("TopP", f32, {1});
  TensorRef Seed = k.input("Seed", i64, {1}), I = k.output("I", i64, {M});
  auto [i] = k.grid(M);
  auto [value, index] = first_of_row(k, P, f32, i, N, count, cols, true);
  Tile p = max(value, 0);  // places that no token took weigh nothing
  Tile place = k.iota({1, count}, 1);
  Tile before = scan(p, 1, Combiner::sum) - p;
  Tile kept = where(eq(place, 0) | (before < as_row(load(TopP.tile({0}, {1})))), p, 0);
  Tile sums = scan(kept, 1, Combiner::sum);
  Tile row = k.zeros(i64, {1, 1}) + i;
  Tile draw = uniform(row, as_row(load(Seed.tile({0}, {1})))) * slice(sums, {0, count - 1}, {1, 1});
  // The first whose sum exceeds the draw; rounding may leave none, then the last of any weight.
  Tile last = reduce(where(kept > 0, place, 0), 1, Combiner::max);
  Tile chosen = min(reduce(cast(sums <= draw, i64), 1, Combiner::sum), last);
  Tile token = reduce(where(eq(place, chosen), index, 0), 1, Combiner::sum);
  store(I.tile({i}, {1}), reshape(token, {1}));
  return k.finish();
}

}  // namespace tw::kernels
