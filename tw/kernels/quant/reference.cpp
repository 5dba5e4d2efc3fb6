#include <algorithm>
#include <cmath>

#include "tw/kernels/quant/quant.h"

namespace tw::kernels {
namespace {

/// Weights of 4 bits as their definition says; inputs from `first` on are codes, scales, zero
/// points.
class Weights {
 public:
  Weights(const Problem& p, std::span<const TensorView> in, size_t first)
      : group_(p.extent("group")),
        groups_(groups_of(p.extent("k"), group_)),
        codes_(to_doubles(in[first])),
        scales_(to_doubles(in[first + 1])) {
    if (p.option("zero_points") == "yes") zeros_ = to_doubles(in[first + 2]);
  }

  int code(int64_t n, int64_t k) const {
    const int64_t g = k / group_, e = k % group_, half = group_ / 2;
    const auto byte = static_cast<int>(codes_[(n * groups_ + g) * half + e % half]);
    return e < half ? byte % 16 : byte / 16;
  }
  /// code - zero point
  double steps(int64_t n, int64_t k) const { return code(n, k) - zero(n, k / group_); }
  double scale(int64_t n, int64_t k) const { return scales_[n * groups_ + k / group_]; }
  int64_t groups() const { return groups_; }

 private:
  int zero(int64_t n, int64_t g) const {
    if (zeros_.empty()) return 8;
    const auto byte = static_cast<int>(zeros_[n * ((groups_ + 1) / 2) + g / 2]);
    return g % 2 == 0 ? byte % 16 : byte / 16;
  }

