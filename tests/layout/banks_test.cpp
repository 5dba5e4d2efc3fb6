#include "tw/layout/banks.h"

#include <numeric>

#include "tw/layout/algebra.h"

#include "tests/support/expect_error.h"

namespace tw::test {
namespace {

constexpr int kF32 = 4, kF16 = 2;

TEST(BankConflicts, RowsColumnsAndPaddedColumns) {
  EXPECT_EQ(bank_conflicts(Layout::compact(32), kF32, 4), (BankConflicts{1, 1}));
  EXPECT_EQ(bank_conflicts(Layout(32, 32), kF32, 4), (BankConflicts{32, 1}));
  EXPECT_EQ(bank_conflicts(Layout(32, 33), kF32, 4), (BankConflicts{1, 1}));
  EXPECT_EQ(bank_conflicts(Layout(32, 2), kF32, 4), (BankConflicts{2, 1}));
  for (int64_t stride = 1; stride <= 64; stride++)
    EXPECT_EQ(bank_conflicts(Layout(32, stride), kF32, 4).wavefronts, std::gcd(stride, 32))
        << stride;
}

TEST(BankConflicts, OneWordServesAllWhoWantIt) {
  EXPECT_EQ(bank_conflicts(Layout(32, 0), kF32, 4), (BankConflicts{1, 1}));
  EXPECT_EQ(bank_conflicts(Layout::compact(32), kF16, 2), (BankConflicts{1, 1}));
  EXPECT_EQ(bank_conflicts(Layout::compact(32), 1, 1), (BankConflicts{1, 1}));
  EXPECT_EQ(bank_conflicts(std::vector<int64_t>{0, 128, 0, 128}, 4), (BankConflicts{2, 1}));
  EXPECT_EQ(bank_conflicts(std::vector<int64_t>{}, 4), (BankConflicts{0, 0}));
}

TEST(BankConflicts, WideAccessesGoByHalfAndQuarterWarps) {
  EXPECT_EQ(bank_conflicts(Layout(32, 2), kF32, 8), (BankConflicts{2, 2}));
  EXPECT_EQ(bank_conflicts(Layout(32, 4), kF32, 16), (BankConflicts{4, 4}));
  EXPECT_EQ(bank_conflicts(Layout(16, 32), kF32, 8), (BankConflicts{16, 1}));
  EXPECT_EQ(bank_conflicts(Layout(8, 32), kF32, 16), (BankConflicts{8, 1}));
  // Lanes of different quarters do not meet.
  EXPECT_EQ(bank_conflicts(Layout({8, 4}, {4, 0}), kF32, 16), (BankConflicts{4, 4}));
}

/// The four 8x8 matrices that a warp reads at once from 64 x 64 f16, rows of 128 bytes.
TEST(BankConflicts, Swizzle128BFreesColumnsOfMatrices) {
  const Layout tile({64, 64}, {64, 1});
  const SwizzledLayout swizzled({3, 3, 3}, tile);  // in elements; Sw<3,4,3> of bytes
  for (int64_t chunk = 0; chunk < 64; chunk += 16) {
    std::vector<int64_t> plain, mixed;
    for (int64_t lane = 0; lane < 32; lane++) {
      const IntTuple at = {lane % 16, chunk + lane / 16 * 8};
      plain.push_back(tile(at) * kF16);
      mixed.push_back(swizzled(at) * kF16);
      EXPECT_EQ(mixed.back(), (Swizzle{3, 4, 3}(plain.back())));
    }
    EXPECT_EQ(bank_conflicts(plain, 16), (BankConflicts{32, 4}));
    EXPECT_EQ(bank_conflicts(mixed, 16), (BankConflicts{4, 4}));
  }
  // A row of 16 bytes a lane stays free.
  EXPECT_EQ(bank_conflicts(composition(swizzled, Layout({8, 4}, {64 * 8, 1})), kF16, 16),
            (BankConflicts{4, 4}));
}

TEST(BankConflicts, RefusesWhatNoWarpDoes) {
  TW_EXPECT_ERROR(UserError, "33 lanes: wanted at most 32",
                  [] { bank_conflicts(Layout::compact(99), 4, 4); });
  TW_EXPECT_ERROR(UserError, "access of 3 bytes: wanted 1, 2, 4, 8 or 16",
                  [] { bank_conflicts(Layout::compact(32), 4, 3); });
  TW_EXPECT_ERROR(UserError, "address 4: wanted a multiple of 16",
                  [] { bank_conflicts(Layout::compact(32), 4, 16); });
}

}  // namespace
}  // namespace tw::test
