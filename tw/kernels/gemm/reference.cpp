#include "tw/kernels/gemm/reference.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace tw::kernels {

static double gelu_tanh(double x) {
  return x / 2 * (1 + std::tanh(std::sqrt(2 / std::numbers::pi) * (x + 0.044715 * x * x * x)));
}
static double gelu_erf(double x) { return x / 2 * (1 + std::erf(x / std::numbers::sqrt2)); }
static double silu(double x) { return x / (1 + std::exp(-x)); }
static double relu(double x) { return std::isnan(x) ? x : std::max(x, 0.0); }

/// What an epilogue does to a sum x: reads a third input v, then a function with those ulps.
struct Finish {
  double (*with)(double x, double v);
  double (*function)(double x);
  double ulps;
};

static double add(double x, double v) { return x + v; }
static double multiply(double x, double v) { return x * v; }

static Finish finish_of(const std::string& epilogue) {
  if (epilogue == "bias") return {add, nullptr, 0};
  if (epilogue == "bias_relu") return {add, relu, 0};
  if (epilogue == "bias_silu") return {add, silu, stated_ulps(Opcode::exp, f32)};
  if (epilogue == "bias_gelu") return {add, gelu_tanh, stated_ulps(Opcode::tanh_fast, f32)};
  if (epilogue == "bias_gelu_erf") return {add, gelu_erf, stated_ulps(Opcode::erf_fast, f32)};
  if (epilogue == "residual") return {add, nullptr, 0};
  if (epilogue == "row_scale") return {multiply, nullptr, 0};
  return {nullptr, nullptr, 0};
}

/// As the precision's error counts them.
static std::vector<double> magnitudes(std::vector<double> x, Precision precision) {
  const double least = product_error(precision).least;
  for (double& v : x) v = v == 0 || std::isnan(v) ? std::abs(v) : std::max(std::abs(v), least);
  return x;
}

check::Reference gemm_reference(const Problem& p, std::span<const TensorView> inputs) {
  const bool batched = inputs[0].rank() == 3;
  const int64_t batch = batched ? inputs[0].dims[0] : 1;
  const int64_t m = p.extent("m"), n = p.extent("n"), k = p.extent("k");
  const std::string epilogue = p.option("epilogue");
  const Finish f = finish_of(epilogue);
  const std::vector<double> a = to_doubles(inputs[0]), b = to_doubles(inputs[1]);
  const std::vector<double> v = f.with ? to_doubles(inputs[2]) : std::vector<double>();

  const Precision precision = gemm_precision(p);
  const std::vector<double> a_abs = magnitudes(a, precision), b_abs = magnitudes(b, precision);

  check::ReferenceOutput y;
  for (int64_t s = 0; s < batch; ++s) {
    for (int64_t i = 0; i < m; ++i) {
      std::vector<double> sum(n), sum_abs(n);  // a row at a time: B is read in its order
      for (int64_t t = 0; t < k; ++t) {
        const double x = a[(s * m + i) * k + t];
        const double x_abs = a_abs[(s * m + i) * k + t];
        const double *row = b.data() + (s * k + t) * n, *row_abs = b_abs.data() + (s * k + t) * n;
        for (int64_t j = 0; j < n; ++j) {
          sum[j] += x * row[j];
          sum_abs[j] += x_abs * row_abs[j];
        }
      }
      for (int64_t j = 0; j < n; ++j) {
        if (f.with) {
          const double operand = epilogue == "residual"    ? v[(s * m + i) * n + j]
                                 : epilogue == "row_scale" ? v[i]
                                                           : v[j];
          sum[j] = f.with(sum[j], operand);
          sum_abs[j] = f.with(sum_abs[j], std::abs(operand));
        }
        y.value.push_back(f.function ? f.function(sum[j]) : sum[j]);
        y.sum_abs.push_back(sum_abs[j]);
      }
    }
  }
  const DType out = p.option("out") == "f32" ? f32 : p.dtype;
  return {{check::Family::gemm, out, check::accumulator_of(p.dtype), precision, k + 1, f.ulps},
          {std::move(y)}};
}

}  // namespace tw::kernels
