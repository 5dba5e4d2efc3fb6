// 5. Attention that never has the matrix of scores (Dao et al. 2022): a loop over keys carries the
// largest score of each query, the sum of weights relative to it, and the weighted values.
#include "examples/ladder/ladder.h"

using namespace tw;

static Program attention_program(int64_t queries, int64_t keys, int64_t head) {
  Trace k("attention");
  Index S = k.dim("S");
  TensorRef Q = k.input("Q", f32, {S, head}), K = k.input("K", f32, {S, head});
  TensorRef V = k.input("V", f32, {S, head}), O = k.output("O", f32, {S, head});
  auto [i] = k.grid(cdiv(S, queries));
  Tile q = load(Q.tile({i, 0}, {queries, head})) * (1 / std::sqrt(static_cast<float>(head)));
  Tile largest = k.full(f32, {queries, 1}, -INFINITY), sum = k.zeros(f32, {queries, 1});
  Tile acc = k.zeros(f32, {queries, head});
  for (Index j : k.range(cdiv(S, keys))) {
    Tile scores =
        dot(q, transpose(load(K.tile({j, 0}, {keys, head}))), k.zeros(f32, {queries, keys}));
    Tile inside = k.iota({1, keys}, 1) + j * keys < S;
    scores = where(inside, scores, -INFINITY);
    Tile top = max(largest, row_max(scores));
    Tile weights = exp(scores - top), shrink = exp(largest - top);
    sum = sum * shrink + row_sum(weights);
    acc = dot(weights, load(V.tile({j, 0}, {keys, head})), acc * shrink);
    largest = top;
  }
  store(O.tile({i, 0}, {queries, head}), acc / sum);
  return k.finish();
}

int ladder::attention(Bench& b) {
  const int64_t s = b.size(1000, 70), head = 64;
  const Tensor Q = b.numbers({s, head}), K = b.numbers({s, head}), V = b.numbers({s, head});
  const Tensor O = b.zeros(f32, {s, head});
  b.run(attention_program(64, 64, head), {Q, K, V}, {O}, 4. * static_cast<double>(s * s * head),
        "operation");
  const float *q = Q.data<float>(), *kk = K.data<float>(), *v = V.data<float>();
  std::vector<double> weight(static_cast<size_t>(s * s)), sum(static_cast<size_t>(s));
  for (int64_t i = 0; i < s * s; ++i) {
    double score = 0;
    for (int64_t d = 0; d < head; ++d)
      score += double{q[i / s * head + d]} * double{kk[i % s * head + d]};
    weight[static_cast<size_t>(i)] = std::exp(score / std::sqrt(static_cast<double>(head)));
    sum[static_cast<size_t>(i / s)] += weight[static_cast<size_t>(i)];
  }
  const auto mean = [&](int64_t i, bool magnitudes) {
    double all = 0;
    for (int64_t j = 0; j < s; ++j) {
      const double x = double{v[j * head + i % head]};
      all += weight[static_cast<size_t>(i / head * s + j)] * (magnitudes ? std::abs(x) : x);
    }
    return all / sum[static_cast<size_t>(i / head)];
  };
  // Scores are sums of `head` products of up to 1, sums those of s weights.
  const double ulps = static_cast<double>(2 * head + s);
  return b.check(
      O, [&](int64_t i) { return mean(i, false); },
      [&](int64_t i) { return ulps * kUlp * mean(i, true); });
}
