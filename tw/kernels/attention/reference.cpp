#include <algorithm>
#include <cmath>

#include "tw/kernels/attention/attention.h"

namespace tw::kernels {
namespace {

/// The tensors of a problem as doubles, row-major.
struct Heads {
  Heads(const Problem& p, std::span<const TensorView> in)
      : heads(p.extent("heads")),
        kv_heads(p.extent("kv_heads")),
        sq(p.extent("sq")),
        skv(p.extent("skv")),
        head(p.extent("head")),
        causal(p.option("mask") == "causal"),
        q(to_doubles(in[0])),
        k(to_doubles(in[1])),
        v(to_doubles(in[2])) {
    if (p.option("bias") == "yes") bias = to_doubles(in[3]);
  }

  int64_t heads, kv_heads, sq, skv, head;
  bool causal;
  std::vector<double> q, k, v, bias;
};

/// The row of one query; `bh` counts heads over the batch.
void attend(const Heads& x, int64_t bh, int64_t i, check::Reference& out) {
  const int64_t b = bh / x.heads, h = bh % x.heads, group = x.heads / x.kv_heads;
  const double* q = x.q.data() + (bh * x.sq + i) * x.head;
  const int64_t shared = (b * x.kv_heads + h / group) * x.skv * x.head;
  const int64_t seen = x.causal ? std::clamp<int64_t>(i + x.skv - x.sq + 1, 0, x.skv) : x.skv;
  const double scale = 1 / std::sqrt(static_cast<double>(x.head));
  std::vector<double> score(seen), magnitude(seen);
  double top = -INFINITY, sum = 0, sum_abs = 0;
  bool lost = false;
  for (int64_t j = 0; j < seen; ++j) {
    for (int64_t d = 0; d < x.head; ++d) {
      const double term = q[d] * x.k[shared + j * x.head + d] * scale;
      score[j] += term;
      magnitude[j] += std::abs(term);
    }
    const double bias = x.bias.empty() ? 0 : x.bias[(bh * x.sq + i) * x.skv + j];
    score[j] += bias;
    magnitude[j] += std::abs(bias);
    if (std::isnan(score[j]) || score[j] > top) top = score[j];
    lost = lost || std::isnan(score[j]);
  }
  if (lost) top = NAN;
  std::vector<double> y(x.head), y_abs(x.head);
  for (int64_t j = 0; j < seen; ++j) {
    const double e = std::exp(score[j] - (top == -INFINITY ? 0 : top));
    // A weight is off by what its score is off, and its exponent's rounding.
    const double doubt = e == 0 ? 0 : 1 + magnitude[j] + std::abs(score[j] - top);
    sum += e;
    sum_abs += e * doubt;
    for (int64_t d = 0; d < x.head; ++d) {
      const double term = e * x.v[shared + j * x.head + d];
      y[d] += term;
      y_abs[d] += e == 0 ? 0 : std::abs(term) * doubt;
    }
  }
  for (int64_t d = 0; d < x.head; ++d) {
    out.outputs[0].value.push_back(sum == 0 ? y[d] * 0 : y[d] / sum);
    out.outputs[0].sum_abs.push_back(sum == 0 ? 0 : y_abs[d] / sum);
  }
  out.outputs[1].value.push_back(top == -INFINITY ? top : top + std::log(sum));
  out.outputs[1].sum_abs.push_back(
      top == -INFINITY ? 0 : std::abs(top) + sum_abs / sum + std::abs(std::log(sum)));
}

}  // namespace

check::Reference attention_reference(const Problem& p, std::span<const TensorView> inputs) {
  const Heads x(p, inputs);
  check::Reference ref{
      {.family = check::Family::softmax, .out = p.dtype, .terms = std::max(x.skv, x.head)},
      {{}, {}}};
  for (int64_t bh = 0; bh < p.extent("batch") * x.heads; ++bh)
    for (int64_t i = 0; i < x.sq; ++i) attend(x, bh, i, ref);
  return ref;
}

}  // namespace tw::kernels
