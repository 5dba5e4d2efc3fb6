#pragma once

#include <functional>

#include "tw/interp/tile.h"
#include "tw/ir/program.h"

namespace tw {

/// One element of a gather, scatter or atomic.
struct PlaceAt {
  Extents at;
  bool taken = true;         ///< not masked
  bool maybe_taken = false;  ///< the mask hangs on what could go either way
  bool undecided = false;    ///< a coordinate does, and the element may be anywhere
  Scalar value = {};         ///< what is written
  Scalar expected = {};      ///< of a cas
};
using VisitPlace = std::function<void(const PlaceAt&)>;

/// Visits the elements in row-major order. `origin`: coordinates of the axes without an operand.
void for_each_place(const Op& op, const Extents& shape, const Extents& origin,
                    const std::function<const TileData&(ValueId)>& tile, const VisitPlace& visit);

}  // namespace tw
