#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <fmt/format.h>

#include "tw/base/error.h"
#include "tw/capi/tilewright.h"

namespace tw::capi {

/// The caller's struct, which begins with its size, may be older, and shorter down to `shortest`;
/// or newer, where what we do not know must be 0. Null: all 0.
template <class T>
T known_options(const T* given, size_t shortest) {
  T known = {};
  if (given == nullptr) return known;
  if (given->size < shortest)
    throw UserError(fmt::format("options have size {}, wanted at least {}", given->size, shortest),
                    fmt::format("set size to sizeof of their struct, {}", sizeof(T)));
  const auto* bytes = reinterpret_cast<const unsigned char*>(given);
  for (size_t i = sizeof(T); i < given->size; ++i)
    if (bytes[i] != 0)
      throw UserError(fmt::format("options of {} bytes set what this version lacks", given->size),
                      fmt::format("this is tilewright {}", tw_version()));
  std::memcpy(&known, given, std::min(given->size, sizeof(T)));
  return known;
}

}  // namespace tw::capi