  int64_t group_, groups_;
  std::vector<double> codes_, scales_, zeros_;
};

/// Each Y[m, n] by add(m, n, sum, sum_abs).
template <class Add>
check::Reference product(const Problem& p, int64_t terms, const Add& add) {
  check::ReferenceOutput y;
  for (int64_t m = 0; m < p.extent("m"); ++m) {
    for (int64_t n = 0; n < p.extent("n"); ++n) {
      double sum = 0, sum_abs = 0;
      add(m, n, sum, sum_abs);
      y.value.push_back(sum);
      y.sum_abs.push_back(sum_abs);
    }
  }
  return {{check::Family::gemm, p.dtype, f32, Precision::ieee, terms, 0}, {std::move(y)}};
}

/// The float that is nearest: what one operation on floats gives.
float nearest(double x) { return static_cast<float>(x); }
double clamped(double x, double low, double high) { return std::min(std::max(x, low), high); }

check::Accuracy exact() { return {check::Family::exact, f32, f32, Precision::ieee, 1, 0}; }

check::ReferenceOutput output(std::vector<double> values) {
  return {values, std::vector<double>(values.size())};
}

}  // namespace

check::Reference gemv_int8_reference(const Problem& p, std::span<const TensorView> in) {
  const int64_t k = p.extent("k");
  const std::vector<double> x = to_doubles(in[0]), w = to_doubles(in[1]), s = to_doubles(in[2]);
  return product(p, k + 1, [&](int64_t m, int64_t n, double& sum, double& sum_abs) {
    for (int64_t t = 0; t < k; ++t) {
      sum += x[m * k + t] * w[n * k + t];
      sum_abs += std::abs(x[m * k + t] * w[n * k + t]);
    }
    sum *= s[n];
    sum_abs *= std::abs(s[n]);
  });
}

/// X D^T for weights of steps(w, n, k) times their scales.
template <class Steps>
static check::Reference by_groups(const Problem& p, std::span<const TensorView> in,
                                  const Steps& steps) {
  const int64_t k = p.extent("k");
  const std::vector<double> x = to_doubles(in[0]);
  const Weights w(p, in, 1);
  return product(p, k + 1, [&](int64_t m, int64_t n, double& sum, double& sum_abs) {
    for (int64_t t = 0; t < k; ++t) {
      const double term = x[m * k + t] * steps(w, n, t) * w.scale(n, t);
      sum += term;
      sum_abs += std::abs(term);
    }
  });
}

check::Reference gemv_int4_reference(const Problem& p, std::span<const TensorView> in) {
  return by_groups(p, in, [](const Weights& w, int64_t n, int64_t k) { return w.steps(n, k); });
}

check::Reference gemv_nf4_reference(const Problem& p, std::span<const TensorView> in) {
  return by_groups(
      p, in, [](const Weights& w, int64_t n, int64_t k) -> double { return kNf4[w.code(n, k)]; });
}

check::Reference gemv_int4_int8_reference(const Problem& p, std::span<const TensorView> in) {
  const int64_t k = p.extent("k"), group = p.extent("group");
  const std::vector<double> x = to_doubles(in[0]), sx = to_doubles(in[1]);
  const Weights w(p, in, 2);
  const int64_t groups = w.groups();
  return product(p, groups + 1, [&](int64_t m, int64_t n, double& sum, double& sum_abs) {
    for (int64_t first = 0; first < k; first += group) {
      // Partial sums of a group may cancel: their magnitude is that of its terms.
      double dot = 0, dot_abs = 0;
      for (int64_t t = first; t < std::min(k, first + group); ++t) {
        dot += x[m * k + t] * w.steps(n, t);
        dot_abs += std::abs(x[m * k + t] * w.steps(n, t));
      }
      const double scale = w.scale(n, first) * sx[m * groups + first / group];
      sum += dot * scale;
      sum_abs += dot_abs * std::abs(scale);
    }
  });
}

check::Reference quantize_int8_reference(const Problem& p, std::span<const TensorView> in) {
  const int64_t m = p.extent("m"), k = p.extent("k");
  const int64_t group = int8_group(k, p.extent("group")), groups = groups_of(k, group);
  const std::vector<double> x = to_doubles(in[0]);
  std::vector<double> q(m * k), s(m * groups);
  for (int64_t g = 0; g < m * groups; ++g) {
    const int64_t first = g / groups * k + g % groups * group;
    const int64_t end = std::min(first + group, (g / groups + 1) * k);
    double top = 0;
    for (int64_t t = first; t < end; ++t) top = std::max(top, std::abs(x[t]));
    s[g] = nearest(top / 127);
    for (int64_t t = first; t < end; ++t)
      q[t] = s[g] > 0 ? clamped(std::nearbyint(nearest(x[t] / s[g])), -127, 127) + 0.0 : 0;
  }
  return {exact(), {output(std::move(q)), output(std::move(s))}};
}

check::Reference quantize_fp8_reference(const Problem& p, std::span<const TensorView> in) {
  const int64_t m = p.extent("m"), k = p.extent("k");
  const std::vector<double> x = to_doubles(in[0]);
  std::vector<double> q(m * k), s(m);
  for (int64_t i = 0; i < m; ++i) {
    double top = 0;
    for (int64_t t = i * k; t < (i + 1) * k; ++t) top = std::max(top, std::abs(x[t]));
    s[i] = nearest(top / 448);
    for (int64_t t = i * k; t < (i + 1) * k; ++t)
      if (s[i] > 0) q[t] = decode(e4m3, encode(e4m3, clamped(nearest(x[t] / s[i]), -448, 448)));
  }
  return {exact(), {output(std::move(q)), output(std::move(s))}};
}

check::Reference quantize_int4_reference(const Problem& p, std::span<const TensorView> in) {
  const int64_t n = p.extent("n"), k = p.extent("k"), group = p.extent("group"), half = group / 2;
  const int64_t groups = groups_of(k, group), pairs = (groups + 1) / 2;
  const bool asymmetric = p.option("zero_points") == "yes";
  const DType type = p.option("scale") == "f16" ? f16 : f32;
  const std::vector<double> x = to_doubles(in[0]);
  std::vector<double> codes(n * groups * half), scales(n * groups), zeros(n * pairs);
  for (int64_t g = 0; g < n * groups; ++g) {
    const int64_t row = g / groups, first = g % groups * group;
    const int64_t count = std::min(group, k - first);
    const double* v = x.data() + row * k + first;
    double low = 0, high = 0;
    for (int64_t e = 0; e < count; ++e) {
      low = std::min(low, v[e]);
      high = std::max(high, v[e]);
    }
    const float range = asymmetric ? nearest(high - low) : nearest(std::max(high, -low));
    const float s = nearest(decode(type, encode(type, nearest(range / (asymmetric ? 15.0 : 7.0)))));
    double zero = asymmetric ? 0 : 8;
    if (asymmetric && s > 0) zero = clamped(std::nearbyint(nearest(-low / s)), 0, 15);
    scales[g] = s;
    for (int64_t e = 0; e < group; ++e) {
      const double value = e < count ? v[e] : 0;
      double code = zero;
      if (s > 0) code = clamped(std::nearbyint(nearest(value / s)) + zero, 0, 15);
      codes[g * half + e % half] += e < half ? code : code * 16;
    }
    if (asymmetric) zeros[row * pairs + g % groups / 2] += g % groups % 2 == 0 ? zero : zero * 16;
  }
  check::Reference r{exact(), {output(std::move(codes)), output(std::move(scales))}};
  if (asymmetric) r.outputs.push_back(output(std::move(zeros)));
  return r;
}

check::Reference quantize_nf4_reference(const Problem& p, std::span<const TensorView> in) {
  const int64_t n = p.extent("n"), k = p.extent("k"), group = p.extent("group"), half = group / 2;
  const int64_t groups = groups_of(k, group);
  const DType type = p.option("scale") == "f16" ? f16 : f32;
  const std::vector<double> x = to_doubles(in[0]);
  std::vector<double> codes(n * groups * half), scales(n * groups);
  for (int64_t g = 0; g < n * groups; ++g) {
    const int64_t first = g % groups * group, count = std::min(group, k - first);
    const double* v = x.data() + g / groups * k + first;
    for (int64_t e = 0; e < count; ++e) scales[g] = std::max(scales[g], std::abs(v[e]));
    scales[g] = decode(type, encode(type, scales[g]));
    for (int64_t e = 0; e < group; ++e) {
      int code = 7;
      if (scales[g] > 0) {
        const double value = nearest((e < count ? v[e] : 0) / scales[g]);
        code = 0;
        while (code < 15 && value > nearest((double{kNf4[code]} + kNf4[code + 1]) / 2)) ++code;
      }
      codes[g * half + e % half] += e < half ? code : code * 16;
    }
  }
  return {exact(), {output(std::move(codes)), output(std::move(scales))}};
}

check::Reference matmul_integer_reference(const Problem& p, std::span<const TensorView> in) {
  const int64_t m = p.extent("m"), n = p.extent("n"), k = p.extent("k");
  const std::vector<double> a = to_doubles(in[0]), b = to_doubles(in[1]);
  const std::vector<double> za = to_doubles(in[2]), zb = to_doubles(in[3]);
  std::vector<double> c;
  for (int64_t i = 0; i < m; ++i) {
    for (int64_t j = 0; j < n; ++j) {
      double sum = 0;
      for (int64_t t = 0; t < k; ++t) sum += (a[i * k + t] - za[0]) * (b[t * n + j] - zb[j]);
      c.push_back(sum);
    }
  }
  return {exact(), {output(std::move(c))}};
}

}  // namespace tw::kernels
