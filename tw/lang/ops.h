#pragma once

#include <array>
#include <optional>

#include "tw/lang/trace.h"

namespace tw {

// ---- memory

struct LoadOptions {
  Constant pad = 0;  ///< what elements outside the tensor read as
};
Tile load(const TileView& v, const LoadOptions& o = {}, SourceLoc at = SourceLoc::here());
/// Elements times their scales, in t (a float).
Tile load(const ScaledView& v, DType t = f32, SourceLoc at = SourceLoc::here());
/// Elements outside the tensor are dropped.
void store(const TileView& v, const Tile& t, SourceLoc at = SourceLoc::here());

struct GatherOptions {
  std::optional<Tile> mask = {};  ///< elements where it is false are not read, and are `pad`
  Constant pad = 0;               ///< what elements outside the tensor read as
};
/// The elements of x at coordinates: for each axis (that [] left) an i32 or i64 tile, an Index or a
/// number. Tiles have equal ranks; extents of 1 stretch. A negative coordinate is outside.
Tile gather(const TensorRef& x, const std::vector<Arg>& at, const GatherOptions& o = {},
            SourceLoc line = SourceLoc::here());

struct ScatterOptions {
  std::optional<Tile> mask = {};  ///< elements where it is false are not written
};
/// Writes a value (a tile, or a number) at coordinates as in gather. Elements outside the tensor
/// are dropped; of several at one place the last in row-major order stays.
void scatter(const TensorRef& x, const std::vector<Arg>& at, const Arg& value,
             const ScatterOptions& o = {}, SourceLoc line = SourceLoc::here());

struct AtomicOptions {
  std::optional<Tile> mask = {};  ///< elements where it is false are not updated
  MemoryOrder order = MemoryOrder::relaxed;
  MemoryScope scope = MemoryScope::device;
};
/// Combines each element at the coordinates with a value, indivisibly among all instances and in no
/// stated order. Elements of i32, i64, u32, u64, f32, f64 (and_, or_, xor_: integers).
void atomic(const TensorRef& x, const std::vector<Arg>& at, const Arg& value, AtomicOp op,
            const AtomicOptions& o = {}, SourceLoc line = SourceLoc::here());
/// The same; gives what each element was before its update, 0 where nothing is updated.
Tile atomic_fetch(const TensorRef& x, const std::vector<Arg>& at, const Arg& value, AtomicOp op,
                  const AtomicOptions& o = {}, SourceLoc line = SourceLoc::here());

/// Compare and exchange: an element that equals `expected` becomes `desired`, indivisibly; gives
/// what each element was before, 0 where nothing is looked at. Elements of i32, i64, u32, u64.
Tile atomic_cas(const TensorRef& x, const std::vector<Arg>& at, const Arg& expected,
                const Arg& desired, const AtomicOptions& o = {},
                SourceLoc line = SourceLoc::here());

// ---- types and shapes

/// rounding and saturate choose among floats, so they need a float on both sides. Floats become
/// integers toward zero, clamped to the range, NaN gives 0; integers wrap. SR draws element e's
/// bits from Philox with key (seed, 0), counter e (row-major in the tile).
struct CastOptions {
  Rounding rounding = Rounding::RN;
  bool saturate = false;
  Index seed = 0;
};
Tile cast(const Tile& x, DType t, const CastOptions& o = {}, SourceLoc at = SourceLoc::here());
/// Constants of one dtype.
struct Table {
  DType dtype;
  std::vector<Constant> entries;  ///< 2 to 256
};
/// Per element table[index]; 0 (false) where the index is negative or past the last entry.
Tile lookup(const Table& table, const Tile& index, SourceLoc at = SourceLoc::here());
/// Random bits (u32) that depend on counter, seed and stream only: word 0 of Philox 4x32-10 (Salmon
/// et al., SC 2011) for each counter, with key (seed, stream). All are i64.
Tile philox(const Tile& counter, const Arg& seed, const Arg& stream = 0,
            SourceLoc at = SourceLoc::here());
/// f32 in [0, 1), multiples of 2^-24, from the upper 24 of those bits.
Tile uniform(const Tile& counter, const Arg& seed, const Arg& stream = 0,
             SourceLoc at = SourceLoc::here());
Tile bitcast(const Tile& x, DType t, SourceLoc at = SourceLoc::here());
Tile reshape(const Tile& x, const Extents& shape, SourceLoc at = SourceLoc::here());
Tile as_row(const Tile& x, SourceLoc at = SourceLoc::here());     ///< [n] becomes [1,n]
Tile as_col(const Tile& x, SourceLoc at = SourceLoc::here());     ///< [n] becomes [n,1]
Tile transpose(const Tile& x, SourceLoc at = SourceLoc::here());  ///< of two axes
/// Axis i of the result is axis perm[i] of x.
Tile transpose(const Tile& x, const std::vector<int>& perm, SourceLoc at = SourceLoc::here());
/// The block of x that starts at element `start` and has these extents; it lies inside x.
Tile slice(const Tile& x, const Extents& start, const Extents& extents,
           SourceLoc at = SourceLoc::here());
Tile broadcast(const Tile& x, const Extents& shape, SourceLoc at = SourceLoc::here());

// ---- elementwise; the table in docs/language.md gives special values and error bounds

Tile abs(const Tile& x, SourceLoc at = SourceLoc::here());
Tile sqrt(const Tile& x, SourceLoc at = SourceLoc::here());
Tile rsqrt(const Tile& x, SourceLoc at = SourceLoc::here());
Tile exp(const Tile& x, SourceLoc at = SourceLoc::here());
Tile exp2(const Tile& x, SourceLoc at = SourceLoc::here());
Tile log(const Tile& x, SourceLoc at = SourceLoc::here());
Tile sin(const Tile& x, SourceLoc at = SourceLoc::here());
Tile cos(const Tile& x, SourceLoc at = SourceLoc::here());
Tile tanh(const Tile& x, SourceLoc at = SourceLoc::here());
Tile erf(const Tile& x, SourceLoc at = SourceLoc::here());
/// The same with fewer digits and in less time.
Tile tanh_fast(const Tile& x, SourceLoc at = SourceLoc::here());
Tile erf_fast(const Tile& x, SourceLoc at = SourceLoc::here());
Tile floor(const Tile& x, SourceLoc at = SourceLoc::here());
Tile ceil(const Tile& x, SourceLoc at = SourceLoc::here());
Tile round(const Tile& x, SourceLoc at = SourceLoc::here());  ///< ties to even
inline Tile min(const Arg& a, const Arg& b) { return elementwise(Opcode::min, a, b); }
inline Tile max(const Arg& a, const Arg& b) { return elementwise(Opcode::max, a, b); }
/// min and max where a NaN loses to a number.
inline Tile min_num(const Arg& a, const Arg& b) { return elementwise(Opcode::min_num, a, b); }
inline Tile max_num(const Arg& a, const Arg& b) { return elementwise(Opcode::max_num, a, b); }
/// Per element: mask ? a : b. One of a and b must be a tile.
Tile where(const Tile& mask, const Arg& a, const Arg& b, SourceLoc at = SourceLoc::here());

// ---- functions made of the above, in the dtype of x

Tile is_nan(const Tile& x, SourceLoc at = SourceLoc::here());
Tile relu(const Tile& x, SourceLoc at = SourceLoc::here());     ///< max(x, 0): NaN stays
Tile sigmoid(const Tile& x, SourceLoc at = SourceLoc::here());  ///< 1 / (1 + exp(-x))
Tile silu(const Tile& x, SourceLoc at = SourceLoc::here());     ///< x / (1 + exp(-x))
/// x/2 (1 + tanh_fast(sqrt(2/pi) (x + 0.044715 x^3)))
Tile gelu_tanh(const Tile& x, SourceLoc at = SourceLoc::here());
Tile gelu_erf(const Tile& x,
              SourceLoc at = SourceLoc::here());  ///< x/2 (1 + erf_fast(x / sqrt(2)))

// ---- contraction

struct DotOptions {
  Precision precision = Precision::ieee;
};
/// acc + a @ b for a [m,k], b [k,n], acc [m,n]; acc (f32, f64 or i32) keeps its type.
Tile dot(const Tile& a, const Tile& b, const Tile& acc, const DotOptions& o = {},
         SourceLoc at = SourceLoc::here());

// ---- reductions keep their axis, with extent 1

Tile reduce(const Tile& x, int axis, Combiner c, SourceLoc at = SourceLoc::here());
/// Of a tile of two axes: row_* folds each row to one element ([m,n] to [m,1]), col_* each column.
Tile row_sum(const Tile& x, SourceLoc at = SourceLoc::here());
Tile row_max(const Tile& x, SourceLoc at = SourceLoc::here());
Tile row_min(const Tile& x, SourceLoc at = SourceLoc::here());
Tile col_sum(const Tile& x, SourceLoc at = SourceLoc::here());
Tile col_max(const Tile& x, SourceLoc at = SourceLoc::here());
Tile col_min(const Tile& x, SourceLoc at = SourceLoc::here());

/// Whether any, or all, elements of a mask are true: a scalar.
Tile any(const Tile& x, SourceLoc at = SourceLoc::here());
Tile all(const Tile& x, SourceLoc at = SourceLoc::here());

template <size_t N>
using Tiles = std::array<Tile, N>;

struct ScanOptions {
  bool reverse = false;  ///< each element with all after it
};

using CombinerFunction =
    std::function<std::vector<Tile>(const std::vector<Tile>& left, const std::vector<Tile>& right)>;
std::vector<Tile> reduce_tiles(const std::vector<Tile>& xs, int axis, const CombinerFunction& f,
                               SourceLoc at);

template <size_t N, size_t... I>
Tiles<N> to_tiles(const std::vector<Tile>& v, std::index_sequence<I...>) {
  return {v.at(I)...};
}

template <class F, size_t N>
concept TakesLine = std::is_invocable_r_v<Tiles<N>, F, Tiles<N>, Tiles<N>, SourceLoc>;
template <class F, size_t N>
concept CombinesTiles = TakesLine<F, N> || std::is_invocable_r_v<Tiles<N>, F, Tiles<N>, Tiles<N>>;

std::vector<Tile> scan_tiles(const std::vector<Tile>& xs, int axis, const CombinerFunction& f,
                             const ScanOptions& o, SourceLoc at);

/// What f, a user's combiner, makes of two tuples.
template <size_t N, CombinesTiles<N> F>
CombinerFunction combiner(const F& f, SourceLoc at) {
  return [=, &f](const std::vector<Tile>& left, const std::vector<Tile>& right) {
    constexpr auto all = std::make_index_sequence<N>();
    const Tiles<N> l = to_tiles<N>(left, all), r = to_tiles<N>(right, all);
    const auto call = [&]() -> Tiles<N> {
      if constexpr (TakesLine<F, N>)
        return f(l, r, at);
      else
        return f(l, r);
    };
    const Tiles<N> y = call();
    return std::vector<Tile>(y.begin(), y.end());
  };
}

/// Folds N tiles of equal extents together: f takes the left and the right elements as Tiles<N> of
/// rank 0 and gives their combination. f must be associative and commutative (up to rounding) and
/// sees only its arguments: `auto [v, i] = reduce({x, index}, 1, argmax_pair);` A function that
/// takes a SourceLoc too gets that of the reduction.
template <size_t N, CombinesTiles<N> F>
Tiles<N> reduce(const Tile (&xs)[N], int axis, const F& f, SourceLoc at = SourceLoc::here()) {
  return to_tiles<N>(reduce_tiles({xs, xs + N}, axis, combiner<N>(f, at), at),
                     std::make_index_sequence<N>());
}

/// Running folds, inclusive: element i of the result combines elements 0 to i along the axis (with
/// `.reverse`: i to the last). Float sums and products of f16 and bf16 accumulate in f32, as those
/// of reduce() do; which neighbours are combined first is not defined, their order is kept.
Tile scan(const Tile& x, int axis, Combiner c, const ScanOptions& o = {},
          SourceLoc at = SourceLoc::here());
/// The same for tuples: f must be associative (up to rounding), and may care for left and right.
template <size_t N, CombinesTiles<N> F>
Tiles<N> scan(const Tile (&xs)[N], int axis, const F& f, const ScanOptions& o = {},
              SourceLoc at = SourceLoc::here()) {
  return to_tiles<N>(scan_tiles({xs, xs + N}, axis, combiner<N>(f, at), o, at),
                     std::make_index_sequence<N>());
}

/// Of two {value, index} pairs the one with the larger value: NaN is larger than all, of equal
/// values the lower index wins. A combiner for reduce(), and a step of a loop over blocks.
Tiles<2> argmax_pair(const Tiles<2>& a, const Tiles<2>& b, SourceLoc at = SourceLoc::here());
/// The same with the smaller value; NaN wins, as in min.
Tiles<2> argmin_pair(const Tiles<2>& a, const Tiles<2>& b, SourceLoc at = SourceLoc::here());
/// The k largest elements along the last axis and where they are (i64), in order: larger values
/// first, NaN counts as largest, of equal values the lower index.
Tiles<2> top_k(const Tile& x, int64_t k, SourceLoc at = SourceLoc::here());
/// The k first of two lists of {value, index} pairs together: a step of a loop over blocks.
Tiles<2> top_k(const Tiles<2>& a, const Tiles<2>& b, int64_t k, SourceLoc at = SourceLoc::here());
/// i64 index of the largest (smallest) element along the axis, by argmax_pair (argmin_pair).
Tile argmax(const Tile& x, int axis, SourceLoc at = SourceLoc::here());
Tile argmin(const Tile& x, int axis, SourceLoc at = SourceLoc::here());

}  // namespace tw
