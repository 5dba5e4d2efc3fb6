#include "tw/num/dtype.h"

#include <cmath>
#include <fmt/format.h>
#include <limits>

#include "tw/base/error.h"

namespace tw {
namespace {

using enum DTypeClass;

// In the order of the enum.
constexpr DTypeInfo kInfos[kDTypeCount] = {
    {"b1", boolean, 8, 0, 0, "|b1"},        {"i8", signed_int, 8, 0, 0, "|i1"},
    {"i16", signed_int, 16, 0, 0, "<i2"},   {"i32", signed_int, 32, 0, 0, "<i4"},
    {"i64", signed_int, 64, 0, 0, "<i8"},   {"u8", unsigned_int, 8, 0, 0, "|u1"},
    {"u16", unsigned_int, 16, 0, 0, "<u2"}, {"u32", unsigned_int, 32, 0, 0, "<u4"},
    {"u64", unsigned_int, 64, 0, 0, "<u8"}, {"e4m3", floating, 8, 3, 4, "|u1"},
    {"e5m2", floating, 8, 2, 5, "|u1"},     {"f16", floating, 16, 10, 5, "<f2"},
    {"bf16", floating, 16, 7, 8, "<u2"},    {"f32", floating, 32, 23, 8, "<f4"},
    {"f64", floating, 64, 52, 11, "<f8"},   {"e3m2", floating, 6, 2, 3, "|u1"},
    {"e2m3", floating, 6, 3, 2, "|u1"},     {"e2m1", floating, 4, 1, 2, "|u1"},
    {"e8m0", floating, 8, 0, 8, "|u1"},     {"i1", signed_int, 1, 0, 0, "|u1"},
    {"i2", signed_int, 2, 0, 0, "|u1"},     {"i3", signed_int, 3, 0, 0, "|u1"},
    {"i4", signed_int, 4, 0, 0, "|u1"},     {"i5", signed_int, 5, 0, 0, "|u1"},
    {"i6", signed_int, 6, 0, 0, "|u1"},     {"i7", signed_int, 7, 0, 0, "|u1"},
    {"u1", unsigned_int, 1, 0, 0, "|u1"},   {"u2", unsigned_int, 2, 0, 0, "|u1"},
    {"u3", unsigned_int, 3, 0, 0, "|u1"},   {"u4", unsigned_int, 4, 0, 0, "|u1"},
    {"u5", unsigned_int, 5, 0, 0, "|u1"},   {"u6", unsigned_int, 6, 0, 0, "|u1"},
    {"u7", unsigned_int, 7, 0, 0, "|u1"},
};

double largest_float(DType t) {
  if (t == e4m3) return 448;  // the all-ones exponent holds numbers too; only its last code is NaN
  const DTypeInfo& f = info(t);
  // Without infinity and NaN the all-ones exponent is one like others; e8m0 has only the latter.
  const int top_exponent = (1 << (f.exponent_bits - 1)) - (is_packed(t) ? 0 : 1);
  if (t == e8m0) return std::ldexp(1.0, top_exponent);
  return std::ldexp(2 - std::ldexp(1.0, -f.mantissa_bits), top_exponent);
}

}  // namespace

const DTypeInfo& info(DType t) {
  const auto i = static_cast<size_t>(t);
  if (i >= kDTypeCount) throw InternalError(fmt::format("there is no dtype {}", i));
  return kInfos[i];
}

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
  const int value_bits = info(t).bits - (is_signed_int(t) ? 1 : 0);
  return std::ldexp(1.0, value_bits) - 1;
}

double lowest(DType t) {
  if (t == e8m0) return std::ldexp(1.0, -127);
  if (is_float(t)) return -largest_float(t);
  return is_signed_int(t) ? -std::ldexp(1.0, info(t).bits - 1) : 0;
}

}  // namespace tw
