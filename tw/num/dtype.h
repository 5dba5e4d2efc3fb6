#pragma once

#include <cstdint>
#include <numeric>
#include <optional>
#include <string_view>

namespace tw {

/// Element types. Bits of one element are stored in the least significant end of its bytes, little
/// endian. b1 is one byte holding 0 or 1. e4m3 is OCP e4m3fn (no infinity), e5m2 is OCP e5m2; e3m2,
/// e2m3, e2m1 and e8m0 are those of OCP Microscaling Formats v1.0. Types of less than 8 bits are
/// packed: element e of a row has the bits [e * b, e * b + b) of its bytes.
enum class DType : uint8_t {
  b1,
  i8,
  i16,
  i32,
  i64,
  u8,
  u16,
  u32,
  u64,
  e4m3,
  e5m2,
  f16,
  bf16,
  f32,
  f64,
  e3m2,
  e2m3,
  e2m1,
  e8m0,
  i1,
  i2,
  i3,
  i4,
  i5,
  i6,
  i7,
  u1,
  u2,
  u3,
  u4,
  u5,
  u6,
  u7
};
using enum DType;
inline constexpr int kDTypeCount = 33;

enum class DTypeClass : uint8_t { boolean, signed_int, unsigned_int, floating };

struct DTypeInfo {
  const char* name;
  DTypeClass cls;
  uint8_t bits;           ///< storage of one element in a tensor
  uint8_t mantissa_bits;  ///< stored fraction bits of a float, 0 otherwise
  uint8_t exponent_bits;
  const char* numpy;  ///< numpy's type string ("<f4"); for formats numpy lacks, the unsigned
                      ///< integer of that size; of packed types it is that of their bytes
};

const DTypeInfo& info(DType t);
inline const char* name(DType t) { return info(t).name; }
inline int64_t bits(DType t) { return info(t).bits; }
/// Of an element by itself: packed ones take a byte then.
inline int64_t bytes(DType t) { return (info(t).bits + 7) / 8; }
inline bool is_packed(DType t) { return info(t).bits < 8; }
/// How many elements fill whole bytes: 1 for all but packed types (2 for i4, 4 for e3m2).
inline int64_t elements_of_bytes(DType t) { return is_packed(t) ? 8 / std::gcd(bits(t), 8l) : 1; }
inline bool is_float(DType t) { return info(t).cls == DTypeClass::floating; }
inline bool is_fp8(DType t) { return t == e4m3 || t == e5m2; }
/// Types that are stored and converted but not computed with.
inline bool only_stores(DType t) { return is_packed(t) || (is_float(t) && bits(t) == 8); }
/// Whether a float type has infinities, and a NaN: e4m3 and e8m0 have only that, e3m2, e2m3 and
/// e2m1 neither.
inline bool has_infinity(DType t) { return is_float(t) && (t == e5m2 || bits(t) > 8); }
inline bool has_nan(DType t) { return is_float(t) && !is_packed(t); }
inline bool is_signed_int(DType t) { return info(t).cls == DTypeClass::signed_int; }
inline bool is_unsigned_int(DType t) { return info(t).cls == DTypeClass::unsigned_int; }
inline bool is_int(DType t) { return is_signed_int(t) || is_unsigned_int(t); }

/// The type of that name, e.g. "bf16".
std::optional<DType> dtype_named(std::string_view name);

/// Unit roundoff of a float type (2^-24 for f32), 0 for others.
double unit_roundoff(DType t);
/// Largest finite value (57344 for e5m2, 448 for e4m3); for integers the largest value,
/// which rounds up to 2^63 for i64 and 2^64 for u64.
double largest(DType t);
/// Smallest value of an integer type; -largest for floats, 2^-127 for e8m0.
double lowest(DType t);

}  // namespace tw
