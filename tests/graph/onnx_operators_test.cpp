#include <bit>
#include <cmath>
#include <gmock/gmock.h>
#include <limits>

#include "tw/graph/evaluate.h"
#include "tw/graph/onnx/importer.h"

#include "tests/graph/written_model.h"
#include "tests/support/expect_error.h"

namespace tw::graph::onnx {
namespace {

using test::error_text;
using testing::ElementsAre;

/// Small whole numbers, no two neighbours alike.
Tensor counted(DType t, const Dims& dims) {
  Tensor x = host_tensor(t, dims);
  for (int64_t i = 0; i < x.count(); ++i) set(x, i, static_cast<double>(i * 7 % 13));
  return x;
}

/// Runs the graph on counted inputs of these extents and compares with what it means.
std::vector<Tensor> expect_meaning(const Graph& g, const std::vector<Dims>& dims) {
  std::vector<Tensor> owners;
  std::vector<TensorView> inputs;
  for (size_t i = 0; i < dims.size(); ++i)
    inputs.push_back(owners.emplace_back(counted(g.tensor(g.inputs()[i]).dtype, dims[i])).view());
  const std::vector<Tensor> want = evaluate(g, inputs);
  std::vector<Tensor> got = run_fused(g, inputs);
  for (size_t o = 0; o < got.size(); ++o) {
    EXPECT_EQ(got[o].dims(), want[o].dims());
    for (int64_t i = 0; i < got[o].count(); ++i)
      EXPECT_EQ(get(got[o], i), get(want[o], i)) << "output " << o << " element " << i;
  }
  return got;
}

/// Extents of an output as the graph has them.
Names dims_of(const Graph& g, size_t output = 0) {
  Names all;
  for (const Expr& e : g.tensor(g.outputs()[output].second).dims) all.push_back(g.text(e));
  return all;
}

TEST(OnnxOperators, SplitsHeadsOfNamedDims) {
  Written w;
  w.input("x", f32, {"N", "S", 12});
  w.list("zero", {0});
  w.list("two", {2});
  w.list("heads", {3, 4});
  w.list("back", {0, 0, -1});
  w.node("Shape", {"x"}, {"shape"});
  w.node("Slice", {"shape", "zero", "two"}, {"front"});
  w.node("Concat", {"front", "heads"}, {"split"}, {{"axis", attribute(0)}});
  w.node("Reshape", {"x", "split"}, {"y"});
  w.node("Transpose", {"y"}, {"t"}, {{"perm", attribute({0, 2, 1, 3})}});
  w.node("Transpose", {"t"}, {"u"}, {{"perm", attribute({0, 2, 1, 3})}});
  w.node("Reshape", {"u", "back"}, {"z"});
  w.output("t");
  w.output("z");
  const Graph g = import(w.m);
  EXPECT_THAT(dims_of(g, 0), ElementsAre("N", "3", "S", "4"));
  EXPECT_THAT(dims_of(g, 1), ElementsAre("N", "S", "12"));
  EXPECT_TRUE(g.requirements().empty());
  for (const Dims& d : {Dims{2, 5, 12}, {1, 1, 12}, {0, 5, 12}}) expect_meaning(g, {d});
}

TEST(OnnxOperators, SlicesNamedDims) {
  Written w;
  w.input("x", f32, {"N", 6});
  for (const int64_t k : {-5, -2, -1, 0, 1, 4, 100}) w.list("c" + std::to_string(k), {k});
  w.node("Slice", {"x", "c1", "c100"}, {"tail"});
  w.node("Slice", {"x", "c-2", "c100", "c0"}, {"last"});
  w.node("Slice", {"x", "c-1", "c-5", "c1", "c-2"}, {"back"});
  w.node("Slice", {"x", "c100", "c-5", "c0", "c-1"}, {"all_back"});
  w.node("Shape", {"x"}, {"shape"});
  w.node("Gather", {"shape", "c0"}, {"n"});
  w.node("Slice", {"x", "c0", "n", "c0"}, {"whole"});
  for (const char* y : {"tail", "last", "back", "all_back", "whole"}) w.output(y);
  const Graph g = import(w.m);
  EXPECT_THAT(dims_of(g, 2), ElementsAre("N", "2"));
  EXPECT_THAT(dims_of(g, 4), ElementsAre("N", "6"));
  for (const int64_t n : {7, 2, 1, 0}) {
    const std::vector<Tensor> got = expect_meaning(g, {{n, 6}});
    EXPECT_THAT(got[0].dims(), ElementsAre(std::max<int64_t>(n - 1, 0), 6));
    EXPECT_THAT(got[1].dims(), ElementsAre(std::min<int64_t>(n, 2), 6));
    EXPECT_THAT(got[3].dims(), ElementsAre(std::min<int64_t>(n, 4), 6)) << "-5 is n - 5, outside";
  }
}

TEST(OnnxOperators, SlicesToTheLeastNumber) {
  Written w;
  w.input("x", f32, {"N", 6});
  w.list("last", {-1});
  w.list("least", {std::numeric_limits<int64_t>::min()});
  w.list("zero", {0});
  w.node("Slice", {"x", "last", "least", "zero", "last"}, {"y"});
  w.output("y");
  const Graph g = import(w.m);
  EXPECT_THAT(dims_of(g), ElementsAre("N", "6"));
  for (const int64_t n : {3, 1, 0}) expect_meaning(g, {{n, 6}});
}

TEST(OnnxOperators, MakesCausalMasksOfNamedDims) {
  Written w;
  w.input("x", f32, {1, "S"});
  w.list("one", {1});
  w.m.initializers["scalar_zero"] = list_of({0}).reshape({});
  w.m.initializers["scalar_one"] = list_of({1}).reshape({});
  w.node("Shape", {"x"}, {"shape"});
  w.node("Gather", {"shape", "scalar_one"}, {"s"});
  w.node("Range", {"scalar_zero", "s", "scalar_one"}, {"places"});
  w.node("Unsqueeze", {"places", "one"}, {"rows"});
  w.node("LessOrEqual", {"places", "rows"}, {"mask"});
  w.node("Unsqueeze", {"s", "scalar_zero_list"}, {"s1"});
  w.list("scalar_zero_list", {0});
  w.node("Concat", {"s1", "s1"}, {"square"}, {{"axis", attribute(0)}});
  w.node("ConstantOfShape", {"square"}, {"zeros"});
  w.node("Where", {"mask", "zeros", "x"}, {"y"});
  w.node("Expand", {"scalar_one", "shape"}, {"ones"});
  w.output("mask");
  w.output("y");
  w.output("ones");
  const Graph g = import(w.m);
  EXPECT_THAT(dims_of(g, 0), ElementsAre("S", "S"));
  EXPECT_THAT(dims_of(g, 2), ElementsAre("1", "S"));
  expect_meaning(g, {{1, 5}});
  expect_meaning(g, {{1, 1}});
}

TEST(OnnxOperators, JoinsAndSplitsNamedDims) {
  Written w;
  w.input("a", f32, {"N", 3});
  w.input("b", f32, {"M", 3});
  w.node("Concat", {"a", "b", "a"}, {"all"}, {{"axis", attribute(-2)}});
  w.node("Shape", {"a"}, {"shape"});
  w.node("Split", {"all", ""}, {"first", "second"},
         {{"axis", attribute(1)}, {"num_outputs", attribute(2)}});
  w.output("all");
  w.output("second");
  const Graph g = import(w.m);
  for (const auto& [n, m] : {std::pair<int64_t, int64_t>{4, 5}, {0, 5}, {4, 0}, {1, 1}, {0, 0}}) {
    const std::vector<Tensor> got = expect_meaning(g, {{n, 3}, {m, 3}});
    EXPECT_THAT(got[0].dims(), ElementsAre(2 * n + m, 3));
    EXPECT_THAT(got[1].dims(), ElementsAre(2 * n + m, 1));
  }
}

TEST(OnnxOperators, MultipliesStacksWithExtentsOfOne) {
  Written w;
  w.input("a", f32, {"B", 1, "M", 7});
  w.input("b", f32, {3, 7, 5});
  w.input("v", f32, {7});
  w.node("MatMul", {"a", "b"}, {"ab"});
  w.node("MatMul", {"a", "v"}, {"av"});
  w.node("MatMul", {"v", "b"}, {"vb"});
  w.node("MatMul", {"v", "v"}, {"vv"});
  for (const char* y : {"ab", "av", "vb", "vv"}) w.output(y);
  const Graph g = import(w.m);
  EXPECT_THAT(dims_of(g, 0), ElementsAre("B", "3", "M", "5"));
  EXPECT_THAT(dims_of(g, 1), ElementsAre("B", "1", "M"));
  EXPECT_TRUE(dims_of(g, 3).empty());
  for (const Dims& a : {Dims{2, 1, 4, 7}, {1, 1, 1, 7}, {0, 1, 4, 7}})
    expect_meaning(g, {a, {3, 7, 5}, {7}});
}

TEST(OnnxOperators, FoldsEmptyTensors) {
  Written w;
  w.input("x", f32, {"N", 3});
  w.list("axes", {0});
  for (const char* op : {"ReduceSum", "ReduceProd", "ReduceMax", "ReduceMin", "ReduceLogSumExp"}) {
    w.node(op, {"x", "axes"}, {op}, {{"keepdims", attribute(0)}});
    w.output(op);
  }
  const std::vector<Tensor> got = run_fused(import(w.m), {counted(f32, {0, 3})});
  const double infinity = std::numeric_limits<double>::infinity();
  const std::vector<double> want = {0.0, 1.0, -infinity, infinity, -infinity};
  for (size_t o = 0; o < want.size(); ++o)
    EXPECT_THAT(to_doubles(got[o]), testing::Each(want[o])) << w.m.nodes[o].op;
}

TEST(OnnxOperators, ConvolvesNothingAndOneElement) {
  Written w;
  w.input("x", f32, {"N", 4, "H", "W"});
  w.input("f", f32, {6, 2, 3, 3});
  w.node(
      "Conv", {"x", "f"}, {"y"},
      {{"group", attribute(2)}, {"pads", attribute({1, 1, 1, 1})}, {"strides", attribute({2, 1})}});
  w.node("MaxPool", {"x"}, {"p"},
         {{"kernel_shape", attribute({2, 2})},
          {"ceil_mode", attribute(1)},
          {"strides", attribute({2, 2})}});
  w.output("y");
  w.output("p");
  const Graph g = import(w.m);
  const std::vector<Tensor> got = expect_meaning(g, {{2, 4, 5, 6}, {6, 2, 3, 3}});
  EXPECT_THAT(got[0].dims(), ElementsAre(2, 6, 3, 6));
  EXPECT_THAT(got[1].dims(), ElementsAre(2, 4, 3, 3));
  expect_meaning(g, {{0, 4, 5, 6}, {6, 2, 3, 3}});
  EXPECT_THAT(expect_meaning(g, {{1, 4, 2, 2}, {6, 2, 3, 3}})[1].dims(), ElementsAre(1, 4, 1, 1));
}

TEST(OnnxOperators, GathersAlongOneOfFourAxes) {
  Written w;
  w.input("x", f32, {3, 5, 6, 6});
  w.input("i", i64, {3, 1, 6, 6});
  w.m.initializers["five"] = list_of({5}).reshape({});
  w.node("Mod", {"i", "five"}, {"j"});
  w.node("GatherElements", {"x", "j"}, {"y"}, {{"axis", attribute(1)}});
  w.output("y");
  expect_meaning(import(w.m), {{3, 5, 6, 6}, {3, 1, 6, 6}});
}

TEST(OnnxOperators, KeepsRowsOfPackedTypes) {
  Written w(21);
  w.input("x", i8, {3, 5});
  w.node("Cast", {"x"}, {"four"}, {{"to", attribute(22)}});
  w.node("Cast", {"four"}, {"y"}, {{"to", attribute(3)}});
  w.output("four");
  w.output("y");
  const Graph g = import(w.m);
  const Tensor x = counted(i8, {3, 5});
  const std::vector<Tensor> got = run_fused(g, {x});
  for (int64_t i = 0; i < x.count(); ++i) {
    const double want = get(x, i) > 7 ? get(x, i) - 16 : get(x, i);
    EXPECT_EQ(get(got[0], i), want);
    EXPECT_EQ(get(got[1], i), want);
  }
}

TEST(OnnxOperators, RefusesShapesThatDataDecide) {
  Written w;
  w.input("x", f32, {"N", 4});
  w.input("shape", i64, {2});
  w.node("Reshape", {"x", "shape"}, {"y"});
  w.output("y");
  try {
    import(w.m);
    FAIL();
  } catch (const UserError& e) {
    EXPECT_THAT(e.what(), testing::HasSubstr("Reshape 'y'"));
  }
}

/// Inputs of one node that would have it read outside of a tensor or divide by 0.
struct Misfit {
  const char* op;
  std::vector<std::pair<DType, Dims>> inputs;
  std::map<std::string, Attribute> attributes;
  const char* fault;
};

std::string fault_of(const Misfit& misfit) {
  Written w;
  Names inputs;
  for (const auto& [t, dims] : misfit.inputs) {
    inputs.push_back("x" + std::to_string(inputs.size()));
    w.input(inputs.back(), t, {dims.begin(), dims.end()});
  }
  w.node(misfit.op, inputs, {"y"}, misfit.attributes);
  w.output("y");
  return error_text<UserError>([&] { import(w.m); });
}

TEST(OnnxOperators, RefusesExtentsThatDoNotFit) {
  const std::pair<DType, Dims> image = {f32, {1, 4, 5, 5}}, filter = {f32, {4, 2, 3, 3}};
  const std::vector<Misfit> misfits = {
      {"GatherElements", {{f32, {2, 3}}, {i64, {5, 3}}}, {{"axis", attribute(1)}}, "extent 5"},
      {"GatherND", {{f32, {2, 3}}, {i64, {5, 1}}}, {{"batch_dims", attribute(1)}}, "extent 5"},
      {"ReverseSequence", {{f32, {4, 3}}, {i64, {2}}}, {}, "extent 2"},
      {"ReverseSequence", {{f32, {4, 3}}, {i64, {3, 1}}}, {}, "2 axes"},
      {"NegativeLogLikelihoodLoss", {{f32, {2, 3}}, {i64, {5}}}, {}, "extent 5"},
      {"NegativeLogLikelihoodLoss", {{f32, {2, 3}}, {i64, {}}}, {}, "0 axes"},
      {"DequantizeLinear",
       {{i8, {4, 6}}, {f32, {2, 3}}},
       {{"axis", attribute(0)}, {"block_size", attribute(2)}},
       "extent 3"},
      {"MeanVarianceNormalization", {{f32, {2, 3, 4}}}, {}, "wants axes"},
      {"ConvTranspose", {image, filter}, {{"group", attribute(0)}}, "has no groups"},
      {"ConvTranspose", {image, filter}, {{"group", attribute(3)}}, "groups do not divide"},
      {"ConvTranspose", {{f32, {1, 3, 5, 5}}, filter}, {}, "extent 3"},
      {"ConvTranspose", {image, filter}, {{"strides", attribute({0, 1})}}, "below 1"},
      {"ConvTranspose", {image, filter}, {{"output_shape", attribute(Dims{9})}}, "wanted 2"},
      {"ConvTranspose", {image, filter, {f32, {}}}, {}, "0 axes"},
      {"Split", {{f32, {5}}}, {{"num_outputs", attribute(0)}}, "wanted 1"},
      {"Split", {{f32, {5}}}, {{"split", attribute(Dims{-1, 6})}}, "part of -1 elements"},
  };
  for (const Misfit& m : misfits) EXPECT_THAT(fault_of(m), testing::HasSubstr(m.fault)) << m.op;
}

TEST(OnnxOperators, RefusesConstantsWithoutElementsAndCountsThatAreNone) {
  const auto fault_with = [](const char* op, const Names& inputs) {
    Written w(21);
    w.input("x", f32, {3, 4});
    w.list("none", {});
    w.list("one", {1});
    w.list("pads", {1, 1, 1, 1});
    w.m.initializers["no_floats"] = host_tensor(f32, {0});
    w.m.initializers["far"] = floats_of({1}, {1e30F});
    w.m.initializers["scales"] = floats_of({2}, {1, -2});
    w.m.initializers["float"] = floats_of({1}, {1});
    w.node(op, inputs, {"y"});
    w.output("y");
    return error_text<UserError>([&] { import(w.m); });
  };
  using testing::HasSubstr;
  EXPECT_THAT(fault_with("Range", {"none", "one", "one"}), HasSubstr("input 0, 'none'"));
  EXPECT_THAT(fault_with("Range", {"no_floats", "no_floats", "no_floats"}), HasSubstr("input 0"));
  EXPECT_THAT(fault_with("Trilu", {"x", "none"}), HasSubstr("input 1, 'none'"));
  EXPECT_THAT(fault_with("OneHot", {"one", "none", "x"}), HasSubstr("input 1, 'none'"));
  EXPECT_THAT(fault_with("Pad", {"x", "pads", "no_floats"}), HasSubstr("input 2, 'no_floats'"));
  EXPECT_THAT(fault_with("Range", {"float", "far", "float"}),
              HasSubstr("e+30 elements, wanted 0 to"));
  EXPECT_THAT(fault_with("OneHot", {"one", "far", "scales"}), HasSubstr("elements, wanted 0 to"));
  EXPECT_THAT(fault_with("Resize", {"x", "", "scales"}), HasSubstr("scales by -2"));
}

TEST(OnnxOperators, RefusesNegativeExtents) {
  const auto fault_with = [](const char* op, const Names& inputs) {
    Written w(21);
    w.input("x", f32, {2, 3});
    w.input("named", f32, {2, "N"});
    w.list("both", {-2, -3});
    w.list("first", {-2, 4});
    w.list("last", {4, -1});
    w.list("less", {0, -2, 0, -2});
    w.node(op, inputs, {"y"});
    w.output("y");
    return error_text<UserError>([&] { import(w.m); });
  };
  using testing::HasSubstr;
  EXPECT_THAT(fault_with("Reshape", {"x", "both"}),
              HasSubstr("'y' has extent -2 of axis 0, wanted 0 or more"));
  EXPECT_THAT(fault_with("ConstantOfShape", {"first"}), HasSubstr("'y' has extent -2 of axis 0"));
  EXPECT_THAT(fault_with("Tile", {"x", "last"}), HasSubstr("'y' has extent -3 of axis 1"));
  EXPECT_THAT(fault_with("Pad", {"x", "less"}), HasSubstr("'y' has extent -1 of axis 1"));
  EXPECT_THAT(fault_with("Tile", {"named", "first"}), HasSubstr("'y' has extent -4 of axis 0"));
  EXPECT_THAT(fault_with("Pad", {"named", "less"}), HasSubstr("no error"));
}

/// Elements between two floats, 0 when both are the same or NaN.
int64_t steps_between(float a, float b) {
  if (std::isnan(a) && std::isnan(b)) return 0;
  const auto place = [](float v) {
    const auto i = std::bit_cast<int32_t>(v);
    return static_cast<int64_t>(i < 0 ? std::numeric_limits<int32_t>::min() - i : i);
  };
  return std::isnan(a) || std::isnan(b) ? std::numeric_limits<int64_t>::max()
                                        : std::abs(place(a) - place(b));
}

const std::vector<float> kReals = {0.0f,
                                   -0.0f,
                                   1e-40f,
                                   -1e-40f,
                                   1e-8f,
                                   -3e-5f,
                                   0.1f,
                                   -0.3f,
                                   0.5f,
                                   0.66f,
                                   -0.7f,
                                   0.9999f,
                                   1.0f,
                                   -1.0f,
                                   1.0001f,
                                   1.5f,
                                   -2.0f,
                                   2.42f,
                                   3.0f,
                                   -7.5f,
                                   20.0f,
                                   -88.0f,
                                   89.0f,
                                   1e4f,
                                   -1e9f,
                                   1e30f,
                                   -3e38f,
                                   std::numeric_limits<float>::infinity(),
                                   -std::numeric_limits<float>::infinity(),
                                   std::numeric_limits<float>::quiet_NaN()};

TEST(OnnxOperators, FunctionsAreThoseOfTheLibraryToOneStep) {
  using Function = double (*)(double);
  const std::vector<std::pair<const char*, Function>> functions = {
      {"Acos", std::acos},   {"Acosh", std::acosh}, {"Asin", std::asin},
      {"Asinh", std::asinh}, {"Atan", std::atan},   {"Atanh", std::atanh},
      {"Cosh", std::cosh},   {"Sinh", std::sinh},   {"Tan", std::tan}};
  const auto n = static_cast<int64_t>(kReals.size());
  Written w;
  w.input("x", f32, {n});
  for (const auto& [op, f] : functions) {
    w.node(op, {"x"}, {op});
    w.output(op);
  }
  const std::vector<Tensor> got = run_fused(import(w.m), {floats_of({n}, kReals)});
  for (size_t o = 0; o < functions.size(); ++o)
    for (int64_t i = 0; i < n; ++i) {
      const float x = kReals[static_cast<size_t>(i)];
      const auto want = static_cast<float>(functions[o].second(x));
      EXPECT_LE(steps_between(got[o].data<float>()[i], want), 1)
          << functions[o].first << " of " << x << " is " << got[o].data<float>()[i];
    }
}

TEST(OnnxOperators, PowersAndRemaindersHaveTheSpecialValuesOfTheLibrary) {
  const auto n = static_cast<int64_t>(kReals.size());
  Written w;
  w.input("x", f32, {n, 1});
  w.input("y", f32, {1, n});
  w.node("Pow", {"x", "y"}, {"pow"});
  w.node("Mod", {"x", "y"}, {"mod"}, {{"fmod", attribute(1)}});
  w.output("pow");
  w.output("mod");
  const std::vector<Tensor> got =
      run_fused(import(w.m), {floats_of({n, 1}, kReals), floats_of({1, n}, kReals)});
  for (int64_t i = 0; i < n; ++i)
    for (int64_t j = 0; j < n; ++j) {
      const double x = kReals[static_cast<size_t>(i)], y = kReals[static_cast<size_t>(j)];
      const float power = got[0].data<float>()[i * n + j], rest = got[1].data<float>()[i * n + j];
      EXPECT_LE(steps_between(power, static_cast<float>(std::pow(x, y))), 1)
          << x << " ^ " << y << " is " << power;
      if (std::abs(x / y) < 0x1p29 || !std::isfinite(x / y)) {
        EXPECT_LE(steps_between(rest, static_cast<float>(std::fmod(x, y))), 0)
            << x << " mod " << y << " is " << rest;
      }
    }
}

}  // namespace
}  // namespace tw::graph::onnx
