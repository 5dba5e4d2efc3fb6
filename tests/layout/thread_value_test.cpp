#include "tw/layout/thread_value.h"

#include <gtest/gtest.h>
#include <map>

#include "tests/support/random.h"

namespace tw::layout {
namespace {

using Tile = std::vector<int64_t>;

/// The element that a register holds, or nothing for a hole.
std::optional<Tile> element(const ThreadValue& l, int64_t thread, int64_t value) {
  Tile at;
  for (size_t a = 0; a < l.tile.size(); ++a) {
    at.push_back(l.coordinate(a, thread, value));
    if (at.back() >= l.tile[a]) return std::nullopt;
  }
  return at;
}

/// How many registers of all threads hold each element.
std::map<Tile, int64_t> owners(const ThreadValue& l) {
  std::map<Tile, int64_t> count;
  for (int64_t t = 0; t < l.thread_count(); ++t) {
    for (int64_t v = 0; v < l.registers(); ++v) {
      if (const auto at = element(l, t, v)) ++count[*at];
    }
  }
  return count;
}

int64_t size_of(const Tile& tile) {
  int64_t n = 1;
  for (const int64_t e : tile) n *= e;
  return n;
}

/// Every element is held, all of them as often.
void expect_covers(const ThreadValue& l) {
  const auto count = owners(l);
  ASSERT_EQ(static_cast<int64_t>(count.size()), size_of(l.tile)) << to_string(l);
  for (const auto& [at, n] : count) ASSERT_EQ(n, count.begin()->second) << to_string(l);
}

struct Case {
  Tile tile;
  int64_t threads = 1;
  size_t axis = 0;
  int64_t vector = 1;
};

Case random_case(test::Random& random) {
  Case c;
  const int64_t rank = random.between(1, 3);
  for (int64_t a = 0; a < rank; ++a) c.tile.push_back(random.between(1, rank == 1 ? 300 : 24));
  c.threads = int64_t{1} << random.between(0, 8);
  c.axis = static_cast<size_t>(random.between(0, rank - 1));
  c.vector = int64_t{1} << random.between(0, 3);
  return c;
}

TEST(ThreadValue, BlockedLayoutsHoldEveryElement) {
  test::Random random(1);
  for (int i = 0; i < 300; ++i) {
    const Case c = random_case(random);
    const ThreadValue l = blocked(c.tile, c.threads, c.axis, c.vector);
    EXPECT_EQ(l.thread_count(), c.threads);
    expect_covers(l);
  }
}

TEST(ThreadValue, ASliceHoldsWhatTheFoldedAxisLeaves) {
  test::Random random(2);
  for (int i = 0; i < 200; ++i) {
    const Case c = random_case(random);
    const ThreadValue l = blocked(c.tile, c.threads, c.axis, c.vector);
    const auto axis =
        static_cast<size_t>(random.between(0, static_cast<int64_t>(c.tile.size()) - 1));
    const ThreadValue s = slice(l, axis);
    EXPECT_EQ(s.thread_count(), c.threads);
    expect_covers(s);
    // A thread holds of the slice exactly what it holds of the whole, with the axis at 0.
    for (int64_t t = 0; t < c.threads; ++t) {
      std::map<Tile, int> whole, folded;
      for (int64_t v = 0; v < l.registers(); ++v) {
        Tile at;
        for (size_t a = 0; a < c.tile.size(); ++a)
          at.push_back(a == axis ? 0 : l.coordinate(a, t, v));
        ++whole[at];
      }
      for (int64_t v = 0; v < s.registers(); ++v) {
        Tile at;
        for (size_t a = 0; a < c.tile.size(); ++a) at.push_back(s.coordinate(a, t, v));
        ++folded[at];
      }
      ASSERT_EQ(whole.size(), folded.size()) << to_string(l) << " at axis " << axis;
      for (const auto& [at, n] : folded) ASSERT_TRUE(whole.contains(at)) << to_string(l);
    }
  }
}

TEST(ThreadValue, RenamedAxesHoldTheSameElements) {
  const ThreadValue l = blocked({8, 32}, 32, 1, 4);
  const ThreadValue t = renamed(l, {1, 0}, {32, 8});
  for (int64_t thread = 0; thread < 32; ++thread) {
    for (int64_t v = 0; v < l.registers(); ++v) {
      EXPECT_EQ(l.coordinate(0, thread, v), t.coordinate(1, thread, v));
      EXPECT_EQ(l.coordinate(1, thread, v), t.coordinate(0, thread, v));
    }
  }
  EXPECT_EQ(renamed(t, {1, 0}, {8, 32}), l);
}

TEST(ThreadValue, NeighboursStandInNeighbouringRegistersThenThreads) {
  EXPECT_EQ(to_string(blocked({2, 16}, 8, 1, 4)), "[2,16] threads (4:4@1)(2:1@0) values (4:1@1)");
  EXPECT_EQ(to_string(blocked({1, 4096}, 256, 1, 4)),
            "[1,4096] threads (256:4@1) values (4:1@1)(4:1024@1)");
  EXPECT_EQ(to_string(blocked({4, 8}, 64, 1, 4)),
            "[4,8] threads (2:4@1)(4:1@0)(8:copies) values (4:1@1)");
  EXPECT_EQ(to_string(slice(blocked({4, 8}, 64, 1, 4), 1)),
            "[4,1] threads (2:copies)(4:1@0)(8:copies) values ()");
}

TEST(ThreadValue, FewThreadsAreIdleAtOddExtents) {
  // 24 pieces of 2 elements: 8 threads three times, rather than 32 threads of which 8 are idle.
  const ThreadValue l = blocked({48}, 32, 0, 2);
  EXPECT_EQ(to_string(l), "[48] threads (8:2@0)(4:copies) values (2:1@0)(3:16@0)");
  EXPECT_FALSE(l.has_holes(0));
}

}  // namespace
}  // namespace tw::layout
