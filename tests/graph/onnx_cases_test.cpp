#include <gmock/gmock.h>

#include "tw/graph/evaluate.h"
#include "tw/graph/onnx/importer.h"
#include "tw/graph/session.h"

#include "tests/support/expect_error.h"
#include "tests/support/onnx_writer.h"

// Rows of tests/cases/README.md that are about ONNX files.
namespace tw::graph::onnx {
namespace {

using namespace tw::test;
using Values = std::vector<double>;
using Texts = std::vector<std::string>;

Wire integer_attribute(const char* name, int64_t v) {
  return Wire().text(1, name).number(3, v).number(20, 2);
}

Wire text_attribute(const char* name, const char* v) {
  return Wire().text(1, name).text(4, v).number(20, 3);
}

Wire integer_tensor(const std::string& name, const std::vector<int64_t>& all) {
  return tensor_proto(name, kInt64, {std::ssize(all)}).numbers(7, all);
}

Session loaded(const ModelProto& m) {
  const ModelFolder folder;
  return Session::load(folder.write(m));
}

Tensor whole_numbers(const std::vector<int64_t>& dims) {
  Tensor t = host_tensor(f32, dims);
  for (int64_t i = 0; i < t.count(); ++i) set(t, i, static_cast<double>(i * 5 % 11) - 4);
  return t;
}

TEST(OnnxCases, ONNX_01) {
  ModelProto m;
  m.inputs = {value_proto("a", kFloat, {"30"}), value_proto("b", kFloat, {"1"})};
  m.outputs = {value_proto("y", kFloat, {"30"})};
  m.nodes = {node_proto("Min", {"a", "b"}, {"y"})};
  const Tensor a = whole_numbers({30}), b = host_tensor(f32, {1});
  set(b, 0, 1.5);
  const Tensor y = loaded(m).run({{"a", a}, {"b", b}}).at(0).tensor;
  ASSERT_EQ(y.dims(), std::vector<int64_t>{30});
  for (int64_t i = 0; i < 30; ++i) EXPECT_EQ(get(y, i), std::min(get(a, i), 1.5)) << i;
}

ModelProto reshape_model() {
  ModelProto m;
  m.inputs = {value_proto("x", kFloat, {"2", "3", "4"})};
  m.outputs = {value_proto("y", kFloat, {})};
  m.nodes = {node_proto("Reshape", {"x", "to"}, {"y"}, "block/reshape")};
  return m;
}

/// A shape that data decide is refused with the node's name; as a constant it gives each shape.
TEST(OnnxCases, ONNX_02) {
  ModelProto by_input = reshape_model();
  by_input.inputs.push_back(value_proto("to", kInt64, {"2"}));
  const Tensor x = whole_numbers({2, 3, 4}), to = host_tensor(i64, {2});
  set(to, 0, 4);
  set(to, 1, -1);
  TW_EXPECT_ERROR(UserError, "Reshape 'block/reshape'", [&] {
    loaded(by_input).run({{"x", x}, {"to", to}});
  });
  using Dims = std::vector<int64_t>;
  for (const auto& [wanted, dims] :
       std::vector<std::pair<Dims, Dims>>{{{4, -1}, {4, 6}}, {{0, 12}, {2, 12}}, {{24}, {24}}}) {
    ModelProto m = reshape_model();
    m.initializers = {integer_tensor("to", wanted)};
    const Tensor y = loaded(m).run({{"x", x}}).at(0).tensor;
    EXPECT_EQ(y.dims(), dims);
    EXPECT_EQ(to_doubles(y), to_doubles(x));
  }
}

TEST(OnnxCases, ONNX_03) {
  const Tensor x = whole_numbers({3, 2, 2});
  for (const bool empty : {false, true}) {
    ModelProto m;
    m.inputs = {value_proto("x", kFloat, {"3", "2", "2"})};
    m.outputs = {value_proto("y", kFloat, {"3", "2", "2"})};
    m.nodes = {node_proto("ReduceSum", empty ? Texts{"x", "axes"} : Texts{"x"}, {"y"})};
    if (empty) m.initializers = {tensor_proto("axes", kInt64, {0})};
    m.nodes[0].message(5, integer_attribute("noop_with_empty_axes", 1));
    const Tensor y = loaded(m).run({{"x", x}}).at(0).tensor;
    EXPECT_EQ(y.dims(), x.dims());
    EXPECT_EQ(to_doubles(y), to_doubles(x));
  }
}

/// y = Conv(Resize(x) to twice its height and width); the sizes come through Shape, Slice, Mul and
/// Concat, which are constants where `extents` are numbers.
ModelProto resized_convolution(const Texts& extents) {
  ModelProto m;
  m.inputs = {value_proto("x", kFloat, extents)};
  m.outputs = {value_proto("y", kFloat, {})};
  m.initializers = {integer_tensor("zero", {0}),
                    integer_tensor("two", {2}),
                    integer_tensor("four", {4}),
                    integer_tensor("twice", {2, 2}),
                    float_tensor("w", {3, 2, 2, 2}, std::vector<float>(24, 2)),
                    float_tensor("b", {3}, {1, -2, 3})};
  m.nodes = {node_proto("Shape", {"x"}, {"shape"}),
             node_proto("Slice", {"shape", "zero", "two"}, {"front"}),
             node_proto("Slice", {"shape", "two", "four"}, {"back"}),
             node_proto("Mul", {"back", "twice"}, {"larger"}),
             node_proto("Concat", {"front", "larger"}, {"sizes"}),
             node_proto("Resize", {"x", "", "", "sizes"}, {"r"}),
             node_proto("Conv", {"r", "w", "b"}, {"y"})};
  m.nodes[4].message(5, integer_attribute("axis", 0));
  m.nodes[5].message(5, text_attribute("coordinate_transformation_mode", "asymmetric"));
  m.nodes[5].message(5, text_attribute("nearest_mode", "floor"));
  return m;
}

TEST(OnnxCases, ONNX_04) {
  const ModelFolder folder;
  const ModelProto folded = resized_convolution({"1", "2", "5", "4"});
  const Tensor x = whole_numbers({1, 2, 5, 4});
  const Tensor want = evaluate(import(read_model(folder.write(folded))), {x.view()}).at(0);
  ASSERT_EQ(want.dims(), (std::vector<int64_t>{1, 3, 9, 7}));
  for (int load = 0; load < 10; ++load) {
    const bool is_folded = load % 2 == 0;
    const Session s = loaded(is_folded ? folded : resized_convolution({"N", "2", "H", "W"}));
    const Tensor y = s.run({{"x", x}}).at(0).tensor;
    EXPECT_EQ(y.dims(), want.dims());
    EXPECT_EQ(to_doubles(y), to_doubles(want)) << "folded: " << is_folded;
  }
}

ModelProto split_model(const Texts& inputs, const Texts& outputs) {
  ModelProto m;
  m.opsets = {{"", 18}};
  m.inputs = {value_proto("x", kFloat, {"7"})};
  m.nodes = {node_proto("Split", inputs, outputs, "block/split")};
  for (const std::string& y : outputs) m.outputs.push_back(value_proto(y, kFloat, {}));
  return m;
}

std::vector<Values> parts_of(const ModelProto& m) {
  std::vector<Values> parts;
  for (const NamedTensor& y : loaded(m).run({{"x", whole_numbers({7})}}))
    parts.push_back(to_doubles(y.tensor));
  return parts;
}

/// As for Reshape: sizes that data decide are refused.
TEST(OnnxCases, ONNX_05) {
  const Values x = to_doubles(whole_numbers({7}));
  const auto part = [&](int64_t from, int64_t to) {
    return Values(x.begin() + from, x.begin() + to);
  };
  ModelProto uneven = split_model({"x"}, {"a", "b", "c"});
  uneven.nodes[0].message(5, integer_attribute("num_outputs", 3));
  EXPECT_EQ(parts_of(uneven), (std::vector<Values>{part(0, 3), part(3, 6), part(6, 7)}));
  ModelProto constant = split_model({"x", "sizes"}, {"a", "b"});
  ModelProto by_input = constant;
  constant.initializers = {integer_tensor("sizes", {2, 5})};
  EXPECT_EQ(parts_of(constant), (std::vector<Values>{part(0, 2), part(2, 7)}));
  by_input.inputs.push_back(value_proto("sizes", kInt64, {"2"}));
  const Tensor sizes = host_tensor(i64, {2});
  set(sizes, 0, 2);
  set(sizes, 1, 5);
  TW_EXPECT_ERROR(UserError, "Split 'block/split'", [&] {
    loaded(by_input).run({{"x", whole_numbers({7})}, {"sizes", sizes}});
  });
}

TEST(OnnxCases, ONNX_06) {
  ModelProto m = small_model();
  m.inputs.push_back(value_proto("unused", kFloat, {"M"}));
  const Session s = loaded(m);
  const Tensor x = whole_numbers({2, 3});
  const Values want = to_doubles(s.run({{"x", x}, {"unused", whole_numbers({5})}}).at(0).tensor);
  for (const int64_t n : {0, 1, 2}) {
    EXPECT_EQ(s.plan({{"x", {2, 3}}, {"unused", {n}}}).plan, s.general_plan());
    const Tensor y = s.run({{"x", x}, {"unused", whole_numbers({n})}}).at(0).tensor;
    EXPECT_EQ(to_doubles(y), want);
  }
}

}  // namespace
}  // namespace tw::graph::onnx
