#include "tw/cli/bench_against.h"

#include <algorithm>
#include <fmt/format.h>
#include <map>

#include "tw/base/error.h"
#include "tw/cli/rows.h"

namespace tw::cli {

using nlohmann::json;

namespace {

double number(const json& row, const char* field) {
  return row.contains(field) && row[field].is_number() ? row[field].get<double>() : 0;
}

/// What is compared, and its interval.
struct Quality {
  const char* what;
  double value, low, high;
};

Quality quality_of(const json& row) {
  if (!row.value("peer", "").empty()) {
    const json ci = row.value("ci95", json::array({0.0, 0.0}));
    return {"ratio", number(row, "ratio"), ci.at(0), ci.at(1)};
  }
  const double share = number(row, "ceiling_fraction"), time = number(row, "time_us");
  if (!row.contains("time_ci95") || time <= 0) return {"ceiling", share, share, share};
  const double low = row["time_ci95"].at(0), high = row["time_ci95"].at(1);
  return {"ceiling", share, share * time / std::max(high, time),
          share * time / std::min(low, time)};
}

}  // namespace

RowChanges changes_of(const std::vector<json>& now, const std::vector<json>& earlier) {
  std::map<std::string, const json*> last;
  for (const json& row : earlier) {
    const json*& known = last[key_of(row)];
    if (known == nullptr || row.value("date", "") >= known->value("date", "")) known = &row;
  }
  RowChanges c;
  for (const json& row : now) {
    const auto found = last.find(key_of(row));
    if (found == last.end()) {
      c.fresh.push_back(key_of(row));
      continue;
    }
    const Quality is = quality_of(row), was = quality_of(*found->second);
    c.all.push_back({key_of(row), is.what, was.value, was.low, is.value, is.high});
  }
  return c;
}

int report_changes(const RowChanges& c) {
  if (c.all.empty())
    throw UserError(
        fmt::format("--against: nothing was compared: none of the {} rows has an earlier one, as "
                    "'{}'",
                    c.fresh.size(), c.fresh.empty() ? "" : c.fresh.front()),
        "wanted rows of the same device, suite, kernel, shape, dtype, threads, cache and peer");
  size_t lost = 0;
  for (const RowChange& r : c.all) {
    lost += r.lost();
    if (r.lost())
      fmt::print("LOST  {}: {} {:.3f}, at most {:.3f}; was {:.3f}, at least {:.3f}\n", r.key,
                 r.what, r.is, r.is_high, r.was, r.was_low);
  }
  fmt::print("{} row{} compared, {} without an earlier one, {} lost more than {:.0f} %\n",
             c.all.size(), c.all.size() == 1 ? "" : "s", c.fresh.size(), lost, 100 * kMostLoss);
  return lost > 0 ? 1 : 0;
}

}  // namespace tw::cli
