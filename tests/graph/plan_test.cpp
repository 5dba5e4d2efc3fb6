#include "tw/graph/plan.h"

#include <gmock/gmock.h>
#include <limits>
#include <random>

#include "tw/graph/build.h"
#include "tw/graph/constants.h"
#include "tw/graph/evaluate.h"
#include "tw/graph/fuse.h"
#include "tw/runtime/device.h"

#include "tests/support/expect_error.h"

namespace tw::graph {
namespace {

/// Small integers, so that sums are exact and results are the same whatever is added first.
Tensor small_integers(DType t, const std::vector<int64_t>& dims, uint64_t seed) {
  std::mt19937_64 random(seed);
  Tensor x = host_tensor(t, dims);
  for (int64_t i = 0; i < x.count(); ++i)
    set(x, i, static_cast<double>(random() % 5) - (is_float(t) ? 2 : 0));
  return x;
}

/// Runs the graph as it is and fused, and compares with what it means.
void expect_meaning(const Graph& g, const std::vector<std::vector<int64_t>>& dims) {
  std::vector<Tensor> owners;
  std::vector<TensorView> inputs;
  for (size_t i = 0; i < dims.size(); ++i)
    inputs.push_back(
        owners.emplace_back(small_integers(g.tensor(g.inputs()[i]).dtype, dims[i], i + 1)).view());
  const std::vector<Tensor> want = evaluate(g, inputs);
  for (const bool fused : {false, true}) {
    Graph h = g;
    if (fused) fuse(h);
    SCOPED_TRACE(to_string(h));
    const Plan plan(h, Device::open("cpu:0"));
    const std::vector<Tensor> got = plan.run(inputs);
    ASSERT_EQ(got.size(), want.size());
    for (size_t o = 0; o < got.size(); ++o) {
      ASSERT_EQ(got[o].dims(), want[o].dims());
      for (int64_t i = 0; i < got[o].count(); ++i)
        ASSERT_EQ(get(got[o], i), get(want[o], i)) << "output " << o << " element " << i;
    }
  }
}

Term twice_plus(const Term& a, const Term& b) { return op(Opcode::add, op(Opcode::add, a, a), b); }

TEST(Plan, BroadcastsAndFusesChains) {
  Graph g("chain");
  const Expr n = g.dim("N");
  const TensorId a = g.input("a", f32, {n, 7, 33}), b = g.input("b", f32, {7, 1});
  const TensorId c = pointwise(g, "c", std::vector{a, b},
                               [](std::span<const Term> x) { return twice_plus(x[0], x[1]); });
  const TensorId d = pointwise(g, "d", std::vector{c, c},
                               [](std::span<const Term> x) { return op(Opcode::mul, x[0], x[1]); });
  g.output("d", d);
  expect_meaning(g, {{3, 7, 33}, {7, 1}});
  expect_meaning(g, {{0, 7, 33}, {7, 1}});
}

TEST(Plan, FoldsAnyAxes) {
  for (const std::vector<int>& axes : {std::vector{0}, {1}, {2}, {0, 2}, {1, 2}, {0, 1, 2}})
    for (const bool keep : {false, true}) {
      Graph g("fold");
      const Expr n = g.dim("N");
      const TensorId x = g.input("x", f32, {n, 5, 70});
      for (const Fold f : {Fold::sum, Fold::max, Fold::min})
        g.output("y", reduce(g, "y", x, {.fold = f, .axes = axes, .keep = keep}));
      expect_meaning(g, {{11, 5, 70}});
    }
}

TEST(Plan, FindsPlaces) {
  for (const int axis : {0, 1}) {
    Graph g("places");
    const Expr n = g.dim("N");
    const TensorId x = g.input("x", f32, {n, 300});
    for (const Fold f : {Fold::argmax, Fold::argmin, Fold::last_argmax, Fold::last_argmin})
      g.output("y", reduce(g, "y", x, {.fold = f, .axes = {axis}, .keep = false}));
    expect_meaning(g, {{13, 300}});
  }
}

TensorId matmul(Graph& g, TensorId a, TensorId b, const Expr& m, const Expr& n, const Expr& k,
                bool transposed) {
  Contraction c;
  c.result = {m, n};
  c.summed = {k};
  c.a = [](std::span<const Expr> i) { return std::vector<Expr>{i[0], i[2]}; };
  c.b = [=](std::span<const Expr> i) {
    return transposed ? std::vector<Expr>{i[1], i[2]} : std::vector<Expr>{i[2], i[1]};
  };
  return contract(g, "product", a, b, c);
}

TEST(Plan, MultipliesMatricesAndFinishes) {
  for (const bool transposed : {false, true}) {
    Graph g("matmul");
    const Expr m = g.dim("M"), k = g.dim("K");
    const TensorId a = g.input("a", f32, {m, k});
    const TensorId b =
        g.input("b", f32, transposed ? std::vector<Expr>{70, k} : std::vector<Expr>{k, 70});
    const TensorId bias = g.input("bias", f32, {70});
    const TensorId p = matmul(g, a, b, m, 70, k, transposed);
    g.output("y", pointwise(g, "y", std::vector{p, bias}, [](std::span<const Term> x) {
               return op(Opcode::max, twice_plus(x[0], x[1]), constant(f32, 0.0));
             }));
    expect_meaning(g, {{65, 130},
                       transposed ? std::vector<int64_t>{70, 130} : std::vector<int64_t>{130, 70},
                       {70}});
  }
}

TEST(Plan, MultipliesOtherTypes) {
  for (const DType t : {bf16, i8, i64, f64}) {
    Graph g("matmul");
    const TensorId a = g.input("a", t, {9, 20}), b = g.input("b", t, {20, 17});
    g.output("y", matmul(g, a, b, 9, 17, 20, false));
    expect_meaning(g, {{9, 20}, {20, 17}});
  }
}

TEST(Plan, ConvolvesByContraction) {
  Graph g("conv");
  const Expr n = g.dim("N");
  const TensorId x = g.input("x", f32, {n, 40, 12, 9}), f = g.input("f", f32, {24, 40, 3, 2});
  Contraction c;
  c.result = {n, 24, 6, 10};
  c.summed = {40, 3, 2};
  c.a = [](std::span<const Expr> i) {
    return std::vector<Expr>{i[0], i[4], i[2] * Expr(2) + i[5] - 1, i[3] + i[6] - 1};
  };
  c.b = [](std::span<const Expr> i) { return std::vector<Expr>{i[1], i[4], i[5], i[6]}; };
  c.pad_a = Number{false, 0, 0};
  g.output("y", contract(g, "y", x, f, c));
  expect_meaning(g, {{2, 40, 12, 9}, {24, 40, 3, 2}});
}

TEST(Plan, LaysOutConstantWeights) {
  Graph g("conv");
  const TensorId x = g.input("x", f32, {g.dim("N"), 40, 12});
  const TensorId f = g.constant("f", small_integers(f32, {24, 40, 3}, 5));
  Contraction c;
  c.result = {g.tensor(x).dims[0], 24, 10};
  c.summed = {40, 3};
  c.a = [](std::span<const Expr> i) { return std::vector<Expr>{i[0], i[3], i[2] + i[4]}; };
  c.b = [](std::span<const Expr> i) { return std::vector<Expr>{i[1], i[3], i[4]}; };
  g.output("y", contract(g, "y", x, f, c));
  Graph laid = g;
  lay_out_constants(laid);
  EXPECT_EQ(verify(laid), "");
  const Compute& after = laid.nodes()[0].compute;
  EXPECT_THAT(laid.tensor(after.operands[1]).dims, testing::ElementsAre(24, 3, 40));
  expect_meaning(g, {{2, 40, 12}});
}

TEST(Plan, MovesElements) {
  Graph g("moves");
  const Expr n = g.dim("N");
  const TensorId x = g.input("x", f32, {n, 6, 10});
  const TensorId r = reshape(g, "r", x, {n, 15, 4});
  g.output("r", r);
  g.output("t", transpose(g, "t", r, std::vector{2, 0, 1}));
  g.output("e", expand(g, "e", reshape(g, "s", x, {n, 1, 60}), {n, 3, 60}));
  g.output("p", view(
                    g, "p", x, {n, 9, 4},
                    [](std::span<const Expr> i) {
                      return std::vector<Expr>{i[0], i[1] - 2, i[2] * Expr(3) - 1};
                    },
                    Number{false, 0, 7}));
  g.output("x", x);
  expect_meaning(g, {{4, 6, 10}});
}

TEST(Plan, LooksUpOneHotRows) {
  Graph g("one_hot");
  const Expr n = g.dim("N");
  const TensorId x = g.input("x", i32, {n, 7, 1});
  Tensor numbers = host_tensor(i32, {1, 1, 4});
  for (int64_t i = 0; i < 4; ++i) set(numbers, i, static_cast<double>(i));
  const TensorId k = g.constant("k", numbers);
  const TensorId w = g.constant("w", small_integers(f32, {4, 33}, 9));
  const TensorId hot = pointwise(g, "hot", std::vector{x, k}, [](std::span<const Term> t) {
    return cast(op(Opcode::eq, t[0], t[1]), f32);
  });
  Contraction c;
  c.result = {n, 7, 33};
  c.summed = {4};
  c.a = [](std::span<const Expr> i) { return std::vector<Expr>{i[0], i[1], i[3]}; };
  c.b = [](std::span<const Expr> i) { return std::vector<Expr>{i[3], i[2]}; };
  g.output("y", contract(g, "y", hot, w, c));
  Graph fused = g;
  fuse(fused);
  ASSERT_EQ(fused.nodes().size(), 1u);
  EXPECT_EQ(fused.nodes()[0].compute.fold, Fold::none);
  expect_meaning(g, {{5, 7, 1}});  // 4 is no row
}

TEST(Plan, KeepsProductsWithInfinities) {
  Graph g("infinite");
  const TensorId x = g.input("x", i32, {3});
  Tensor numbers = host_tensor(i32, {2}), w = host_tensor(f32, {2});
  set(numbers, 0, 0), set(numbers, 1, 1);
  set(w, 0, std::numeric_limits<double>::infinity()), set(w, 1, 1);
  const TensorId k = g.constant("k", numbers), b = g.constant("w", w);
  Compute c{{x, k, b}, {3, 2}, 1, Fold::sum, nullptr, nullptr};
  c.body =
      op(Opcode::mul, cast(op(Opcode::eq, load(0, i32, {axis(0)}), load(1, i32, {axis(1)})), f32),
         load(2, f32, {axis(1)}));
  g.output("y", g.compute(c, "y"));
  fuse(g);
  EXPECT_EQ(g.nodes()[0].compute.fold, Fold::sum);
}

TEST(Plan, KeepsPadsApart) {
  Graph g("pads");
  const TensorId x = g.input("x", f32, {g.dim("N"), 6});
  const TensorId y = pointwise(g, "y", std::vector{x},
                               [](std::span<const Term> e) { return op(Opcode::add, e[0], e[0]); });
  const auto padded = [&](double pad) {
    return view(
        g, "padded", y, {g.tensor(x).dims[0], 8},
        [](std::span<const Expr> i) {
          return std::vector<Expr>{i[0], i[1] - 1};
        },
        Number{false, 0, pad});
  };
  const std::vector<TensorId> both = {padded(3), padded(5)};
  g.output("z", pointwise(g, "z", both,
                          [](std::span<const Term> e) { return op(Opcode::mul, e[0], e[1]); }));
  expect_meaning(g, {{4, 6}});
}

TEST(Plan, FollowsSizes) {
  Graph g("sizes");
  const Expr n = g.dim("N");
  const TensorId x = g.input("x", f32, {n, 6});
  const TensorId shape = g.shape_value("shape", i64, g.tensor(x).dims);
  const TensorId scaled = pointwise(g, "scaled", std::vector{shape}, [](std::span<const Term> e) {
    return op(Opcode::mul, e[0], constant_int(i64, 2));
  });
  ASSERT_TRUE(g.tensor(scaled).contents);
  EXPECT_EQ(g.text((*g.tensor(scaled).contents)[0]), "N*2");
  g.output("scaled", scaled);
  g.output("y", reshape(g, "y", x, {(*g.tensor(scaled).contents)[0], 3}));
  expect_meaning(g, {{5, 6}});
}

TEST(Plan, SaysWhatInputsMustBe) {
  Graph g("inputs");
  const TensorId x = g.input("x", f32, {g.dim("N"), 6});
  g.output("y", pointwise(g, "y", std::vector{x},
                          [](std::span<const Term> e) { return op(Opcode::neg, e[0]); }));
  const Plan plan(g, Device::open("cpu:0"), {.memory_limit = 1000});
  EXPECT_THROW(plan.run({small_integers(f32, {5, 7}, 1)}), UserError);
  EXPECT_THROW(plan.run({small_integers(i32, {5, 6}, 1)}), UserError);
  EXPECT_THROW(plan.run({small_integers(f32, {500, 6}, 1)}), UserError);
  EXPECT_EQ(plan.run({small_integers(f32, {5, 6}, 1)}).size(), 1u);
}

/// d = (a + 3) + (a + b), e = sum of a over N, of a, b: f32[N,7].
Graph two_outputs() {
  Graph g("two");
  const Expr n = g.dim("N");
  const TensorId a = g.input("a", f32, {n, 7}), b = g.input("b", f32, {n, 7});
  g.output("d", pointwise(g, "d", std::vector{a, b}, [](std::span<const Term> x) {
             return op(Opcode::add, op(Opcode::add, x[0], constant(f32, 3)),
                       op(Opcode::add, x[0], x[1]));
           }));
  g.output("e", reduce(g, "e", a, {.fold = Fold::sum, .axes = {0}, .keep = false}));
  return g;
}

TEST(Plan, ChecksOutputsOfTheCaller) {
  const Plan plan(two_outputs(), Device::open("cpu:0"));
  const Tensor a = small_integers(f32, {4, 7}, 1), b = small_integers(f32, {4, 7}, 2);
  const Tensor d = host_tensor(f32, {4, 7}), e = host_tensor(f32, {7});
  const auto run = [&](std::vector<TensorView> outputs) {
    return [&, outputs] { plan.run({a.view(), b.view()}, outputs); };
  };
  EXPECT_NO_THROW(run({d, e})());
  TW_EXPECT_ERROR(UserError, "1 outputs, wanted 2", run({d}));
  TW_EXPECT_ERROR(UserError, "output 'e' is f32[4,7]", run({d, d}));
  TW_EXPECT_ERROR(UserError, "output 'd' is f64[4,7]", run({host_tensor(f64, {4, 7}), e}));
  TW_EXPECT_ERROR(UserError, "wanted f32[4,7] without gaps",
                  run({host_tensor(f32, {7, 4}).transpose(0, 1), e}));
  TW_EXPECT_ERROR(UserError, "output 'd' overlaps input 'b'", run({b, e}));
  TW_EXPECT_ERROR(UserError, "output 'e' overlaps output 'd'",
                  run({d, d.slice(0, 3, 4).reshape({7})}));
}

TEST(Plan, SaysWhatStepsMoveAndCompute) {
  const Plan plan(two_outputs(), Device::open("cpu:0"));
  const std::vector<StepWork> work = plan.work(plan.sizes({{4, 7}, {4, 7}}));
  ASSERT_EQ(work.size(), 2);
  EXPECT_EQ(work[0].bytes, 3 * 4 * 28);
  EXPECT_EQ(work[0].flops, 3 * 28);
  EXPECT_EQ(work[1].bytes, 4 * 28 + 4 * 7);
  EXPECT_EQ(work[1].flops, 28);
  const Tensor a = small_integers(f32, {4, 7}, 1), d = host_tensor(f32, {4, 7}),
               e = host_tensor(f32, {7});
  std::vector<size_t> done;
  plan.run({a.view(), a.view()}, {d.view(), e.view()}, [&](size_t i) { done.push_back(i); });
  EXPECT_EQ(done, (std::vector<size_t>{0, 1}));
}

}  // namespace
}  // namespace tw::graph
