#include <algorithm>
#include <functional>
#include <optional>

#include "tw/kernels/block_tile.h"
#include "tw/kernels/quant/quant.h"
#include "tw/lang/lang.h"

namespace tw::kernels {

int64_t groups_of(int64_t k, int64_t group) { return (k + group - 1) / group; }

int64_t int8_group(int64_t k, int64_t group) { return std::min(group, std::max<int64_t>(k, 1)); }

/// Elements of a group that one tile holds: a divisor of the group, or any number when no other
/// group follows.
static int64_t chunk_of(int64_t k, int64_t group) {
  constexpr int64_t kMost = 4096;
  if (group <= kMost) return group;
  if (group >= k) return kMost;
  for (int64_t n = kMost; n > 1; --n)
    if (group % n == 0) return n;
  return 1;
}

/// Elements of the tiles of a GPU that quantise several groups.
static constexpr int64_t kBlockElements = 2048;

int64_t groups_of_block(int64_t k, int64_t group) {
  const int64_t most = std::max<int64_t>(kBlockElements / extent_for(group, 1, kBlockElements), 1);
  return extent_for(groups_of(k, group), 1, most);
}

Program quantize_int8(DType type, int64_t length, int64_t wanted, int64_t groups) {
  const int64_t group = int8_group(length, wanted), chunk = chunk_of(length, group);
  Trace k("quantize_int8");
  Index M = k.dim("M"), K = k.dim("K"), G = k.dim("G");
  TensorRef X = k.input("X", type, {M, K});
  TensorRef Q = k.output("Q", i8, {M, K}), S = k.output("S", f32, {M, G});

  const int64_t chunks = groups_of(group, chunk), together = chunks == 1 ? groups : 1;
  const Extents wide{together * chunk};
  const auto at = k.grid(M, cdiv(G, together));
  const Index m = at[0], first = at[1] * (together * group);
  const auto values = [&](const Index& c) {
    return reshape(cast(load(X[m].window({first + c * chunk}, wide)), f32), {together, chunk});
  };
  Tile top = k.zeros(f32, {together, 1});
  for (Index c : k.range(chunks)) top = max(top, row_max(abs(values(c))));
  Tile scale = (top / 127).named("scale");
  store(S[m].tile({at[1]}, {together}), reshape(scale, {together}));
  for (Index c : k.range(chunks)) {
    Tile q = where(scale > 0, min(max(round(values(c) / scale), -127), 127), 0);
    store(Q[m].window({first + c * chunk}, wide), reshape(cast(q, i8), wide));
  }
  return k.finish();
}

/// x / scale of bf16 x by products: 1 / scale in two parts of 16 bits, so that products are exact
/// and a quotient is rounded once from 32 bits of it. For every bf16 x and top of its row the code
/// is that of the quotient; tests try them all. Powers of two keep tiny and huge scales away.
class Quotient {
 public:
  Quotient(Trace& k, const Tile& scale) {
    const double away = 0x1p80;
    const Tile one = k.full(f32, {1, 1}, 1);
    power_ = where(scale < 0x1p-60, away, where(scale > 0x1p60, 1 / away, one)).named("power");
    const Tile inverse = 1 / cast(scale * *power_, f64);
    high_ = part(inverse).named("high");
    low_ = part(inverse - cast(*high_, f64)).named("low");
  }
  Tile of(const Tile& x) const {
    const Tile near = x * *power_;
    return near * *high_ + near * *low_;
  }

