#include "tw/kernels/rows/reference.h"

#include <cmath>
#include <limits>

namespace tw::kernels {

using check::Family;
using check::Reference;
using check::ReferenceOutput;

static constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

/// X as a row-major matrix of doubles.
struct Matrix {
  explicit Matrix(const TensorView& x) : m(x.dims[0]), n(x.dims[1]), data(to_doubles(x)) {}
  const double* row(int64_t i) const { return data.data() + i * n; }
  int64_t m, n;
  std::vector<double> data;
};

static ReferenceOutput room(size_t count) {
  return {std::vector<double>(count), std::vector<double>(count)};
}

Reference softmax_reference(const Problem& p, std::span<const TensorView> in) {
  Matrix x(in[0]);
  Reference ref{{.family = Family::softmax, .out = p.dtype, .terms = x.n}, {room(x.data.size())}};
  for (int64_t i = 0; i < x.m; ++i) {
    double largest = -INFINITY, sum = 0;
    for (int64_t j = 0; j < x.n; ++j) largest = std::max(largest, x.row(i)[j]);
    for (int64_t j = 0; j < x.n; ++j) sum += std::exp(x.row(i)[j] - largest);
    for (int64_t j = 0; j < x.n; ++j) {
      double y = std::exp(x.row(i)[j] - largest) / sum;
      ref.outputs[0].value[i * x.n + j] = y;
      // the exponent's rounding counts; an exponent of -inf has none
      ref.outputs[0].sum_abs[i * x.n + j] = y == 0 ? 0 : y * (1 + std::abs(x.row(i)[j] - largest));
    }
  }
  return ref;
}

Reference layernorm_reference(const Problem& p, std::span<const TensorView> in, double eps) {
  Matrix x(in[0]);
  std::vector<double> gamma = to_doubles(in[1]), beta = to_doubles(in[2]);
  Reference ref{{.family = Family::norm, .out = p.dtype, .terms = x.n}, {room(x.data.size())}};
  for (int64_t i = 0; i < x.m; ++i) {
    double sum = 0, squares = 0, magnitude = 0;
    for (int64_t j = 0; j < x.n; ++j) sum += x.row(i)[j];
    for (int64_t j = 0; j < x.n; ++j) magnitude += std::abs(x.row(i)[j]) / x.n;
    double mean = sum / x.n;
    for (int64_t j = 0; j < x.n; ++j) squares += (x.row(i)[j] - mean) * (x.row(i)[j] - mean);
    double rstd = 1 / std::sqrt(squares / x.n + eps);
    for (int64_t j = 0; j < x.n; ++j) {
      double d = x.row(i)[j] - mean;
      ref.outputs[0].value[i * x.n + j] = d * rstd * gamma[j] + beta[j];
      // the mean's own error, and the product's, are relative to these magnitudes
      ref.outputs[0].sum_abs[i * x.n + j] =
          (magnitude + std::abs(x.row(i)[j]) + std::abs(d)) * rstd * std::abs(gamma[j]) +
          std::abs(beta[j]);
    }
  }
  return ref;
}

Reference rmsnorm_reference(const Problem& p, std::span<const TensorView> in, double eps) {
  Matrix x(in[0]);
  std::vector<double> gamma = to_doubles(in[1]);
  Reference ref{{.family = Family::norm, .out = p.dtype, .terms = x.n}, {room(x.data.size())}};
  for (int64_t i = 0; i < x.m; ++i) {
    double squares = 0;
    for (int64_t j = 0; j < x.n; ++j) squares += x.row(i)[j] * x.row(i)[j];
    double root = std::sqrt(squares / x.n + eps);
    for (int64_t j = 0; j < x.n; ++j) {
      double y = x.row(i)[j] / root * gamma[j];
      ref.outputs[0].value[i * x.n + j] = y;
      ref.outputs[0].sum_abs[i * x.n + j] = std::abs(y);
    }
  }
  return ref;
}

Reference add_rmsnorm_reference(const Problem& p, std::span<const TensorView> in, double eps) {
  Matrix s(in[0]);
  const std::vector<double> residual = to_doubles(in[1]), gamma = to_doubles(in[2]);
  for (size_t i = 0; i < s.data.size(); ++i) s.data[i] += residual[i];
  Reference ref{{.family = Family::norm, .out = p.dtype, .terms = s.n},
                {room(s.data.size()), room(s.data.size())}};
  ref.outputs[0].value = s.data;
  for (size_t i = 0; i < s.data.size(); ++i) ref.outputs[0].sum_abs[i] = std::abs(s.data[i]);
  for (int64_t i = 0; i < s.m; ++i) {
    double squares = 0;
    for (int64_t j = 0; j < s.n; ++j) squares += s.row(i)[j] * s.row(i)[j];
    const double root = std::sqrt(squares / static_cast<double>(s.n) + eps);
    for (int64_t j = 0; j < s.n; ++j) {
      const double y = s.row(i)[j] / root * gamma[j];
      ref.outputs[1].value[i * s.n + j] = y;
      ref.outputs[1].sum_abs[i * s.n + j] = std::abs(y);
    }
  }
  return ref;
}

/// One output of a reduction over n elements that `at` gives.
template <class At>
static void reduce_into(ReferenceOutput& out, int64_t index, int64_t n, const std::string& op,
                        At at) {
  double sum = 0, magnitude = 0, largest = -INFINITY;
  int64_t where = -1;
  for (int64_t j = 0; j < n; ++j) {
    double v = at(j);
    sum += v;
    magnitude += std::abs(v);
    bool nan_wins = std::isnan(v) && !std::isnan(largest);
    // +0 is larger than -0 as a value; as an index the first of equals wins
    if (v == largest && std::signbit(largest)) largest = v;
    if (where < 0 || nan_wins || v > largest) {
      largest = v;
      where = j;
    }
  }
  bool mean = op == "mean";
  double value = op == "max"      ? largest
                 : op == "argmax" ? static_cast<double>(where)
                 : mean           ? sum / n
                                  : sum;
  out.value[index] = mean && n == 0 ? kNan : value;
  out.sum_abs[index] = op == "max" || op == "argmax" ? 0 : mean ? magnitude / n : magnitude;
}

static check::Accuracy accuracy_of(const Problem& p, int64_t terms) {
  bool picks = p.option("op") == "max" || p.option("op") == "argmax";
  return {.family = picks ? Family::exact : Family::reduction,
          .out = p.option("op") == "argmax" ? i64 : p.dtype,
          .terms = terms};
}

Reference row_reduce_reference(const Problem& p, std::span<const TensorView> in) {
  Matrix x(in[0]);
  Reference ref{accuracy_of(p, x.n), {room(x.m)}};
  for (int64_t i = 0; i < x.m; ++i)
    reduce_into(ref.outputs[0], i, x.n, p.option("op"), [&](int64_t j) { return x.row(i)[j]; });
  return ref;
}

Reference column_reduce_reference(const Problem& p, std::span<const TensorView> in) {
  Matrix x(in[0]);
  Reference ref{accuracy_of(p, x.m), {room(x.n)}};
  for (int64_t j = 0; j < x.n; ++j)
    reduce_into(ref.outputs[0], j, x.m, p.option("op"), [&](int64_t i) { return x.row(i)[j]; });
  return ref;
}

int64_t parts_of(const Problem& p) { return std::stoll(p.option("parts")); }

Reference sum_reference(const Problem& p, std::span<const TensorView> in) {
  const std::vector<double> x = to_doubles(in[0]);
  const int64_t n = std::ssize(x), parts = parts_of(p);
  int64_t length = 8192;
  while (length * parts < n) length += 8192;
  Reference ref{{.family = Family::reduction, .out = f32, .terms = std::min(n, length)},
                {room(static_cast<size_t>(parts))}};
  for (int64_t i = 0; i < n; ++i) {
    ref.outputs[0].value[i / length] += x[i];
    ref.outputs[0].sum_abs[i / length] += std::abs(x[i]);
  }
  return ref;
}

}  // namespace tw::kernels
