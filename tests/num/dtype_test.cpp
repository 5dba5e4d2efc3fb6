#include "tw/num/dtype.h"

#include <cfloat>
#include <cstdlib>
#include <gtest/gtest.h>

namespace tw {
namespace {

TEST(DType, NamesRoundTrip) {
  for (int i = 0; i < kDTypeCount; ++i) {
    const DType t = static_cast<DType>(i);
    EXPECT_EQ(dtype_named(name(t)), t);
  }
  EXPECT_EQ(dtype_named("f8"), std::nullopt);
  EXPECT_EQ(dtype_named(""), std::nullopt);
}

TEST(DType, FloatsAreAsWideAsTheirFields) {
  for (DType t : {e4m3, e5m2, e3m2, e2m3, e2m1, f16, bf16, f32, f64})
    EXPECT_EQ(bits(t), 1 + info(t).exponent_bits + info(t).mantissa_bits) << name(t);
  EXPECT_EQ(bits(e8m0), info(e8m0).exponent_bits);
}

TEST(DType, NamesOfPackedTypesSayTheirBits) {
  for (int i = static_cast<int>(i1); i <= static_cast<int>(u7); ++i) {
    const DType t = static_cast<DType>(i);
    EXPECT_EQ(std::atoi(name(t) + 1), bits(t));
    EXPECT_EQ(is_signed_int(t), name(t)[0] == 'i');
    EXPECT_TRUE(is_packed(t));
    EXPECT_EQ(elements_of_bytes(t) * bits(t) % 8, 0);
  }
  EXPECT_EQ(elements_of_bytes(e2m1), 2);
  EXPECT_EQ(elements_of_bytes(e3m2), 4);
  EXPECT_EQ(elements_of_bytes(b1), 1);
}

TEST(DType, NumpyNamesHaveTheSize) {
  for (int i = 0; i < kDTypeCount; ++i) {
    const DType t = static_cast<DType>(i);
    EXPECT_EQ(std::atoi(info(t).numpy + 2), bytes(t)) << name(t);
  }
}

TEST(DType, LimitsOfFloats) {
  EXPECT_EQ(largest(e4m3), 448);
  EXPECT_EQ(largest(e5m2), 57344);
  EXPECT_EQ(largest(f16), 65504);
  EXPECT_EQ(largest(bf16), 0x1.fep127);
  EXPECT_EQ(largest(f32), FLT_MAX);
  EXPECT_EQ(largest(f64), DBL_MAX);
  EXPECT_EQ(lowest(f16), -65504);
  EXPECT_EQ(unit_roundoff(f32), 0x1p-24);
  EXPECT_EQ(unit_roundoff(bf16), 0x1p-8);
  EXPECT_EQ(unit_roundoff(i32), 0);
}

TEST(DType, LimitsOfIntegers) {
  EXPECT_EQ(largest(b1), 1);
  EXPECT_EQ(lowest(b1), 0);
  EXPECT_EQ(largest(i8), 127);
  EXPECT_EQ(lowest(i8), -128);
  EXPECT_EQ(largest(i4), 7);
  EXPECT_EQ(lowest(i4), -8);
  EXPECT_EQ(largest(u1), 1);
  EXPECT_EQ(lowest(i1), -1);
  EXPECT_EQ(largest(i1), 0);
  EXPECT_EQ(largest(u16), 65535);
  EXPECT_EQ(lowest(u64), 0);
  EXPECT_EQ(largest(i64), 0x1p63);
  EXPECT_EQ(largest(u64), 0x1p64);
  EXPECT_EQ(lowest(i64), -0x1p63);
}

}  // namespace
}  // namespace tw
