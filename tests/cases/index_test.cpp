#include <gmock/gmock.h>

#include "tests/cases/backends.h"

// Gather, scatter and aliasing; the names are the rows of tests/cases/README.md.
namespace tw {

using check::Guarded;
using test::backends;
using test::tensor;
using test::values;
using testing::ElementsAre;

/// Y[i] = X[ids[i]], where `wraps` says that a negative id counts from the end.
static Program lookup(bool wraps) {
  Trace k("lookup");
  Index N = k.dim("N"), V = k.dim("V");
  TensorRef X = k.input("X", f32, {V}), ids = k.input("ids", i64, {N});
  TensorRef Y = k.output("Y", f32, {N});
  auto [n] = k.grid(cdiv(N, 4));
  Tile id = load(ids.tile({n}, {4}));
  if (wraps) id = where(id < 0, id + V, id);
  store(Y.tile({n}, {4}), gather(X, {id}, {.pad = 7}));
  return k.finish();
}

TEST(Cases, IDX_02) {
  Guarded x = tensor(f32, {5}, {10, 11, 12, 13, 14});
  for (const auto& backend : backends()) {
    SCOPED_TRACE(backend.name);
    Guarded ids = tensor(i64, {5}, {0, 5, -6, -1, 4}), y(f32, {5}), wrapped(f32, {5});
    backend.run(lookup(false), {x, ids}, {y});
    EXPECT_THAT(values(y), ElementsAre(10, 7, 7, 7, 14));
    backend.run(lookup(true), {x, ids}, {wrapped});
    EXPECT_THAT(values(wrapped), ElementsAre(10, 7, 7, 14, 14));
    for (const Guarded* t : {&x, &ids, &y, &wrapped}) EXPECT_EQ(t->damage(), "");
  }
}

/// x[1:] = copy(x[:-1]) in place, each instance for some columns; by views or by coordinates.
static Program shift_rows(int64_t rows, bool coordinates) {
  constexpr int64_t kColumns = 16;
  Trace k("shift_rows");
  Index N = k.dim("N");
  TensorRef X = k.inout("X", f32, {rows, N});
  auto [n] = k.grid(cdiv(N, kColumns));
  const Extents moved{rows - 1, kColumns};
  if (!coordinates) {
    store(X.window({1, n * kColumns}, moved), load(X.window({0, n * kColumns}, moved)));
    return k.finish();
  }
  Tile row = k.iota({rows - 1, 1}, 0), column = k.iota({1, kColumns}, 1) + n * kColumns;
  scatter(X, {row + 1, column}, gather(X, {row, column}));
  return k.finish();
}

static float element(int64_t row, int64_t column) {
  return static_cast<float>((row * 37 + column * 11) % 1009);
}

static void expect_shifted(const test::Backend& backend, int64_t rows, int64_t columns) {
  for (const bool coordinates : {false, true}) {
    SCOPED_TRACE(backend.name + (coordinates ? " by coordinates" : " by views"));
    Guarded x(f32, {rows, columns});
    auto* const data = static_cast<float*>(x.view().data);
    for (int64_t i = 0; i < rows * columns; ++i) data[i] = element(i / columns, i % columns);
    backend.run(shift_rows(rows, coordinates), {}, {x});
    EXPECT_EQ(x.damage(), "");
    int64_t wrong = 0;
    for (int64_t i = 0; i < rows * columns; ++i)
      wrong += data[i] != element(std::max<int64_t>(i / columns - 1, 0), i % columns);
    EXPECT_EQ(wrong, 0);
  }
}

TEST(Cases, IDX_03) {
  for (const auto& backend : backends()) expect_shifted(backend, 3, 256);
  for (int run = 0; run < 20; ++run) expect_shifted(test::cpu(), 1024, 2048);
}

/// Y[ids[i]] += X[i], by atomics of instances that do 3 elements each.
static Program histogram(DType t) {
  Trace k("histogram");
  Index N = k.dim("N"), V = k.dim("V");
  TensorRef X = k.input("X", t, {N}), ids = k.input("ids", i32, {N}), Y = k.inout("Y", t, {V});
  auto [n] = k.grid(cdiv(N, 3));
  Tile inside = k.iota({3}, 0) + n * 3 < N;
  atomic(Y, {load(ids.tile({n}, {3}))}, load(X.tile({n}, {3})), AtomicOp::add, {.mask = inside});
  return k.finish();
}

TEST(Atomics, SumsOfManyInstancesAreWhole) {
  constexpr int64_t n = 5000, v = 7;
  for (const DType t : {i32, f32, u64, f64}) {
    SCOPED_TRACE(name(t));
    Guarded x(t, {n}), ids(i32, {n});
    x.fill([](int64_t i) { return static_cast<double>(i % 5); });
    ids.fill([](int64_t i) { return static_cast<double>(i % 9 - 1); });  // -1 and 7 are outside
    std::vector<double> want(v);
    for (int64_t i = 0; i < n; ++i)
      if (i % 9 >= 1 && i % 9 <= v) want[i % 9 - 1] += static_cast<double>(i % 5);
    for (const auto& backend : backends()) {
      Guarded y = tensor(t, {v}, std::vector<double>(v, 0));
      backend.run(histogram(t), {x, ids}, {y});
      EXPECT_EQ(values(y), want) << backend.name;
      EXPECT_EQ(y.damage(), "");
    }
  }
}

}  // namespace tw
