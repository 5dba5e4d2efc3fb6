#include "tw/measure/change.h"

#include <algorithm>
#include <cmath>

#include "tw/base/error.h"

namespace tw::measure {

Interval pair_mean_interval(std::span<const double> values) {
  std::vector<double> means;
  for (size_t i = 0; i < values.size(); ++i)
    for (size_t j = i; j < values.size(); ++j) means.push_back((values[i] + values[j]) / 2);
  const double middle = median(means);
  std::ranges::sort(means);
  const double n = static_cast<double>(values.size());
  const double outside = n * (n + 1) / 4 - 1.96 * std::sqrt(n * (n + 1) * (2 * n + 1) / 24);
  const auto k = static_cast<size_t>(std::clamp(outside, 0.0, (n * (n + 1) / 2 - 1) / 2));
  return {middle, means[k], means[means.size() - 1 - k]};
}

Settings ChangeSettings::short_round() {
  Settings s;
  s.blocks = 4;
  s.slice_s = 0.02;
  s.refreshes = 1;
  s.repeats = 4;
  return s;
}

Verdict Change::verdict() const {
  if (ratio.low > 1 && ratio.median > 1 + kLeastChange) return Verdict::faster;
  return ratio.high < 1 && ratio.median < 1 - kLeastChange ? Verdict::slower : Verdict::equal;
}

/// The ratio is found from its logarithm, in which slower and faster lie evenly.
static Interval ratio_interval(const std::vector<double>& rounds) {
  std::vector<double> logs;
  for (double r : rounds) logs.push_back(std::log(r));
  const Interval i = pair_mean_interval(logs);
  return {std::exp(i.median), std::exp(i.low), std::exp(i.high)};
}

Change change_between(const Job& job, const ContestantSpec& before, const ContestantSpec& after,
                      const ChangeSettings& settings) {
  Change c;
  std::vector<double> times[2];
  for (int round = 0; round < settings.most_rounds; ++round) {
    const Comparison r = compare(job, {before, after}, settings.round);
    for (int who : {0, 1}) {
      if (!r.all[who].failure.empty()) throw DeviceError(r.all[who].failure);
      times[who].push_back(r.all[who].time_us.median);
    }
    c.rounds.push_back(r.ratio(1, 0).median);
    c.disturbed += r.disturbed;
    c.ratio = ratio_interval(c.rounds);
    if (round + 1 >= settings.least_rounds && c.ratio.high - c.ratio.low <= settings.width) break;
  }
  c.before_us = median(times[0]);
  c.after_us = median(times[1]);
  return c;
}

}  // namespace tw::measure
