#include <blis.h>
#include <cstdlib>

#include "bench/peers/peer_support.h"

namespace peers {
namespace {

class BlisGemm : public Job {
 public:
  explicit BlisGemm(const Request& r) : gemms_(gemms(r, false)) {
    choose_kernels(gemms_[0]);
    bli_thread_set_num_threads(r.threads);
  }
  void run(int set) override {
    Gemm& g = gemms_[set];
    float one = 1, zero = 0;
    bli_sgemm(BLIS_NO_TRANSPOSE, BLIS_NO_TRANSPOSE, g.c.rows, g.c.columns, g.a.columns, &one,
              g.a.data, row_step(g.a), column_step(g.a), g.b.data, row_step(g.b), column_step(g.b),
              &zero, g.c.data, row_step(g.c), column_step(g.c));
  }
  std::string about() const override {
    return std::string("BLIS ") + bli_info_get_version_str() + ", " +
           bli_arch_string(bli_arch_query_id());
  }

 private:
  /// BLIS 0.9 knows by name which AVX-512 processors have two FMA pipes, and takes its AVX2 kernels
  /// on all others. Its AVX-512 kernels do up to 1.6 of their speed on large products, but lack the
  /// forms for small ones. Before its first call the choice can be made for it.
  static void choose_kernels(const Gemm& g) {
#ifdef __AVX512F__
    const double products = 1.0 * g.c.rows * g.c.columns * g.a.columns;
    const int arch = products > 160.0 * 160 * 160 ? BLIS_ARCH_SKX : BLIS_ARCH_HASWELL;
    setenv("BLIS_ARCH_TYPE", std::to_string(arch).c_str(), 0);
#else
    (void)g;
#endif
  }

  static inc_t row_step(const Matrix& m) { return m.transposed ? 1 : m.leading; }
  static inc_t column_step(const Matrix& m) { return m.transposed ? m.leading : 1; }

  std::vector<Gemm> gemms_;
};

std::unique_ptr<Job> make(const Request& r) {
  if (r.op == "gemm" && plain(r)) return std::make_unique<BlisGemm>(r);
  refuse("not in this peer");
}

}  // namespace
}  // namespace peers

const TwPeer* tw_peer() { return peers::peer<peers::make>("blis"); }
