#include "tests/num/reference.h"

#include <algorithm>
#include <cmath>

namespace tw::test {
namespace {

bool takes_upper(Rounding r, double below, double above, double value, bool negative,
                 bool lower_is_odd) {
  const double to_below = value - below, to_above = above - value;  // exact near a tie
  if (to_below == 0) return false;
  if (r == Rounding::RU) return !negative;
  if (r == Rounding::RZ) return false;
  return to_above < to_below || (to_above == to_below && lower_is_odd);
}

}  // namespace

std::vector<double> number_line(DType t) {
  struct Definition {
    DType t;
    int m, bias, last_code;
  };
  // OCP 8-bit floating point v1.0, OCP Microscaling Formats v1.0, IEEE 754, bfloat16.
  constexpr Definition kAll[] = {{e4m3, 3, 7, 0x7e},    {e5m2, 2, 15, 0x7b}, {e3m2, 2, 3, 0x1f},
                                 {e2m3, 3, 1, 0x1f},    {e2m1, 1, 1, 0x7},   {f16, 10, 15, 0x7bff},
                                 {bf16, 7, 127, 0x7f7f}};
  const auto [type, m, bias, last_code] = *std::find_if(
      std::begin(kAll), std::end(kAll), [&](const Definition& d) { return d.t == t; });
  std::vector<double> line;
  for (int code = 0; code <= last_code; ++code) {
    const int field = code >> m, fraction = code & ((1 << m) - 1);
    const double step = std::pow(2.0, -m);
    line.push_back(field == 0 ? std::pow(2.0, 1 - bias) * fraction * step
                              : std::pow(2.0, field - bias) * (1 + fraction * step));
  }
  return line;
}

uint64_t rounded_by_search(DType t, const std::vector<double>& line, double value, Rounding r,
                           bool saturate) {
  const bool negative = std::signbit(value);
  const bool only_numbers = t == e3m2 || t == e2m3 || t == e2m1;
  const uint64_t sign = negative ? uint64_t{1} << (bits(t) - 1) : 0;
  const double v = std::abs(value);
  const uint64_t lower = std::upper_bound(line.begin(), line.end(), v) - line.begin() - 1;
  if (lower + 1 < line.size())
    return sign | (lower + takes_upper(r, line[lower], line[lower + 1], v, negative, lower & 1));
  const double next = line.back() + (line.back() - line[lower - 1]);
  const bool over = v >= next || takes_upper(r, line.back(), next, v, negative, lower & 1);
  const bool cut = r == Rounding::RZ || (r == Rounding::RU && negative);
  const bool stays = !over || saturate || only_numbers || (cut && !std::isinf(v));
  return sign | (line.size() - stays);  // infinity (e4m3: NaN) follows the largest
}

}  // namespace tw::test
