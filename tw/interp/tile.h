#pragma once

#include <functional>
#include <vector>

#include "tw/interp/scalar.h"
#include "tw/ir/type.h"

namespace tw {

/// The elements of a value in row-major order.
struct TileData {
  Type type;
  std::vector<Scalar> data;
};

TileData make_tile(const Type& type);

/// Calls visit(index) for every index of the shape in row-major order.
void for_each_index(const Extents& shape, const std::function<void(const Extents&)>& visit);
/// Row-major position of an index; extents of 1 stretch: the index counts as 0 along them.
int64_t position(const Extents& shape, const Extents& index);

/// The element at an index; extents of 1 stretch.
const Scalar& element(const TileData& a, const Extents& index);

using Unary = std::function<Scalar(const Scalar&)>;
using Binary = std::function<Scalar(const Scalar&, const Scalar&)>;
using Ternary = std::function<Scalar(const Scalar&, const Scalar&, const Scalar&)>;
TileData map(const Type& result, const TileData& a, const Unary& f);
TileData map(const Type& result, const TileData& a, const TileData& b, const Binary& f);
TileData map(const Type& result, const TileData& a, const TileData& b, const TileData& c,
             const Ternary& f);

TileData transposed(const TileData& a, const std::vector<int>& perm);
TileData broadcast_to(const TileData& a, const Extents& shape);

/// The elements of `a` along `axis` through the place that `index` names in the other axes.
std::vector<Scalar> line(const TileData& a, int axis, Extents index);

/// Writes them back.
void set_line(TileData& a, int axis, Extents index, const std::vector<Scalar>& elements);

}  // namespace tw
