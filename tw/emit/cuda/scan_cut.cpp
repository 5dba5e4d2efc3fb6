#include <algorithm>

#include "tw/emit/cuda/scan.h"

namespace tw::cuda {

using layout::ThreadValue;

namespace {

constexpr int64_t kWarp = 32;

/// A digit of the coordinate along the scanned axis.
struct ScanDigit {
  int64_t stride, extent;
  int64_t below;  ///< of threads; 0: of values
  size_t mode;
};

std::vector<ScanDigit> digits_along(const ThreadValue& l, int64_t axis) {
  std::vector<ScanDigit> digits;
  int64_t below = 1;
  for (size_t m = 0; m < l.threads.size(); ++m) {
    const ThreadValue::Mode& t = l.threads[m];
    const int64_t inside = std::clamp<int64_t>(kWarp / below, 1, t.extent);
    if (t.axis == axis && inside > 1) digits.push_back({t.stride, inside, below, m});
    if (t.axis == axis && inside < t.extent)
      digits.push_back({t.stride * inside, t.extent / inside, below * inside, m});
    below *= t.extent;
  }
  for (size_t m = 0; m < l.values.size(); ++m) {
    const ThreadValue::Mode& v = l.values[m];
    if (v.axis == axis && v.extent > 1) digits.push_back({v.stride, v.extent, 0, m});
  }
  std::ranges::sort(digits, {}, &ScanDigit::stride);
  return digits;
}

}  // namespace

std::optional<ScanCut> scan_cut(const ThreadValue& l, int64_t axis) {
  ScanCut cut;
  int64_t next = 1;
  bool lanes = false, warps = false;
  for (const ScanDigit& d : digits_along(l, axis)) {
    if (d.stride != next) return std::nullopt;
    next *= d.extent;
    if (d.below == 0) {
      (warps ? cut.high : lanes ? cut.middle : cut.low).push_back(d.mode);
    } else if (d.below < kWarp) {
      if (lanes || warps) return std::nullopt;
      lanes = true;
      cut.lanes = {d.below, d.extent};
    } else {
      if (warps) return std::nullopt;
      warps = true;
      cut.warps = {d.below, d.extent};
    }
  }
  for (size_t m = 0; m < l.values.size(); ++m) {
    if (l.values[m].axis != axis) cut.other.push_back(m);
  }
  return cut;
}

ThreadValue with_whole_warps(ThreadValue l, int64_t axis) {
  int64_t below = 1;
  for (size_t m = 0; m < l.threads.size(); ++m) {
    ThreadValue::Mode& t = l.threads[m];
    const int64_t inside = kWarp / below;
    if (t.axis == axis && inside > 1 && inside < t.extent) {
      const ThreadValue::Mode whole = t;
      const auto repeat = std::ranges::find_if(l.values, [&](const ThreadValue::Mode& v) {
        return v.axis == axis && v.stride == whole.stride * whole.extent;
      });
      if (repeat == l.values.end()) return l;
      t.extent = inside;
      repeat->stride = t.stride * inside;
      const int64_t stride = repeat->stride * repeat->extent;
      l.threads.insert(l.threads.begin() + static_cast<std::ptrdiff_t>(m) + 1,
                       {whole.extent / inside, whole.axis, stride});
      return l;
    }
    below *= t.extent;
    if (below >= kWarp) return l;
  }
  return l;
}

}  // namespace tw::cuda
