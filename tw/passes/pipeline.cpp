#include "tw/passes/pipeline.h"

#include <cstdio>
#include <fmt/format.h>
#include <vector>

#include "tw/base/env.h"
#include "tw/base/error.h"
#include "tw/ir/print.h"
#include "tw/ir/verify.h"
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

/// TW_DUMP=PASS[@PROGRAM].
bool wants_dump(const std::string& wish, const std::string& pass, const std::string& program) {
  if (wish.empty()) return false;
  const size_t split = wish.find('@');
  const std::string passes = wish.substr(0, split);
  const std::string programs = split == std::string::npos ? "*" : wish.substr(split + 1);
  return matches(passes == "all" ? "*" : passes, pass) && matches(programs, program);
}

}  // namespace

Specialisation contiguous_facts(const Program& p) {
  Specialisation s;
  for (const Param& a : p.params) {
    const int rank = static_cast<int>(a.dims.size());
    s.params.push_back({.dtype = a.dtype, .rank = rank, .unit_axis = rank - 1});
  }
  return s;
}

std::span<const Pass> cpu_passes() { return kCpu; }

const Pass& pass_named(const std::string& name) {
  std::string known;
  for (const Pass& pass : kCpu) {
    if (name == pass.name) return pass;
    known += (known.empty() ? "" : ", ") + std::string(pass.name);
  }
  throw UserError(fmt::format("no pass is named '{}'", name), "known passes: " + known);
}

void run_passes(Program& p, std::span<const Pass> passes, const PassContext& context,
                bool always_verify) {
  const std::string dump = env(Env::dump);
  for (const Pass& pass : passes) {
    pass.run(p, context);
    if (wants_dump(dump, pass.name, p.name)) {
      std::fputs(
          fmt::format("// {} after {}\n{}\n", p.name, pass.name, print(p, {.lines = true})).c_str(),
          stderr);
    }
    if (always_verify || env_on(Env::verify)) verify(p, pass.name);
  }
}

}  // namespace tw
