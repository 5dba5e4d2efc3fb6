#include <cmath>
#include <gmock/gmock.h>

#include "tw/kernels/attention/backward.h"
#include "tw/kernels/attention/packed.h"

#include "tests/kernels/run_kernel.h"
#include "tests/support/normal.h"

// Cases that broke comparable systems; the names are the rows of tests/cases/README.md.
namespace tw {
namespace {

using kernels::Problem;
using test::check_kernel;
using testing::Each;
using testing::ElementsAreArray;

using Numbers = std::vector<double>;

Tensor normal(DType t, std::vector<int64_t> dims, uint64_t seed, double factor = 1) {
  Tensor made = host_tensor(t, std::move(dims));
  test::fill_normal(made, seed, factor);
  return made;
}

/// A problem of attention of one sequence, and normal Q, K, V for it.
struct Case {
  Case(DType t, int64_t heads, int64_t kv_heads, int64_t sq, int64_t skv, int64_t head,
       std::map<std::string, std::string> options, uint64_t seed, double factor = 1)
      : problem{{{"batch", 1},
                 {"heads", heads},
                 {"kv_heads", kv_heads},
                 {"sq", sq},
                 {"skv", skv},
                 {"head", head}},
                t,
                std::move(options)},
        inputs{normal(t, {1, heads, sq, head}, seed, factor),
               normal(t, {1, kv_heads, skv, head}, seed + 1000, factor),
               normal(t, {1, kv_heads, skv, head}, seed + 2000, factor)} {}
  Problem problem;
  std::vector<Tensor> inputs;
};

/// Row i of elements in rows of n.
Numbers row(const Numbers& all, int64_t i, int64_t n) {
  return {all.begin() + i * n, all.begin() + (i + 1) * n};
}

TEST(AttentionCases, ATT_01) {
  const Case c(f16, 1, 1, 5, 2, 16, {{"mask", "causal"}}, 1);
  const auto got = check_kernel("attention", c.problem, c.inputs);
  for (int64_t i = 0; i < 3; ++i) {
    EXPECT_THAT(row(got[0], i, 16), Each(0));
    EXPECT_EQ(got[1][i], -INFINITY);
  }
  EXPECT_THAT(row(got[0], 3, 16), ElementsAreArray(row(to_doubles(c.inputs[2]), 0, 16)));
  EXPECT_TRUE(std::isfinite(got[1][3]) && std::isfinite(got[1][4]));
}

TEST(AttentionCases, ATT_04) {
  for (int64_t head : {72, 80, 96, 136}) {
    const Case c(f16, 4, 2, 33, 33, head, {{"mask", "causal"}}, 3);
    check_kernel("attention", c.problem, c.inputs);
  }
}

Problem states(DType t, int64_t rows, int64_t head) {
  return {{{"batch", 1}, {"heads", 1}, {"sq", rows}, {"head", head}}, t, {}};
}

TEST(AttentionCases, ATT_05) {
  constexpr int64_t kHead = 64;
  const Tensor zeros = test::tensor(f16, {1, 1, 1, kHead}, Numbers(kHead, 0));
  const Tensor none = test::tensor(f32, {1, 1, 1}, {-INFINITY});
  const Problem p = states(f16, 1, kHead);
  const auto empty = check_kernel("attention_merge", p, {zeros, none, zeros, none});
  EXPECT_THAT(empty[0], Each(0));
  EXPECT_THAT(empty[1], Each(-INFINITY));

  const Tensor o = normal(f16, {1, 1, 1, kHead}, 5), l = test::tensor(f32, {1, 1, 1}, {-3.25});
  const Tensor o0 = test::tensor(f16, {1, 1, 1, kHead}, empty[0]);
  const Tensor l0 = test::tensor(f32, {1, 1, 1}, empty[1]);
  for (const auto& in : {std::vector{o0, l0, o, l}, std::vector{o, l, o0, l0}}) {
    const auto same = check_kernel("attention_merge", p, in);
    EXPECT_EQ(same[0], to_doubles(o));
    EXPECT_EQ(same[1], to_doubles(l));
  }
}

TEST(AttentionCases, ATT_06) {
  for (const DType t : {f16, f32}) {
    for (const char* mask : {"none", "causal"}) {
      Case c(t, 2, 1, 4, 6, 8, {{"mask", mask}, {"bias", "yes"}}, 5);
      Tensor bias = normal(t, {1, 1, 4, 6}, 3005);
      for (int64_t j = 0; j < 6; ++j) set(bias, 2 * 6 + j, -INFINITY);
      c.inputs.push_back(bias.expand({1, 2, 4, 6}));
      const auto got = check_kernel("attention", c.problem, c.inputs);
      for (int64_t h = 0; h < 2; ++h) {
        EXPECT_THAT(row(got[0], h * 4 + 2, 8), Each(0));
        EXPECT_EQ(got[1][h * 4 + 2], -INFINITY);
        EXPECT_TRUE(std::isfinite(got[1][h * 4 + 3]));
      }
    }
  }
}

TEST(AttentionCases, ATT_07) {
  const Case c(bf16, 1, 1, 48, 48, 64, {{"mask", "causal"}, {"softcap", "30"}}, 7, 8);
  const auto got = check_kernel("attention", c.problem, c.inputs);
  // The first query sees its key alone: the mask came after the cap.
  EXPECT_THAT(row(got[0], 0, 64), ElementsAreArray(row(to_doubles(c.inputs[2]), 0, 64)));
  Problem plain = c.problem;
  plain.options["softcap"] = "none";
  const auto uncapped = check_kernel("attention", plain, c.inputs);
  EXPECT_GT(*std::max_element(uncapped[1].begin(), uncapped[1].end()), 100);
  for (double l : got[1]) EXPECT_LE(std::abs(l), 30 + std::log(48.0));
}

/// Sequences of such lengths, packed.
struct Packed {
  Packed(DType t, const Numbers& q_lengths, const Numbers& k_lengths, int64_t heads,
         int64_t kv_heads, int64_t head, uint64_t seed)
      : query_offsets(offsets(q_lengths)), key_offsets(offsets(k_lengths)) {
    const auto total = [](const Tensor& at) { return static_cast<int64_t>(to_doubles(at).back()); };
    q = normal(t, {total(query_offsets), heads, head}, seed);
    k = normal(t, {total(key_offsets), kv_heads, head}, seed + 1000);
    v = normal(t, {total(key_offsets), kv_heads, head}, seed + 2000);
  }

