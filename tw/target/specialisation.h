#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tw/num/dtype.h"

namespace tw {

/// What a compiled variant may assume of one tensor argument. All of it is checked at launch.
struct ParamFacts {
  DType dtype = f32;
  int rank = 0;
  int unit_axis = -1;  ///< axis of stride 1 (the last such with extent != 1 preferred), -1: none
  uint32_t zero_stride = 0;  ///< bit k: axis k has stride 0 (broadcast)
  bool aligned =
      false;           ///< base address and all strides but the unit one are multiples of 16 bytes
  bool whole = false;  ///< so is the extent along the unit axis
  bool operator==(const ParamFacts&) const = default;
};

/// The facts that select one compiled variant of a program (with mapping, options and machine).
/// Never sizes.
struct Specialisation {
  std::vector<ParamFacts> params;  ///< in declaration order
  bool fits32 = false;  ///< every byte offset of every tensor fits in a signed 32-bit integer
  bool streaming =
      false;  ///< outputs are larger than this core's share of the last cache: write around it
  bool operator==(const Specialisation&) const = default;
};

/// One line, e.g. "A f32 rank 2 unit 1 aligned; B ...; fits32 streaming": part of the cache key,
/// printed by `cache why`.
std::string to_string(const Specialisation& s, const std::vector<std::string>& names);

}  // namespace tw
