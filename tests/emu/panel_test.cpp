#include <gtest/gtest.h>

#include "tw/emit/cuda/operands.h"
#include "tw/layout/banks.h"

namespace tw::test {
namespace {

/// Lines of panels as the units read them: `line_of` and `place_of` lane, both in elements.
BankConflicts conflicts(DType t, int64_t line, int access, int64_t (*line_of)(int),
                        int64_t (*place_of)(int), bool words_across = false) {
  std::vector<int64_t> addresses;
  for (int lane = 0; lane < 32; ++lane)
    addresses.push_back((line_of(lane) * cuda::pitch_of(t, line, words_across) + place_of(lane)) *
                        bytes(t));
  return bank_conflicts(addresses, access);
}

TEST(Panels, AreReadWithoutBankConflicts) {
  for (int64_t line = 1; line <= 300; ++line) {
    for (const DType t : {bf16, i8, f32}) {  // four matrices of eight lines of 16 bytes
      const BankConflicts matrices = conflicts(
          t, line, 16, [](int lane) { return int64_t{lane % 8}; }, [](int) { return int64_t{0}; });
      EXPECT_EQ(matrices.wavefronts, matrices.least) << name(t) << " " << line;
    }
    // Rows or columns of a product side by side, four steps of k each.
    const BankConflicts lines = conflicts(
        f32, line, 16, [](int lane) { return int64_t{lane % 16}; }, [](int) { return int64_t{0}; });
    EXPECT_EQ(lines.wavefronts, lines.least) << line;
    // Eight rows and four steps of k, along lines and across them.
    const BankConflicts rows = conflicts(
        f64, line, 8, [](int lane) { return int64_t{lane / 4}; },
        [](int lane) { return int64_t{lane % 4}; });
    EXPECT_EQ(rows.wavefronts, rows.least) << line;
    const BankConflicts columns = conflicts(
        f64, line, 8, [](int lane) { return int64_t{lane % 4}; },
        [](int lane) { return int64_t{lane / 4}; });
    EXPECT_EQ(columns.wavefronts, columns.least) << line;
    const BankConflicts words = conflicts(
        f32, line, 4, [](int lane) { return int64_t{lane % 4}; },
        [](int lane) { return int64_t{lane / 4}; }, true);
    EXPECT_EQ(words.wavefronts, words.least) << line;
  }
}

TEST(Panels, HavePitchesOfWholePieces) {
  EXPECT_EQ(cuda::pitch_of(bf16, 32), 40);
  EXPECT_EQ(cuda::pitch_of(bf16, 64), 72);
  EXPECT_EQ(cuda::pitch_of(bf16, 128), 136);
  EXPECT_EQ(cuda::pitch_of(i8, 64), 80);
  EXPECT_EQ(cuda::pitch_of(f32, 16), 20);
  EXPECT_EQ(cuda::pitch_of(f64, 16), 20);
}

TEST(MatrixLayout, GivesWarpsEqualParts) {
  const layout::ThreadValue l = cuda::matrix_layout({128, 128}, 8, false);
  EXPECT_EQ(
      to_string(l),
      "[128,128] threads (4:2@1)(8:1@0)(4:32@1)(2:64@0) values (2:1@1)(2:8@0)(4:8@1)(4:16@0)");
  const layout::ThreadValue rows = cuda::matrix_layout({64, 64}, 4, true);
  EXPECT_EQ(to_string(rows), "[64,64] threads (4:2@1)(8:1@0)(4:16@0) values (2:1@1)(2:8@0)(8:8@1)");
  const layout::ThreadValue spare = cuda::matrix_layout({16, 8}, 4, false);
  EXPECT_EQ(to_string(spare), "[16,8] threads (4:2@1)(8:1@0)(4:copies) values (2:1@1)(2:8@0)");
}

}  // namespace
}  // namespace tw::test
