#pragma once

#include <map>
#include <set>

#include "tw/emit/cpu/context.h"
#include "tw/layout/thread_value.h"

namespace tw::cuda {

/// What multiplies the operands of a dot: matrix instructions of warps, or multiplications and
/// additions of threads that read several neighbours at once; plain: elements as expressions.
enum class DotUnit : uint8_t { plain, multiply_add, matrix };

/// The unit whose types the dot has.
DotUnit unit_of(const Program& p, const Op& dot);
/// The type in which a unit reads elements of the operand in the block's memory.
DType panel_type(DType operand);
/// Steps along k of one matrix instruction (of f64: of four of them).
int64_t matrix_depth(DType panel);

/// The tile that an operand of a dot is, or that it is the transpose of.
struct Operand {
  ValueId base = 0;
  bool flipped = false;
  /// The axis of the base that is the operand's axis `a`.
  size_t axis(size_t a) const { return flipped ? 1 - a : a; }
};
Operand operand_of(const cpu::Context& c, const Op& dot, size_t which);

/// How a tile lies in the block's memory when the units read it: lines of neighbours along one
/// axis.
struct Panel {
  DType dtype = f32;
  size_t unit = 1;    ///< the axis of the tile along which neighbours lie
  Extents padded;     ///< extents of the panel; what lies outside of the tile is zero
  int64_t pitch = 0;  ///< elements from line to line
  int64_t elements() const { return padded[1 - unit] * pitch; }
  int64_t bytes() const { return elements() * tw::bytes(dtype); }
};

/// The pitch of lines of so many elements at which what one instruction of a warp reads lies in
/// banks that differ: see docs/decisions/009-matrix-dots.md.
/// `words_across`: of lines that are not along k, whose elements of 4 bytes matrix instructions
/// take.
int64_t pitch_of(DType t, int64_t line, bool words_across = false);

/// Which tiles are operands of dots that units read from panels.
class Operands {
 public:
  explicit Operands(const cpu::Context& c);
  /// Whether the value is a load that nothing but such dots use.
  bool only(ValueId v) const { return only_.contains(v); }
  const std::set<ValueId>& bases() const { return bases_; }

 private:
  std::set<ValueId> bases_, only_;
};

/// Threads of `warps` warps in a grid over the tile, each warp with the accumulators of matrix
/// instructions of 16 x 8: see docs/decisions/009-matrix-dots.md. `rows_only`: warps side by side
/// along the rows only, so that a row lies in one warp.
layout::ThreadValue matrix_layout(const Extents& shape, int64_t warps, bool rows_only);

/// The grid of a matrix layout: warps, and instructions of each warp, along both axes.
struct MatrixGrid {
  int64_t warps[2] = {1, 1}, tiles[2] = {1, 1};
  int64_t reach(size_t axis) const { return warps[axis] * tiles[axis] * (axis == 0 ? 16 : 8); }
};
MatrixGrid matrix_grid(const Extents& shape, int64_t warps, bool rows_only);

}  // namespace tw::cuda
