#include "tests/support/normal.h"

#include <cmath>
#include <numbers>

#include "tw/num/codec.h"

namespace tw::test {

void fill_normal(const TensorView& t, uint64_t seed, double factor) {
  for (int64_t i = 0; i < t.count(); ++i) {
    const Philox random = philox(seed, 0, static_cast<uint64_t>(i));
    const double u = (random.word[0] + 0.5) * 0x1p-32, v = random.word[1] * 0x1p-32;
    set(t, i, std::sqrt(-2 * std::log(u)) * std::cos(2 * std::numbers::pi * v) * factor);
  }
}

}  // namespace tw::test
