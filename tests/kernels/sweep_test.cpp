#include <gtest/gtest.h>

#include "tests/kernels/run_kernel.h"
#include "tests/support/expect_error.h"

namespace tw {

using kernels::KernelEntry;
using kernels::Problem;

class KernelSweep : public testing::TestWithParam<KernelEntry> {};

/// Every kernel of the library, over its sweep, within its bound (check::Sweep says what is
/// checked).
TEST_P(KernelSweep, HoldsItsBound) {
  const KernelEntry& entry = GetParam();
  check::Sweep sweep;
  for (const Problem& p : entry.sweep()) {
    Problem whole = complete(entry, p);
    sweep.add(std::string(entry.name) + " " + to_string(whole), test::subject(entry, whole));
  }
  EXPECT_EQ(sweep.verdict(), "");
  RecordProperty("worst", std::to_string(sweep.worst()));
  fmt::print("{}: {} elements, worst error {:.3f} of its bound at {}\n", entry.name,
             sweep.elements(), sweep.worst(), sweep.worst_case());
}

INSTANTIATE_TEST_SUITE_P(Library, KernelSweep, testing::ValuesIn(kernels::kernel_list()),
                         [](const auto& info) { return std::string(info.param.name); });

TEST(KernelList, IsSortedAndNamesNearOnes) {
  const auto& list = kernels::kernel_list();
  for (size_t i = 1; i < list.size(); ++i)
    EXPECT_LT(std::string(list[i - 1].name), std::string(list[i].name));
  TW_EXPECT_ERROR(UserError, "did you mean 'softmax'?", [] { kernels::kernel_named("sofmax"); });
}

TEST(KernelList, RefusesWhatAKernelDoesNotHave) {
  const KernelEntry& k = kernels::kernel_named("row_reduce");
  TW_EXPECT_ERROR(UserError, "has no axis 'k'", [&] { complete(k, {.shape = {{"k", 1}}}); });
  TW_EXPECT_ERROR(UserError, "is -1, which is negative", [&] {
    complete(k, {.shape = {{"m", -1}}});
  });
  TW_EXPECT_ERROR(UserError, "has no option 'ops'", [&] {
    complete(k, {.options = {{"ops", "sum"}}});
  });
  TW_EXPECT_ERROR(UserError, "did you mean 'sum'?", [&] {
    complete(k, {.options = {{"op", "sun"}}});
  });
  TW_EXPECT_ERROR(UserError, "use one of f32, bf16", [&] { complete(k, {.dtype = i8}); });
}

}  // namespace tw
