#include "tw/interp/rank.h"

#include <algorithm>
#include <cmath>

namespace tw {
namespace {

bool before(bool floats, const Ranked& a, const Ranked& b) {
  if (floats) {
    const bool nan_a = std::isnan(a.value.f), nan_b = std::isnan(b.value.f);
    if (nan_a != nan_b) return nan_a;
    if (!nan_a && a.value.f != b.value.f) return a.value.f > b.value.f;
  } else if (a.value.i != b.value.i) {
    return a.value.i > b.value.i;
  }
  return a.index.i < b.index.i;
}

bool may_swap(const Ranked& a, const Ranked& b) {
  const double room = a.value.bound + b.value.bound;
  return room > 0 && !(std::fabs(a.value.f - b.value.f) > room);
}

}  // namespace

void rank(bool floats, std::vector<Ranked>& pairs) {
  bool unknown = false;
  double room = 0;
  for (const Ranked& p : pairs) {
    unknown = unknown || p.value.undecided || p.index.undecided;
    room = std::max(room, p.value.bound);
  }
  std::sort(pairs.begin(), pairs.end(),
            [&](const Ranked& a, const Ranked& b) { return before(floats, a, b); });
  std::vector<bool> open(pairs.size(), unknown);
  for (size_t n = 1; n < pairs.size(); ++n) {
    if (may_swap(pairs[n - 1], pairs[n])) open[n - 1] = open[n] = true;
  }
  for (size_t n = 0; n < pairs.size(); ++n) {
    pairs[n].value.undecided = unknown;
    if (open[n]) {
      pairs[n].index = Scalar::unknown();
      pairs[n].value.bound = room;
    }
  }
}

}  // namespace tw
