// Division and products against their definitions, at every coordinate of random layouts.
#include <gtest/gtest.h>

#include "tw/base/error.h"
#include "tw/layout/tiler.h"

#include "tests/layout/brute.h"
#include "tests/layout/random_layout.h"

namespace tw::test {
namespace {

TEST(TilingProperty, LogicalDivideIsTileAndRest) {
  RandomLayout random{Random(11)};
  int found = 0;
  for (int n = 0; n < kLayouts; n++) {
    const Layout a = random.layout(random.strides()), b = random.layout(Strides::apart, 8);
    const std::string both = to_string(a) + " / " + to_string(b);
    try {
      const Layout r = logical_divide(a, b);
      ASSERT_EQ(r.rank(), 2) << both;
      ASSERT_TRUE(compatible(b, r.mode(0))) << both;
      ASSERT_EQ(sorted(offsets(r)), sorted(offsets(a))) << both;
      const Offsets of_a = offsets(a), tiles = offsets(make_layout({b, complement(b, a.size())}));
      for (int64_t i = 0; i < r.size(); i++)
        ASSERT_EQ(r(i), of_a[static_cast<size_t>(tiles[static_cast<size_t>(i)])]) << both;
      found++;
    } catch (const UserError&) {
    }
  }
  EXPECT_GT(found, kLayouts / 10);
}

/// A tile of `mode`: the first of its elements, or every so-many-th.
Layout random_tile(Random& random, const Layout& mode) {
  std::vector<int64_t> divisors;
  for (int64_t d = 1; d <= mode.size(); d++)
    if (mode.size() % d == 0) divisors.push_back(d);
  const int64_t n = random.of(divisors);
  return Layout(n, random.one_in(2) ? 1 : mode.size() / n);
}

void expect_same_tiles(const Layout& a, const Layout& b0, const Layout& b1) {
  const Tiler tiler = {b0, b1};
  const Layout split = logical_divide(a, tiler), zipped = zipped_divide(a, tiler),
               tiled = tiled_divide(a, tiler);
  const std::string all = to_string(a) + " / <" + to_string(b0) + "," + to_string(b1) + ">";
  ASSERT_EQ(zipped.mode(0), composition(a, tiler)) << all;
  ASSERT_EQ(tiled.rank(), 3) << all;
  const Layout rest = zipped.mode(1);
  for (int64_t i = 0; i < b0.size(); i++)
    for (int64_t j = 0; j < b1.size(); j++)
      for (int64_t k = 0; k < rest.mode(0).size(); k++)
        for (int64_t l = 0; l < rest.mode(1).size(); l++) {
          const int64_t want = a(IntTuple{b0(i) + complement(b0, a.mode(0).size())(k),
                                          b1(j) + complement(b1, a.mode(1).size())(l)});
          ASSERT_EQ(split(IntTuple{IntTuple{i, k}, IntTuple{j, l}}), want) << all;
          ASSERT_EQ(zipped(IntTuple{IntTuple{i, j}, IntTuple{k, l}}), want) << all;
          ASSERT_EQ(tiled(IntTuple{IntTuple{i, j}, k, l}), want) << all;
        }
}

TEST(TilingProperty, DividesByModeAgree) {
  RandomLayout random{Random(12)};
  int found = 0;
  for (int n = 0; n < kLayouts; n++) {
    const Layout a = random.matrix(random.strides(), 4);
    const Layout b0 = random_tile(random.random, a.mode(0)),
                 b1 = random_tile(random.random, a.mode(1));
    try {
      expect_same_tiles(a, b0, b1);
      found++;
    } catch (const UserError&) {
    }
    if (HasFatalFailure()) return;
  }
  EXPECT_GT(found, kLayouts / 2);
}

TEST(TilingProperty, LogicalProductIsCopies) {
  RandomLayout random{Random(13)};
  int found = 0;
  for (int n = 0; n < kLayouts; n++) {
    const Strides strides = random.strides();
    const Layout a = random.layout(strides, 12), b = random.layout(random.strides(), 8);
    const std::string both = to_string(a) + " x " + to_string(b);
    try {
      const Layout r = logical_product(a, b);
      ASSERT_EQ(r.mode(0), a) << both;
      ASSERT_TRUE(compatible(b, r.mode(1))) << both;
      const Layout copies = complement(a, a.size() * b.cosize());
      const Offsets at = offsets(b), copy = offsets(r.mode(1));
      for (size_t j = 0; j < copy.size(); j++) ASSERT_EQ(copy[j], copies(at[j])) << both;
      if (strides == Strides::compact) {
        for (size_t j = 0; j < copy.size(); j++) ASSERT_EQ(copy[j], at[j] * a.size()) << both;
      }
      found++;
    } catch (const UserError&) {
    }
  }
  EXPECT_GT(found, kLayouts / 2);
}

void expect_blocks(const Layout& a, const Layout& b) {
  const Layout product = logical_product(a, b), blocked = blocked_product(a, b),
               raked = raked_product(a, b);
  const std::string both = to_string(a) + " x " + to_string(b);
  const int64_t rows = a.mode(0).size(), columns = a.mode(1).size(), down = b.mode(0).size(),
                across = b.mode(1).size();
  for (int64_t i = 0; i < rows; i++)
    for (int64_t j = 0; j < columns; j++)
      for (int64_t k = 0; k < down; k++)
        for (int64_t l = 0; l < across; l++) {
          const int64_t want = product(IntTuple{IntTuple{i, j}, IntTuple{k, l}});
          ASSERT_EQ(blocked(IntTuple{i + k * rows, j + l * columns}), want) << both;
          ASSERT_EQ(raked(IntTuple{k + i * down, l + j * across}), want) << both;
        }
}

TEST(TilingProperty, BlockedAndRakedProductsRearrangeTheLogicalOne) {
  RandomLayout random{Random(14)};
  int found = 0;
  for (int n = 0; n < kLayouts; n++) {
    const Layout a = random.matrix(Strides::apart, 4), b = random.matrix(random.strides(), 3);
    try {
      expect_blocks(a, b);
      found++;
    } catch (const UserError&) {
    }
    if (HasFatalFailure()) return;
  }
  EXPECT_GT(found, kLayouts / 2);
}

}  // namespace
}  // namespace tw::test
