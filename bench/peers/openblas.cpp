#include <cblas.h>

#include "bench/peers/peer_support.h"

namespace peers {
namespace {

class BlasGemm : public Job {
 public:
  explicit BlasGemm(const Request& r) : gemms_(gemms(r, false)) {
    openblas_set_num_threads(r.threads);
  }
  void run(int set) override { multiply(gemms_[set]); }
  std::string about() const override {
    return std::string(openblas_get_config()) + ", core " + openblas_get_corename();
  }

 protected:
  static CBLAS_TRANSPOSE order(const Matrix& m) { return m.transposed ? CblasTrans : CblasNoTrans; }

  /// One row or column goes to sgemv, which is much faster there than sgemm.
  static void multiply(const Gemm& g) {
    const int64_t m = g.c.rows, n = g.c.columns, k = g.a.columns;
    if (m == 1)
      gemv(g.b, !g.b.transposed, k, n, g.a.data, g.a.transposed ? g.a.leading : 1, g.c.data, 1);
    else if (n == 1)
      gemv(g.a, g.a.transposed, m, k, g.b.data, g.b.transposed ? 1 : g.b.leading, g.c.data,
           g.c.leading);
    else
      cblas_sgemm(CblasRowMajor, order(g.a), order(g.b), m, n, k, 1.0f, g.a.data, g.a.leading,
                  g.b.data, g.b.leading, 0.0f, g.c.data, g.c.leading);
  }

  std::vector<Gemm> gemms_;

 private:
  /// y = op(M) x for M of rows x columns; `turn` takes the transpose of M as it is meant.
  static void gemv(const Matrix& m, bool turn, int64_t rows, int64_t columns, const float* x,
                   int64_t x_step, float* y, int64_t y_step) {
    if (m.transposed) std::swap(rows, columns);
    cblas_sgemv(CblasRowMajor, turn ? CblasTrans : CblasNoTrans, rows, columns, 1.0f, m.data,
                m.leading, x, x_step, 0.0f, y, y_step);
  }
};

std::unique_ptr<Job> make(const Request& r) {
  if (r.op == "gemm" && plain(r)) return std::make_unique<BlasGemm>(r);
  refuse("not in this peer");
}

}  // namespace
}  // namespace peers

const TwPeer* tw_peer() { return peers::peer<peers::make>("openblas"); }
