#include <cstring>
#include <gtest/gtest.h>
#include <sys/mman.h>

#include "tests/kernels/run_kernel.h"

namespace tw::test {
namespace {

/// Address space whose pages exist once they are written.
class Reserved {
 public:
  explicit Reserved(int64_t bytes) : bytes_(static_cast<size_t>(bytes)) {
    data_ = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE,
                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  }
  ~Reserved() { munmap(data_, bytes_); }
  Reserved(const Reserved&) = delete;
  Reserved& operator=(const Reserved&) = delete;
  uint16_t* data() const { return data_ == MAP_FAILED ? nullptr : static_cast<uint16_t*>(data_); }

 private:
  size_t bytes_;
  void* data_;
};

TensorView matrix(void* data, int64_t rows, int64_t cols, int64_t stride) {
  TensorView t;
  t.data = data;
  t.dtype = bf16;
  t.dims = {rows, cols};
  t.strides = {stride, 1};
  return t;
}

}  // namespace

// Rows [230000, 16 x 96] of a wider tensor: from row 220753 on, offsets in elements pass 2^31.
// Output rows share one row of memory's worth of pages but the last ones.
TEST(BigRowCases, BIG_03) {
  constexpr int64_t kRows = 230000, kCols = 16 * 96, kStride = 9728, kFirst = 220753;
  constexpr int64_t kChecked = kRows - kFirst;
  const Reserved wide(kRows * kStride * 2), out(kRows * kCols * 2);
  ASSERT_NE(wide.data(), nullptr);
  ASSERT_NE(out.data(), nullptr);
  std::vector<uint16_t> packed(kChecked * kCols), want(packed.size());
  for (int64_t i = 0; i < kChecked; ++i)
    for (int64_t j = 0; j < kCols; ++j) {
      const auto bits = static_cast<uint16_t>(0x3f00 + (i * 31 + j * 17) % 255);  // 0.5 to 2
      packed[i * kCols + j] = wide.data()[(kFirst + i) * kStride + j] = bits;
    }
  const Tensor gamma = tensor(f32, {kCols}, std::vector<double>(kCols, 1));
  const auto run = [&](const TensorView& x, const TensorView& y) {
    const kernels::Problem p{{{"m", x.dims[0]}, {"n", kCols}}, bf16, {}};
    subject(kernels::kernel_named("rmsnorm"), p).run({x, gamma}, {y});
  };
  run(matrix(wide.data(), kRows, kCols, kStride), matrix(out.data(), kRows, kCols, kCols));
  run(matrix(packed.data(), kChecked, kCols, kCols), matrix(want.data(), kChecked, kCols, kCols));
  EXPECT_EQ(std::memcmp(out.data() + kFirst * kCols, want.data(), want.size() * 2), 0);
}

}  // namespace tw::test
