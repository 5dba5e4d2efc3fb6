#include <fmt/format.h>

#include "tw/lang/impl/state.h"
#include "tw/lang/ops.h"

namespace tw {

/// Extent of a block along an axis of a tensor of that rank.
static int64_t block_along(const ScaledFormat& f, size_t axis, size_t rank) {
  return axis + 2 < rank ? 1 : f.block[axis + 2 - rank];
}

ScaledRef Trace::scaled(const std::string& name, ParamKind kind, const ScaledFormat& format,
                        const std::vector<Index>& dims, SourceLoc at) {
  if (!is_float(format.element) && !is_int(format.element))
    state_->fail(at, fmt::format("'{}' has scaled elements of {}", name, tw::name(format.element)));
  if (!is_float(format.scale))
    state_->fail(at, fmt::format("'{}' has scales of {}", name, tw::name(format.scale)),
                 "wanted a float");
  if (format.block[0] < 1 || format.block[1] < 1)
    state_->fail(at, fmt::format("'{}' has blocks of {} x {}, wanted extents of at least 1", name,
                                 format.block[0], format.block[1]));
  const size_t rank = dims.size();
  if (rank == 0 || (rank == 1 && format.block[0] != 1))
    state_->fail(at, fmt::format("'{}' has {} axes, its blocks have two", name, rank));
  std::vector<Index> scale_dims;
  for (size_t k = 0; k < rank; ++k) {
    const int64_t block = block_along(format, k, rank);
    scale_dims.push_back(block == 1 ? dims[k] : cdiv(dims[k], Index(block)));
  }
  TensorRef elements = param(name, kind, format.element, dims, at);
  TensorRef scales = param(name + "_scale", kind, format.scale, scale_dims, at);
  return {std::move(elements), std::move(scales), format};
}

ScaledRef Trace::input_scaled(const std::string& name, const ScaledFormat& format,
                              const std::vector<Index>& dims, SourceLoc at) {
  return scaled(name, ParamKind::in, format, dims, at);
}
ScaledRef Trace::output_scaled(const std::string& name, const ScaledFormat& format,
                               const std::vector<Index>& dims, SourceLoc at) {
  return scaled(name, ParamKind::out, format, dims, at);
}

/// How many blocks a tile has along an axis, if the program shows that it is made of whole ones, or
/// lies in one.
static int64_t blocks_of(const TraceState& t, const Index& start, int64_t extent, int64_t block,
                         SourceLoc at) {
  const int64_t known = divisor(t.expr(start, at), t.facts());
  if (extent % block == 0 && known % block == 0) return extent / block;
  if (block % extent == 0 && known % extent == 0) return 1;
  t.fail(
      at,
      fmt::format("a tile of {} elements from {} on is not made of whole blocks of {}, nor part "
                  "of one",
                  extent,
                  to_string(t.expr(start, at), [&](Symbol s) { return symbol_name(t.program, s); }),
                  block),
      fmt::format("take an extent that is a multiple or a divisor of {}", block));
}

static size_t rank_of(const TensorRef& x) {
  return x.trace()->program.params[static_cast<size_t>(x.param())].dims.size();
}

ScaledRef ScaledRef::operator[](const Index& i) const {
  const size_t axis = elements.fixed().size(), rank = rank_of(elements);
  const int64_t block = axis < rank ? block_along(format, axis, rank) : 1;
  return {elements[i], scales[block == 1 ? i : i / Index(block)], format};
}

ScaledView ScaledRef::tile(const std::vector<Index>& at, const Extents& extents,
                           SourceLoc loc) const {
  const TraceState& t = *elements.trace();
  const TileView view = elements.tile(at, extents, loc);
  const size_t rank = rank_of(elements);
  std::vector<Index> start;
  Extents blocks;
  for (size_t k = 0; k < at.size(); ++k) {
    const int64_t block = block_along(format, rank - at.size() + k, rank);
    const Index first = at[k] * Index(extents[k]);
    blocks.push_back(block == 1 ? extents[k] : blocks_of(t, first, extents[k], block, loc));
    start.push_back(block == 1 ? first : first / Index(block));
  }
  if (at.size() == 1) return {view, scales.window({start[0]}, blocks, loc)};
  if (at.size() == 2) return {view, scales.window({start[0], start[1]}, blocks, loc)};
  t.fail(loc, fmt::format("a tile of {} axes of a scaled tensor", at.size()),
         "wanted one or two: fix leading axes with []");
}

Tile load(const ScaledView& v, DType t, SourceLoc at) {
  const AtLine line(*v.elements.trace, at);
  const Tile x = cast(load(v.elements, {}, at), t, {}, at);
  const Tile scale = cast(load(v.scales, {}, at), t, {}, at);
  const Extents shape = v.elements.type.shape, blocks = v.scales.type.shape;
  bool stretches = true;
  Extents cut, of_blocks;
  for (size_t k = 0; k < shape.size(); ++k) {
    stretches = stretches && (blocks[k] == 1 || blocks[k] == shape[k]);
    for (const int64_t e : {blocks[k], shape[k] / blocks[k]}) cut.push_back(e);
    for (const int64_t e : {blocks[k], int64_t{1}}) of_blocks.push_back(e);
  }
  if (stretches) return x * scale;
  return reshape(reshape(x, cut, at) * reshape(scale, of_blocks, at), shape, at);
}

}  // namespace tw
