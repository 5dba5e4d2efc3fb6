// What variables, loops and branches of traced programs mean, against the same C++ run directly.
#include <cmath>
#include <gtest/gtest.h>
#include <limits>
#include <numbers>
#include <optional>

#include "tw/interp/interpreter.h"
#include "tw/lang/lang.h"
#include "tw/passes/canonicalize.h"

namespace tw {
namespace {

/// Element 0 of what the program leaves in its one output, with N as given.
double run(Program p, int64_t n) {
  canonicalize(p);
  Tensor out = host_tensor(p.params[0].dtype, {8});
  interpret(p, {}, {out}, {{"N", n}});
  return get(out, 0);
}

/// Traces f, which returns the tile to store.
template <class F>
Program traced(const F& f) {
  Trace k("p");
  Index N = k.dim("N");
  TensorRef Y = k.output("Y", i64, {8});
  Tile result = f(k, N);
  store(Y.tile({0}, {8}), broadcast(reshape(result, {1}), {8}));
  return k.finish();
}

Tile scalar(Trace& k, int64_t v) { return k.full(i64, {}, v); }

TEST(Meaning, FunctionsOfOneVariable) {
  struct {
    Tile (*traced)(const Tile&, SourceLoc);
    double (*meant)(double);
  } const kFunctions[] = {
      {exp, std::exp},
      {exp2, std::exp2},
      {log, std::log},
      {sin, std::sin},
      {cos, std::cos},
      {tanh, std::tanh},
      {tanh_fast, std::tanh},
      {erf, std::erf},
      {erf_fast, std::erf},
      {sqrt, std::sqrt},
      {rsqrt, [](double x) { return 1 / std::sqrt(x); }},
      {abs, std::fabs},
      {floor, std::floor},
      {ceil, std::ceil},
      {round, std::nearbyint},
      {gelu_tanh,
       [](double x) {
         const double inner = std::sqrt(2 / std::numbers::pi) * (x + 0.044715 * (x * x * x));
         return 0.5 * x * (1 + std::tanh(inner));
       }},
      {gelu_erf, [](double x) { return 0.5 * x * (1 + std::erf(x * (1 / std::numbers::sqrt2))); }},
  };
  for (const auto& f : kFunctions) {
    Trace k("p");
    k.dim("N");
    TensorRef Y = k.output("Y", f64, {8});
    store(Y.tile({0}, {8}), f.traced(k.full(f64, {8}, 0.75), SourceLoc::here()));
    EXPECT_EQ(run(k.finish(), 8), f.meant(0.75)) << std::distance(kFunctions, &f);
  }
}

TEST(Meaning, CarriedValuesOfNestedLoops) {
  const Program p = traced([](Trace& k, const Index& N) {
    Tile sum = scalar(k, 0), product = scalar(k, 1), untouched = scalar(k, 5);
    for (Index i : k.range(1, N, 2)) {
      Tile row = scalar(k, 0);
      for (Index j : k.range(i)) {
        row += j * 3;
        sum = sum + row * untouched;
      }
      product = product * 2 + row;
    }
    return sum * 1000 + product;
  });
  for (int64_t n : {0, 1, 2, 7, 12}) {
    int64_t sum = 0, product = 1;
    for (int64_t i = 1; i < n; i += 2) {
      int64_t row = 0;
      for (int64_t j = 0; j < i; ++j) {
        row += j * 3;
        sum += row * 5;
      }
      product = product * 2 + row;
    }
    EXPECT_EQ(run(p, n), static_cast<double>(sum * 1000 + product)) << n;
  }
}

TEST(Meaning, VariablesSwapAndShiftThroughALoop) {
  const Program p = traced([](Trace& k, const Index& N) {
    Tile a = scalar(k, 0), b = scalar(k, 1);
    for ([[maybe_unused]] Index i : k.range(N)) {
      Tile next = a + b;
      a = b;
      b = next;
    }
    return a;
  });
  int64_t a = 0, b = 1;
  for (int64_t n = 0; n < 20; ++n) {
    EXPECT_EQ(run(p, n), static_cast<double>(a)) << n;
    b += a;
    a = b - a;
  }
}

TEST(Meaning, BranchesMergeWhatEitherSideWrites) {
  const Program p = traced([](Trace& k, const Index& N) {
    Tile a = scalar(k, 1), b = scalar(k, 10), c = scalar(k, 100);
    for (Index i : k.range(N)) {
      const auto odd = [&] {
        a += b;
        k.when(
            i < 3, [&] { c -= 1; }, [&] { b += a; });
      };
      k.when(eq(i % 2, 1), odd, [&] { c += a; });
    }
    return a + b * 1000 + c * 1000000;
  });
  for (int64_t n = 0; n < 9; ++n) {
    int64_t a = 1, b = 10, c = 100;
    for (int64_t i = 0; i < n; ++i) {
      if (i % 2 == 1) {
        a += b;
        if (i < 3)
          c -= 1;
        else
          b += a;
      } else {
        c += a;
      }
    }
    EXPECT_EQ(run(p, n), static_cast<double>(a + b * 1000 + c * 1000000)) << n;
  }
}

TEST(Meaning, ComparisonsOfIndices) {
  const Program p = traced([](Trace& k, const Index& N) {
    Tile bits = scalar(k, 0);
    int64_t bit = 1;
    for (const Cond& c : {N<3, N <= 3, N> 3, N >= 3, eq(N, 3), ne(N, 3), 3 < N}) {
      k.when(c, [&] { bits += bit; });
      bit *= 2;
    }
    return bits;
  });
  EXPECT_EQ(run(p, 2), 1 + 2 + 32);
  EXPECT_EQ(run(p, 3), 2 + 8 + 16);
  EXPECT_EQ(run(p, 4), 4 + 8 + 32 + 64);
}

TEST(Meaning, CopiesAreVariablesOfTheirOwn) {
  const Program p = traced([](Trace& k, const Index& N) {
    Tile a = scalar(k, 1);
    Tile b = a;
    std::vector<Tile> list{a, b};
    for ([[maybe_unused]] Index i : k.range(N)) {
      b += 1;
      list[0] += b;
      list.push_back(list[0]);
      list.pop_back();
    }
    return a + 10 * b + 100 * list[0] + 1000 * list[1];
  });
  EXPECT_EQ(run(p, 3), 1 + 10 * 4 + 100 * (1 + 2 + 3 + 4) + 1000);
}

// A variable that ends inside the loop that writes it leaves nothing behind.
TEST(Meaning, AVariableMayEndInsideALoop) {
  const Program p = traced([](Trace& k, const Index& N) {
    std::optional<Tile> gone = scalar(k, 7);
    Tile sum = scalar(k, 0);
    for ([[maybe_unused]] Index i : k.range(N)) {
      *gone += 1;
      sum += *gone;
      gone.reset();
    }
    return sum;
  });
  EXPECT_EQ(run(p, 3), 8 + 9 + 10);
}

TEST(Meaning, TheValueBeforeALoopStaysReadable) {
  const Program p = traced([](Trace& k, const Index& N) {
    Tile a = scalar(k, 3);
    const Tile before = a;
    for ([[maybe_unused]] Index i : k.range(N)) a = a * before;
    return a - before;
  });
  EXPECT_EQ(run(p, 0), 0);
  EXPECT_EQ(run(p, 3), 81 - 3);
}

TEST(Meaning, ArgmaxTakesTheFirstOfEqualsAndNanBeforeAll) {
  Trace k("argmax");
  TensorRef X = k.input("X", f32, {4, 5}), Y = k.output("Y", i64, {4, 2});
  Tile x = load(X.tile({0, 0}, {4, 5}));
  store(Y.tile({0, 0}, {4, 1}), argmax(x, 1));
  store(Y.tile({0, 1}, {4, 1}), argmin(x, 1));
  const Program p = k.finish();
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const double rows[4][5] = {
      {1, 3, 3, 1, 2}, {nan, 9, nan, 1, 0}, {-0.0, 0, -0.0, 0, 0}, {5, nan, 7, nan, 6}};
  Tensor in = host_tensor(f32, {4, 5}), out = host_tensor(i64, {4, 2});
  for (int64_t i = 0; i < 20; ++i) set(in, i, rows[i / 5][i % 5]);
  interpret(p, {in}, {out});
  const double wanted[8] = {1, 0, 0, 0, 0, 0, 1, 1};
  for (int64_t i = 0; i < 8; ++i) EXPECT_EQ(get(out, i), wanted[i]) << i;
}

}  // namespace
}  // namespace tw
