#include <algorithm>
#include <random>

#include "tw/base/error.h"
#include "tw/measure/compare.h"

namespace tw::measure {

double median(std::vector<double> v) {
  if (v.empty()) throw InternalError("the median of no values was asked for");
  const size_t middle = v.size() / 2;
  std::nth_element(v.begin(), v.begin() + middle, v.end());
  if (v.size() % 2 == 1) return v[middle];
  return (v[middle] + *std::max_element(v.begin(), v.begin() + middle)) / 2;
}

Interval median_interval(std::vector<double> values, uint64_t seed) {
  const double middle = median(values);
  constexpr int kResamples = 2000;
  std::mt19937_64 random(seed);
  std::uniform_int_distribution<size_t> pick(0, values.size() - 1);
  std::vector<double> medians(kResamples), sample(values.size());
  for (double& m : medians) {
    for (double& s : sample) s = values[pick(random)];
    m = median(sample);
  }
  std::sort(medians.begin(), medians.end());
  return {middle, medians[kResamples / 40], medians[kResamples - 1 - kResamples / 40]};
}

Verdict verdict(const Interval& ratio) {
  if (ratio.low > 1.02) return Verdict::faster;
  return ratio.high < 0.98 ? Verdict::slower : Verdict::equal;
}

Interval ratio_of_blocks(const std::vector<double>& ours, const std::vector<double>& other) {
  std::vector<double> ratios(std::min(ours.size(), other.size()));
  for (size_t i = 0; i < ratios.size(); ++i) ratios[i] = other[i] / ours[i];
  return median_interval(std::move(ratios));
}

Interval Comparison::ratio(int ours, int other) const {
  return ratio_of_blocks(all[ours].block_us, all[other].block_us);
}

}  // namespace tw::measure
