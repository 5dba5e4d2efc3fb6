#include <cmath>
#include <limits>

#include "tests/cases/backends.h"

namespace tw::test {

using check::Guarded;

// Tile widths that are no powers of two.
TEST(Cases, LANG_01) {
  for (int64_t width : {16, 24, 40, 48, 96}) {
    Trace k("doubled_row");
    Index M = k.dim("M"), N = k.dim("N");
    TensorRef D = k.input("d", f32, {N}), Y = k.output("y", f32, {M, N});
    auto [i, j] = k.grid(cdiv(M, 32), cdiv(N, width));
    Tile row = as_row(load(D.tile({j}, {width})));
    store(Y.tile({i, j}, {32, width}), broadcast(row * 2.f, {32, width}));
    const Program p = k.finish();
    Guarded d(f32, {100});
    fill_normal(d, 1);
    for (const Backend& backend : backends()) {
      SCOPED_TRACE(backend.name);
      Guarded y(f32, {33, 100});
      backend.run(p, {d}, {y});
      for (int64_t e = 0; e < y.view().count(); ++e) ASSERT_EQ(get(y, e), 2 * get(d, e % 100));
      EXPECT_EQ(y.damage(), "");
    }
  }
}

// Division of tiles truncates, division of Index floors; both satisfy a = (a/b) b + a%b.
TEST(Cases, LANG_02) {
  const std::vector<double> a = {-7, -7, 7, 7}, b = {-3, 3, -3, 3};
  Trace k("divide");
  TensorRef A = k.input("a", i32, {4}), B = k.input("b", i32, {4});
  TensorRef Q = k.output("quotient", i32, {4}), R = k.output("remainder", i32, {4});
  Tile x = load(A.tile({0}, {4})), y = load(B.tile({0}, {4}));
  store(Q.tile({0}, {4}), x / y);
  store(R.tile({0}, {4}), x % y);
  const Program tiles = k.finish();

  Trace f("floor_divide");
  Index seven = f.dim("seven");
  TensorRef S = f.input("s", i32, {seven}), F = f.output("f", i64, {8});
  int64_t at = 0;
  for (int64_t top : {-1, 1}) {
    for (int64_t bottom : {-3, 3}) {
      Index numerator = seven * top;
      store(F.tile({at}, {1}), f.zeros(i64, {1}) + numerator / bottom);
      store(F.tile({at + 1}, {1}), f.zeros(i64, {1}) + numerator % bottom);
      at += 2;
    }
  }
  const Program floors = f.finish();

  Guarded left = tensor(i32, {4}, a), right = tensor(i32, {4}, b);
  Guarded source = tensor(i32, {7}, std::vector<double>(7, 0));
  for (const Backend& backend : backends()) {
    SCOPED_TRACE(backend.name);
    Guarded quotient(i32, {4}), remainder(i32, {4}), floored(i64, {8});
    backend.run(tiles, {left, right}, {quotient, remainder});
    EXPECT_EQ(values(quotient), (std::vector<double>{2, -2, -2, 2}));
    EXPECT_EQ(values(remainder), (std::vector<double>{-1, -1, 1, 1}));
    backend.run(floors, {source}, {floored});
    EXPECT_EQ(values(floored), (std::vector<double>{2, -1, -3, 2, -3, -2, 2, 1}));
  }
}

// argmax: NaN wins, wherever it stands; a row of only -inf has its largest element at 0.
TEST(Cases, RED_01) {
  const double inf = std::numeric_limits<double>::infinity(), nan = std::nan("");
  Trace k("argmax");
  Index M = k.dim("M");
  TensorRef X = k.input("X", f32, {M, 2}), Y = k.output("Y", i64, {M, 1});
  auto [i] = k.grid(M);
  store(Y.tile({i, 0}, {1, 1}), argmax(load(X.tile({i, 0}, {1, 2})), 1));
  const Program p = k.finish();
  Guarded x = tensor(f32, {2, 2}, {inf, nan, nan, inf});
  for (const Backend& backend : backends()) {
    SCOPED_TRACE(backend.name);
    Guarded y(i64, {2, 1});
    backend.run(p, {x}, {y});
    EXPECT_EQ(values(y), (std::vector<double>{1, 0}));
  }
}

TEST(Cases, RED_02) {
  Trace k("argmax");
  TensorRef X = k.input("X", f32, {4, 12}), Y = k.output("Y", i64, {4, 1});
  store(Y.tile({0, 0}, {4, 1}), argmax(load(X.tile({0, 0}, {4, 12})), 1));
  const Program p = k.finish();
  Guarded x = tensor(f32, {4, 12}, std::vector<double>(48, -HUGE_VAL));
  for (const Backend& backend : backends()) {
    SCOPED_TRACE(backend.name);
    Guarded y(i64, {4, 1});
    backend.run(p, {x}, {y});
    EXPECT_EQ(values(y), (std::vector<double>{0, 0, 0, 0}));
  }
}

/// Sum, and mean, of a vector of any length.
static Program sum_of(bool mean) {
  Trace k("sum");
  Index N = k.dim("N");
  TensorRef X = k.input("X", f32, {N}), Y = k.output("Y", f32, {1});
  Tile total = k.zeros(f32, {1, 1});
  for (Index j : k.range(cdiv(N, 32))) total += row_sum(as_row(load(X.tile({j}, {32}))));
  if (mean) total = total / (k.zeros(f32, {1, 1}) + N);
  store(Y.tile({0}, {1}), reshape(total, {1}));
  return k.finish();
}

// The mean of nothing is NaN, its sum 0.
// A running sum inside a loop of one trip.
TEST(Cases, RED_03) {
  for (const int n : {8, 32}) {
    Trace k("count_up");
    TensorRef X = k.input("X", f32, {n}), Y = k.output("Y", f32, {n});
    Tile sum = k.zeros(f32, {n});
    for (Index i : k.range(cdiv(Index(n), n)))
      sum += scan(load(X.tile({i}, {n})), 0, Combiner::sum);
    store(Y.tile({0}, {n}), sum);
    const Program p = k.finish();
    Guarded x(f32, {n});
    x.fill([](int64_t) { return 1; });
    for (const Backend& backend : backends()) {
      SCOPED_TRACE(backend.name);
      Guarded y(f32, {n});
      backend.run(p, {x}, {y});
      for (int i = 0; i < n; ++i) EXPECT_EQ(get(y, i), i + 1);
    }
  }
}

// A reversed sum starts at the end: small tails are not the difference of large totals.
TEST(Cases, RED_04) {
  Trace k("sum_of_rest");
  TensorRef X = k.input("X", f32, {64}), Y = k.output("Y", f32, {64});
  store(Y.tile({0}, {64}), scan(load(X.tile({0}, {64})), 0, Combiner::sum, {.reverse = true}));
  const Program p = k.finish();
  Guarded x(f32, {64});
  x.fill([](int64_t i) { return i < 32 ? 1e8 : 1; });
  for (const Backend& backend : backends()) {
    SCOPED_TRACE(backend.name);
    Guarded y(f32, {64});
    backend.run(p, {x}, {y});
    for (int i = 32; i < 64; ++i) EXPECT_EQ(get(y, i), 64 - i);
  }
}

TEST(Cases, RED_05) {
  Guarded x(f32, {0});
  for (const Backend& backend : backends()) {
    SCOPED_TRACE(backend.name);
    Guarded y(f32, {1});
    y.fill([](int64_t) { return 1; });
    backend.run(sum_of(true), {x}, {y});
    EXPECT_TRUE(std::isnan(get(y, 0)));
  }
}

TEST(Cases, RED_06) {
  Guarded x(f32, {0});
  for (const Backend& backend : backends()) {
    SCOPED_TRACE(backend.name);
    Guarded y(f32, {1});
    backend.run(sum_of(false), {x}, {y});
    EXPECT_EQ(get(y, 0), 0);
  }
}

// The magnitude of an unsigned number is itself; sums wrap in their own width.
TEST(Cases, RED_07) {
  for (DType t : {u32, u64}) {
    Trace k("magnitudes");
    TensorRef X = k.input("X", t, {3}), Y = k.output("Y", t, {2});
    Tile x = abs(as_row(load(X.tile({0}, {3}))));
    store(Y.tile({0}, {1}), reshape(row_max(x), {1}));
    store(Y.tile({1}, {1}), reshape(row_sum(x), {1}));
    const Program p = k.finish();
    Guarded input = tensor(t, {3}, {1, 2, 4000000000});
    for (const Backend& backend : backends()) {
      SCOPED_TRACE(backend.name + " " + name(t));
      Guarded y(t, {2});
      backend.run(p, {input}, {y});
      EXPECT_EQ(values(y), (std::vector<double>{4000000000, 4000000003}));
    }
  }
}

// A view that is less aligned than the one before it gets code of its own.
TEST(Cases, IDX_05) {
  Trace k("twice_and_sum");
  Index N = k.dim("N");
  TensorRef X = k.input("X", f16, {N}), Y = k.output("Y", f16, {N}), S = k.output("S", f32, {1});
  Tile total = k.zeros(f32, {1, 1});
  for (Index j : k.range(cdiv(N, 64))) {
    Tile x = load(X.tile({j}, {64}));
    store(Y.tile({j}, {64}), x * 2.f);
    total += row_sum(as_row(cast(x, f32)));
  }
  store(S.tile({0}, {1}), reshape(total, {1}));
  const Program p = k.finish();
  for (int64_t n : {128, 1024, 1 << 20}) {
    for (int64_t offset : {0, 2}) {
      Guarded x(f16, {n}, {}, offset), y(f16, {n}, {}, offset), s(f32, {1});
      x.fill([](int64_t i) { return i % 7 - 3; });
      cpu().run(p, {x}, {y, s});
      double sum = 0;
      for (int64_t i = 0; i < n; ++i) {
        ASSERT_EQ(get(y, i), 2 * get(x, i)) << i;
        sum += get(x, i);
      }
      EXPECT_EQ(get(s, 0), sum) << n << " offset " << offset;
      EXPECT_EQ(y.damage(), "");
    }
  }
}

}  // namespace tw::test
