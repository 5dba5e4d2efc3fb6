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
  TW_EXPECT_ERROR(UserError, "elements of 32 bits are not elements of 16", [&] { t.bitcast(f16); });
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
    const double one = std::min(1.0, largest(t));  // i1 holds -1 and 0
    set(x, 0, one);
    const double low = is_float(t) && t != e8m0 ? -1.5 : lowest(t);
    set(x, 1, low);
    EXPECT_EQ(get(x, 0), one) << name(t);
    EXPECT_EQ(get(x, 1), low) << name(t);
  }
}

TEST(Tensor, PackedRowsBeginWithAByte) {
  const Tensor t = host_tensor(i4, {3, 5}), wide = host_tensor(e3m2, {2, 3, 5});
  EXPECT_EQ(to_string(t.view()), "i4[3,5] strides [6,1]");
  EXPECT_EQ(to_string(wide.view()), "e3m2[2,3,5] strides [24,8,1]");
  EXPECT_TRUE(t.view().is_contiguous());
  EXPECT_EQ(byte_count(i4, {3, 5}), 9);
  EXPECT_EQ(byte_count(e3m2, {2, 3, 5}), 36);
  EXPECT_EQ(byte_count(u1, {9}), 2);
  EXPECT_EQ(byte_count(u1, {}), 1);
  EXPECT_EQ(byte_count(i4, {0, 5}), 0);
  EXPECT_EQ(byte_range(t.view()), (ByteRange{0, 9}));
  EXPECT_EQ(byte_range({nullptr, i4, {3, 5}, {-6, 1}}), (ByteRange{-6, 3}));
  TW_EXPECT_ERROR(UserError, "more than 2^63 bytes", [] { byte_count(u1, {4, int64_t{1} << 62}); });
  EXPECT_EQ(packing_fault(t.view()), "");
  EXPECT_NE(packing_fault(t.transpose(0, 1)).find("stride 1 along the last axis"), -1ul);
  EXPECT_NE(packing_fault({nullptr, i4, {3, 5}, {5, 1}}).find("stride 5 must be a multiple of 2"),
            -1ul);
}

/// Elements of every width, bit by bit; neighbours keep theirs.
TEST(Tensor, PackedElementsAreBitsOfTheirRow) {
  for (DType type : {i1, u2, i3, e2m1, u5, e3m2, i7}) {
    const int64_t n = bits(type);
    std::vector<unsigned char> bytes(16, 0xff);
    for (int64_t at : {0, 1, 2, 5, 9}) store_bits(type, bytes.data(), at, 0);
    for (int64_t bit = 0; bit < 10 * n; ++bit) {
      const int64_t at = bit / n;
      const bool cleared = at == 0 || at == 1 || at == 2 || at == 5 || at == 9;
      EXPECT_EQ(bytes[bit / 8] >> bit % 8 & 1, !cleared) << name(type) << " bit " << bit;
      EXPECT_EQ(load_bits(type, bytes.data(), at), cleared ? 0 : (1u << n) - 1) << name(type);
    }
    for (size_t k = (10 * n + 7) / 8; k < bytes.size(); ++k) EXPECT_EQ(bytes[k], 0xff);
  }
}

TEST(Tensor, ViewsOfPackedRows) {
  Tensor t = host_tensor(i4, {3, 5});
  for (int i = 0; i < 15; ++i) set(t, i, i - 8);
  EXPECT_EQ(values(t.slice(0, 1, 3, 1).slice(1, 2, 4)), (Values{-1, 0, 4, 5}));
  TW_EXPECT_ERROR(UserError, "begins inside a byte; begin at a multiple of 2",
                  [&] { t.slice(1, 1, 4); });
  EXPECT_EQ(values(copy(t.slice(1, 2, 5))), (Values{-6, -5, -4, -1, 0, 1, 4, 5, 6}));
  TW_EXPECT_ERROR(UserError, "rows end inside a byte", [&] { t.reshape({15}); });
  EXPECT_EQ(values(t.bitcast(u4).slice(0, 0, 1)), (Values{8, 9, 10, 11, 12}));
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
