#include <cblas.h>
#include <omp.h>
#include <sleef.h>

#include "bench/peers/peer_support.h"

namespace peers {
namespace {

#if defined(__AVX512F__)
using Vector = __m512;
Vector tanh_of(Vector v) { return Sleef_tanhf16_u35avx512f(v); }
#elif defined(__AVX2__)
using Vector = __m256;
Vector tanh_of(Vector v) { return Sleef_tanhf8_u35avx2(v); }
#elif defined(__aarch64__)
using Vector = float32x4_t;
Vector tanh_of(Vector v) { return Sleef_tanhf4_u35advsimd(v); }
#else
#error "the pass needs vectors of AVX-512, AVX2 or NEON"
#endif
typedef float Lanes __attribute__((vector_size(sizeof(Vector)), aligned(4), may_alias));
constexpr int64_t kLanes = sizeof(Vector) / sizeof(float);

Lanes gelu(Lanes x) {
  const Lanes inner = 0.7978845608f * (x + 0.044715f * x * x * x);
  return 0.5f * x * (1.0f + (Lanes)tanh_of((Vector)inner));
}
Lanes relu(Lanes x) { return x > 0.0f ? x : Lanes{}; }

/// What is done to each element after the bias.
using Function = Lanes (*)(Lanes);

/// What a user of a BLAS writes: the product, then a vectorised pass over it.
class Composite : public Job {
 public:
  Composite(const Request& r, Function f) : gemms_(gemms(r, true)), f_(f), threads_(r.threads) {
    openblas_set_num_threads(r.threads);
  }
  void run(int set) override {
    const Gemm& g = gemms_[set];
    cblas_sgemm(CblasRowMajor, g.a.transposed ? CblasTrans : CblasNoTrans,
                g.b.transposed ? CblasTrans : CblasNoTrans, g.c.rows, g.c.columns, g.a.columns,
                1.0f, g.a.data, g.a.leading, g.b.data, g.b.leading, 0.0f, g.c.data, g.c.leading);
    const int threads = g.c.rows * g.c.columns < kSmall ? 1 : threads_;
#pragma omp parallel for num_threads(threads) schedule(static)
    for (int64_t i = 0; i < g.c.rows; ++i) pass(g.c.data + i * g.c.leading, g.bias, g.c.columns);
  }
  std::string about() const override {
    return std::string(openblas_get_config()) + ", core " + openblas_get_corename() +
           ", SLEEF pass of " + std::to_string(kLanes) + " lanes";
  }

 private:
  static constexpr int64_t kSmall = 32 << 10;  // elements that one thread is done with sooner

  void pass(float* c, const float* bias, int64_t n) const {
    int64_t j = 0;
    for (; j + kLanes <= n; j += kLanes) {
      Lanes* at = reinterpret_cast<Lanes*>(c + j);
      *at = f_(*at + *reinterpret_cast<const Lanes*>(bias + j));
    }
    if (j == n) return;
    Lanes rest = {}, add = {};
    std::memcpy(&rest, c + j, (n - j) * sizeof(float));
    std::memcpy(&add, bias + j, (n - j) * sizeof(float));
    rest = f_(rest + add);
    std::memcpy(c + j, &rest, (n - j) * sizeof(float));
  }

  std::vector<Gemm> gemms_;
  Function f_;
  int threads_;
};

std::unique_ptr<Job> make(const Request& r) {
  if (r.op != "gemm") refuse("not in this peer");
  if (r.option("epilogue", "none") == "bias_gelu") return std::make_unique<Composite>(r, gelu);
  if (r.option("epilogue", "none") == "bias_relu") return std::make_unique<Composite>(r, relu);
  refuse("no such epilogue");
}

}  // namespace
}  // namespace peers

const TwPeer* tw_peer() { return peers::peer<peers::make>("openblas_sleef"); }
