#pragma once

#include <span>
#include <string>
#include <vector>

#include "tw/measure/compare.h"

namespace tw::measure {

/// Of values that lie evenly about their middle: the median of the means of all pairs, and its 95 %
/// interval by signed ranks (Hodges and Lehmann 1963). An outlier moves it little, and it needs a
/// third fewer values than a median. Throws InternalError for no values.
Interval pair_mean_interval(std::span<const double> values);

struct ChangeSettings {
  int least_rounds = 8, most_rounds = 40;
  double width = 0.012;  ///< rounds go on until the interval of the ratio is as narrow as that
  Settings round = short_round();
  static Settings short_round();
};

/// How much faster one contestant is than another that should be no slower.
struct Change {
  Interval ratio;              ///< time of the first over time of the second: below 1 is slower
  std::vector<double> rounds;  ///< of each round
  int disturbed = 0;           ///< blocks that stayed disturbed by other processes
  double before_us = 0, after_us = 0;
  /// A change counts when the interval lies beyond 1 and its middle 1.5 % beyond.
  Verdict verdict() const;
};
inline constexpr double kLeastChange = 0.015;

/// Runs both side by side, each round in new processes, so that luck with memory and with where
/// code lies differs from round to round and counts as noise. Throws DeviceError when one fails.
Change change_between(const Job& job, const ContestantSpec& before, const ContestantSpec& after,
                      const ChangeSettings& settings = {});

}  // namespace tw::measure
