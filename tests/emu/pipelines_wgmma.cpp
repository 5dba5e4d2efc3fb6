#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <memory>

#include "tw/check/bound.h"

#include "tests/emu/pipelines.h"
#include "tests/support/normal.h"

namespace tw::test {
namespace {

struct Reference {
  std::vector<Tensor> tensors;
  std::vector<Expected> want;
};
using ReferencePtr = std::shared_ptr<const Reference>;

/// Problems are the same for many texts.
template <class F>
ReferencePtr remembered(const std::string& key, F&& make) {
  static std::map<std::string, ReferencePtr> all;
  ReferencePtr& p = all[key];
  if (!p) p = std::make_shared<const Reference>(make());
  return p;
}

std::string defines(const std::vector<std::pair<const char*, int>>& values) {
  std::string text;
  for (const auto& [name, value] : values) text += fmt::format("#define {} {}\n", name, value);
  return text;
}

std::vector<double> values_of(const Tensor& t) {
  std::vector<double> v;
  for (int64_t i = 0; i < t.count(); ++i) v.push_back(get(t, i));
  return v;
}

constexpr double kAlpha = 0.5;

Reference gemm_reference(int64_t m, int64_t n, int64_t k, DType t, bool transposed) {
  Reference p;
  p.tensors = {host_tensor(t, {m, k}), transposed ? host_tensor(t, {k, n}) : host_tensor(t, {n, k}),
               host_tensor(bf16, {m, n})};
  fill_normal(p.tensors[0], 1);
  fill_normal(p.tensors[1], 2);
  const std::vector<double> a = values_of(p.tensors[0]), b = values_of(p.tensors[1]);
  check::Accuracy accuracy{.family = check::Family::gemm, .out = bf16};
  accuracy.terms = k;
  for (int64_t i = 0; i < m; ++i) {
    for (int64_t j = 0; j < n; ++j) {
      double sum = 0, all = 0;
      for (int64_t l = 0; l < k; ++l) {
        const double term = a[static_cast<size_t>(i * k + l)] *
                            b[static_cast<size_t>(transposed ? l * n + j : j * k + l)];
        sum += term;
        all += std::abs(term);
      }
      p.want.push_back({kAlpha * sum, check::bound(accuracy, kAlpha * sum, kAlpha * all)});
    }
  }
  return p;
}

}  // namespace

Pipeline gemm_pipeline(const std::string& text, const Config& c) {
  const int eb = c("eb", 2), bm = c("bm", 128), bn = c("bn", 128), bkb = c("bkb", 128),
            st = c("st", 4), cwg = c("cwg", 2), cm = c("cm", 1), cn = c("cn", 1), tb = c("tb", 0),
            sk = c("sk", 1), epw = c("epw", 64), epb = c("epb", 2), cluster = cm * cn * sk;
  const int64_t m = c("m", 128), n = c("n", 128), k = c("k", 256);
  const ReferencePtr problem = remembered(fmt::format("gemm {} {} {} {} {}", m, n, k, eb, tb), [&] {
    return gemm_reference(m, n, k, eb == 2 ? bf16 : e4m3, tb != 0);
  });
  std::string head = defines({{"EB", eb},
                              {"BM", bm},
                              {"BN", bn},
                              {"BKB", bkb},
                              {"ST", st},
                              {"CWG", cwg},
                              {"CM", cm},
                              {"CN", cn},
                              {"GRP", c("grp", 8)},
                              {"TB", tb},
                              {"PP", c("pp", 0)},
                              {"SK", sk},
                              {"EPW", epw},
                              {"EPB", epb}});
  head += fmt::format("#define ALPHA {}f\n#define WGMMA tw_wgmma_ss_m64n{}k{}_f32_{}\n", kAlpha, bn,
                      eb == 2 ? 16 : 32, eb == 2 ? fmt::format("bf16<0, {}>", tb) : "e4m3");
  head += cluster > 1 ? fmt::format("#define CLUSTER __cluster_dims__({}, 1, 1)\n", cluster)
                      : "#define CLUSTER\n";
  const int64_t tiles_m = ((m + bm - 1) / bm + cm - 1) / cm,
                tiles_n = ((n + bn - 1) / bn + cn - 1) / cn, total = tiles_m * tiles_n;
  int64_t shared = int64_t{st} * (bm + bn) * bkb + int64_t{cwg} * epb * 64 * epw * 2;
  if (sk > 1) shared = std::max(shared, int64_t{bm} * bn * 4);
  shared += 16 * st + kSlack + c("smemadd", 0);
  Pipeline p;
  const int64_t tasks = sk > 1 ? total : std::min<int64_t>(total, c("grid", 1));
  p.launch =
      make_case(head + text, tasks, 128 * (cwg + 1), shared, problem->tensors, "rrw", {m, n, k});
  p.launch.spec.entry = "tw_gemm";
  p.launch.spec.cluster = cluster;
  p.launch.spec.tensor_maps = {
      {0, c("swA", 128), {128 / eb, bm / cn}},
      {1, 128, tb != 0 ? std::vector<int>{64, bkb / eb} : std::vector<int>{128 / eb, bn / cm}},
      {2, c("swC", epw * 2), {epw, 64}}};
  p.wrong = [problem](const std::vector<Tensor>& out) {
    return first_wrong(out[2], problem->want);
  };
  return p;
}

namespace {

struct Attention {
  int64_t heads, shared_by, sq, sk;
  bool causal, odd, infinite;

