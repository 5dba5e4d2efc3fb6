#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "tw/kernels/gemm/gemm.h"

namespace tw::kernels {

/// Extents of tiles for several threads, and the few of them for one.
static constexpr int64_t kExtents[] = {16,  32,   48,   64,   80,   96,   112,  128, 160,
                                       192, 224,  256,  320,  384,  448,  512,  640, 768,
                                       896, 1024, 1280, 1536, 1792, 2048, 3072, 4096};
static constexpr int64_t kWholeExtents[] = {16, 64, 256, 1024, 4096};

/// Costs in products of two numbers: of packing one element, and of waking another thread. Measured
/// with AVX-512 (190 GFLOP/s, 1.5 us); where products are slower both are smaller, and a second
/// thread pays earlier than this says.
static constexpr double kPackCost = 30, kWakeCost = 1.5e5;

/// Elements of both operands up to which A is read where it is, in a second cache of 512 KB.
static constexpr int64_t kInPlace = 32768;

static int64_t whole_extent(int64_t n) {
  for (const int64_t e : kWholeExtents)
    if (n <= e) return e;
  return kWholeExtents[std::size(kWholeExtents) - 1];
}

/// Products that the busiest thread does when instances are dealt out in equal, contiguous parts.
static double busiest(int64_t m, int64_t n, int64_t k, int64_t batch, int threads,
                      const GemmTiling& t) {
  const int64_t rows = cdiv(m, t.bm), cols = cdiv(n, t.bn), all = batch * rows * cols;
  const int64_t share = cdiv(all, threads);
  const bool small = (std::min(t.bm, m) + std::min(t.bn, n)) * k <= kInPlace;
  double most = 0;
  for (int64_t first = 0; first < all; first += share) {
    double cost = 0;
    for (int64_t i = first; i < std::min(first + share, all); ++i) {
      const int64_t row = i / cols % rows, col = i % cols;
      const double r = static_cast<double>(std::min(t.bm, m - row * t.bm));
      const double c = static_cast<double>(std::min(t.bn, n - col * t.bn));
      cost += static_cast<double>(k) * (r * c + kPackCost * ((small ? 0 : r) + c));
    }
    most = std::max(most, cost);
  }
  return most + (all > 1 ? kWakeCost : 0);
}

GemmTiling gemm_tiling(int64_t m, int64_t n, int64_t k, int64_t batch, int threads) {
  GemmTiling best{whole_extent(m), whole_extent(n), 64};
  if (threads <= 1 || batch >= threads) return best;
  double least = busiest(m, n, k, batch, threads, best);
  for (const int64_t bm : kExtents) {
    for (const int64_t bn : kExtents) {
      constexpr int64_t kMostInstances = 256;
      if (cdiv(m, bm) * cdiv(n, bn) > kMostInstances) continue;
      const bool larger_will_do =
          (bm > kExtents[0] && bm >= 2 * m) || (bn > kExtents[0] && bn >= 2 * n);
      if (larger_will_do) continue;
      const double cost = busiest(m, n, k, batch, threads, {bm, bn, 64});
      if (cost >= least) continue;
      least = cost;
      best = {bm, bn, 64};
    }
  }
  return best;
}

}  // namespace tw::kernels