 private:
  static Tile part(const Tile& x) { return bitcast(bitcast(cast(x, f32), u32) & 0xffffff00, f32); }
  std::optional<Tile> power_, high_, low_;
};

Program quantize_fp8(DType type, const QuantizeTiling& t) {
  constexpr float kLargest = 448;  // of e4m3
  Trace k("quantize_fp8");
  Index M = k.dim("M"), K = k.dim("K");
  TensorRef X = k.input("X", type, {M, K});
  TensorRef Q = k.output("Q", e4m3, {M, K}), S = k.output("S", f32, {M});

  const Index m = k.grid(cdiv(M, t.rows))[0];
  const auto values = [&](const Index& j, int64_t cols) {
    return cast(load(X.tile({m, j}, {t.rows, cols})), f32);
  };
  const auto scale_of = [&](const Tile& top) {
    Tile scale = (top / kLargest).named("scale");
    store(S.tile({m}, {t.rows}), reshape(scale, {t.rows}));
    return scale;
  };
  const bool products = t.products && type == bf16;
  const auto quotient_by = [&](const Tile& scale) -> std::function<Tile(const Tile&)> {
    if (products) return [q = Quotient(k, scale)](const Tile& x) { return q.of(x); };
    return [scale](const Tile& x) { return x / scale; };
  };
  const auto put = [&](const Index& j, const Tile& x, const Tile& scale, const auto& quotient) {
    Tile q = where(scale > 0, min(max(quotient(x), -kLargest), kLargest), 0);
    store(Q.tile({m, j}, {t.rows, x.extent(1)}), cast(q, e4m3));
  };
  // Where no row is held: backwards the second time, as caches have the end of the row, and by
  // halves, for their registers.
  const auto by_chunks = [&] {
    const int64_t cols = t.chunk == 0 ? t.cols : t.chunk, half = t.whole ? cols : cols / 2;
    Tile top = k.zeros(f32, {t.rows, 1});
    for (Index j : k.range(cdiv(K, cols))) top = max(top, row_max(abs(values(j, cols))));
    Tile scale = scale_of(top);
    const auto quotient = quotient_by(scale);
    const Index parts = cdiv(K, half);
    for (Index i : k.range(parts)) {
      const Index j = t.whole ? i : parts - 1 - i;
      put(j, values(j, half), scale, quotient);
    }
  };
  const auto whole = [&] {
    Tile x = values(0, t.cols);
    const Tile scale = scale_of(row_max(abs(x)));
    put(0, x, scale, quotient_by(scale));
  };
  if (t.whole) {
    k.when(t.cols < K, by_chunks, whole);
  } else {
    by_chunks();
  }
  return k.finish();
}

/// Folds the last two axes of [groups, 2, half].
static Tile fold_group(const Tile& x, Combiner c) { return reduce(reduce(x, 2, c), 1, c); }

/// Puts neighbours along axis 1 of three, an axis of two, into one byte, the first in the low
/// nibble.
static Tile packed(Trace& k, const Tile& x) {
  return reduce(where(k.iota({1, 2, 1}, 1) < 1, x, x << 4), 1, Combiner::or_);
}

Program quantize_int4(DType type, const Int4Layout& layout, int64_t pairs) {
  const int64_t half = layout.group / 2, groups = 2 * pairs;
  Trace k("quantize_int4");
  Index N = k.dim("N"), K = k.dim("K"), G = k.dim("G");
  TensorRef X = k.input("X", type, {N, K});
  TensorRef W = k.output("W", u8, {N, G, half}), S = k.output("S", layout.scale, {N, G});

  const auto codes = [&](const Tile& q, const Index& n, const Index& pair) {
    store(W[n].tile({pair, 0}, {groups, half}), reshape(packed(k, cast(q, u8)), {groups, half}));
  };
  const auto scales = [&](const Tile& s, const Index& n, const Index& pair) {
    Tile stored = cast(s, layout.scale);
    store(S[n].tile({pair}, {groups}), reshape(stored, {groups}));
    return cast(stored, f32);
  };
  // Pairs of groups: their zero points share a byte.
  const auto values = [&](const Index& n, const Index& pair) {
    return reshape(cast(load(X[n].tile({pair}, {groups * layout.group})), f32), {groups, 2, half});
  };
  if (!layout.zero_points) {
    auto [n, pair] = k.grid(N, cdiv(G, groups));
    Tile x = values(n, pair);
    Tile s = scales(fold_group(abs(x), Combiner::max) / 7, n, pair);
    codes(where(s > 0, min(max(round(x / s), -8), 7), 0) + 8, n, pair);
    return k.finish();
  }
  TensorRef Z = k.output("Z", u8, {N, k.dim("ZB")});
  auto [n, pair] = k.grid(N, cdiv(G, groups));
  Tile x = values(n, pair);
  Tile low = min(fold_group(x, Combiner::min), 0), high = max(fold_group(x, Combiner::max), 0);
  Tile s = scales((high - low) / 15, n, pair);
  Tile zero = where(s > 0, min(max(round(-low / s), 0), 15), 0);
  codes(where(s > 0, min(max(round(x / s) + zero, 0), 15), 0), n, pair);
  Tile zeros = reshape(cast(zero, u8), {pairs, 2, 1});
  store(Z[n].tile({pair}, {pairs}), reshape(packed(k, zeros), {pairs}));
  return k.finish();
}

Program quantize_nf4(DType type, const Int4Layout& layout, int64_t groups) {
  const int64_t half = layout.group / 2;
  Trace k("quantize_nf4");
  Index N = k.dim("N"), K = k.dim("K"), G = k.dim("G");
  TensorRef X = k.input("X", type, {N, K});
  TensorRef W = k.output("W", u8, {N, G, half}), S = k.output("S", layout.scale, {N, G});

  auto [n, g] = k.grid(N, cdiv(G, groups));
  Tile x = reshape(cast(load(X[n].tile({g}, {groups * layout.group})), f32), {groups, 2, half});
  Tile stored = cast(fold_group(abs(x), Combiner::max), layout.scale);
  store(S[n].tile({g}, {groups}), reshape(stored, {groups}));
  Tile s = cast(stored, f32), y = x / s;
  Tile code = k.zeros(u8, {groups, 2, half});
  for (size_t i = 1; i < std::size(kNf4); ++i)
    code += cast(y > (double{kNf4[i - 1]} + kNf4[i]) / 2, u8);
  Tile bytes = packed(k, where(s > 0, code, 7));
  store(W[n].tile({g, 0}, {groups, half}), reshape(bytes, {groups, half}));
  return k.finish();
}

}  // namespace tw::kernels