  int64_t seen(int64_t row) const { return causal ? std::min(sk, row + 1 + sk - sq) : sk; }
};
constexpr int64_t kHead = 128;
constexpr double kScale = 0.08838834764831845;  // 1 / sqrt(128)

/// One row; probabilities are rounded to bf16 on their way to the second product.
void attend(const Attention& a, const std::vector<double>& q, const std::vector<double>& k,
            const std::vector<double>& v, int64_t head, int64_t row, std::vector<Expected>& want) {
  const int64_t seen = a.seen(row);
  if (seen <= 0) {
    want.insert(want.end(), kHead, {0, 0});
    return;
  }
  const auto at = [&](const std::vector<double>& t, int64_t i, int64_t j, int64_t d) {
    return t[static_cast<size_t>((i * (&t == &q ? a.sq : a.sk) + j) * kHead + d)];
  };
  std::vector<double> p(static_cast<size_t>(seen));
  double most = -INFINITY, sum = 0;
  for (int64_t j = 0; j < seen; ++j) {
    double s = 0;
    for (int64_t d = 0; d < kHead; ++d) s += at(q, head, row, d) * at(k, head / a.shared_by, j, d);
    p[static_cast<size_t>(j)] = s * kScale;
    most = std::max(most, s * kScale);
  }
  for (double& x : p) sum += x = std::exp(x - most);
  check::Accuracy accuracy{.family = check::Family::softmax, .out = bf16};
  accuracy.terms = seen;
  for (int64_t d = 0; d < kHead; ++d) {
    double value = 0, all = 0, rounding = 0;
    for (int64_t j = 0; j < seen; ++j) {
      const double x = p[static_cast<size_t>(j)], y = at(v, head / a.shared_by, j, d);
      value += x * y / sum;
      all += std::abs(x * y) / sum;
      rounding += check::ulp(bf16, x) * std::abs(y) / sum;
    }
    want.push_back({value, check::bound(accuracy, value, all) + rounding});
  }
}

/// Keys have a mean. Every second row of Q is so close to one key that the scores of others are far
/// below: without it the maximum is too small. Every fourth is so far from all that a key of zeros,
/// which is none, would be the largest.
void make_odd_queries(const Attention& a, const Tensor& q, const Tensor& k) {
  for (int64_t i = 0; i < k.count(); ++i) set(k, i, get(k, i) + 1);
  for (int64_t row = 0; row < a.heads * a.sq; ++row) {
    const int64_t head = row / a.sq, seen = a.seen(row % a.sq);
    if (row % 4 == 0 || seen <= 0) continue;
    const int64_t key = head / a.shared_by * a.sk + row / 2 * 37 % seen;
    for (int64_t d = 0; d < kHead; ++d)
      set(q, row * kHead + d, row % 2 != 0 ? 16 * get(k, key * kHead + d) : -2);
  }
}

/// All scores of every third row are minus infinity: its softmax is no number.
void make_infinite_queries(const Attention& a, const Tensor& q, const Tensor& k) {
  for (int64_t i = 0; i < k.count(); i += kHead) set(k, i, 1);
  for (int64_t row = 0; row < a.heads * a.sq; row += 3) set(q, row * kHead, -INFINITY);
}

Reference fa_reference(const Attention& a) {
  Reference p;
  p.tensors = {host_tensor(bf16, {a.heads, a.sq, kHead}),
               host_tensor(bf16, {a.heads / a.shared_by, a.sk, kHead}),
               host_tensor(bf16, {a.heads / a.shared_by, a.sk, kHead}),
               host_tensor(bf16, {a.heads, a.sq, kHead})};
  for (size_t i = 0; i < 3; ++i) fill_normal(p.tensors[i], i + 1);
  if (a.odd) make_odd_queries(a, p.tensors[0], p.tensors[1]);
  if (a.infinite) make_infinite_queries(a, p.tensors[0], p.tensors[1]);
  const std::vector<double> q = values_of(p.tensors[0]), k = values_of(p.tensors[1]),
                            v = values_of(p.tensors[2]);
  for (int64_t head = 0; head < a.heads; ++head) {
    for (int64_t row = 0; row < a.sq; ++row) attend(a, q, k, v, head, row, p.want);
  }
  return p;
}

}  // namespace

Pipeline fa_pipeline(const std::string& text, const Config& c) {
  const int groups = c("nwg", 2), bnk = c("bnk", 128), st = c("st", 2), osep = c("osep", 1),
            causal = c("causal", 0);
  const Attention a{c("heads", 1), c("kvdiv", 1),    c("sq", 128),    c("sk", 256),
                    causal != 0,   c("odd", 0) != 0, c("inf", 0) != 0};
  const ReferencePtr problem =
      remembered(fmt::format("fa {} {} {} {} {} {} {}", a.heads, a.shared_by, a.sq, a.sk, causal,
                             a.odd, a.infinite),
                 [&] { return fa_reference(a); });
  std::string head = defines({{"NWG", groups},
                              {"BNK", bnk},
                              {"ST", st},
                              {"CAUSAL", causal},
                              {"PPG", c("ppg", 1)},
                              {"OSEP", osep},
                              {"HSEC", c("hsec", 1)},
                              {"KVDIV", c("kvdiv", 1)}});
  head += fmt::format(
      "#define SCALE {}f\n#define WGMMA_QK tw_wgmma_ss_m64n{}k16_f32_bf16<0, 0>\n"
      "#define WGMMA_PV tw_wgmma_rs_m64n128k16_f32_bf16<1>\n",
      kScale * 1.4426950408889634, bnk);
  const int64_t blocks = (a.sq + 64 * groups - 1) / (64 * groups) * a.heads;
  Pipeline p;
  p.launch = make_case(
      head + text, std::min<int64_t>(blocks, c("grid", 1)), 128 * (groups + 1),
      int64_t{64} * groups * 256 * (1 + osep) + 2 * st * bnk * 256 + 16 + 32 * st + kSlack,
      problem->tensors, "rrrw", {a.heads, a.sq, a.sk});
  p.launch.spec.entry = "tw_fa";
  p.launch.spec.tensor_maps = {{0, 128, {64, 64 * groups, 1}},
                               {1, 128, {64, bnk, 1}},
                               {2, 128, {64, bnk, 1}},
                               {3, 128, {64, 64, 1}}};
  p.wrong = [problem](const std::vector<Tensor>& out) {
    return first_wrong(out[3], problem->want);
  };
  return p;
}

}  // namespace tw::test
