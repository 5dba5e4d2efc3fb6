#pragma once

#include <cstdint>

namespace tw {

/// n / d towards plus infinity; n >= 0, d > 0, n + d within int64.
constexpr int64_t ceil_div(int64_t n, int64_t d) { return (n + d - 1) / d; }
/// The least multiple of `unit` that is not below n; as ceil_div.
constexpr int64_t round_up(int64_t n, int64_t unit) { return ceil_div(n, unit) * unit; }

}  // namespace tw
