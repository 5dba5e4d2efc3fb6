#include <algorithm>
#include <cmath>

#include "tw/kernels/attention/attention.h"
#include "tw/kernels/attention/merge.h"
#include "tw/kernels/attention/panels.h"

namespace tw::kernels {

void Panels::multiply(std::span<const double> a, std::span<const double> a_abs,
                      std::span<double> sum, std::span<double> sum_abs) const {
  for (int64_t first = 0; first < std::ssize(sum); first += kLanes) {
    const double* panel = data_.data() + first * rows_;
    double s[kLanes] = {}, m[kLanes];
    std::fill_n(m, kLanes, kSubnormalTerm);
    for (size_t r = 0; r < a.size(); ++r, panel += kLanes) {
      for (int64_t l = 0; l < kLanes; ++l) {
        s[l] += a[r] * panel[l];
        m[l] += a_abs[r] * std::abs(panel[l]);
      }
    }
    const int64_t n = std::min(kLanes, std::ssize(sum) - first);
    std::copy(s, s + n, sum.begin() + first);
    std::copy(m, m + n, sum_abs.begin() + first);
  }
}

namespace {

/// The tensors of a problem as doubles, row-major.
struct Heads {
  Heads(const Problem& p, std::span<const TensorView> in)
      : heads(p.extent("heads")),
        group(heads / p.extent("kv_heads")),
        sq(p.extent("sq")),
        skv(p.extent("skv")),
        head(p.extent("head")),
        dtype(p.dtype),
        causal(p.option("mask") == "causal"),
        cap(attention_softcap(p)),
        q(to_doubles(in[0])),
        k(to_doubles(in[1])),
        v(to_doubles(in[2])) {
    if (p.option("bias") == "yes") bias = to_doubles(in[3]);
  }

  int64_t heads, group, sq, skv, head;
  DType dtype;
  bool causal;
  double cap;
  std::vector<double> q, k, v, bias;
};

/// Keys and values of one key head, `bh` counting these over the batch.
struct KeyHead {
  KeyHead(const Heads& x, int64_t bh)
      : keys(x.head, x.skv,
             [&](int64_t d, int64_t j) { return x.k[(bh * x.skv + j) * x.head + d]; }),
        values(x.skv, x.head,
               [&](int64_t j, int64_t d) { return x.v[(bh * x.skv + j) * x.head + d]; }) {}
  Panels keys, values;
};

/// c tanh(score / c). An error of the score grows no larger, as the slope is at most 1; an infinite
/// score has none.
void cap_score(double c, double& score, double& doubt) {
  const double capped = c * std::tanh(score / c);
  doubt = (std::isinf(score) ? 0 : doubt) + std::abs(capped);
  score = capped;
}

/// The scores that query i of head `bh` (counted over the batch) sees, and what each is off by: the
/// magnitudes of its terms.
struct Scores {
  Scores(const Heads& x, const Panels& keys, int64_t bh, int64_t i)
      : score(x.causal ? std::clamp<int64_t>(i + x.skv - x.sq + 1, 0, x.skv) : x.skv),
        doubt(score.size()) {
    const double scale = 1 / std::sqrt(static_cast<double>(x.head));
    std::vector<double> q(x.q.begin() + (bh * x.sq + i) * x.head,
                          x.q.begin() + (bh * x.sq + i + 1) * x.head);
    std::vector<double> q_abs(x.head);
    for (int64_t d = 0; d < x.head; ++d) q_abs[d] = std::abs(q[d] *= scale);
    keys.multiply(q, q_abs, score, doubt);
    for (size_t j = 0; j < score.size(); ++j) {
      if (x.cap > 0) cap_score(x.cap, score[j], doubt[j]);
      if (x.bias.empty()) continue;
      const double bias = x.bias[(bh * x.sq + i) * x.skv + static_cast<int64_t>(j)];
      score[j] += bias;
      doubt[j] += std::abs(bias);
    }
  }

  /// NaN when one of them is.
  double top() const {
    double top = -INFINITY;
    for (double s : score) {
      if (std::isnan(s)) return s;
      top = std::max(top, s);
    }
    return top;
  }

