#include <fmt/format.h>
#include <gtest/gtest.h>

#include "tw/base/env.h"
#include "tw/ir/program.h"

#include "tests/support/golden.h"

namespace tw::test {

/// Pages made from a table are compared with the committed ones and rewritten like golden files.
static void expect_page(const std::string& name, const std::string& text) {
  GoldenFolder docs(TW_TEST_DIR "/../../docs", std::getenv("TW_UPDATE_GOLDEN") != nullptr);
  EXPECT_TRUE(docs.compare(name, text));
}

static std::string count(int n) { return n == kMany ? "any" : std::to_string(n); }

TEST(Docs, EnvironmentPageIsCurrent) {
  std::string page =
      "# Environment variables\n\n"
      "Generated from `tw/base/env.def`; do not edit. `TW_HELP=1 tilewright` prints the same.\n\n"
      "| variable | default | meaning |\n| --- | --- | --- |\n";
  for (const EnvFlag& flag : env_table()) {
    page += fmt::format("| `{}` | {} | {} |\n", flag.name,
                        *flag.fallback ? fmt::format("`{}`", flag.fallback) : "", flag.sentence);
  }
  expect_page("env.md", page);
}

static std::string error_of(Opcode code) {
  const double ulps = stated_ulps(code, f32);
  return ulps > 0 ? fmt::format("{}, {}", ulps, stated_ulps(code, f64)) : "";
}

TEST(Docs, OpsPageIsCurrent) {
  constexpr OpInfo kOps[] = {
#define TW_OP(name, operands, results, effect, attribute, sentence) \
  {#name, operands, results, Effect::effect, #attribute, sentence},
#include "tw/ir/ops.def"
#undef TW_OP
  };
  constexpr const char* kEffects[] = {"pure", "read", "write", "host", "control"};
  std::string page =
      "# Operations of the ir\n\n"
      "Generated from `tw/ir/ops.def`; do not edit. What each means for every input is in "
      "[language.md](language.md). \"ulp\" is how far a function may be off, in f32 and in f64; "
      "other results are correctly rounded.\n\n"
      "| op | operands | results | effect | attribute | ulp | meaning |\n"
      "| --- | --- | --- | --- | --- | --- | --- |\n";
  int code = 0;
  for (const OpInfo& op : kOps) {
    std::string name = op.name;
    if (name.back() == '_') name.pop_back();
    page += fmt::format("| `{}` | {} | {} | {} | {} | {} | {} |\n", name, count(op.operands),
                        count(op.results), kEffects[static_cast<int>(op.effect)],
                        std::string(op.attribute) == "None" ? "" : op.attribute,
                        error_of(static_cast<Opcode>(code++)), op.sentence);
  }
  expect_page("ops.md", page);
}

}  // namespace tw::test
