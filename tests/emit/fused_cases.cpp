#include <bit>
#include <cmath>

#include "tests/emit/thread_cases.h"

namespace tw::test {
namespace {

using Codes = std::vector<uint64_t>;

double real(uint64_t code) { return std::bit_cast<float>(static_cast<uint32_t>(code)); }

/// All exponents and signs, and what lies around the ends of what the functions tell apart.
Codes sweep() {
  Codes list;
  for (uint64_t b = 0; b < 1ull << 32; b += 15013) list.push_back(b);
  for (const float x : {0.0f, 1.0f, 30.0f, 88.7228317f, 88.7228394f, 88.73f, 89.0f, 104.0f, 3.0f,
                        9.0f, 13.0f, HUGE_VALF, std::nanf("")}) {
    for (const float y : {x, -x}) list.push_back(std::bit_cast<uint32_t>(y));
  }
  return list;
}

/// Within `ulps` of f32, or a share of the result; what is less than the least normal number may be
/// 0.
bool near(double want, double got, double ulps, double share) {
  if (std::isnan(want) || std::isnan(got)) return std::isnan(want) == std::isnan(got);
  if (std::isinf(want) || std::isinf(got)) return want == got;
  const double ulp = std::ldexp(1, std::max(want == 0 ? -149 : std::ilogb(want) - 23, -149));
  const double least = share > 0 ? 0x1p-126 : 0;
  return std::fabs(got - want) <= std::max({ulps * ulp, share * std::fabs(want), least});
}

/// e^y past the largest f32 is an infinity.
double over_one_plus_exp(double a, double y) {
  const double e = std::exp(y);
  return a / (1 + (e > 0x1.fffffep127 ? HUGE_VAL : e));
}

ThreadCase quotient(const std::string& function, double ulps, double share) {
  const Codes y = sweep();
  Codes a;
  for (size_t i = 0; i < y.size(); ++i) a.push_back(i % 3 == 0 ? 0x3f800000 : y[i] ^ 0x80000000);
  return {function,
          function,
          f32,
          {"f32", "f32"},
          "f32",
          "",
          {a, y},
          [=](const Codes& in, uint64_t out) {
            return near(over_one_plus_exp(real(in[0]), real(in[1])), real(out), ulps, share);
          }};
}

}  // namespace

ThreadGroup fused_group() {
  constexpr double kShare = 0x1p-14;
  const auto sum = [](const char* name, double (*reference)(double)) {
    return ThreadCase{
        name, name, f32, {"f32"}, "f32", "", {sweep()}, [=](const Codes& in, uint64_t out) {
          return near(reference(real(in[0])), real(out), 0, kShare);
        }};
  };
  return {"fused",
          {quotient("over_one_plus_exp", 2.7, 0), quotient("over_one_plus_exp_bf16", 0, kShare),
           sum("one_plus_erf_bf16", [](double y) { return std::erfc(-y); }),
           sum("one_plus_tanh_bf16", [](double y) { return 2 / (1 + std::exp(-2 * y)); })}};
}

}  // namespace tw::test
