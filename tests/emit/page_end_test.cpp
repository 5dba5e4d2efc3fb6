#include <array>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/mman.h>

#include "tests/emit/run_text.h"
#include "tests/support/guarded.h"
#include "tests/support/product_text.h"

namespace tw::test {
namespace {

constexpr int64_t kPage = 4096;

/// A tensor between two pages that nobody may touch, at the end of its own or at their begin.
class BetweenPages {
 public:
  BetweenPages(DType t, std::vector<int64_t> dims, std::vector<int64_t> strides, bool at_end) {
    view_ = {nullptr, t, std::move(dims), std::move(strides)};
    const ByteRange r = byte_range(view_);
    const int64_t size = r.end - r.begin, inner = (size / kPage + 1) * kPage;
    bytes_ = static_cast<size_t>(inner + 2 * kPage);
    memory_ =
        static_cast<char*>(mmap(nullptr, bytes_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    mprotect(memory_ + kPage, static_cast<size_t>(inner), PROT_READ | PROT_WRITE);
    view_.data = memory_ + kPage + (at_end ? inner - size : 0) - r.begin;
  }
  ~BetweenPages() { munmap(memory_, bytes_); }
  BetweenPages(const BetweenPages&) = delete;
  BetweenPages& operator=(const BetweenPages&) = delete;
  const TensorView& view() const { return view_; }

 private:
  TensorView view_;
  char* memory_;
  size_t bytes_;
};

/// Rows and columns of the tile that lie past the tensor are pad, as they are or exchanged.
std::string program(DType t, bool exchanged) {
  return fmt::format(R"(program part
dim M
dim N
dim P
dim Q
in X: {0}[M, N]
out Y: {0}[P, Q]
grid (1)

%0 = load X{{0, 0}} : {0}[64,128]
{1}
)",
                     name(t),
                     exchanged ? fmt::format("%1 = transpose %0 perm (1, 0) : {}[128,64]\n"
                                             "store %1 to Y{{0, 0}}",
                                             name(t))
                               : "store %0 to Y{0, 0}");
}

struct Case {
  DType t;
  int64_t row, col;  // strides
};

class PageEnd : public testing::TestWithParam<std::string> {};

// What stands still along an axis has its only element where it may be the last of its page, and
// rows that the tile has and the tensor lacks lie past it. A read there ends the test program.
TEST_P(PageEnd, NoReadOfATileGoesPastItsTensor) {
  for (const auto& [t, row, col] :
       {Case{f32, 0, 1}, {f32, 1, 0}, {f32, 0, 0}, {f32, 0, -1}, {f32, 131, 1}, {u8, 0, 1}})
    for (const bool exchanged : {false, true})
      for (const bool at_end : {true, false})
        for (const auto& [m, n] : {std::pair{1, 100}, {17, 77}, {64, 1}, {3, 128}}) {
          const BetweenPages x(t, {m, n}, {row, col}, at_end);
          const Guarded y(
              t, exchanged ? std::vector<int64_t>{128, 64} : std::vector<int64_t>{64, 128});
          for (int64_t i = 0; i < m * n; ++i) set(x.view(), i, static_cast<double>(i % 101));
          run_text(program(t, exchanged), {x.view(), y}, GetParam(), {}, {}, "-Og");
          for (int64_t i = 0; i < 64; ++i)
            for (int64_t j = 0; j < 128; ++j)
              ASSERT_EQ(get(y.view(), exchanged ? j * 64 + i : i * 128 + j),
                        i < m && j < n ? get(x.view(), i * n + j) : 0)
                  << name(t) << " strides " << row << "," << col << " at " << i << "," << j;
        }
}

// Small operands of a product are read where they are, also where all rows are one.
TEST_P(PageEnd, ProductsOfRowsThatStandStillReadThoseOnly) {
  for (const auto& [m, n, k] : {std::array{7, 9, 11}, {40, 50, 60}, {3, 64, 16}, {6, 16, 1}}) {
    const BetweenPages a(f32, {m, k}, {0, 1}, true), b(f32, {k, n}, {0, 1}, true);
    const Guarded c(f32, {m, n});
    double sum = 0;
    for (int64_t i = 0; i < k; ++i) {
      set(a.view(), i, static_cast<double>(i % 7));
      sum += static_cast<double>(i % 7);
    }
    for (int64_t j = 0; j < n; ++j) set(b.view(), j, static_cast<double>(j));
    run_text(product_text(), {a.view(), b.view(), c}, GetParam(), {}, {}, "-Og");
    for (int64_t i = 0; i < m * n; ++i)
      ASSERT_EQ(get(c.view(), i), sum * static_cast<double>(i % n)) << m << " " << n << " " << k;
  }
}

INSTANTIATE_TEST_SUITE_P(Isas, PageEnd, testing::ValuesIn(runnable_isas()),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace tw::test
