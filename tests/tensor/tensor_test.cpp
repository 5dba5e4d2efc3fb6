#include "tw/tensor/tensor.h"

#include <cstring>
#include <numeric>

#include "tw/base/error.h"

#include "tests/support/expect_error.h"
#include "tests/support/guarded.h"

namespace tw {

static Tensor counting(DType t, std::vector<int64_t> dims) {
  Tensor x = host_tensor(t, std::move(dims));
  for (int64_t i = 0; i < x.count(); ++i) set(x, i, static_cast<double>(i));
  return x;
}

static std::vector<double> values(const TensorView& t) {
  std::vector<double> v;
  for (int64_t i = 0; i < t.count(); ++i) v.push_back(get(t, i));
  return v;
}

using Values = std::vector<double>;

TEST(Tensor, HostMemoryIsContiguousAndAligned) {
  Tensor t = host_tensor(bf16, {3, 5, 7});
  EXPECT_EQ(t.view().strides, (std::vector<int64_t>{35, 7, 1}));
  EXPECT_TRUE(t.view().is_contiguous());
  EXPECT_EQ(reinterpret_cast<uintptr_t>(t.view().data) % 64, 0u);
  EXPECT_EQ(to_string(t.view()), "bf16[3,5,7] strides [35,7,1]");
  Tensor large = host_tensor(f32, {3 << 20});
  EXPECT_EQ(reinterpret_cast<uintptr_t>(large.view().data) % 64, 0u);
  std::memset(large.view().data, 1, 12 << 20);
}

TEST(Tensor, RankZeroIsOneElementAndAZeroExtentNone) {
  Tensor scalar = host_tensor(f64, {});
  set(scalar, 0, 2.5);
  EXPECT_EQ(values(scalar), Values{2.5});
  EXPECT_EQ(host_tensor(f32, {4, 0, 2}).count(), 0);
  EXPECT_EQ(copy(host_tensor(f32, {4, 0, 2})).count(), 0);
}

TEST(Tensor, ImpossibleSizesAreRefusedBeforeAllocation) {
  TW_EXPECT_ERROR(EnvError, "no memory for f32[500000,500000]: it takes 1000.0 GB", [] {
    host_tensor(f32, {500000, 500000});
  });
  const int64_t big = int64_t{1} << 62;
  TW_EXPECT_ERROR(UserError, "more than 2^63 bytes", [&] { host_tensor(f32, {big}); });
  TW_EXPECT_ERROR(UserError, "more than 2^63 bytes", [&] { host_tensor(u8, {0, big, big}); });
  TW_EXPECT_ERROR(UserError, "negative extent -1", [] { host_tensor(f32, {2, -1}); });
}

TEST(Tensor, ByteRangeFollowsStridesOfEitherSign) {
  EXPECT_EQ(byte_range({nullptr, f32, {3, 4}, {4, 1}}), (ByteRange{0, 48}));
  EXPECT_EQ(byte_range({nullptr, f64, {3, 4}, {4, -1}}), (ByteRange{-24, 72}));
  EXPECT_EQ(byte_range({nullptr, f32, {3, 4}, {0, 0}}), (ByteRange{0, 4}));
  EXPECT_EQ(byte_range({nullptr, f32, {3, 0}, {4, 1}}), (ByteRange{0, 0}));
  TW_EXPECT_ERROR(UserError, "reaches past 2^63 bytes", [] {
    byte_range({nullptr, f32, {3}, {int64_t{1} << 61}});
  });
}

TEST(Tensor, ViewsShareMemory) {
  Tensor t = counting(i32, {2, 3});
  EXPECT_EQ(values(t.transpose(0, 1)), (Values{0, 3, 1, 4, 2, 5}));
  EXPECT_EQ(values(t.slice(1, 0, 3, 2)), (Values{0, 2, 3, 5}));
  EXPECT_EQ(values(t.slice(0, 1, 2)), (Values{3, 4, 5}));
  EXPECT_EQ(values(t.reshape({3, 2})), (Values{0, 1, 2, 3, 4, 5}));
  EXPECT_EQ(values(t.slice(0, 0, 1).expand({2, 3})), (Values{0, 1, 2, 0, 1, 2}));
  set(t.transpose(0, 1), 1, 42);
  EXPECT_EQ(get(t, 3), 42);
}

TEST(Tensor, AViewKeepsItsMemoryAlive) {
  Tensor row;
  {
    Tensor t = counting(f32, {64, 3});
    row = t.slice(0, 63, 64);
  }
  EXPECT_EQ(values(row), (Values{189, 190, 191}));
}

TEST(Tensor, WrongViewsAreNamed) {
  Tensor t = counting(f32, {2, 3});
  TW_EXPECT_ERROR(UserError, "transpose of axis 2 of f32[2,3]", [&] { t.transpose(0, 2); });
  TW_EXPECT_ERROR(UserError, "slice of axis -1", [&] { t.slice(-1, 0, 1); });
  TW_EXPECT_ERROR(UserError, "slice [1:4:1] of axis 1", [&] { t.slice(1, 1, 4); });
  TW_EXPECT_ERROR(UserError, "step >= 1", [&] { t.slice(1, 0, 2, 0); });
  TW_EXPECT_ERROR(UserError, "6 elements are not 8", [&] { t.reshape({2, 4}); });
  TW_EXPECT_ERROR(UserError, "it has gaps", [&] { t.transpose(0, 1).reshape({6}); });
  TW_EXPECT_ERROR(UserError, "only extents of 1 stretch", [&] { t.expand({4, 3}); });
  TW_EXPECT_ERROR(UserError, "elements of 4 bytes are not elements of 2", [&] { t.bitcast(f16); });
  TW_EXPECT_ERROR(UserError, "element 6 of f32[2,3]", [&] { get(t, 6); });
  TW_EXPECT_ERROR(UserError, "element -1 of f32[2,3]", [&] { set(t, -1, 0); });
}

TEST(Tensor, CopyPacksAnyStrides) {
  Tensor t = counting(i16, {4, 6});
  Tensor c = copy(t.transpose(0, 1).slice(0, 1, 6, 2));
  EXPECT_TRUE(c.view().is_contiguous());
  EXPECT_EQ(values(c), (Values{1, 7, 13, 19, 3, 9, 15, 21, 5, 11, 17, 23}));
}

TEST(Tensor, ElementsOfEveryTypeKeepTheirValue) {
  for (int i = 0; i < kDTypeCount; ++i) {
    const DType t = static_cast<DType>(i);
    Tensor x = host_tensor(t, {2});
    set(x, 0, 1);
    const double low = is_float(t) ? -1.5 : lowest(t);
    set(x, 1, low);
    EXPECT_EQ(get(x, 0), 1) << name(t);
    EXPECT_EQ(get(x, 1), low) << name(t);
  }
}

TEST(IndexCases, IDX_06) {
  // A strided view made after an update in place sees the updated storage.
  Tensor storage = counting(i64, {10});
  Tensor x = storage.slice(0, 0, 10, 2);
  for (int64_t i = 0; i < x.count(); ++i) set(x, i, get(x, i) + 1);
  EXPECT_EQ(values(copy(storage.slice(0, 0, 6, 2))), (Values{1, 3, 5}));
}

TEST(Guarded, SeesAWriteOutsideElements) {
  test::Guarded g(f32, {3, 2}, {4, 1}, 4);
  EXPECT_EQ(g.damage(), "");
  EXPECT_EQ(g.unwritten(), 6);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(g.view().data) % 64, 4u);
  g.fill([](int64_t i) { return static_cast<double>(i); });
  EXPECT_EQ(g.unwritten(), 0);
  EXPECT_EQ(g.damage(), "");
  EXPECT_EQ(get(g, 5), 5);
  static_cast<float*>(g.view().data)[2] = 0;  // the gap after the first row
  EXPECT_NE(g.damage().find("byte 8 of the range of f32[3,2]"), std::string::npos) << g.damage();
}

TEST(Guarded, SeesAWriteBeforeAndAfter) {
  test::Guarded before(f64, {4}, {-1});
  EXPECT_EQ(before.damage(), "");
  static_cast<double*>(before.view().data)[1] = 0;
  EXPECT_NE(before.damage(), "");
  test::Guarded after(u8, {5});
  static_cast<uint8_t*>(after.view().data)[5 + test::Guarded::kGuard - 1] ^= 1;
  EXPECT_NE(after.damage(), "");
}

}  // namespace tw
