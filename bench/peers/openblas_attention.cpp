#include <algorithm>
#include <cblas.h>
#include <cmath>
#include <omp.h>

#include "bench/peers/peer_support.h"

namespace peers {
namespace {

constexpr int kLanes = 8;
typedef float Lanes __attribute__((vector_size(4 * kLanes), aligned(4), may_alias));
typedef int Bits __attribute__((vector_size(4 * kLanes), aligned(4), may_alias));

/// e^x for x <= 0 by a polynomial of degree 6 on [-ln 2 / 2, ln 2 / 2]; 0 below -80: weights of
/// masked keys must not become subnormal, which products of some processors take 100 cycles for.
Lanes exp_of(Lanes x) {
  const Bits counts = x > -80.0f;
  x = (Lanes)((Bits)x & counts);
  const Lanes shifted = x * 1.44269504f + 12582912.0f;
  const Lanes n = shifted - 12582912.0f;
  const Lanes r = (x - n * 0.693359375f) + n * 2.12194440e-4f;
  Lanes p = r * 1.9875691500e-4f + 1.3981999507e-3f;
  p = p * r + 8.3334519073e-3f;
  p = p * r + 4.1665795894e-2f;
  p = p * r + 1.6666665459e-1f;
  p = p * r + 5.0000001201e-1f;
  p = p * r * r + r + 1.0f;
  return (Lanes)(((Bits)p + ((Bits)shifted << 23)) & counts);
}

/// Softmax of n elements in place, n a multiple of the lanes; the logarithm of the sum.
float softmax(float* x, int64_t n) {
  Lanes top = *(Lanes*)x;
  for (int64_t j = kLanes; j < n; j += kLanes) {
    const Lanes v = *(Lanes*)(x + j);
    top = top > v ? top : v;
  }
  float largest = top[0];
  for (int l = 1; l < kLanes; ++l) largest = std::max(largest, top[l]);
  Lanes sums = {};
  for (int64_t j = 0; j < n; j += kLanes) {
    Lanes* at = (Lanes*)(x + j);
    *at = exp_of(*at - largest);
    sums += *at;
  }
  float sum = 0;
  for (int l = 0; l < kLanes; ++l) sum += sums[l];
  for (int64_t j = 0; j < n; j += kLanes) *(Lanes*)(x + j) *= 1 / sum;
  return largest + std::log(sum);
}

/// What a user of a BLAS writes: for each block of queries of a head a product, a vectorised
/// softmax and a product.
class Attention : public Job {
 public:
  explicit Attention(const Request& r)
      : threads_(r.threads), causal_(r.option("mask", "none") == "causal") {
    for (int s = 0; s < r.count; ++s) {
      require_dtype(r.sets[s], "f32");
      require_contiguous(r.sets[s]);
      const TwPeerTensor* in = r.sets[s].inputs;
      const TwPeerTensor* out = r.sets[s].outputs;
      calls_.push_back(
          {floats(in[0]), floats(in[1]), floats(in[2]), floats(out[0]), floats(out[1])});
    }
    const TwPeerSet& set = r.sets[0];
    if (r.option("bias", "no") != "no") refuse("no bias");
    if (r.option("softcap", "none") != "none") refuse("no soft cap");
    if (set.inputs[0].dims[1] != set.inputs[1].dims[1]) refuse("no grouped heads");
    heads_ = set.inputs[0].dims[0] * set.inputs[0].dims[1];
    sq_ = set.inputs[0].dims[2];
    skv_ = set.inputs[1].dims[2];
    head_ = set.inputs[0].dims[3];
    if (sq_ != skv_ || sq_ % kQueries != 0)
      refuse("only whole blocks of queries, and as many keys");
    openblas_set_num_threads(1);
    scratch_.resize(threads_ * kQueries * skv_);
  }

  void run(int s) override {
    const int64_t blocks = sq_ / kQueries;
#pragma omp parallel for num_threads(threads_) schedule(dynamic, 1)
    for (int64_t t = 0; t < heads_ * blocks; ++t)  // the longest blocks first
      block(calls_[s], t % heads_, blocks - 1 - t / heads_);
  }
  std::string about() const override {
    return std::string(openblas_get_config()) + ", core " + openblas_get_corename() +
           ", blocks of " + std::to_string(kQueries) + " queries";
  }

 private:
  static constexpr int64_t kQueries = 128;
  struct Call {
    float *q, *k, *v, *o, *l;
  };

  void block(const Call& c, int64_t h, int64_t b) {
    const int64_t first = b * kQueries, keys = causal_ ? first + kQueries : skv_;
    float* scores = scratch_.data() + omp_get_thread_num() * kQueries * skv_;
    const int64_t keys_at = h * sq_ * head_, queries_at = keys_at + first * head_;
    cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, kQueries, keys, head_,
                1 / std::sqrt(static_cast<float>(head_)), c.q + queries_at, head_, c.k + keys_at,
                head_, 0, scores, keys);
    for (int64_t i = 0; i < kQueries; ++i) {
      float* row = scores + i * keys;
      if (causal_) std::fill(row + first + i + 1, row + keys, -1e30f);
      c.l[h * sq_ + first + i] = softmax(row, keys);
    }
    cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, kQueries, head_, keys, 1, scores, keys,
                c.v + keys_at, head_, 0, c.o + queries_at, head_);
  }

  std::vector<Call> calls_;
  int threads_;
  bool causal_;
  int64_t heads_ = 0, sq_ = 0, skv_ = 0, head_ = 0;
  std::vector<float> scratch_;
};

std::unique_ptr<Job> make(const Request& r) {
  if (r.op != "attention") refuse("not in this peer");
  return std::make_unique<Attention>(r);
}

}  // namespace
}  // namespace peers

const TwPeer* tw_peer() { return peers::peer<peers::make>("openblas_attention"); }
