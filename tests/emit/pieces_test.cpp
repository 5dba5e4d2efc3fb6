#include "tw/emit/cpu/pieces.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "tw/base/round.h"

#include "tests/emit/run_text.h"
#include "tests/support/product_text.h"

namespace tw::test {
namespace {

/// Rows and columns of the pieces that the text chooses, without running any.
struct Pieces {
  int64_t rows, cols;
};
Pieces pieces(int64_t m, int64_t n, int64_t k, int threads) {
  const std::vector<int64_t> dims = dims_chosen(product_text(), {m, n, k}, threads);
  return {dims[3], dims[4]};
}

TEST(Pieces, OneThreadHasOneInstanceOfWholeRegisterTiles) {
  for (int64_t m = 1; m < 9000; m = m * 5 / 3 + 1) {
    for (int64_t n = 1; n < 40000; n = n * 5 / 3 + 1) {
      const Pieces p = pieces(m, n, 512, 1);
      EXPECT_LE(p.rows, 4096);
      EXPECT_LE(p.cols, 16384);
      if (std::max(m, n) > 4000) continue;
      EXPECT_TRUE(m <= p.rows && n <= p.cols) << m << "x" << n;
    }
  }
}

TEST(Pieces, ThreadsGetEqualParts) {
  for (const int threads : {2, 3, 8, 64}) {
    for (const auto& [m, n] :
         {std::pair{2048, 2048}, {1000, 1000}, {1536, 700}, {4096, 64}, {64, 4096}, {777, 3001}}) {
      const Pieces p = pieces(m, n, 1024, threads);
      const int64_t rows = ceil_div(m, p.rows), cols = ceil_div(n, p.cols), all = rows * cols;
      const int64_t share = ceil_div(all, threads);
      int64_t most = 0;
      for (int64_t first = 0; first < all; first += share) {
        int64_t area = 0;
        for (int64_t i = first; i < std::min(first + share, all); ++i)
          area += std::min<int64_t>(p.rows, m - i / cols * p.rows) *
                  std::min<int64_t>(p.cols, n - i % cols * p.cols);
        most = std::max(most, area);
      }
      EXPECT_LE(most, m * n * 1.25 / threads) << m << "x" << n << " on " << threads;
    }
  }
}

TEST(Pieces, SmallProductsStayOnOneThread) {
  const Pieces p = pieces(16, 16, 16, 8);
  EXPECT_TRUE(p.rows >= 16 && p.cols >= 16) << p.rows << "x" << p.cols;
}

}  // namespace
}  // namespace tw::test
