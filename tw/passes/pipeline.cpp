#include "tw/passes/pipeline.h"

#include <algorithm>
#include <cstdio>
#include <fmt/format.h>
#include <vector>

#include "tw/base/env.h"
#include "tw/base/error.h"
#include "tw/ir/print.h"
#include "tw/ir/verify.h"
#include "tw/passes/first_false.h"
#include "tw/passes/fold_after_loop.h"
#include "tw/passes/free_tiles.h"
#include "tw/passes/fuse_contraction.h"
#include "tw/passes/merge_equal.h"
#include "tw/passes/nest_grid.h"
#include "tw/passes/place_tiles.h"
#include "tw/passes/simplify.h"

namespace tw {
namespace {

const Pass kCpu[] = {
    {"canonicalize", [](Program& p, const PassContext&) { canonicalize(p); }},  // ir may be a file
    {"simplify", simplify},                  // before merge_equal: it makes ops equal
    {"merge_equal", merge_equal},            // before fusion, which looks for single uses
    {"fuse_contraction", fuse_contraction},  // first that lowers: the next keep operands in memory
    {"free_tiles", free_tiles},              // of what is one contraction now
    {"place_tiles", place_tiles},            // on the whole body: what it keeps depends on all uses
    {"nest_grid", nest_grid},                // last: nothing above looks across instances
};

const Pass kCuda[] = {
    {"canonicalize", [](Program& p, const PassContext&) { canonicalize(p); }},  // ir may be a file
    {"simplify", simplify},        // before merge_equal: it makes ops equal
    {"first_false", first_false},  // before merge_equal: asserts of one shape have equal ops
    {"merge_equal", merge_equal},  // before what looks for single uses
    {"fold_after_loop", fold_after_loop},  // last: folds behind loops find nothing equal
};

/// `*` stands for any text.
bool matches(std::string_view pattern, std::string_view text) {
  if (pattern.empty()) return text.empty();
  if (pattern[0] != '*') {
    return !text.empty() && pattern[0] == text[0] && matches(pattern.substr(1), text.substr(1));
  }
  for (size_t skip = 0; skip <= text.size(); ++skip) {
    if (matches(pattern.substr(1), text.substr(skip))) return true;
  }
  return false;
}

/// Passes of both lists, each once.
std::vector<const Pass*> all_passes() {
  std::vector<const Pass*> all;
  for (const Pass& pass : kCpu) all.push_back(&pass);
  for (const Pass& pass : kCuda) {
    const std::string_view name = pass.name;
    if (std::ranges::none_of(kCpu, [&](const Pass& p) { return p.name == name; }))
      all.push_back(&pass);
  }
  return all;
}

std::string known_passes() {
  std::string known;
  for (const Pass* pass : all_passes())
    known += (known.empty() ? "" : ", ") + std::string(pass->name);
  return known;
}

/// What TW_DUMP asks for: PASS[@PROGRAM].
struct Dump {
  explicit Dump(const std::string& wish) : passes(wish.substr(0, wish.find('@'))) {
    if (wish.empty()) return;
    if (passes == "all") passes = "*";
    if (const size_t split = wish.find('@'); split != std::string::npos)
      programs = wish.substr(split + 1);
    if (std::ranges::none_of(all_passes(),
                             [&](const Pass* p) { return matches(passes, p->name); })) {
      throw UserError(fmt::format("TW_DUMP is '{}', which names no pass", wish),
                      fmt::format("known passes: {}, all", known_passes()));
    }
  }

  bool wants(const Pass& pass, const Program& p) const {
    return matches(passes, pass.name) && matches(programs, p.name);
  }

  std::string passes, programs = "*";
};

}  // namespace

Specialisation contiguous_facts(const Program& p) {
  Specialisation s;
  for (const Param& a : arguments(p)) {
    const int rank = static_cast<int>(a.dims.size());
    s.params.push_back({.dtype = a.dtype, .rank = rank, .unit_axis = rank - 1});
  }
  return s;
}

std::span<const Pass> cpu_passes() { return kCpu; }
std::span<const Pass> cuda_passes() { return kCuda; }

const Pass& pass_named(const std::string& name) {
  for (const Pass* pass : all_passes()) {
    if (name == pass->name) return *pass;
  }
  throw UserError(fmt::format("no pass is named '{}'", name), "known passes: " + known_passes());
}

void run_passes(Program& p, std::span<const Pass> passes, const PassContext& context,
                bool always_verify) {
  const Dump dump(env(Env::dump));
  for (const Pass& pass : passes) {
    pass.run(p, context);
    if (dump.wants(pass, p)) {
      std::fputs(
          fmt::format("// {} after {}\n{}\n", p.name, pass.name, print(p, {.lines = true})).c_str(),
          stderr);
    }
    if (always_verify || env_on(Env::verify)) verify(p, pass.name);
  }
}

}  // namespace tw
