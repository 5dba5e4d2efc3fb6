#include "tw/kernels/hash/hash.h"

#include <algorithm>
#include <functional>
#include <gtest/gtest.h>
#include <unordered_map>
#include <unordered_set>

#include "tw/check/guarded.h"
#include "tw/interp/interpreter.h"
#include "tw/jit/kernel.h"

#include "tests/support/expect_error.h"

namespace tw {
namespace {

using check::Guarded;
using Runner = std::function<void(const Program&, const std::vector<TensorView>& inputs,
                                  const std::vector<TensorView>& outputs)>;

void interpreted(const Program& p, const std::vector<TensorView>& in,
                 const std::vector<TensorView>& out) {
  interpret(p, in, out);
}

Runner on_cpu(int threads) {
  return
      [=](const Program& p, const std::vector<TensorView>& in, const std::vector<TensorView>& out) {
        compile(p, Device::open("cpu:0"), {.threads = threads})(in, out);
      };
}

std::vector<int64_t> integers(const TensorView& t) {
  std::vector<int64_t> all;
  for (int64_t i = 0; i < t.count(); ++i) {
    const int64_t offset = i * t.strides[0];
    all.push_back(t.dtype == i32 ? static_cast<const int32_t*>(t.data)[offset]
                                 : static_cast<const int64_t*>(t.data)[offset]);
  }
  return all;
}

Guarded of_integers(DType t, int64_t n, const std::function<int64_t(int64_t)>& value) {
  Guarded g(t, {n});
  for (int64_t i = 0; i < n; ++i) {
    if (t == i32)
      static_cast<int32_t*>(g.view().data)[i] = static_cast<int32_t>(value(i));
    else
      static_cast<int64_t*>(g.view().data)[i] = value(i);
  }
  return g;
}

std::vector<int64_t> insert(const Runner& run, DType t, const Guarded& keys, const Guarded& table) {
  Guarded slots(i64, {keys.view().count()});
  run(kernels::hash_insert(t, {.keys = 24}), {keys}, {table, slots});
  EXPECT_EQ(slots.damage() + table.damage() + keys.damage(), "");
  return integers(slots);
}

std::vector<int64_t> look_up(const Runner& run, DType t, const Guarded& keys,
                             const Guarded& table) {
  Guarded slots(i64, {keys.view().count()});
  run(kernels::hash_lookup(t, {.keys = 24}), {keys, table}, {slots});
  EXPECT_EQ(slots.damage() + table.damage() + keys.damage(), "");
  return integers(slots);
}

Guarded empty_table(DType t, int64_t capacity) {
  return of_integers(t, capacity, [=](int64_t) { return kernels::empty_slot(t); });
}

/// Far apart, of both signs, the same at i and i + `distinct`.
int64_t key_at(DType t, int64_t i, int64_t distinct) {
  const int64_t k = i % distinct - distinct / 2;
  return t == i32 ? k * 100'003 : k * 1'000'000'007'000'003;
}

/// The table holds each of the keys once, and slots say where.
void expect_set(const std::vector<int64_t>& keys, const std::vector<int64_t>& slots,
                const Guarded& table, DType t) {
  const std::vector<int64_t> held = integers(table);
  const std::unordered_set<int64_t> want(keys.begin(), keys.end());
  size_t taken = 0;
  std::unordered_set<int64_t> got;
  for (const int64_t k : held) {
    if (k == kernels::empty_slot(t)) continue;
    ++taken;
    got.insert(k);
  }
  EXPECT_EQ(taken, want.size());
  EXPECT_EQ(got, want);
  for (size_t i = 0; i < keys.size(); ++i) {
    ASSERT_GE(slots[i], 0) << i;
    ASSERT_LT(slots[i], std::ssize(held)) << i;
    ASSERT_EQ(held[slots[i]], keys[i]) << i;
  }
}

/// Inserts n keys, `distinct` of them different, looks up those and as many others.
void exercise(const Runner& run, DType t, int64_t n, int64_t distinct, int64_t capacity) {
  const Guarded keys = of_integers(t, n, [&](int64_t i) { return key_at(t, i, distinct); });
  const Guarded table = empty_table(t, capacity);
  const std::vector<int64_t> slots = insert(run, t, keys, table);
  expect_set(integers(keys), slots, table, t);
  EXPECT_EQ(look_up(run, t, keys, table), slots);
  const Guarded others = of_integers(t, n, [&](int64_t i) { return key_at(t, i, distinct) + 1; });
  EXPECT_EQ(look_up(run, t, others, table), std::vector<int64_t>(n, -1));
  // Again: nothing changes.
  const std::vector<int64_t> before = integers(table);
  EXPECT_EQ(insert(run, t, keys, table), slots);
  EXPECT_EQ(integers(table), before);
}

TEST(Hash, HoldsTheSetOfKeys) {
  for (const DType t : {i32, i64}) {
    SCOPED_TRACE(name(t));
    exercise(interpreted, t, 100, 37, 40);
    exercise(interpreted, t, 30, 30, 30);  // to the last slot
    exercise(on_cpu(1), t, 100, 37, 40);
    exercise(on_cpu(0), t, 20'000, 3'001, 3'700);
  }
}

// Instances that meet in one slot: thousands of equal keys, and a table almost full.
TEST(Hash, ThreadsThatMeetTakeASlotEach) {
  for (int run = 0; run < 5; ++run) {
    exercise(on_cpu(0), i64, 30'000, 1, 64);
    exercise(on_cpu(0), i64, 30'000, 61, 64);
  }
}

TEST(Hash, AFullTableTakesNoMore) {
  for (const Runner& run : {Runner(interpreted), on_cpu(1), on_cpu(0)}) {
    const Guarded keys = of_integers(i64, 300, [](int64_t i) { return i; });
    const Guarded table = empty_table(i64, 7);
    const std::vector<int64_t> slots = insert(run, i64, keys, table), held = integers(table);
    std::unordered_map<int64_t, int64_t> taken;  // slot to key
    for (int64_t i = 0; i < 300; ++i)
      if (slots[i] >= 0) taken[slots[i]] = i;
    EXPECT_EQ(taken.size(), 7u);
    EXPECT_EQ(std::ranges::count(slots, -1), 293);
    for (const auto& [slot, key] : taken) EXPECT_EQ(held[slot], key);
    EXPECT_EQ(look_up(run, i64, keys, table), slots);
  }
}

TEST(Hash, NoTableNoKeysAndTheMarkOfEmptySlots) {
  for (const Runner& run : {Runner(interpreted), on_cpu(0)}) {
    const Guarded two = of_integers(i32, 2, [](int64_t i) { return i == 0 ? 0 : INT32_MIN; });
    EXPECT_EQ(insert(run, i32, two, empty_table(i32, 0)), (std::vector<int64_t>{-1, -1}));
    EXPECT_EQ(look_up(run, i32, two, empty_table(i32, 0)), (std::vector<int64_t>{-1, -1}));
    EXPECT_TRUE(insert(run, i32, Guarded(i32, {0}), empty_table(i32, 4)).empty());
    const Guarded table = empty_table(i32, 1);
    EXPECT_EQ(insert(run, i32, two, table), (std::vector<int64_t>{0, -1}));
    EXPECT_EQ(look_up(run, i32, two, table), (std::vector<int64_t>{0, -1}));
  }
  TW_EXPECT_ERROR(UserError, "a hash table of keys of f32; wanted i32 or i64",
                  [] { kernels::hash_insert(f32); });
}

}  // namespace
}  // namespace tw
