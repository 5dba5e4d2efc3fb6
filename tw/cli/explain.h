#pragma once

#include "tw/cli/bench_case.h"
#include "tw/cli/verb.h"

namespace tw::cli {

/// The table of resources: what each takes at least at the rates of the maker (or that nothing
/// passes), and at those that were reached, where such are known.
void print_limits(const Limit& least, const std::optional<Limit>& hoped);
/// "limit_us_of" and "ceiling_us_of": by resource, those that are not 0.
void add_limits(nlohmann::json& row, const Limit& least, const std::optional<Limit>& hoped);
/// What the call moves and computes.
void print_work(const Work& w);

/// UserError where --rows is said, for what no row is read.
void expect_no_rows(const Arguments& a);

/// `explain` for a machine that need not be here: a GPU, or a CPU by its data sheet. Nothing is
/// run.
int explain_target(const Arguments& a);
/// Whether --device names one.
bool is_target(const std::string& device);

}  // namespace tw::cli
