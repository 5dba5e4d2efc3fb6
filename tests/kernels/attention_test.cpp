#include "tw/kernels/attention/attention.h"

#include <cmath>
#include <gmock/gmock.h>
#include <limits>

#include "tw/kernels/attention/backward.h"
#include "tw/kernels/attention/packed.h"

#include "tests/kernels/run_kernel.h"
#include "tests/support/expect_error.h"
#include "tests/support/normal.h"

namespace tw {
namespace {

using kernels::attention_packed;
using kernels::Problem;
using testing::Each;
using testing::ElementsAre;
using testing::IsNan;

using Numbers = std::vector<double>;
constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNotANumber = std::numeric_limits<double>::quiet_NaN();

Tensor normal_of(DType t, std::vector<int64_t> dims, uint64_t seed) {
  Tensor made = host_tensor(t, std::move(dims));
  test::fill_normal(made, seed);
  return made;
}

Tensor to_type(DType t, const Tensor& x) { return test::tensor(t, x.dims(), to_doubles(x)); }

/// The sum over all elements of dO * attention(Q, K, V), in double.
double loss(const Problem& p, const std::vector<Tensor>& qkv, const Numbers& dO) {
  const std::vector<TensorView> in(qkv.begin(), qkv.end());
  const Numbers o = kernels::attention_reference(p, in).outputs[0].value;
  double sum = 0;
  for (size_t i = 0; i < o.size(); ++i) sum += o[i] * dO[i];
  return sum;
}

/// Its derivative by every element of one of Q, K, V, by central differences of the fourth order.
Numbers slope(const Problem& p, std::vector<Tensor> qkv, int which, const Numbers& dO) {
  constexpr double kStep = 0x1p-10;
  for (Tensor& t : qkv) t = to_type(f64, t);
  const Tensor& x = qkv[which];
  Numbers all;
  for (int64_t i = 0; i < x.count(); ++i) {
    const double here = get(x, i);
    const auto at = [&](double steps) {
      set(x, i, here + steps * kStep);
      return loss(p, qkv, dO);
    };
    const double near = at(1) - at(-1), far = at(2) - at(-2);
    set(x, i, here);
    all.push_back((8 * near - far) / (12 * kStep));
  }
  return all;
}

/// The gradients of attention's own results agree with differences of its reference.
void expect_gradients(const Problem& p) {
  SCOPED_TRACE(to_string(p));
  const int64_t head = p.extent("head");
  const std::vector<int64_t> queries{1, p.extent("heads"), p.extent("sq"), head};
  const std::vector<int64_t> keys{1, p.extent("kv_heads"), p.extent("skv"), head};
  std::vector<Tensor> in{normal_of(f32, queries, 1), normal_of(f32, keys, 2),
                         normal_of(f32, keys, 3)};
  const Tensor dO = normal_of(f32, queries, 4);
  const auto forward = test::run_kernel("attention", p, in);
  std::vector<Numbers> slopes;
  for (int which : {0, 1, 2}) slopes.push_back(slope(p, in, which, to_doubles(dO)));

  in.push_back(test::tensor(f32, queries, forward[0]));
  in.push_back(dO);
  in.push_back(test::tensor(f32, {1, queries[1], queries[2]}, forward[1]));
  const std::vector<TensorView> views(in.begin(), in.end());
  check::Reference dq = kernels::attention_backward_queries_reference(p, views);
  dq.outputs[0].value = slopes[0];
  check::Reference dkv = kernels::attention_backward_keys_reference(p, views);
  dkv.outputs[0].value = slopes[1];
  dkv.outputs[1].value = slopes[2];

  const auto by_queries = test::run_kernel("attention_backward_queries", p, in);
  const auto by_keys = test::run_kernel("attention_backward_keys", p, in);
  const Tensor q = test::tensor(f32, queries, by_queries[0]);
  const Tensor k = test::tensor(f32, keys, by_keys[0]), v = test::tensor(f32, keys, by_keys[1]);
  EXPECT_LE(check::worst_error(dq, std::vector<TensorView>{q}).ratio, 1);
  EXPECT_LE(check::worst_error(dkv, std::vector<TensorView>{k, v}).ratio, 1);
}

Problem small_problem(int64_t sq, int64_t skv, int64_t head, const char* mask) {
  return {{{"batch", 1}, {"heads", 4}, {"kv_heads", 2}, {"sq", sq}, {"skv", skv}, {"head", head}},
          f32,
          {{"mask", mask}}};
}

TEST(AttentionBackward, IsTheDerivative) {
  expect_gradients(small_problem(3, 4, 24, "none"));
  expect_gradients(small_problem(4, 7, 8, "causal"));
  expect_gradients(small_problem(5, 2, 8, "causal"));  // rows that see no key
}

TEST(AttentionBackward, RowsThatSeeNoKeyAddNothing) {
  const Problem p = small_problem(3, 4, 24, "none");
  const Numbers big(4 * 3 * 24, 1e30);
  const std::vector<int64_t> queries{1, 4, 3, 24}, keys{1, 2, 4, 24};
  const std::vector<Tensor> in{
      test::tensor(f32, queries, big), normal_of(f32, keys, 2),
      normal_of(f32, keys, 3),         test::tensor(f32, queries, big),
      normal_of(f32, queries, 4),      test::tensor(f32, {1, 4, 3}, Numbers(12, -kInfinity))};
  EXPECT_THAT(test::run_kernel("attention_backward_queries", p, in)[0], Each(0));
  for (const Numbers& gradient : test::run_kernel("attention_backward_keys", p, in))
    EXPECT_THAT(gradient, Each(0));
}

/// O and L of two states of one element, merged.
std::pair<double, double> merged(double o1, double l1, double o2, double l2) {
  const Problem p{{{"batch", 1}, {"heads", 1}, {"sq", 1}, {"head", 1}}, f32, {}};
  const auto o = [](double v) { return test::tensor(f32, {1, 1, 1, 1}, {v}); };
  const auto l = [](double v) { return test::tensor(f32, {1, 1, 1}, {v}); };
  const auto got = test::run_kernel("attention_merge", p, {o(o1), l(l1), o(o2), l(l2)});
  return {got[0][0], got[1][0]};
}

TEST(AttentionMerge, SpecialStates) {
  EXPECT_TRUE(std::signbit(merged(-0.0, 3, 7, -kInfinity).first))
      << "not even a sign of zero changes";
  EXPECT_EQ(merged(kInfinity, -kInfinity, 2, -5), std::pair(2.0, -5.0))
      << "an empty state's O is not read";
  EXPECT_EQ(merged(kNotANumber, -kInfinity, kNotANumber, -kInfinity), std::pair(0.0, -kInfinity));
  EXPECT_EQ(merged(2, 200, 3, -200), std::pair(2.0, 200.0)) << "no weight overflows";
  EXPECT_THAT(merged(1, kNotANumber, 2, 0), testing::Pair(IsNan(), IsNan()));
  EXPECT_THAT(merged(1, kInfinity, 2, 0), testing::Pair(IsNan(), IsNan()));
}

/// Attention over some keys merged with attention over the others is attention over all.
TEST(AttentionMerge, JoinsKeysThatWereSplit) {
  const Problem whole{
      {{"batch", 1}, {"heads", 2}, {"kv_heads", 2}, {"sq", 6}, {"skv", 40}, {"head", 24}}, f32, {}};
  const Tensor q = normal_of(f32, {1, 2, 6, 24}, 1), k = normal_of(f32, {1, 2, 40, 24}, 2),
               v = normal_of(f32, {1, 2, 40, 24}, 3);
  const auto part = [&](int64_t begin, int64_t end) {
    Problem p = whole;
    p.shape["skv"] = end - begin;
    const auto got =
        test::run_kernel("attention", p, {q, k.slice(2, begin, end), v.slice(2, begin, end)});
    return std::vector{test::tensor(f32, q.dims(), got[0]), test::tensor(f32, {1, 2, 6}, got[1])};
  };
  const std::vector<Tensor> a = part(0, 13), b = part(13, 40);
  const Problem states{{{"batch", 1}, {"heads", 2}, {"sq", 6}, {"head", 24}}, f32, {}};
  const auto got = test::run_kernel("attention_merge", states, {a[0], a[1], b[0], b[1]});
  const check::Reference want = kernels::attention_reference(
      complete(kernels::kernel_named("attention"), whole), std::vector<TensorView>{q, k, v});
  const Tensor o = test::tensor(f32, q.dims(), got[0]), l = test::tensor(f32, {1, 2, 6}, got[1]);
  EXPECT_LE(check::worst_error(want, std::vector<TensorView>{o, l}).ratio, 1);
}

Tensor offsets(const Numbers& at, DType t = i64) { return test::tensor(t, {std::ssize(at)}, at); }

/// Two sequences of 2 and 3 queries, 4 and 0 keys.
class AttentionPacked : public testing::Test {
 protected:
  std::string error(const Tensor& query_offsets, const Tensor& key_offsets) const {
    return test::error_text<UserError>([&] {
      attention_packed({q_, k_, v_, query_offsets, key_offsets});
    });
  }
  const Tensor q_ = normal_of(f32, {5, 4, 24}, 1), k_ = normal_of(f32, {4, 2, 24}, 2),
               v_ = normal_of(f32, {4, 2, 24}, 3);
  const Tensor queries_ = offsets({0, 2, 5}), keys_ = offsets({0, 4, 4}, i32);
};

TEST_F(AttentionPacked, SequencesWithoutKeysGiveNothing) {
  const kernels::PackedAttention y = attention_packed({q_, k_, v_, queries_, keys_});
  EXPECT_THAT(to_doubles(y.O.slice(0, 2, 5)), Each(0));
  EXPECT_THAT(to_doubles(y.L.slice(1, 2, 5)), Each(-kInfinity));
  EXPECT_THAT(to_doubles(y.L.slice(1, 0, 2)), Each(testing::Gt(-kInfinity)));
  const kernels::PackedAttention none = attention_packed(
      {q_.slice(0, 0, 0), k_.slice(0, 0, 0), v_.slice(0, 0, 0), offsets({0}), offsets({0})});
  EXPECT_EQ(none.O.count(), 0);
}

TEST_F(AttentionPacked, BadOffsetsAreNamed) {
  using testing::HasSubstr;
  EXPECT_THAT(error(offsets({0, 6, 5}), keys_),
              HasSubstr("query_offsets[1] is 6, past the end: wanted at most the 5 queries"));
  EXPECT_THAT(error(queries_, offsets({0, 4, 3})),
              HasSubstr("key_offsets[2] is 3, less than key_offsets[1], which is 4: wanted "
                        "offsets that ascend"));
  EXPECT_THAT(error(offsets({1, 2, 5}), keys_), HasSubstr("query_offsets[0] is 1, wanted 0"));
  EXPECT_THAT(error(queries_, offsets({0, 1, 3})),
              HasSubstr("key_offsets ends at 3, wanted the 4 keys; give the rest to a sequence"));
  EXPECT_THAT(error(queries_, offsets({0, 4})),
              HasSubstr("query_offsets has 3 entries and key_offsets 2: wanted one more than there "
                        "are sequences in both"));
  EXPECT_THAT(error(offsets({0, 2, 5}, f32), keys_),
              HasSubstr("query_offsets is f32[3] strides [1]: wanted i32 or i64 [sequences + 1]"));
}

TEST_F(AttentionPacked, RefusesTensorsThatDoNotFit) {
  using testing::HasSubstr;
  const auto call = [&](const Tensor& q, const Tensor& k, const Tensor& v) {
    return test::error_text<UserError>([&] { attention_packed({q, k, v, queries_, keys_}); });
  };
  EXPECT_THAT(call(q_, k_, q_), HasSubstr("wanted [queries,H,head] and twice [keys,Hkv,head]"));
  EXPECT_THAT(call(q_, to_type(bf16, k_), v_), HasSubstr("of one type of f32, bf16 and f16"));
  EXPECT_THAT(call(q_.slice(1, 0, 3), k_, v_),
              HasSubstr("attention of 3 heads over 2 key heads: wanted a multiple"));
  const kernels::PackedSequences x{q_, k_, v_, queries_, keys_};
  const kernels::PackedAttention y = attention_packed(x);
  TW_EXPECT_ERROR(UserError,
                  "dO is f32[4,2,24] strides [48,24,1], wanted f32[5,4,24] strides [96,24,1]",
                  [&] { attention_packed_backward(x, y, k_); });
  TW_EXPECT_ERROR(UserError, "gradients of attention with a soft cap of 30: there are none",
                  [&] { attention_packed_backward(x, y, q_, {.softcap = 30}); });
}

}  // namespace
}  // namespace tw
