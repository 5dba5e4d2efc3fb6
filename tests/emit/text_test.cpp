#include <gtest/gtest.h>

#include "tests/emit/run_text.h"
#include "tests/support/golden.h"
#include "tests/support/guarded.h"

namespace tw::test {
namespace {

const char* const kScale = R"(program scale
dim N
in x: f32[N]
out y: f32[N]
grid (cdiv(N, 64))
%0 = load x{pid0*64} : f32[64]
%1 = full 2 : f32[1]
%twice.2 = mul %0, %1 : f32[64]
store %twice.2 to y{pid0*64}
)";

TEST(Text, ReadsLikeTheProgram) {
  Guarded x(f32, {100}), y(f32, {100});
  TW_EXPECT_GOLDEN("scale.avx2.txt", text_for(kScale, {x, y}, "avx2"));
}

TEST(Text, AStrideIsAVariableOnlyWhereItIsNotOne) {
  Guarded x(f32, {100}), y(f32, {100}), apart(f32, {100}, {2});
  EXPECT_EQ(text_for(kScale, {x, y}, "avx2").find("x_s0"), std::string::npos);
  const std::string text = text_for(kScale, {apart, y}, "avx2");
  EXPECT_NE(text.find("const i64 x_s0 = args->strides[0];"), std::string::npos) << text;
  EXPECT_NE(text.find("tw_gather_f32x8("), std::string::npos) << text;
}

TEST(Text, OnlyFunctionsInUseArePrinted) {
  Guarded x(f32, {100}), y(f32, {100});
  EXPECT_EQ(text_for(kScale, {x, y}, "avx2").find("tw_exp"), std::string::npos);
}

TEST(Text, EqualProgramsGiveEqualText) {
  Guarded x(f32, {100}), y(f32, {100});
  EXPECT_EQ(text_for(kScale, {x, y}, "avx512"), text_for(kScale, {x, y}, "avx512"));
  EXPECT_NE(text_for(kScale, {x, y}, "avx512"), text_for(kScale, {x, y}, "generic"));
}

}  // namespace
}  // namespace tw::test