  static Tensor offsets(const Numbers& lengths) {
    Numbers at{0};
    for (double n : lengths) at.push_back(at.back() + n);
    return test::tensor(i32, {std::ssize(at)}, at);
  }
  kernels::PackedSequences sequences() const { return {q, k, v, query_offsets, key_offsets}; }

  /// Calls f(problem, queries, keys) for each sequence; the latter give its part of a tensor that
  /// is laid out as Q or K.
  template <class F>
  void each(F&& f) const {
    const Numbers at = to_doubles(query_offsets), key_at = to_doubles(key_offsets);
    for (size_t s = 1; s < at.size(); ++s) {
      const auto part = [](double begin, double end) {
        return [=](const Tensor& t) {
          return t.slice(0, static_cast<int64_t>(begin), static_cast<int64_t>(end)).transpose(0, 1);
        };
      };
      const Problem p{{{"batch", 1},
                       {"heads", q.dims()[1]},
                       {"kv_heads", k.dims()[1]},
                       {"sq", static_cast<int64_t>(at[s] - at[s - 1])},
                       {"skv", static_cast<int64_t>(key_at[s] - key_at[s - 1])},
                       {"head", q.dims()[2]}},
                      q.dtype(),
                      {{"mask", "causal"}}};
      f(p, part(at[s - 1], at[s]), part(key_at[s - 1], key_at[s]));
    }
  }

  Tensor query_offsets, key_offsets, q, k, v;
};

void expect_within(const check::Reference& want, const std::vector<Tensor>& got) {
  const std::vector<TensorView> views(got.begin(), got.end());
  EXPECT_LE(check::worst_error(want, views).ratio, 1);
}

/// The results of all sequences against the reference of each.
void expect_attention(const Packed& x, const kernels::PackedAttention& y) {
  x.each([&](const Problem& p, auto queries, auto keys) {
    const std::vector<Tensor> in{queries(x.q), keys(x.k), keys(x.v)};
    const std::vector<TensorView> views(in.begin(), in.end());
    expect_within(kernels::attention_reference(p, views),
                  {queries(y.O), queries(y.L.transpose(0, 1))});
  });
}

TEST(AttentionCases, ATT_02) {
  const Packed x(bf16, {0, 1, 0, 1}, {0, 3, 0, 5}, 9, 3, 64, 2);
  const kernels::PackedAttention y = attention_packed(x.sequences(), {.causal = true});
  EXPECT_EQ(y.O.dims(), (std::vector<int64_t>{2, 9, 64}));
  EXPECT_EQ(y.L.dims(), (std::vector<int64_t>{9, 2}));
  expect_attention(x, y);
}

TEST(AttentionCases, ATT_03) {
  const Packed x(bf16, {0, 5, 4, 0}, {7, 5, 3, 16}, 4, 1, 256, 42);
  const Tensor dO = normal(bf16, x.q.dims(), 3042);
  const kernels::PackedOptions options{.causal = true};
  const kernels::PackedAttention y = attention_packed(x.sequences(), options);
  expect_attention(x, y);
  const kernels::PackedGradients g = attention_packed_backward(x.sequences(), y, dO, options);
  x.each([&](const Problem& p, auto queries, auto keys) {
    const std::vector<Tensor> in{queries(x.q), keys(x.k),   keys(x.v),
                                 queries(y.O), queries(dO), queries(y.L.transpose(0, 1))};
    const std::vector<TensorView> views(in.begin(), in.end());
    expect_within(kernels::attention_backward_queries_reference(p, views), {queries(g.dQ)});
    expect_within(kernels::attention_backward_keys_reference(p, views), {keys(g.dK), keys(g.dV)});
  });
  for (const Tensor& gradient : {g.dK, g.dV}) {
    EXPECT_THAT(to_doubles(gradient.slice(0, 0, 7)), Each(0));
    EXPECT_THAT(to_doubles(gradient.slice(0, 15, 31)), Each(0));
  }
  // The same bits again.
  const kernels::PackedGradients again = attention_packed_backward(x.sequences(), y, dO, options);
  EXPECT_EQ(to_doubles(again.dQ), to_doubles(g.dQ));
  EXPECT_EQ(to_doubles(again.dK), to_doubles(g.dK));
  EXPECT_EQ(to_doubles(again.dV), to_doubles(g.dV));
}

}  // namespace
}  // namespace tw