  std::vector<double> score, doubt;
};

/// Adds to what weights are off by their rounding to t, in terms that the bound allows an error.
void round_weights(DType t, const check::Accuracy& how, const std::vector<double>& weight,
                   std::vector<double>& weight_abs) {
  check::Accuracy sums = how;
  sums.out = f32;
  const double of_term = check::bound(sums, 0, 1);
  const double least = std::ldexp(1.0, 2 - (1 << (info(t).exponent_bits - 1)));
  for (size_t j = 0; j < weight.size(); ++j)
    weight_abs[j] += unit_roundoff(t) * std::max(weight[j], least) / of_term;
}

/// The row of one query.
void attend(const Heads& x, const KeyHead& shared, int64_t bh, int64_t i, check::Reference& out) {
  Scores s(x, shared.keys, bh, i);
  const double top = s.top();
  double sum = 0, sum_abs = 0;
  std::vector<double>&weight = s.score, &weight_abs = s.doubt;
  for (size_t j = 0; j < weight.size(); ++j) {
    const double below = s.score[j] - (top == -INFINITY ? 0 : top);
    const double e = std::exp(below);
    // A weight is off by what its score is off, and its exponent's rounding.
    weight_abs[j] = e == 0 ? 0 : e * (1 + s.doubt[j] + std::abs(below));
    weight[j] = e;
    sum += e;
    sum_abs += weight_abs[j];
  }
  if (x.dtype != f32) round_weights(x.dtype, out.accuracy, weight, weight_abs);
  std::vector<double> y(x.head), y_abs(x.head);
  shared.values.multiply(weight, weight_abs, y, y_abs);
  for (int64_t d = 0; d < x.head; ++d) {
    out.outputs[0].value.push_back(sum == 0 ? y[d] * 0 : y[d] / sum);
    out.outputs[0].sum_abs.push_back(sum == 0 ? 0 : y_abs[d] / sum);
  }
  out.outputs[1].value.push_back(top == -INFINITY ? top : top + std::log(sum));
  out.outputs[1].sum_abs.push_back(
      top == -INFINITY ? 0 : std::abs(top) + sum_abs / sum + std::abs(std::log(sum)));
}

/// A state of `head` elements and the logarithm of its sum.
struct State {
  const double* o;
  double l;
  bool empty() const { return l == -INFINITY; }
};

void merge_row(const State& a, const State& b, int64_t head, check::Reference& out) {
  const auto put = [&](int output, double value, double sum_abs) {
    out.outputs[output].value.push_back(value);
    out.outputs[output].sum_abs.push_back(sum_abs);
  };
  if (a.empty() || b.empty()) {
    const State& other = a.empty() ? b : a;
    for (int64_t d = 0; d < head; ++d) put(0, other.empty() ? 0 : other.o[d], 0);
    put(1, other.l, 0);
    return;
  }
  const double top = std::isnan(a.l) || a.l > b.l ? a.l : b.l;
  const double wa = std::exp(a.l - top), wb = std::exp(b.l - top), sum = wa + wb;
  // A weight is off by its exponent's rounding, and so is their sum.
  const double wa_abs = wa == 0 ? 0 : wa * (1 + std::abs(a.l - top));
  const double wb_abs = wb == 0 ? 0 : wb * (1 + std::abs(b.l - top));
  for (int64_t d = 0; d < head; ++d)
    put(0, (wa * a.o[d] + wb * b.o[d]) / sum,
        (kSubnormalTerm + wa_abs * std::abs(a.o[d]) + wb_abs * std::abs(b.o[d])) / sum);
  put(1, top + std::log(sum), (wa_abs + wb_abs) / sum + std::log(sum));
}

}  // namespace

check::Reference attention_reference(const Problem& p, std::span<const TensorView> inputs) {
  const Heads x(p, inputs);
  check::Reference ref{{.family = check::Family::softmax,
                        .out = p.dtype,
                        .terms = std::max(x.skv, x.head),
                        .function_ulps = x.cap > 0 ? stated_ulps(Opcode::tanh_fast, f32) : 0},
                       {{}, {}}};
  for (int64_t b = 0; b < p.extent("batch"); ++b) {
    for (int64_t shared = 0; shared < p.extent("kv_heads"); ++shared) {
      const int64_t at = b * p.extent("kv_heads") + shared;
      const KeyHead keys(x, at);
      for (int64_t h = 0; h < x.group; ++h)
        for (int64_t i = 0; i < x.sq; ++i) attend(x, keys, at * x.group + h, i, ref);
    }
  }
  return ref;
}

check::Reference attention_merge_reference(const Problem& p, std::span<const TensorView> inputs) {
  const std::vector<double> oa = to_doubles(inputs[0]), la = to_doubles(inputs[1]);
  const std::vector<double> ob = to_doubles(inputs[2]), lb = to_doubles(inputs[3]);
  check::Reference ref{{.family = check::Family::softmax, .out = p.dtype, .terms = 2}, {{}, {}}};
  const int64_t head = p.extent("head");
  for (int64_t r = 0; r < std::ssize(la); ++r)
    merge_row({oa.data() + r * head, la[r]}, {ob.data() + r * head, lb[r]}, head, ref);
  return ref;
}

}  // namespace tw::kernels
