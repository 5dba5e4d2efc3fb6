#pragma once

#include "tw/layout/swizzle.h"

namespace tw {

/// How the shared memory of a GPU serves one access of a warp.
struct BankConflicts {
  int wavefronts = 0;  // passes that it takes
  int least = 0;       // passes without conflicts
  bool operator==(const BankConflicts&) const = default;
};

/// 32 banks of 4 bytes serve a warp, half a warp in accesses of 8 bytes, a quarter in those of 16;
/// of one bank they give one word in a wavefront, to all lanes that want it. `addresses` are bytes,
/// one a lane, `access_bytes` is 1, 2, 4, 8 or 16.
BankConflicts bank_conflicts(const std::vector<int64_t>& addresses, int access_bytes);

/// Lane i accesses what starts at element layout(i).
BankConflicts bank_conflicts(const Layout& lanes, int element_bytes, int access_bytes);
BankConflicts bank_conflicts(const SwizzledLayout& lanes, int element_bytes, int access_bytes);

}  // namespace tw
