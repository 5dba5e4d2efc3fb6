#include <gmock/gmock.h>

#include "tw/graph/onnx/importer.h"

#include "tests/support/expect_error.h"
#include "tests/support/onnx_writer.h"

namespace tw::graph::onnx {
namespace {

using namespace tw::test;
using testing::ElementsAre;

Graph imported_graph(const ModelProto& m, const InputDims& dims = {}) {
  const ModelFolder folder;
  return import(read_model(folder.write(m)), dims);
}

void expect_import_fault(const ModelProto& m, const std::string& part, const InputDims& dims = {}) {
  TW_EXPECT_ERROR(UserError, part, [&] { imported_graph(m, dims); });
}

std::vector<std::string> input_dims(const Graph& g, size_t input) {
  std::vector<std::string> all;
  for (const Expr& e : g.tensor(g.inputs().at(input)).dims) all.push_back(g.text(e));
  return all;
}

ModelProto two_inputs() {
  ModelProto m = small_model();
  m.inputs.push_back(value_proto("z", kFloat, {"N", ""}));
  m.outputs.push_back(value_proto("again", kFloat, {"N", ""}));
  m.nodes.push_back(node_proto("Relu", {"z"}, {"again"}));
  return m;
}

TEST(OnnxImport, NamesCarryOn) {
  const Graph g = imported_graph(small_model());
  EXPECT_EQ(g.name(), "graph");
  EXPECT_EQ(g.tensor(g.inputs().at(0)).name, "x");
  ASSERT_EQ(g.nodes().size(), 2);
  EXPECT_EQ(g.nodes()[0].name, "block/add");
  EXPECT_EQ(g.nodes()[1].name, "y");
  ASSERT_EQ(g.outputs().size(), 1);
  EXPECT_EQ(g.outputs()[0].first, "y");
  EXPECT_THAT(g.dim_names(), ElementsAre("N"));
}

TEST(OnnxImport, ExtentsAreNumbersNamesOrOpen) {
  EXPECT_THAT(input_dims(imported_graph(two_inputs()), 0), ElementsAre("N", "3"));
  EXPECT_THAT(input_dims(imported_graph(two_inputs()), 1), ElementsAre("N", "z?1"));
}

TEST(OnnxImport, NumbersReplaceNames) {
  const Graph g = imported_graph(two_inputs(), {{"x", {5, 3}}});
  EXPECT_THAT(input_dims(g, 0), ElementsAre("5", "3"));
  EXPECT_THAT(input_dims(g, 1), ElementsAre("5", "z?1"));
  expect_import_fault(two_inputs(), "input 'x' has extents [5,4], wanted [N,3]", {{"x", {5, 4}}});
  expect_import_fault(two_inputs(), "input 'x' has extents [5], wanted [N,3]", {{"x", {5}}});
  expect_import_fault(two_inputs(), "input 'x' has extents [-5,3], wanted [N,3]", {{"x", {-5, 3}}});
  expect_import_fault(two_inputs(), "dim 'N' of input 'z' is 4, elsewhere it is 5",
                      {{"x", {5, 3}}, {"z", {4, 1}}});
  expect_import_fault(two_inputs(), "no input 'xx'; did you mean 'x'?", {{"xx", {5, 3}}});
}

TEST(OnnxImport, InputsWithoutShapeNeedOne) {
  ModelProto m = small_model();
  m.inputs = {shapeless_proto("x", kFloat)};
  TW_EXPECT_ERROR(NeedsSizes, "input 'x' has no shape in the model; give its extents",
                  [&] { imported_graph(m); });
  EXPECT_THAT(input_dims(imported_graph(m, {{"x", {2, 3}}}), 0), ElementsAre("2", "3"));
}

TEST(OnnxImport, ListsAllOperatorsThatWeLack) {
  ModelProto m = small_model();
  m.opsets.emplace_back("com.example", 2);
  m.nodes.push_back(node_proto("Nope", {"x"}, {"a"}, "first"));
  m.nodes.push_back(node_proto("Nope", {"x"}, {"b"}, "second"));
  m.nodes.push_back(node_proto("Relu", {"x"}, {"c"}, "", "com.example"));
  m.nodes.push_back(node_proto("Relu", {"x"}, {"d"}, "", "com.other"));
  expect_import_fault(
      m,
      "operators that are not supported: Nope (opset 15, node 'first', 2 nodes); "
      "Relu of domain 'com.example' (opset 2, node 'c'); Relu of domain 'com.other' (its "
      "domain has no opset in the model, node 'd')");
}

TEST(OnnxImport, OpsetsHaveARange) {
  ModelProto m = small_model();
  m.opsets = {{"ai.onnx", 15}, {"ai.onnx.ml", 3}};
  EXPECT_EQ(imported_graph(m).nodes().size(), 2);
  m.opsets = {{"", 1000}};
  expect_import_fault(m, "Add (opset 1000, wanted 7 to ");
}

TEST(OnnxImport, ValuesComeBeforeTheirUse) {
  ModelProto m = small_model();
  std::swap(m.nodes[0], m.nodes[1]);
  expect_import_fault(
      m, "Relu 'y' uses 'sum' before Add 'block/add' makes it; nodes must be in an order");
  m = small_model();
  m.nodes[0] = node_proto("Add", {"x", "ww"}, {"sum"});
  expect_import_fault(m, "Add 'sum' uses 'ww', which nothing makes; did you mean 'w'?");
  m = small_model();
  m.nodes[1] = node_proto("Relu", {"y"}, {"y"});
  expect_import_fault(m, "Relu 'y' uses 'y' before Relu 'y' makes it");
  m = small_model();
  m.outputs[0] = value_proto("yy", kFloat, {"N"});
  expect_import_fault(m, "the list of outputs uses 'yy', which nothing makes");
}

TEST(OnnxImport, ValuesAreMadeOnce) {
  for (const char* name : {"x", "w", "sum"}) {
    ModelProto m = small_model();
    m.nodes[1] = node_proto("Relu", {"sum"}, {name});
    expect_import_fault(m, fmt::format("Relu '{0}' makes '{0}', which there is already", name));
  }
}

TEST(OnnxImport, TypesThatWeLackAreErrorsWhenUsed) {
  ModelProto m = small_model();
  m.initializers.push_back(tensor_proto("words", kString, {1}));
  EXPECT_EQ(imported_graph(m).nodes().size(), 2);
  m.nodes[0] = node_proto("Add", {"x", "words"}, {"sum"});
  expect_import_fault(m, "Add 'sum': tensor 'words' has elements of type string, which we lack");
  m = small_model();
  m.inputs.push_back(value_proto("t", kString, {"N"}));
  expect_import_fault(m, "input 't' has elements of type string, which we lack");
  m = small_model();
  m.inputs.push_back(Wire().text(1, "t").message(2, Wire().text(4, "")));
  expect_import_fault(m, "input 't' is a sequence");
}

TEST(OnnxImport, ErrorsOfOperatorsNameTheNode) {
  ModelProto m = small_model();
  m.initializers = {float_tensor("w", {4}, {1, 2, 3, 4})};
  expect_import_fault(m, "Add 'block/add': block/add broadcasts extents 3 and 4");
  m = small_model();
  m.nodes[1] = node_proto("Relu", {""}, {"y"});
  expect_import_fault(m, "Relu 'y': input 0 is missing");
}

TEST(OnnxImport, TypesOfInputsAgree) {
  ModelProto m = small_model();
  m.initializers = {tensor_proto("w", kInt64, {3}).numbers(7, {1, 2, 3})};
  expect_import_fault(m, "Add 'block/add': input 1, 'w', is i64, wanted f32 as input 0");
}

TEST(OnnxImport, OutputsMayBeInputsAndConstants) {
  ModelProto m = small_model();
  m.outputs = {value_proto("x", kFloat, {"N", "3"}), value_proto("w", kFloat, {"3"})};
  const Graph g = imported_graph(m);
  EXPECT_EQ(g.outputs().size(), 2);
  EXPECT_EQ(g.outputs()[0].second, g.inputs()[0]);
}

// ---- what handlers ask

/// A context over a node with attributes, and these inputs.
struct Asked {
  Graph g{"asked"};
  Node node;
  Context with(std::vector<TensorId> inputs) { return {g, node, 15, std::move(inputs)}; }
};

Attribute integer_attribute(int64_t v) {
  Attribute a;
  a.kind = Attribute::Kind::integer;
  a.integers = {v};
  return a;
}

TEST(OnnxContext, AttributesHaveKinds) {
  Asked a;
  a.node = {.op = "Op", .domain = "", .name = "n", .inputs = {}, .outputs = {}, .attributes = {}};
  a.node.attributes["axis"] = integer_attribute(-2);
  const Context c = a.with({});
  EXPECT_EQ(c.integer("axis", 1), -2);
  EXPECT_EQ(c.integer("other", 1), 1);
  EXPECT_TRUE(c.has_attribute("axis"));
  TW_EXPECT_ERROR(UserError, "Op 'n': attribute 'axis' is an integer, wanted a float",
                  [&] { c.real("axis", 0); });
  TW_EXPECT_ERROR(UserError, "Op 'n': attribute 'value' is missing", [&] { c.tensor("value"); });
}

TEST(OnnxContext, FollowsIntegers) {
  Asked a;
  const Expr n = a.g.dim("N");
  const TensorId x = a.g.input("x", i64, {n});
  const TensorId sizes = a.g.shape_value("sizes", i64, {n, 3});
  Tensor two = host_tensor(i64, {1});
  set(two, 0, 2);
  const TensorId known = a.g.constant("two", two);
  const TensorId sum = pointwise(a.g, "sum", std::vector{x, known}, [](std::span<const Term> t) {
    return op(Opcode::add, t[0], t[1]);
  });
  const Context c = a.with({sizes, known, sum, x, -1});
  EXPECT_EQ(a.g.text(c.contents(0).at(0)), "N");
  EXPECT_THAT(c.numbers(1), ElementsAre(2));
  EXPECT_THAT(c.values(1), ElementsAre(2));
  TW_EXPECT_ERROR(NeedsSizes, "is N, which the sizes of inputs decide", [&] { c.numbers(0); });
  TW_EXPECT_ERROR(UserError, "depends on data", [&] { c.numbers(2); });
  TW_EXPECT_ERROR(UserError, "input 3, 'x', is no constant", [&] { c.values(3); });
  TW_EXPECT_ERROR(UserError, "input 4 is missing", [&] { c.in(4); });
  TW_EXPECT_ERROR(UserError, "input 0, 'sizes', is i64, wanted f32, f64", [&] {
    c.wants(0, std::vector{f32, f64});
  });
}

TEST(OnnxContext, ComputesWhatConstantsDecide) {
  Asked a;
  Tensor scale = host_tensor(f32, {2});
  set(scale, 0, 1.5);
  set(scale, 1, 2);
  const Expr n = a.g.dim("N");
  const auto scaled = [&](TensorId sizes) {
    return pointwise(
        a.g, "scaled", std::vector{sizes, a.g.constant("scale", scale)},
        [](std::span<const Term> t) { return cast(op(Opcode::mul, cast(t[0], f32), t[1]), i64); });
  };
  const TensorId fixed = scaled(a.g.shape_value("fixed", i64, {10, 7}));
  const TensorId open = scaled(a.g.shape_value("open", i64, {n, 7}));
  const Context c = a.with({fixed, open});
  EXPECT_THAT(c.numbers(0), ElementsAre(15, 14));
  EXPECT_THAT(c.values(0), ElementsAre(15, 14));
  TW_EXPECT_ERROR(NeedsSizes, "depends on the sizes of inputs", [&] { c.contents(1); });
  TW_EXPECT_ERROR(NeedsSizes, "depends on the sizes of inputs", [&] { c.values(1); });
}

}  // namespace
}  // namespace tw::graph::onnx
