#include <algorithm>

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

Program quantize_int8(DType type, int64_t length, int64_t wanted) {
  const int64_t group = int8_group(length, wanted), chunk = chunk_of(length, group);
  Trace k("quantize_int8");
  Index M = k.dim("M"), K = k.dim("K"), G = k.dim("G");
  TensorRef X = k.input("X", type, {M, K});
  TensorRef Q = k.output("Q", i8, {M, K}), S = k.output("S", f32, {M, G});

  auto [m, g] = k.grid(M, G);
  const Index first = g * group;
  const int64_t chunks = groups_of(group, chunk);
  Tile top = k.zeros(f32, {1, 1});
  for (Index c : k.range(chunks))
    top =
        max(top, row_max(abs(cast(as_row(load(X[m].window({first + c * chunk}, {chunk}))), f32))));
  Tile scale = (top / 127).named("scale");
  store(S[m].tile({g}, {1}), reshape(scale, {1}));
  for (Index c : k.range(chunks)) {
    Tile x = cast(as_row(load(X[m].window({first + c * chunk}, {chunk}))), f32);
    Tile q = where(scale > 0, min(max(round(x / scale), -127), 127), 0);
    store(Q[m].window({first + c * chunk}, {chunk}), reshape(cast(q, i8), {chunk}));
  }
  return k.finish();
}

/// Folds the last two axes of [2, 2, half].
static Tile fold_group(const Tile& x, Combiner c) { return reduce(reduce(x, 2, c), 1, c); }

/// Puts neighbours along an axis of two into one byte, the first in the low nibble.
static Tile packed(Trace& k, const Tile& x, int axis) {
  Extents pair(3, 1);
  pair[axis] = 2;
  return reduce(where(k.iota(pair, axis) < 1, x, x << 4), axis, Combiner::or_);
}

Program quantize_int4(DType type, const Int4Layout& layout) {
  const int64_t half = layout.group / 2;
  Trace k("quantize_int4");
  Index N = k.dim("N"), K = k.dim("K"), G = k.dim("G");
  TensorRef X = k.input("X", type, {N, K});
  TensorRef W = k.output("W", u8, {N, G, half}), S = k.output("S", layout.scale, {N, G});

  const auto codes = [&](const Tile& q, const Index& n, const Index& pair) {
    store(W[n].tile({pair, 0}, {2, half}), reshape(packed(k, cast(q, u8), 1), {2, half}));
  };
  const auto scales = [&](const Tile& s, const Index& n, const Index& pair) {
    Tile stored = cast(s, layout.scale);
    store(S[n].tile({pair}, {2}), reshape(stored, {2}));
    return cast(stored, f32);
  };
  // Two groups an instance: their zero points share a byte.
  const auto values = [&](const Index& n, const Index& pair) {
    return reshape(cast(load(X[n].tile({pair}, {2 * layout.group})), f32), {2, 2, half});
  };
  if (!layout.zero_points) {
    auto [n, pair] = k.grid(N, cdiv(G, 2));
    Tile x = values(n, pair);
    Tile s = scales(fold_group(abs(x), Combiner::max) / 7, n, pair);
    codes(where(s > 0, min(max(round(x / s), -8), 7), 0) + 8, n, pair);
    return k.finish();
  }
  TensorRef Z = k.output("Z", u8, {N, k.dim("ZB")});
  auto [n, pair] = k.grid(N, cdiv(G, 2));
  Tile x = values(n, pair);
  Tile low = min(fold_group(x, Combiner::min), 0), high = max(fold_group(x, Combiner::max), 0);
  Tile s = scales((high - low) / 15, n, pair);
  Tile zero = where(s > 0, min(max(round(-low / s), 0), 15), 0);
  codes(where(s > 0, min(max(round(x / s) + zero, 0), 15), 0), n, pair);
  store(Z[n].tile({pair}, {1}), reshape(packed(k, cast(zero, u8), 0), {1}));
  return k.finish();
}

Program quantize_nf4(DType type, const Int4Layout& layout) {
  const int64_t half = layout.group / 2;
  Trace k("quantize_nf4");
  Index N = k.dim("N"), K = k.dim("K"), G = k.dim("G");
  TensorRef X = k.input("X", type, {N, K});
  TensorRef W = k.output("W", u8, {N, G, half}), S = k.output("S", layout.scale, {N, G});

  auto [n, g] = k.grid(N, G);
  Tile x = reshape(cast(load(X[n].tile({g}, {layout.group})), f32), {1, 2, half});
  Tile stored = cast(fold_group(abs(x), Combiner::max), layout.scale);
  store(S[n].tile({g}, {1}), reshape(stored, {1}));
  Tile s = cast(stored, f32), y = x / s;
  Tile code = k.zeros(u8, {1, 2, half});
  for (size_t i = 1; i < std::size(kNf4); ++i)
    code += cast(y > (double{kNf4[i - 1]} + kNf4[i]) / 2, u8);
  Tile bytes = packed(k, where(s > 0, code, 7), 1);
  store(W[n].tile({g, 0}, {1, half}), reshape(bytes, {1, half}));
  return k.finish();
}

}  // namespace tw::kernels
