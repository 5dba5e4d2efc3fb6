// Each operation against its definition, at every coordinate of random layouts.
#include <gtest/gtest.h>

#include "tw/base/error.h"
#include "tw/base/round.h"
#include "tw/layout/algebra.h"

#include "tests/layout/brute.h"
#include "tests/layout/random_layout.h"

namespace tw::test {
namespace {

IntTuple coordinate(const Layout& layout, int64_t index) {
  if (!layout.is_tuple()) return index;
  std::vector<IntTuple> modes;
  for (int i = 0; i < layout.rank(); i++) {
    modes.push_back(coordinate(layout.mode(i), index % layout.mode(i).size()));
    index /= layout.mode(i).size();
  }
  return IntTuple::of(std::move(modes));
}

TEST(LayoutProperty, IndicesAndCoordinatesGiveOffsets) {
  RandomLayout random{Random(1)};
  for (int n = 0; n < kLayouts; n++) {
    const Layout layout = random.layout(random.strides(), 32);
    const Offsets all = offsets(layout);
    ASSERT_EQ(layout.size(), static_cast<int64_t>(all.size())) << to_string(layout);
    ASSERT_EQ(layout.cosize(), sorted(all).back() + 1) << to_string(layout);
    for (int64_t i = 0; i < layout.size(); i++) {
      ASSERT_EQ(layout(i), all[static_cast<size_t>(i)]) << to_string(layout) << " at " << i;
      const IntTuple at = coordinate(layout, i);
      ASSERT_EQ(layout(at), layout(i)) << to_string(layout) << " at " << to_string(at);
    }
  }
}

TEST(LayoutProperty, TextReadsBack) {
  RandomLayout random{Random(2)};
  for (int n = 0; n < kLayouts; n++) {
    const Layout layout = random.layout(random.strides());
    ASSERT_EQ(parse_layout(to_string(layout)), layout) << to_string(layout);
    ASSERT_EQ(Layout(layout.shape(), layout.stride()), layout) << to_string(layout);
  }
}

TEST(LayoutProperty, CoalesceIsTheSameFunctionInTheFewestModes) {
  RandomLayout random{Random(3)};
  for (int n = 0; n < kLayouts; n++) {
    const Layout layout = random.layout(random.strides());
    const Layout flat = coalesce(layout);
    ASSERT_EQ(offsets(flat), offsets(layout)) << to_string(layout);
    const std::vector<ShapeStride> modes = flatten(flat);
    for (size_t i = 0; flat.is_tuple() && i < modes.size(); i++) {
      ASSERT_FALSE(flat.mode(static_cast<int>(i)).is_tuple()) << to_string(layout);
      ASSERT_GT(modes[i].shape, 1) << to_string(layout);
      if (i > 0) {
        ASSERT_NE(modes[i].stride, modes[i - 1].shape * modes[i - 1].stride) << to_string(layout);
      }
    }
    const Layout by_mode = coalesce_modes(layout);
    ASSERT_EQ(by_mode.rank(), layout.is_tuple() ? layout.rank() : 1);
    for (int i = 0; i < by_mode.rank(); i++)
      ASSERT_EQ(by_mode.mode(i), coalesce(layout.mode(i))) << to_string(layout);
  }
}

Offsets composed(const Layout& a, const Layout& b) {
  const Offsets of_a = offsets(a);
  Offsets all;
  for (int64_t index : offsets(b)) all.push_back(of_a[static_cast<size_t>(index)]);
  return all;
}

/// Whether some layout of one mode, or of modes in it, gives f.
bool is_layout(const Offsets& f) {
  const size_t size = f.size();
  size_t linear = 1;
  while (linear < size && f[linear] == static_cast<int64_t>(linear) * f[1]) linear++;
  if (linear == size) return true;
  for (size_t first = 2; first <= linear; first++) {
    if (size % first != 0) continue;
    bool repeats = true;
    for (size_t i = 0; i < size; i++) repeats &= f[i] == f[i - i % first] + f[i % first];
    Offsets rest;
    for (size_t i = 0; i < size; i += first) rest.push_back(f[i]);
    if (repeats && is_layout(rest)) return true;
  }
  return false;
}

/// Whether some layout with the coordinates of b gives a(b).
bool exists(const Layout& a, const Layout& b) {
  const Offsets want = composed(a, b);
  Offsets sum = {0};
  size_t step = 1;
  for (const ShapeStride& mode : flatten(b)) {
    const size_t shape = static_cast<size_t>(mode.shape);
    Offsets f;
    for (size_t c = 0; c < shape; c++) f.push_back(want[c * step]);
    if (!is_layout(f)) return false;
    for (size_t i = step; i < step * shape; i++) sum.push_back(sum[i % step] + f[i / step]);
    step *= shape;
  }
  return sum == want;
}

TEST(LayoutProperty, CompositionIsOneAfterTheOther) {
  RandomLayout random{Random(4)};
  int found = 0, refused = 0, outside = 0, missed = 0;
  for (int n = 0; n < kLayouts; n++) {
    const Strides strides = random.strides();
    const Layout a = random.layout(strides), b = random.layout(random.strides(), 12);
    const std::string both = to_string(a) + " o " + to_string(b);
    try {
      const Layout r = composition(a, b);
      ASSERT_EQ(offsets(r), composed(a, b)) << both;
      ASSERT_TRUE(compatible(b, r)) << both << " = " << to_string(r);
      found++;
    } catch (const UserError&) {
      if (b.cosize() > a.size()) {
        outside++;
        continue;
      }
      // Where a repeats offsets, one may exist by accident.
      missed += exists(a, b);
      ASSERT_FALSE(strides != Strides::any && exists(a, b)) << both;
      refused++;
    }
  }
  EXPECT_GT(found, kLayouts / 5);
  EXPECT_GT(refused, kLayouts / 20);
  EXPECT_LT(missed, kLayouts / 1000);
  EXPECT_GT(outside, kLayouts / 20);
}

/// All sums of an offset of a and one of b, in order.
Offsets sums(const Layout& a, const Layout& b) { return sorted(offsets(make_layout({a, b}))); }

TEST(LayoutProperty, ComplementFillsTheGapsInOrder) {
  RandomLayout random{Random(5)};
  int refused = 0;
  for (int n = 0; n < kLayouts; n++) {
    const Strides strides = random.strides();
    const Layout layout = random.layout(strides, 24);
    const int64_t end = random.random.between(1, 200);
    Layout rest;
    try {
      rest = complement(layout, end);
    } catch (const UserError&) {
      ASSERT_EQ(strides, Strides::any) << to_string(layout);
      refused++;
      continue;
    }
    const Offsets fill = offsets(rest), image = distinct(offsets(layout));
    ASSERT_EQ(fill, distinct(fill)) << to_string(layout);
    // Every sum is one new offset, and they are all that lie below a whole number of periods.
    const Layout once = coalesce(unflatten([&] {
      std::vector<ShapeStride> moving;
      for (const ShapeStride& mode : flatten(layout))
        if (mode.stride > 0) moving.push_back(mode);
      return moving;
    }()));
    const int64_t period = once.size() * complement(layout, 1).size();
    const Offsets all = sums(once, rest);
    ASSERT_EQ(once.size(), static_cast<int64_t>(image.size())) << to_string(layout);
    ASSERT_EQ(static_cast<int64_t>(all.size()), round_up(end, period)) << to_string(layout);
    for (size_t i = 0; i < all.size(); i++)
      ASSERT_EQ(all[i], static_cast<int64_t>(i)) << to_string(layout) << " up to " << end;
  }
  EXPECT_GT(refused, kLayouts / 20);
}

TEST(LayoutProperty, RightInverseUndoesFromTheRight) {
  RandomLayout random{Random(6)};
  for (int n = 0; n < kLayouts; n++) {
    const Strides strides = random.strides();
    const Layout layout = random.layout(strides), inverse = right_inverse(layout);
    const Offsets all = offsets(layout);
    int64_t i = 0;
    for (int64_t index : offsets(inverse)) {
      ASSERT_LT(index, layout.size()) << to_string(layout);
      ASSERT_EQ(all[static_cast<size_t>(index)], i++) << to_string(layout);
    }
    if (strides == Strides::compact) {
      ASSERT_EQ(inverse.size(), layout.size()) << to_string(layout);
    }
  }
}

TEST(LayoutProperty, LeftInverseUndoesFromTheLeft) {
  RandomLayout random{Random(7)};
  int found = 0;
  for (int n = 0; n < kLayouts; n++) {
    const Strides strides = random.strides();
    const Layout layout = random.layout(strides, 48);
    try {
      const Layout inverse = left_inverse(layout);
      for (int64_t i = 0; i < layout.size(); i++)
        ASSERT_EQ(inverse(layout(i)), i) << to_string(layout);
      found++;
    } catch (const UserError&) {
      ASSERT_EQ(strides, Strides::any) << to_string(layout);
    }
  }
  EXPECT_GT(found, kLayouts / 2);
}

}  // namespace
}  // namespace tw::test
