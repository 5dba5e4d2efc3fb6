#pragma once

#include <span>

#include "tw/interp/interpreter.h"
#include "tw/interp/tile.h"

namespace tw {

/// Folds terms of dtype t with a named combiner. Float sums and products accumulate in
/// compute_type(t), in order in exact mode, and round to t once.
Scalar fold(InterpretMode mode, Combiner combiner, DType t, std::span<const Scalar> terms);

/// fold() of the first one, two, three ... terms.
std::vector<Scalar> scan(InterpretMode mode, Combiner combiner, DType t,
                         std::span<const Scalar> terms);

/// acc + a @ b. Floats accumulate in acc's dtype; integers wrap. Exact mode multiplies as ieee
/// says.
TileData dot(InterpretMode mode, Precision precision, const TileData& a, const TileData& b,
             const TileData& acc);

}  // namespace tw
