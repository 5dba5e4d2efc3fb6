#pragma once

#include <cstdint>

#include "tw/num/dtype.h"

namespace tw {

/// RN: to nearest, ties to even. RZ: toward zero. RU: toward +infinity. SR: stochastic: up with
/// probability equal to the distance from the lower neighbour, from the 32 random bits given.
enum class Rounding : uint8_t { RN, RZ, RU, SR };

/// Value of one element of a floating type from its bits (exact). NaN payloads are kept where
/// double can hold them.
double decode(DType t, uint64_t bits);

/// Bits of the element of floating type t that `value` rounds to.
/// Not saturating: magnitudes past the largest finite value become infinity under RN/RU/SR as IEEE
/// says (NaN in e4m3, which has no infinity), the largest finite one under RZ. Saturating:
/// +-largest; NaN stays NaN. Signs of zero and of NaN are kept; subnormals are kept.
uint64_t encode(DType t, double value, Rounding r = Rounding::RN, bool saturate = false,
                uint32_t random = 0);

/// Float to integer as a cast of the language: toward zero, saturating to the range of t, NaN gives
/// 0. For integer and b1 types only; b1 gives value != 0.
uint64_t encode_int(DType t, double value);

/// Philox 4x32-10 (Salmon et al. 2011): four random words of (key, counter).
struct Philox {
  uint32_t word[4];
};
Philox philox(uint64_t key, uint64_t stream, uint64_t counter);

}  // namespace tw
