#include "tw/num/dtype.h"

#include <cmath>
#include <limits>

namespace tw {
namespace {

using enum DTypeClass;

// In the order of the enum.
constexpr DTypeInfo kInfos[kDTypeCount] = {
    {"b1", boolean, 1, 0, 0, "|b1"},       {"i8", signed_int, 1, 0, 0, "|i1"},
    {"i16", signed_int, 2, 0, 0, "<i2"},   {"i32", signed_int, 4, 0, 0, "<i4"},
    {"i64", signed_int, 8, 0, 0, "<i8"},   {"u8", unsigned_int, 1, 0, 0, "|u1"},
    {"u16", unsigned_int, 2, 0, 0, "<u2"}, {"u32", unsigned_int, 4, 0, 0, "<u4"},
    {"u64", unsigned_int, 8, 0, 0, "<u8"}, {"e4m3", floating, 1, 3, 4, "|u1"},
    {"e5m2", floating, 1, 2, 5, "|u1"},    {"f16", floating, 2, 10, 5, "<f2"},
    {"bf16", floating, 2, 7, 8, "<u2"},    {"f32", floating, 4, 23, 8, "<f4"},
    {"f64", floating, 8, 52, 11, "<f8"},
};

double largest_float(DType t) {
  if (t == e4m3) return 448;  // the all-ones exponent holds numbers too; only its last code is NaN
  const DTypeInfo& f = info(t);
  const int top_exponent = (1 << (f.exponent_bits - 1)) - 1;
  return std::ldexp(2 - std::ldexp(1.0, -f.mantissa_bits), top_exponent);
}

}  // namespace

const DTypeInfo& info(DType t) { return kInfos[static_cast<int>(t)]; }

std::optional<DType> dtype_named(std::string_view name) {
  for (int i = 0; i < kDTypeCount; ++i)
    if (name == kInfos[i].name) return static_cast<DType>(i);
  return std::nullopt;
}

double unit_roundoff(DType t) {
  return is_float(t) ? std::ldexp(1.0, -info(t).mantissa_bits - 1) : 0;
}

double largest(DType t) {
  if (is_float(t)) return largest_float(t);
  if (t == b1) return 1;
  const int value_bits = static_cast<int>(8 * bytes(t)) - (is_signed_int(t) ? 1 : 0);
  return std::ldexp(1.0, value_bits) - 1;
}

double lowest(DType t) {
  if (is_float(t)) return -largest_float(t);
  return is_signed_int(t) ? -std::ldexp(1.0, static_cast<int>(8 * bytes(t)) - 1) : 0;
}

}  // namespace tw
