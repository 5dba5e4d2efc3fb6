#include "tw/kernels/scaled/reference.h"

#include <cmath>

namespace tw::kernels {
namespace {

/// A scaled matrix as the numbers it stands for; its blocks are as long as its scales say.
std::vector<double> numbers(const TensorView& elements, const TensorView& scales, int64_t rows_each,
                            int64_t cols_each) {
  std::vector<double> x = to_doubles(elements);
  const std::vector<double> s = to_doubles(scales);
  const int64_t cols = elements.dims[1];
  for (size_t i = 0; i < x.size(); ++i) {
    const int64_t row = static_cast<int64_t>(i) / cols, col = static_cast<int64_t>(i) % cols;
    x[i] *= s[row / rows_each * scales.dims[1] + col / cols_each];
  }
  return x;
}

/// What the field's definitions of a format name say of its blocks.
struct Blocks {
  int64_t cols, rows_of_b;
};
Blocks blocks_of(const std::string& format) {
  if (format == "fp8") return {128, 128};
  if (format == "fp8_rows") return {128, 1};
  return {format == "nvfp4" ? 16 : 32, 1};
}

/// The number of a format that is nearest, of two equally near the one of the even code; past the
/// largest that one. All codes are looked at.
double nearest(DType t, double x) {
  double best = 0;
  uint64_t best_code = 0;
  for (uint64_t code = 0; code >> (bits(t) - 1) == 0; ++code) {
    const double v = decode(t, code);
    if (!std::isfinite(v)) continue;
    const double d = std::abs(v - std::abs(x)), least = std::abs(best - std::abs(x));
    if (d > least || (d == least && (code % 2 != 0 || best_code % 2 == 0))) continue;
    best = v;
    best_code = code;
  }
  return std::copysign(best, x);
}

}  // namespace

check::Reference gemm_scaled_reference(const Problem& p, std::span<const TensorView> in) {
  const int64_t m = p.extent("m"), n = p.extent("n"), k = p.extent("k");
  const Blocks blocks = blocks_of(p.option("format"));
  const std::vector<double> a = numbers(in[0], in[1], 1, blocks.cols);
  const std::vector<double> b = numbers(in[2], in[3], blocks.rows_of_b, blocks.cols);
  check::ReferenceOutput y;
  for (int64_t i = 0; i < m; ++i) {
    for (int64_t j = 0; j < n; ++j) {
      double sum = 0, sum_abs = 0;
      for (int64_t t = 0; t < k; ++t) {
        sum += a[i * k + t] * b[j * k + t];
        sum_abs += std::abs(a[i * k + t] * b[j * k + t]);
      }
      y.value.push_back(sum);
      y.sum_abs.push_back(sum_abs);
    }
  }
  return {{check::Family::gemm, p.dtype, f32, Precision::ieee, k, 0}, {std::move(y)}};
}

check::Reference quantize_mx_reference(const Problem& p, std::span<const TensorView> in) {
  const int64_t m = p.extent("m"), k = p.extent("k"), blocks = (k + 31) / 32;
  const DType t = *dtype_named(p.option("element"));
  // 4, 2, 2, 8 and 15: the table of OCP MX v1.0, 5.3.
  const int emax = t == e3m2 ? 4 : t == e2m3 || t == e2m1 ? 2 : t == e4m3 ? 8 : 15;
  const std::vector<double> x = to_doubles(in[0]);
  std::vector<double> elements(x.size()), scales(m * blocks);
  for (int64_t g = 0; g < m * blocks; ++g) {
    const int64_t row = g / blocks, first = g % blocks * 32, end = std::min(k, first + 32);
    double most = 0;
    for (int64_t c = first; c < end; ++c) {
      const double v = std::abs(x[row * k + c]);
      if (!(v <= most)) most = v;
      if (std::isnan(most)) break;
    }
    if (!std::isfinite(most)) {
      scales[g] = NAN;
      continue;
    }
    const int exponent = most == 0 ? -127 : std::max(std::ilogb(most) - emax, -127);
    scales[g] = std::ldexp(1.0, exponent);
    for (int64_t c = first; c < end; ++c)
      elements[row * k + c] = nearest(t, std::ldexp(x[row * k + c], -exponent));
  }
  const auto output = [](std::vector<double> v) {
    return check::ReferenceOutput{v, std::vector<double>(v.size())};
  };
  check::Reference r{{check::Family::exact, t, f32, Precision::ieee, 1, 0}, {}};
  r.outputs.push_back(output(std::move(elements)));
  r.outputs.push_back(output(std::move(scales)));
  return r;
}

}  // namespace tw::kernels
