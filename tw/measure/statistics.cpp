#include <algorithm>
#include <cmath>
#include <numbers>
#include <numeric>
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

constexpr double kCounts = 1.02;

Verdict verdict(const Interval& ratio) {
  if (ratio.low > kCounts) return Verdict::faster;
  return ratio.high < 0.98 ? Verdict::slower : Verdict::equal;
}

/// The chance that Student's t of so many degrees of freedom is above x: its finite sums
/// (Abramowitz and Stegun, 26.7.3 and 26.7.4).
static double above_t(double x, int degrees) {
  const double angle = std::atan(x / std::sqrt(degrees)), c = std::cos(angle);
  const bool odd = degrees % 2 == 1;
  double term = odd ? c : 1, sum = degrees == 1 ? 0 : term;
  for (int k = odd ? 3 : 2; k < degrees; k += 2) sum += term *= c * c * (k - 1) / k;
  const double within =
      odd ? 2 / std::numbers::pi * (angle + std::sin(angle) * sum) : std::sin(angle) * sum;
  return std::clamp((1 - within) / 2, 0.0, 1.0);  // it is a rounding error off
}

double chance_of_blocks(const std::vector<double>& ours, const std::vector<double>& other) {
  const size_t n = std::min(ours.size(), other.size());
  if (n < 2) return 1;
  double sum = 0, squares = 0;
  for (size_t i = 0; i < n; ++i) sum += std::log(other[i] / ours[i] / kCounts);
  const double mean = sum / static_cast<double>(n);
  for (size_t i = 0; i < n; ++i) {
    const double off = std::log(other[i] / ours[i] / kCounts) - mean;
    squares += off * off;
  }
  const double error = std::sqrt(squares / static_cast<double>(n * (n - 1)));
  if (error == 0) return mean > 0 ? 0 : 1;
  return above_t(mean / error, static_cast<int>(n) - 1);
}

std::vector<bool> faster_of_many(const std::vector<double>& chances) {
  constexpr double kChance = 0.025;
  std::vector<size_t> order(chances.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::ranges::sort(order, {}, [&](size_t i) { return chances[i]; });
  std::vector<bool> faster(chances.size());
  for (size_t i = 0; i < order.size(); ++i) {
    if (chances[order[i]] >= kChance / static_cast<double>(order.size() - i)) break;
    faster[order[i]] = true;
  }
  return faster;
}

Interval ratio_of_blocks(const std::vector<double>& ours, const std::vector<double>& other) {
  std::vector<double> ratios(std::min(ours.size(), other.size()));
  for (size_t i = 0; i < ratios.size(); ++i) ratios[i] = other[i] / ours[i];
  return median_interval(std::move(ratios));
}

Interval Comparison::ratio(int ours, int other) const {
  return ratio_of_blocks(all[ours].block_us, all[other].block_us);
}

double Comparison::chance(int ours, int other) const {
  return chance_of_blocks(all[ours].block_us, all[other].block_us);
}

}  // namespace tw::measure
