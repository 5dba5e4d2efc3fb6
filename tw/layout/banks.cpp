#include "tw/layout/banks.h"

#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <set>

#include "tw/base/error.h"

namespace tw {

constexpr int kBanks = 32, kWordBytes = 4, kLanes = 32;

static void check_access(const std::vector<int64_t>& addresses, int bytes) {
  if (bytes < 1 || bytes > 16 || (bytes & (bytes - 1)) != 0)
    throw UserError(
        fmt::format("bank conflicts: access of {} bytes: wanted 1, 2, 4, 8 or 16", bytes));
  if (addresses.size() > kLanes)
    throw UserError(
        fmt::format("bank conflicts: {} lanes: wanted at most {}", addresses.size(), kLanes));
  for (int64_t address : addresses)
    if (address < 0 || address % bytes != 0)
      throw UserError(
          fmt::format("bank conflicts: address {}: wanted a multiple of {}", address, bytes));
}

BankConflicts bank_conflicts(const std::vector<int64_t>& addresses, int bytes) {
  check_access(addresses, bytes);
  const size_t lanes = static_cast<size_t>(std::min(kLanes, kBanks * kWordBytes / bytes));
  BankConflicts result;
  for (size_t first = 0; first < addresses.size(); first += lanes) {
    std::array<std::set<int64_t>, kBanks> words;
    const size_t end = std::min(first + lanes, addresses.size());
    for (size_t lane = first; lane < end; lane++)
      for (int64_t at = addresses[lane]; at < addresses[lane] + bytes; at += kWordBytes)
        words[static_cast<size_t>(at / kWordBytes % kBanks)].insert(at / kWordBytes);
    size_t wavefronts = 0;
    for (const std::set<int64_t>& bank : words) wavefronts = std::max(wavefronts, bank.size());
    result.wavefronts += static_cast<int>(wavefronts);
    result.least++;
  }
  return result;
}

template <class L>
static BankConflicts conflicts_of_lanes(const L& lanes, int element_bytes, int access_bytes) {
  std::vector<int64_t> addresses;
  for (int64_t i = 0; i < std::min<int64_t>(lanes.size(), kLanes + 1); i++)
    addresses.push_back(lanes(i) * element_bytes);
  return bank_conflicts(addresses, access_bytes);
}

BankConflicts bank_conflicts(const Layout& lanes, int element_bytes, int access_bytes) {
  return conflicts_of_lanes(lanes, element_bytes, access_bytes);
}

BankConflicts bank_conflicts(const SwizzledLayout& lanes, int element_bytes, int access_bytes) {
  return conflicts_of_lanes(lanes, element_bytes, access_bytes);
}

}  // namespace tw
