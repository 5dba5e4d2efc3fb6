#include <gtest/gtest.h>

#include "tests/emit/run_text.h"
#include "tests/support/guarded.h"

namespace tw::test {
namespace {

class Scratch : public testing::TestWithParam<std::string> {};

constexpr int64_t kInstances = 5, kIds = 37, kRows = 3, kCols = 20;

// Instance p finds zeros, puts x + p into row 1 from column -2 on, gathers along ids of which some
// are outside, and counts ids; counts change while they are read.
const char* const kOwn = R"(program own
in ids: i32[37]
in x: f32[22]
out before: f32[5, 3, 20]
out y: f32[5, 37]
out old: i32[5, 37]
out counts: i32[5, 20]
scratch s: f32[3, 20]
scratch c: i32[20]
grid (5)

%0 = load s{0, 0} : f32[3,20]
store %0 to before[pid0]{0, 0}
%1 = load x{0} : f32[22]
%2 = index pid0 : i64[1]
%3 = cast %2 : f32[1]
%4 = add %1, %3 : f32[22]
store %4 to s[1]{-2}
%5 = load ids{0} : i32[37]
%6 = full 1 : i32[1]
%7 = gather s{%6, %5} pad -1 : f32[37]
store %7 to y[pid0]{0}
%8 = atomic add relaxed device %6 to c{%5} : i32[37]
store %8 to old[pid0]{0}
atomic max acquire system %6 to c{%5}
%9 = load c{0} : i32[20]
store %9 to counts[pid0]{0}
scatter %6 to c{%5}
%10 = full 9 : f32[3,20]
store %10 to s{0, 0}
)";

int id(int64_t i) { return static_cast<int>(i * 7 % 26) - 3; }

TEST_P(Scratch, IsZeroAndTheInstancesOwn) {
  Guarded ids(i32, {kIds}), x(f32, {22}), before(f32, {kInstances, kRows, kCols});
  Guarded y(f32, {kInstances, kIds}), old(i32, {kInstances, kIds});
  Guarded counts(i32, {kInstances, kCols});
  ids.fill([](int64_t i) { return id(i); });
  x.fill([](int64_t i) { return static_cast<double>(i) * 0.5; });
  run_text(kOwn, {ids, x, before, y, old, counts}, GetParam());
  for (const Guarded* g : {&ids, &x, &before, &y, &old, &counts}) EXPECT_EQ(g->damage(), "");
  for (int64_t i = 0; i < before.view().count(); ++i) ASSERT_EQ(get(before.view(), i), 0) << i;
  for (int64_t p = 0; p < kInstances; ++p) {
    std::vector<int> count(kCols);
    for (int64_t i = 0; i < kIds; ++i) {
      const bool inside = id(i) >= 0 && id(i) < kCols;
      const double want = inside ? (id(i) + 2) * 0.5 + static_cast<double>(p) : -1;
      EXPECT_EQ(get(y.view(), p * kIds + i), want) << p << " " << i;
      EXPECT_EQ(get(old.view(), p * kIds + i), inside ? count[id(i)]++ : 0) << p << " " << i;
    }
    for (int64_t j = 0; j < kCols; ++j)
      EXPECT_EQ(get(counts.view(), p * kCols + j), count[j]) << p << " " << j;
  }
}

/// Of element 1, from 6 by 3.
TEST(ScratchUpdates, EveryUpdate) {
  for (const auto& [op, want] : {std::pair("add", 9.0),
                                 {"min", 3.0},
                                 {"max", 6.0},
                                 {"and", 2.0},
                                 {"or", 7.0},
                                 {"xor", 5.0},
                                 {"exch", 3.0}}) {
    const std::string text = std::string(R"(program update
out y: u32[2]
out old: u32[1]
scratch s: u32[2]
grid (1)

%0 = full 6 : u32[2]
store %0 to s{0}
%1 = full 3 : u32[1]
%2 = full 1 : i32[1]
%3 = atomic )") + op + R"( release block %1 to s{%2} : u32[1]
store %3 to old{0}
%4 = load s{0} : u32[2]
store %4 to y{0}
)";
    Guarded y(u32, {2}), old(u32, {1});
    run_text(text, {y, old}, "generic");
    EXPECT_EQ(get(y.view(), 0), 6) << op;
    EXPECT_EQ(get(y.view(), 1), want) << op;
    EXPECT_EQ(get(old.view(), 0), 6) << op;
  }
}

// Tensors and scratch; with old values and without, where lanes are done together; expected values
// that differ from lane to lane.
TEST_P(Scratch, CompareAndExchange) {
  const std::string text = R"(program exchange
in at: i32[19]
in expect: i64[19]
inout X: i64[19]
out old: i64[19]
out Y: i64[19]
out none: i64[19]
scratch s: i64[19]
grid (1)

%0 = load at{0} : i32[19]
%1 = load expect{0} : i64[19]
%2 = full 9 : i64[1]
%3 = atomic cas acq_rel system %2 if %1 to X{%0} : i64[19]
store %3 to old{0}
%4 = load X{0} : i64[19]
store %4 to s{0}
%5 = full 3 : i64[19]
%6 = lt %1, %5 : b1[19]
atomic cas relaxed device %1 if %2 to s{%0} mask %6
%7 = atomic cas relaxed device %2 if %5 to s{%0} : i64[19]
store %7 to none{0}
%8 = load s{0} : i64[19]
store %8 to Y{0}
)";
  constexpr int64_t kN = 19;
  const auto at = [](int64_t i) { return i == 4 ? -1 : i == 5 ? kN : kN - 1 - i; };
  Guarded places(i32, {kN}), expect(i64, {kN}), x(i64, {kN}), old(i64, {kN}), y(i64, {kN}),
      none(i64, {kN});
  places.fill([&](int64_t i) { return static_cast<double>(at(i)); });
  expect.fill([](int64_t i) { return static_cast<double>(i % 4); });
  x.fill([](int64_t i) { return static_cast<double>(i % 3); });
  run_text(text, {places, expect, x, old, y, none}, GetParam());
  std::vector<double> now(kN);
  for (int64_t i = 0; i < kN; ++i) now[i] = static_cast<double>(i % 3);
  for (int64_t i = 0; i < kN; ++i) {
    const bool inside = at(i) >= 0 && at(i) < kN;
    EXPECT_EQ(get(old.view(), i), inside ? now[at(i)] : 0) << i;
    if (inside && now[at(i)] == static_cast<double>(i % 4)) now[at(i)] = 9;
  }
  for (int64_t i = 0; i < kN; ++i) EXPECT_EQ(get(x.view(), i), now[i]) << i;
  for (int64_t i = 0; i < kN; ++i)
    if (at(i) >= 0 && at(i) < kN && i % 4 < 3 && now[at(i)] == 9)
      now[at(i)] = static_cast<double>(i % 4);
  for (int64_t i = 0; i < kN; ++i) EXPECT_EQ(get(y.view(), i), now[i]) << i;
}

INSTANTIATE_TEST_SUITE_P(Isas, Scratch, testing::ValuesIn(runnable_isas()),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace tw::test
