#include <immintrin.h>
#include <string>

#include "bench/peers/peer_support.h"

namespace peers {
namespace {

constexpr int64_t kBlock = 32;
constexpr int kRows = 4;

/// ggml's block of q4_0: an f16 scale and 32 codes, element i in the low nibble of byte i, element
/// i + 16 in the high one.
struct __attribute__((packed)) Block {
  uint16_t scale;
  uint8_t codes[kBlock / 2];
};
static_assert(sizeof(Block) == 18);

#if defined(__AVX2__) && defined(__F16C__)
/// Sums of four neighbouring products, signs moved from the weights to the activations.
inline __m256i products(__m256i w, __m256i x) {
  const __m256i magnitude = _mm256_sign_epi8(w, w), moved = _mm256_sign_epi8(x, w);
#if defined(__AVX512VNNI__) && defined(__AVX512VL__)
  return _mm256_dpbusd_epi32(_mm256_setzero_si256(), magnitude, moved);
#else
  return _mm256_madd_epi16(_mm256_set1_epi16(1), _mm256_maddubs_epi16(magnitude, moved));
#endif
}

inline __m256i codes_of(const Block& b) {
  const __m128i packed = _mm_loadu_si128(reinterpret_cast<const __m128i*>(b.codes));
  const __m256i both = _mm256_set_m128i(_mm_srli_epi16(packed, 4), packed);
  return _mm256_sub_epi8(_mm256_and_si256(both, _mm256_set1_epi8(15)), _mm256_set1_epi8(8));
}

inline float sum_of(__m256 v) {
  __m128 s = _mm_add_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));
  s = _mm_add_ps(s, _mm_movehl_ps(s, s));
  return _mm_cvtss_f32(_mm_add_ss(s, _mm_movehdup_ps(s)));
}

/// y[r] for rows of `blocks` blocks each; a step of x has one scale for every block.
template <int kCount>
void dot_rows(const Block* w, int64_t blocks, const int8_t* x, const float* scales, float* y) {
  __m256 sums[kCount] = {};
  for (int64_t b = 0; b < blocks; ++b) {
    const __m256i xs = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(x + b * kBlock));
    for (int r = 0; r < kCount; ++r) {
      const Block& block = w[r * blocks + b];
      // The same place of the next rows: a row ends within a page.
      _mm_prefetch(reinterpret_cast<const char*>(&block + kCount * blocks), _MM_HINT_T0);
      const __m256 d = _mm256_set1_ps(_cvtsh_ss(block.scale) * scales[b]);
      sums[r] = _mm256_fmadd_ps(d, _mm256_cvtepi32_ps(products(codes_of(block), xs)), sums[r]);
    }
  }
  for (int r = 0; r < kCount; ++r) y[r] = sum_of(sums[r]);
}

/// Product of q4_0 weights with 8-bit activations as ggml computes it, several rows at a time.
class Gemv : public Job {
 public:
  explicit Gemv(const Request& r) : threads_(r.threads) {
    const TwPeerTensor& w = r.sets[0].inputs[2];
    rows_ = w.dims[0];
    const int64_t groups = w.dims[1], group = 2 * w.dims[2];
    if (group % kBlock != 0) refuse("only groups of whole blocks");
    blocks_ = groups * group / kBlock;
    if (r.sets[0].inputs[0].dims[0] != 1 || r.sets[0].inputs[0].dims[1] != blocks_ * kBlock)
      refuse("only one row of X of whole groups");
    for (int s = 0; s < r.count; ++s) {
      require_contiguous(r.sets[s]);
      calls_.push_back({static_cast<const int8_t*>(r.sets[s].inputs[0].data),
                        floats(r.sets[s].inputs[1]), floats(r.sets[s].outputs[0]),
                        std::vector<Block>(rows_ * blocks_ + kRows)});
      pack(r.sets[s], group, calls_.back().weights.data());
    }
    step_ = group / kBlock;
  }

  void run(int s) override {
    const Call& c = calls_[s];
    std::vector<float> scales(blocks_);
    for (int64_t b = 0; b < blocks_; ++b) scales[b] = c.scales[b / step_];
#pragma omp parallel for num_threads(threads_) schedule(static)
    for (int64_t row = 0; row < rows_; row += kRows) {
      const Block* w = c.weights.data() + row * blocks_;
      if (row + kRows <= rows_) {
        dot_rows<kRows>(w, blocks_, c.x, scales.data(), c.y + row);
      } else {
        for (int64_t r = row; r < rows_; ++r)
          dot_rows<1>(w + (r - row) * blocks_, blocks_, c.x, scales.data(), c.y + r);
      }
    }
  }

  std::string about() const override {
#if defined(__AVX512VNNI__) && defined(__AVX512VL__)
    return "q4_0 x q8_0, 4 rows, AVX512-VNNI";
#else
    return "q4_0 x q8_0, 4 rows, AVX2";
#endif
  }

 private:
  struct Call {
    const int8_t* x;
    const float* scales;
    float* y;
    std::vector<Block> weights;
  };

  /// Half a block never crosses the middle of a group.
  void pack(const TwPeerSet& set, int64_t group, Block* to) const {
    const auto* codes = static_cast<const uint8_t*>(set.inputs[2].data);
    const auto* scales = static_cast<const uint16_t*>(set.inputs[3].data);
    const int64_t half = group / 2, groups = blocks_ * kBlock / group;
    for (int64_t g = 0; g < rows_ * groups; ++g, codes += half) {
      for (int64_t first = 0; first < group; first += kBlock, ++to) {
        const int64_t second = first + kBlock / 2;
        const uint8_t *low = codes + first % half, *high = codes + second % half;
        const int low_at = first < half ? 0 : 4, high_at = second < half ? 0 : 4;
        to->scale = scales[g];
        for (int64_t i = 0; i < kBlock / 2; ++i)
          to->codes[i] =
              static_cast<uint8_t>((low[i] >> low_at & 15) | (high[i] >> high_at & 15) << 4);
      }
    }
  }

  std::vector<Call> calls_;
  int threads_;
  int64_t rows_ = 0, blocks_ = 0, step_ = 1;
};
#endif

std::unique_ptr<Job> make(const Request& r) {
  if (r.op != "gemv_int4_int8") refuse("not in this peer");
  if (r.option("zero_points", "no") != "no" || r.option("scale", "f32") != "f16")
    refuse("only f16 scales without zero points");
#if defined(__AVX2__) && defined(__F16C__)
  return std::make_unique<Gemv>(r);
#else
  refuse("needs AVX2");
#endif
}

}  // namespace
}  // namespace peers

const TwPeer* tw_peer() { return peers::peer<peers::make>("ggml_class"); }
