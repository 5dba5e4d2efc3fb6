#include "tw/layout/swizzle.h"

#include "tw/layout/algebra.h"

#include "tests/layout/brute.h"
#include "tests/layout/random_layout.h"
#include "tests/support/expect_error.h"

namespace tw::test {
namespace {

bool bit(int64_t offset, int i) { return (offset >> i & 1) != 0; }

TEST(Swizzle, XorsBitsWithBitsAtADistance) {
  for (int bits = 0; bits <= 3; bits++)
    for (int base = 0; base <= 4; base++)
      for (int shift = -4; shift <= 4; shift++) {
        if (std::abs(shift) < bits) continue;
        const Swizzle swizzle = {bits, base, shift};
        const int changed = shift < 0 ? base - shift : base;
        for (int64_t offset = 0; offset < 4096; offset++) {
          const int64_t to = swizzle(offset);
          ASSERT_EQ(swizzle(to), offset) << to_string(swizzle);
          for (int i = 0; i < 12; i++) {
            const bool flips = i >= changed && i < changed + bits && bit(offset, i + shift);
            ASSERT_EQ(bit(to, i), bit(offset, i) != flips) << to_string(swizzle) << " " << offset;
          }
        }
      }
}

TEST(Swizzle, FollowsItsLayout) {
  RandomLayout random{Random(21)};
  for (int n = 0; n < kLayouts / 10; n++) {
    const Layout a = random.layout(Strides::compact), b = random.layout(Strides::compact, 8);
    const SwizzledLayout swizzled({2, 1, 3}, a);
    const Offsets all = offsets(a);
    for (int64_t i = 0; i < a.size(); i++)
      ASSERT_EQ(swizzled(i), swizzled.swizzle()(all[static_cast<size_t>(i)]));
    try {
      const SwizzledLayout r = composition(swizzled, b);
      for (int64_t i = 0; i < r.size(); i++) ASSERT_EQ(r(i), swizzled(b(i)));
    } catch (const UserError&) {
    }
  }
  const SwizzledLayout rows({3, 3, 3}, Layout({8, 64}, {64, 1}));
  EXPECT_EQ(to_string(rows), "Sw<3,3,3> o (8,64):(64,1)");
  EXPECT_EQ(rows(IntTuple{1, 0}), 64 + 8);
  EXPECT_EQ(rows.size(), 512);
}

TEST(Swizzle, RefusesBitsThatOverlap) {
  TW_EXPECT_ERROR(UserError, "Sw<3,4,2>: shift: wanted -62..62, and not nearer to 0", [] {
    SwizzledLayout({3, 4, 2}, Layout::compact(8));
  });
  TW_EXPECT_ERROR(UserError, "Sw<-1,0,0>: wanted bits and base in 0..62", [] {
    check_swizzle({-1, 0, 0});
  });
  TW_EXPECT_ERROR(UserError, "Sw<8,40,-30>: its bits end at 78: wanted at most 62", [] {
    check_swizzle({8, 40, -30});
  });
}

}  // namespace
}  // namespace tw::test
