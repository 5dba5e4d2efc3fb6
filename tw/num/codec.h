#pragma once

#include <cstdint>

#include "tw/num/dtype.h"

namespace tw {

/// RN: to nearest, ties to even. RZ: toward zero. RU: toward +infinity. SR: stochastic: away from
/// zero when d * 2^32 + random >= 2^32, where d in [0, 1) is the distance from the neighbour nearer
/// zero, in units of the last place, cut to 32 bits. What is exact stays.
enum class Rounding : uint8_t { RN, RZ, RU, SR };

/// Value of one element of a floating type from its bits (exact). A NaN keeps its sign and payload.
double decode(DType t, uint64_t bits);

/// Bits of the element of floating type t that `value` rounds to.
/// Not saturating: magnitudes past the largest finite value become infinity (NaN in e4m3 and e8m0,
/// which have none) where IEEE 754 says so: always under RN and SR, upward under RU, never under
/// RZ; otherwise they become the largest finite one. Infinity stays. Saturating: both become
/// +-largest. NaN stays NaN, quiet, with the payload bits that fit. Signs of zero and of NaN are
/// kept; subnormals are kept.
/// e3m2, e2m3 and e2m1 have neither infinity nor NaN: they always saturate, and NaN becomes
/// +largest (OCP MX v1.0 leaves it open; PTX does so). e8m0 has no zero and no sign: what rounds
/// below 2^-127, zeros too, becomes 2^-127, negative numbers NaN. A tie between powers of two goes
/// up: of two odd last digits IEEE 754 takes the larger.
uint64_t encode(DType t, double value, Rounding r = Rounding::RN, bool saturate = false,
                uint32_t random = 0);

/// The same for integers: one rounding, where going through double would make two.
uint64_t encode_signed(DType t, int64_t value, Rounding r = Rounding::RN, bool saturate = false,
                       uint32_t random = 0);
uint64_t encode_unsigned(DType t, uint64_t value, Rounding r = Rounding::RN, bool saturate = false,
                         uint32_t random = 0);

/// Float to integer as a cast of the language: toward zero, saturating to the range of t, NaN gives
/// 0. For integer and b1 types only; b1 gives value != 0, so 1 for NaN.
uint64_t encode_int(DType t, double value);

/// Philox 4x32-10 (Salmon, Moraes, Dror, Shaw: Parallel random numbers, as easy as 1, 2, 3; 2011).
/// The key is (seed, stream), the counter is `counter` (of an element: its index). Key words are
/// the low halves of seed and stream; their high halves are the two upper counter words, so all of
/// the three arguments count.
struct Philox {
  uint32_t word[4];
};
Philox philox(uint64_t seed, uint64_t stream, uint64_t counter);

}  // namespace tw
