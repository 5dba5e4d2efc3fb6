#include <algorithm>
#include <cmath>

#include "tw/kernels/attention/backward.h"
#include "tw/kernels/attention/panels.h"

namespace tw::kernels {
namespace {

/// The tensors of a problem as doubles, row-major.
struct BackwardHeads {
  BackwardHeads(const Problem& p, std::span<const TensorView> in)
      : kv_heads(p.extent("batch") * p.extent("kv_heads")),
        group(p.extent("heads") / p.extent("kv_heads")),
        sq(p.extent("sq")),
        skv(p.extent("skv")),
        head(p.extent("head")),
        causal(p.option("mask") == "causal"),
        scale(1 / std::sqrt(static_cast<double>(head))),
        q(to_doubles(in[0])),
        k(to_doubles(in[1])),
        v(to_doubles(in[2])),
        o(to_doubles(in[3])),
        g(to_doubles(in[4])),
        l(to_doubles(in[5])) {}

  /// The elements of head `head` from row `row` of all rows of all heads.
  const double* row(const std::vector<double>& x, int64_t row) const {
    return x.data() + row * head;
  }
  check::Reference reference(DType t, int outputs) const {
    return {
        {.family = check::Family::softmax, .out = t, .terms = std::max({skv, head, group * sq})},
        std::vector<check::ReferenceOutput>(outputs)};
  }

  int64_t kv_heads, group, sq, skv, head;
  bool causal;
  double scale;
  std::vector<double> q, k, v, o, g, l;
};

/// Keys and values of one key head (counted over the batch), transposed.
struct BackwardKeyHead {
  BackwardKeyHead(const BackwardHeads& x, int64_t bh)
      : keys(x.head, x.skv, [&](int64_t d, int64_t j) { return x.row(x.k, bh * x.skv + j)[d]; }),
        values(x.head, x.skv, [&](int64_t d, int64_t j) { return x.row(x.v, bh * x.skv + j)[d]; }) {
  }
  Panels keys, values;
};

/// A row times a matrix, beside the same of magnitudes.
struct RowProduct {
  RowProduct(const double* row, int64_t n, double factor, const Panels& m, int64_t columns)
      : value(columns), magnitude(columns) {
    std::vector<double> a(row, row + n), a_abs(n);
    for (int64_t i = 0; i < n; ++i) a_abs[i] = std::abs(a[i] *= factor);
    m.multiply(a, a_abs, value, magnitude);
  }
  std::vector<double> value, magnitude;
};

/// P and dS of one query (row `i` of all queries of a head, `row` of all of all heads) and the keys
/// that it sees, none when its L is -inf. Beside each what it is off by.
struct BackwardRow {
  BackwardRow(const BackwardHeads& x, const BackwardKeyHead& shared, int64_t row) {
    const double l = x.l[row];
    if (l == -INFINITY) return;
    const int64_t last = row % x.sq + x.skv - x.sq + 1;
    const int64_t seen = x.causal ? std::clamp<int64_t>(last, 0, x.skv) : x.skv;
    const RowProduct s(x.row(x.q, row), x.head, x.scale, shared.keys, seen);
    const RowProduct dp(x.row(x.g, row), x.head, 1, shared.values, seen);
    double delta = 0, delta_abs = 0;
    for (int64_t d = 0; d < x.head; ++d) {
      const double term = x.row(x.g, row)[d] * x.row(x.o, row)[d];
      delta += term;
      delta_abs += std::abs(term);
    }
    for (int64_t j = 0; j < seen; ++j) {
      const double e = std::exp(s.value[j] - l);
      // A weight is off by what its score is off, and its exponent's rounding.
      const double doubt = e == 0 ? 0 : 1 + s.magnitude[j] + std::abs(s.value[j] - l);
      p.push_back(e);
      p_abs.push_back(kSubnormalTerm + e * doubt);
      ds.push_back(e * (dp.value[j] - delta));
      ds_abs.push_back(kSubnormalTerm + e * (dp.magnitude[j] + delta_abs) +
                       std::abs(ds.back()) * doubt);
    }
  }
  std::vector<double> p, p_abs, ds, ds_abs;
};

/// The gradient of the keys or values of one key head, summed over queries.
struct Sum {
  explicit Sum(int64_t n) : value(n), sum_abs(n, kSubnormalTerm) {}
  /// Adds the outer product of a column with a row of n elements.
  void add(const std::vector<double>& a, const std::vector<double>& a_abs, const double* row,
           int64_t n, double factor) {
    for (size_t j = 0; j < a.size(); ++j) {
      for (int64_t d = 0; d < n; ++d) {
        value[j * n + d] += a[j] * row[d] * factor;
        sum_abs[j * n + d] += a_abs[j] * std::abs(row[d] * factor);
      }
    }
  }
  void append_to(check::ReferenceOutput& out) const {
    out.value.insert(out.value.end(), value.begin(), value.end());
    out.sum_abs.insert(out.sum_abs.end(), sum_abs.begin(), sum_abs.end());
  }
  std::vector<double> value, sum_abs;
};

}  // namespace

check::Reference attention_backward_queries_reference(const Problem& p,
                                                      std::span<const TensorView> inputs) {
  const BackwardHeads x(p, inputs);
  check::Reference ref = x.reference(p.dtype, 1);
  for (int64_t shared = 0; shared < x.kv_heads; ++shared) {
    const BackwardKeyHead keys(x, shared);
    const Panels rows(x.skv, x.head, [&](int64_t j, int64_t d) {
      return x.row(x.k, shared * x.skv + j)[d] * x.scale;
    });
    Sum dq(x.head);
    for (int64_t i = 0; i < x.group * x.sq; ++i) {
      const BackwardRow row(x, keys, shared * x.group * x.sq + i);
      rows.multiply(row.ds, row.ds_abs, dq.value, dq.sum_abs);
      dq.append_to(ref.outputs[0]);
    }
  }
  return ref;
}

check::Reference attention_backward_keys_reference(const Problem& p,
                                                   std::span<const TensorView> inputs) {
  const BackwardHeads x(p, inputs);
  check::Reference ref = x.reference(p.dtype, 2);
  for (int64_t shared = 0; shared < x.kv_heads; ++shared) {
    const BackwardKeyHead keys(x, shared);
    Sum dk(x.skv * x.head), dv(x.skv * x.head);
    for (int64_t i = 0; i < x.group * x.sq; ++i) {
      const int64_t at = shared * x.group * x.sq + i;
      const BackwardRow row(x, keys, at);
      dk.add(row.ds, row.ds_abs, x.row(x.q, at), x.head, x.scale);
      dv.add(row.p, row.p_abs, x.row(x.g, at), x.head, 1);
    }
    dk.append_to(ref.outputs[0]);
    dv.append_to(ref.outputs[1]);
  }
  return ref;
}

}  // namespace tw::kernels
