#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace tw {

/// Element types. Bits of one element are stored in the least significant end of its bytes, little
/// endian. b1 is one byte holding 0 or 1. e4m3 is OCP e4m3fn (no infinity), e5m2 is OCP e5m2.
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
  f64
};
using enum DType;
inline constexpr int kDTypeCount = 15;

enum class DTypeClass : uint8_t { boolean, signed_int, unsigned_int, floating };

struct DTypeInfo {
  const char* name;
  DTypeClass cls;
  uint8_t bytes;          ///< storage of one element
  uint8_t mantissa_bits;  ///< stored fraction bits of a float, 0 otherwise
  uint8_t exponent_bits;
  const char* numpy;  ///< numpy's type string ("<f4"); for formats numpy lacks, the unsigned
                      ///< integer of that size
};

const DTypeInfo& info(DType t);
inline const char* name(DType t) { return info(t).name; }
inline int64_t bytes(DType t) { return info(t).bytes; }
inline bool is_float(DType t) { return info(t).cls == DTypeClass::floating; }
/// The 8-bit floats, which are stored and converted but not computed with.
inline bool is_fp8(DType t) { return t == e4m3 || t == e5m2; }
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
/// Smallest value of an integer type; -largest for floats.
double lowest(DType t);

}  // namespace tw
