#pragma once

#include <optional>
#include <vector>

#include "tw/emit/cuda/statements.h"

namespace tw::cuda {

/// The digits of a layout's coordinates along an axis by their place: registers of a thread,
/// threads of a warp, registers, warps, registers. Modes of values come slowest last.
struct ScanCut {
  struct Across {
    int64_t below = 1, extent = 1;  ///< threads that are `below` others apart
  };
  std::vector<size_t> low, middle, high, other;  ///< modes of values; `other`: along other axes
  Across lanes, warps;
};
/// Nothing where digits stand in another order.
std::optional<ScanCut> scan_cut(const layout::ThreadValue& l, int64_t axis);

/// The layout with the registers that repeat along an axis below the warps along it, so that a warp
/// has neighbours only.
layout::ThreadValue with_whole_warps(layout::ThreadValue l, int64_t axis);

/// Whether the scan is made in registers by all threads; else its results lie in memory.
bool scans_in_registers(const State& s, const Op& op);
void emit_register_scan(State& s, const Op& op, Writer& out);

}  // namespace tw::cuda
