#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tw/cli/bench_case.h"
#include "tw/cli/verb.h"

namespace tw::cli {

/// How much worse than an earlier row a new one may be, beyond the intervals of both.
inline constexpr double kMostLoss = 0.05;

/// A row beside the last earlier one of the same key. What is compared is the ratio to the peer; of
/// rows without one the share of the ceiling, which was measured in the same run: both stay when
/// the machine is slower as a whole.
struct RowChange {
  std::string key;
  std::string what;  ///< "ratio" or "ceiling"
  double was = 0, was_low = 0, is = 0, is_high = 0;
  bool lost() const { return is_high < (1 - kMostLoss) * was_low; }
};

struct RowChanges {
  std::vector<RowChange> all;
  std::vector<std::string> fresh;  ///< keys of rows without an earlier one
};
RowChanges changes_of(const std::vector<nlohmann::json>& now,
                      const std::vector<nlohmann::json>& earlier);

/// Prints them, what was lost in the end. 1 when something was, else 0; UserError where nothing
/// was compared.
int report_changes(const RowChanges& c);

/// Every case beside the command of an earlier build, which traces and compiles it itself: see
/// measure/change.h. 1 when one is slower.
int bench_before(const BenchPlan& plan, const Arguments& a);

}  // namespace tw::cli
