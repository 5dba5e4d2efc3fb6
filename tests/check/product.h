#pragma once

#include <cmath>
#include <string>
#include <vector>

#include "tw/check/judge.h"

/// What the callables of both zoos compute, and what a judge says of them.
namespace tw::check {

inline Reference product(int64_t m, int64_t n, int64_t k, std::span<const TensorView> in) {
  Reference r{{.family = Family::gemm, .terms = k}, {{}}};
  for (int64_t i = 0; i < m; ++i)
    for (int64_t j = 0; j < n; ++j) {
      double sum = 0, sum_abs = 0;
      for (int64_t t = 0; t < k; ++t) {
        const double term = get(in[0], i * k + t) * get(in[1], t * n + j);
        sum += term;
        sum_abs += std::fabs(term);
      }
      r.outputs[0].value.push_back(sum);
      r.outputs[0].sum_abs.push_back(sum_abs);
    }
  return r;
}

inline Case product_case(int64_t m, int64_t n, int64_t k) {
  return {"m=" + std::to_string(m) + ",n=" + std::to_string(n) + ",k=" + std::to_string(k),
          {"gemm", {{"epilogue", "none"}}, 1},
          {{"A", f32, {m, k}, false}, {"B", f32, {k, n}, false}, {"C", f32, {m, n}, true}},
          [=](std::span<const TensorView> in) { return product(m, n, k, in); }};
}

/// Settings for many callables in a short time.
inline Judge::Settings quick_settings(const std::string& worker = {}) {
  Judge::Settings settings;
  settings.worker = worker;
  settings.timeout_s = 5;
  settings.timing.blocks = 4;
  settings.timing.slice_s = 0.01;
  settings.timing.repeats = 6;
  return settings;
}

/// All that a judge asks of a callable for products.
inline Ruling judge_product(const measure::ContestantSpec& callable,
                            const Judge::Settings& settings) {
  Judge judge(callable, settings);
  for (const Case& c : {product_case(7, 9, 11), product_case(16, 8, 24), product_case(0, 5, 3),
                        product_case(5, 3, 0)})
    judge.check(c);
  judge.endure(product_case(40, 56, 48));
  judge.time(product_case(64, 64, 64));
  return judge.ruling();
}

/// Whether a fault has the words of a verdict, "these or those".
inline bool says(const std::string& fault, const std::string& verdict) {
  const size_t at = verdict.find(" or ");
  if (at == std::string::npos) return !fault.empty() && fault.find(verdict) != std::string::npos;
  return says(fault, verdict.substr(0, at)) || says(fault, verdict.substr(at + 4));
}

}  // namespace tw::check
