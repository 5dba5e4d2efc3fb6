#include "tw/ir/infer.h"

#include <functional>
#include <gtest/gtest.h>

#include "tw/base/error.h"

#include "tests/support/expect_error.h"

namespace tw {
namespace {

const SourceLoc kAt{"k.cpp", 5};
const Type kTile{f32, {64, 32}}, kRow{f32, {1, 32}}, kMask{b1, {64, 1}}, kInt{i32, {64, 32}};

TEST(Infer, ExtentsOfOneStretch) {
  EXPECT_EQ(infer_binary(Opcode::add, kTile, kRow, kAt), kTile);
  EXPECT_EQ(infer_binary(Opcode::lt, {f32, {64, 1}}, kRow, kAt), (Type{b1, {64, 32}}));
  EXPECT_EQ(infer_where(kMask, kRow, kRow, kAt), kTile);
  EXPECT_EQ(infer_broadcast(kRow, {64, 32}, kAt), kTile);
}

TEST(Infer, ShapesOfMoves) {
  EXPECT_EQ(infer_reshape(kTile, {2, 32, 32}, kAt), (Type{f32, {2, 32, 32}}));
  EXPECT_EQ(infer_transpose({f16, {2, 3, 4}}, {2, 0, 1}, kAt), (Type{f16, {4, 2, 3}}));
  EXPECT_EQ(infer_reduce(kTile, 1, Combiner::max, kAt), (Type{f32, {64, 1}}));
  EXPECT_EQ(infer_cast(kTile, bf16, kAt), (Type{bf16, {64, 32}}));
  EXPECT_EQ(infer_bitcast(kTile, i32, kAt), kInt);
}

TEST(Infer, DotKeepsTheAccumulator) {
  const Type acc{f32, {64, 16}}, wide{f64, {64, 16}}, exact{i32, {64, 16}};
  for (DType t : {f16, bf16, f32, e4m3})
    EXPECT_EQ(infer_dot({t, {64, 8}}, {t, {8, 16}}, acc, Precision::ieee, kAt), acc);
  for (Precision p : {Precision::tf32, Precision::tf32x3})
    EXPECT_EQ(infer_dot({f32, {64, 8}}, {f32, {8, 16}}, acc, p, kAt), acc);
  EXPECT_EQ(infer_dot({e4m3, {64, 8}}, {e5m2, {8, 16}}, acc, Precision::ieee, kAt), acc);
  EXPECT_EQ(infer_dot({f64, {64, 8}}, {f64, {8, 16}}, wide, Precision::ieee, kAt), wide);
  EXPECT_EQ(infer_dot({u8, {64, 8}}, {i8, {8, 16}}, exact, Precision::ieee, kAt), exact);
}

TEST(Infer, PrecisionsOtherThanIeeeAreOfF32) {
  const auto dot = [](DType in, DType sum, Precision p) {
    return infer_dot({in, {64, 8}}, {in, {8, 16}}, {sum, {64, 16}}, p, kAt);
  };
  TW_EXPECT_ERROR(UserError, "into f32[64,16] with precision tf32; it is one of f32 operands",
                  [&] { dot(f16, f32, Precision::tf32); });
  TW_EXPECT_ERROR(UserError, "into f64[64,16] with precision tf32x3; it is one of f32 operands",
                  [&] { dot(f32, f64, Precision::tf32x3); });
}

TEST(Infer, WhatDoesNotFitIsAnErrorAtTheLine) {
  const struct {
    const char* error;
    std::function<void()> make;
  } wrong[] = {
      {"k.cpp:5: error: 'add' mixes f32[64,32] and i32[64,32]; cast one of them",
       [] { infer_binary(Opcode::add, kTile, kInt, kAt); }},
      {"'add' on shapes [64,32] and [32]: ranks differ; say which axis with as_row() or as_col()",
       [] {
         infer_binary(Opcode::add, kTile, {f32, {32}}, kAt);
       }},
      {"'mul' on shapes [64,32] and [64,31]: axis 1 does not match; extents must be equal, or 1",
       [] {
         infer_binary(Opcode::mul, kTile, {f32, {64, 31}}, kAt);
       }},
      {"'add' on b1[64,1]: a mask is no number; use & | ^ ~ and where(), or cast it",
       [] { infer_binary(Opcode::add, kMask, kMask, kAt); }},
      {"'and' needs an integer or b1 tile, got f32[64,32]; bitcast it to look at its bits",
       [] { infer_binary(Opcode::and_, kTile, kTile, kAt); }},
      {"'rem' needs an integer tile, got f32[64,32]",
       [] { infer_binary(Opcode::rem, kTile, kTile, kAt); }},
      {"'exp' needs a float tile, got i32[64,32]; cast it to f32",
       [] { infer_unary(Opcode::exp, kInt, kAt); }},
      {"'neg' on e4m3[8]: e4m3 only stores data; cast it to f32 or f16 first",
       [] {
         infer_unary(Opcode::neg, {e4m3, {8}}, kAt);
       }},
      {"'where' needs a b1 mask, got f32[64,32]; compare with ne(x, 0)",
       [] { infer_where(kTile, kTile, kTile, kAt); }},
      {"'where' mixes f32[64,32] and i32[64,32]", [] { infer_where(kMask, kTile, kInt, kAt); }},
      {"bitcast of f32[64,32] to f16: sizes differ (32 and 16 bits)",
       [] { infer_bitcast(kTile, f16, kAt); }},
      {"bitcast of b1[64,1] to u8: b1 has no bits to reinterpret",
       [] { infer_bitcast(kMask, u8, kAt); }},
      {"cast of f32 to i32 with RZ: only casts between floats take rounding and saturation",
       [] {
         check_cast(f32, i32, {Rounding::RZ, false, 0}, kAt);
       }},
      {"cast of i32 to f16 with saturation",
       [] {
         check_cast(i32, f16, {Rounding::RN, true, 0}, kAt);
       }},
      {"reshape of f32[64,32] to [64]: 2048 elements become 64",
       [] { infer_reshape(kTile, {64}, kAt); }},
      {"transpose of f32[64,32] by (0, 0), which does not name each of its 2 axes once",
       [] {
         infer_transpose(kTile, {0, 0}, kAt);
       }},
      {"broadcast of f32[64,32] to [1,32]: only extents of 1 stretch",
       [] {
         infer_broadcast(kTile, {1, 32}, kAt);
       }},
      {"'reduce sum' along axis 2 of f32[64,32], which has 2 axes",
       [] { infer_reduce(kTile, 2, Combiner::sum, kAt); }},
      {"'reduce xor' needs an integer or b1 tile",
       [] { infer_reduce(kTile, 0, Combiner::xor_, kAt); }},
      {"dot of f32[32] and f32[64,32]: both need two axes",
       [] {
         infer_dot({f32, {32}}, kTile, kTile, Precision::ieee, kAt);
       }},
      {"dot of f32[64,32] and f32[64,32]: inner extents differ",
       [] { infer_dot(kTile, kTile, kTile, Precision::ieee, kAt); }},
      {"dot accumulates [64,16] into f32[64,32]",
       [] {
         infer_dot(kTile, {f32, {32, 16}}, kTile, Precision::ieee, kAt);
       }},
      {"dot of f16[64,8] and f16[8,16] into f16[64,16]; operands of one float type accumulate in",
       [] {
         infer_dot({f16, {64, 8}}, {f16, {8, 16}}, {f16, {64, 16}}, Precision::ieee, kAt);
       }},
      {"tile f32[4294967296,4294967296] has more than 268435456 elements; let the grid or a loop",
       [] {
         check_type({f32, {int64_t{1} << 32, int64_t{1} << 32}}, kAt);
       }},
  };
  for (const auto& w : wrong) TW_EXPECT_ERROR(UserError, w.error, w.make);
}

}  // namespace
}  // namespace tw
