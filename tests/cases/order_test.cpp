// Programs whose result depends on what is read before or after what is written: memory of tiles
// and tensors is reused, statements share loops, and none of it may show.
#include <cstring>

#include "tests/cases/backends.h"

namespace tw::test {

using check::Guarded;

namespace {

/// Small integers, so that all sums are exact.
double small(int64_t i) { return static_cast<double>(i * 7 % 9 - 4); }

struct Tensors {
  std::vector<std::vector<int64_t>> inputs, outputs;
  DType in = f32, out = f32;
};

/// Runs the program on every backend; all results are those of the first, the interpreter.
void expect_same(const Program& p, const Tensors& t) {
  std::vector<std::vector<double>> want;
  for (const Backend& backend : backends()) {
    std::vector<Guarded> tensors;
    std::vector<TensorView> inputs, outputs;
    for (const auto& dims : t.inputs) tensors.emplace_back(t.in, dims);
    for (const auto& dims : t.outputs) tensors.emplace_back(t.out, dims);
    for (Guarded& g : tensors) g.fill(small);
    for (size_t k = 0; k < tensors.size(); ++k)
      (k < t.inputs.size() ? inputs : outputs).push_back(tensors[k].view());
    backend.run(p, inputs, outputs);
    std::vector<std::vector<double>> got;
    for (const TensorView& y : outputs) got.push_back(values(y));
    if (want.empty()) want = got;
    EXPECT_EQ(got, want) << p.name << " on " << backend.name;
    for (const Guarded& g : tensors) EXPECT_EQ(g.damage(), "") << p.name;
  }
}

/// Tiles of 32x32 of A, B, C and D; what happens before the product and after.
Program around_product(const char* name, bool reload) {
  Trace k(name);
  Index M = k.dim("M"), N = k.dim("N"), K = k.dim("K");
  TensorRef A = k.input("A", f32, {M, K}), B = k.input("B", f32, {K, N});
  TensorRef C = k.inout("C", f32, {M, N}), D = k.output("D", f32, {M, N});
  auto [m, n] = k.grid(cdiv(M, 32), cdiv(N, 32));
  if (reload) store(C.tile({m, n}, {32, 32}), k.full(f32, {32, 32}, 7));
  Tile old = load(C.tile({m, n}, {32, 32}));
  Tile acc = k.zeros(f32, {32, 32});
  for (Index i : k.range(cdiv(K, 16)))
    acc = dot(load(A.tile({m, i}, {32, 16})), load(B.tile({i, n}, {16, 32})), acc);
  store(C.tile({m, n}, {32, 32}), acc);
  store(D.tile({m, n}, {32, 32}), old + 1);
  return k.finish();
}

using Step = void (*)(Trace& k, const std::function<Tile(const Tile&)>& product, Tile& x, Tile& y);

/// Three turns of a step on two carried tiles; product(z) is z + A_i B.
Program carried(Step step, DType in, DType sum) {
  Trace k("carried");
  TensorRef A = k.input("A", in, {24, 8}), B = k.input("B", in, {8, 8});
  TensorRef X = k.output("X", sum, {8, 8}), Y = k.output("Y", sum, {8, 8});
  Tile x = k.full(sum, {8, 8}, 1), y = k.full(sum, {8, 8}, 2);
  for (Index i : k.range(3)) {
    const auto product = [&](const Tile& z) {
      return dot(load(A.tile({i, 0}, {8, 8})), load(B.tile({0, 0}, {8, 8})), z);
    };
    step(k, product, x, y);
  }
  store(X.tile({0, 0}, {8, 8}), x);
  store(Y.tile({0, 0}, {8, 8}), y);
  return k.finish();
}

const Step kSteps[] = {
    [](Trace&, const auto& product, Tile& x, Tile&) { x = transpose(product(x)); },
    [](Trace&, const auto& product, Tile& x, Tile& y) {
      Tile t = product(x);
      x = t * 2;
      y = y + t;
    },
    [](Trace&, const auto& product, Tile& x, Tile& y) {
      Tile t = product(y);
      x = x + t;
      y = t * 2;
    },
    [](Trace&, const auto& product, Tile& x, Tile& y) {
      Tile t = product(x);
      x = product(y);
      y = t;
    },
    [](Trace&, const auto& product, Tile& x, Tile& y) {
      Tile t = product(x);
      x = row_max(t) + y;
      y = y - transpose(t);
    },
    [](Trace& k, const auto& product, Tile& x, Tile& y) {  // x stays while the inner loop runs
      Tile s = y;
      for ([[maybe_unused]] Index j : k.range(4)) s = s + product(x);
      x = s;
    },
    [](Trace& k, const auto& product, Tile& x, Tile& y) {
      Tile t = product(x);
      k.when(
          1 < Index(2), [&] { y = y + t; }, [&] { y = y - t; });
      x = transpose(t);
    },
};

}  // namespace

TEST(Order, LoadsBeforeAFusedProductAreDoneBefore) {
  for (const bool reload : {false, true})
    expect_same(around_product(reload ? "reloaded" : "old", reload),
                {{{50, 40}, {40, 60}}, {{50, 60}, {50, 60}}});
}

TEST(Order, SumsLieInCarriedTilesOnlyWhereNobodySeesIt) {
  for (const auto& [in, sum] : {std::pair{f32, f32}, {i8, i32}}) {
    for (size_t step = 0; step < std::size(kSteps); ++step) {
      SCOPED_TRACE(step);
      expect_same(carried(kSteps[step], in, sum), {{{24, 8}, {8, 8}}, {{8, 8}, {8, 8}}, in, sum});
    }
  }
}

TEST(Order, StoresThatOverlapHappenInTheirOrder) {
  for (const bool columns : {false, true}) {
    for (const int shift : {0, 1, 8}) {
      Trace k("windows");
      TensorRef X = k.input("X", f32, {64, 64}), Y = k.output("Y", f32, {80, 80});
      TensorRef S = k.output("S", f32, {64, 64});
      Tile x = load(X.tile({0, 0}, {64, 64}));
      store(Y.window({0, 0}, {64, 64}), x);
      store(Y.window({columns ? shift : 0, columns ? 0 : shift}, {64, 64}), x * 2);
      Tile sum = columns ? col_sum(x) : row_sum(x);
      store(S.tile({0, 0}, {64, 64}), broadcast(sum, {64, 64}));
      expect_same(k.finish(), {{{64, 64}}, {{80, 80}, {64, 64}}});
    }
  }
}

/// Tiles of one column, and loops that never run.
TEST(Order, DegenerateTilesAndLoops) {
  for (const bool bias : {false, true}) {
    Trace k("gemv");
    Index M = k.dim("M"), N = k.dim("N"), K = k.dim("K");
    TensorRef A = k.input("A", f32, {M, K}), B = k.input("B", f32, {K, N});
    TensorRef V = k.input("V", f32, {N}), C = k.output("C", f32, {M, N});
    auto [m, n] = k.grid(cdiv(M, 8), N);
    Tile acc = k.zeros(f32, {8, 1});
    for (Index i : k.range(cdiv(K, 16)))
      acc = dot(load(A.tile({m, i}, {8, 16})), load(B.tile({i, n}, {16, 1})), acc);
    if (bias) acc = max(acc + as_row(load(V.tile({n}, {1}))), 0);
    store(C.tile({m, n}, {8, 1}), acc);
    const Program p = k.finish();
    for (const int64_t columns : {1, 2})
      expect_same(p, {{{9, 33}, {33, columns}, {columns}}, {{9, columns}}});
  }
  for (const int first : {0, 1}) {
    Trace k("never");
    Index N = k.dim("N");
    TensorRef X = k.input("X", f32, {N, N}), Y = k.output("Y", f32, {N, N});
    Tile x = load(X.tile({0, 0}, {3, 3}));
    store(Y.tile({0, 0}, {3, 3}), x);
    for (Index i : k.range(Index(first), Index(0), Index(2)))
      store(Y.window({-1, 20 - i}, {3, 3}), x + 1);
    expect_same(k.finish(), {{{40, 40}}, {{40, 40}}});
  }
}

/// Stores around the caches begin at a whole line of memory, whatever the types on the way there.
TEST(Order, LargeOutputsOfEveryTypeAreWhole) {
  constexpr int64_t kBytes = 33 << 20, kWidth = 37;
  for (const auto& [stored, computed] : {std::pair{bf16, f32}, {f16, f32}, {i8, i32}, {f32, f64}}) {
    Trace k("large");
    Index N = k.dim("N");
    TensorRef X = k.input("X", stored, {N}), Y = k.output("Y", stored, {N});
    auto [n] = k.grid(cdiv(N, kWidth));
    store(Y.tile({n}, {kWidth}), cast(cast(load(X.tile({n}, {kWidth})), computed) + 1, stored));
    const int64_t elements = kBytes / bytes(stored);
    Tensor x = host_tensor(stored, {elements}), y = host_tensor(stored, {elements});
    std::memset(TensorView(y).data, 0x11, kBytes);
    for (int64_t i = 0; i < elements; ++i) set(x, i, static_cast<double>(i % 5));
    cpu().run(k.finish(), {x}, {y});
    int64_t wrong = 0;
    for (int64_t i = 0; i < elements; ++i) wrong += get(y, i) != static_cast<double>(i % 5 + 1);
    EXPECT_EQ(wrong, 0) << name(stored) << " through " << name(computed);
  }
}

}  // namespace tw::test
