#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tw/num/dtype.h"

namespace tw {

using Extents = std::vector<int64_t>;

/// Product of the extents (1 for rank 0).
int64_t count(const Extents& e);
std::string to_string(const Extents& e);  ///< "[64,128]"

/// The type of a tile: dtype and extents, all >= 1, known while tracing. Rank 0 is a scalar.
struct Type {
  DType dtype = f32;
  Extents shape;
  bool operator==(const Type&) const = default;
};
std::string to_string(const Type& t);  ///< "f32[64,128]"

}  // namespace tw
