#include <filesystem>
#include <gmock/gmock.h>
#include <set>
#include <sys/stat.h>

#include "tw/graph/onnx/model.h"

#include "tests/support/expect_error.h"
#include "tests/support/onnx_writer.h"

namespace tw::graph::onnx {
namespace {

using namespace tw::test;
using testing::ElementsAre;

/// The tensor of a .pb file with these bytes.
Tensor read(const Wire& t) {
  const ModelFolder folder;
  return read_tensor(folder.write("t.pb", t.bytes()));
}

Model read(const ModelProto& m) {
  const ModelFolder folder;
  return read_model(folder.write(m));
}

void expect_fault(const Wire& t, const std::string& part) {
  TW_EXPECT_ERROR(UserError, part, [&] { read(t); });
}

void expect_fault(const ModelProto& m, const std::string& part) {
  TW_EXPECT_ERROR(UserError, part, [&] { read(m); });
}

std::string raw_of(std::vector<int> bytes) { return {bytes.begin(), bytes.end()}; }

/// A tensor of two elements: as bytes, and as the numbers of a field of TensorProto.
struct Form {
  int type;
  DType dtype;
  std::string raw;
  int field;
  std::vector<int64_t> numbers;
  std::vector<double> values;
};

std::vector<Form> integer_forms() {
  return {
      {2, u8, raw_of({1, 255}), 5, {1, 255}, {1, 255}},
      {3, i8, raw_of({1, 255}), 5, {1, -1}, {1, -1}},
      {4, u16, raw_of({1, 0, 255, 255}), 5, {1, 65535}, {1, 65535}},
      {5, i16, raw_of({1, 0, 254, 255}), 5, {1, -2}, {1, -2}},
      {6, i32, raw_of({1, 0, 0, 0, 254, 255, 255, 255}), 5, {1, -2}, {1, -2}},
      {7,
       i64,
       raw_of({1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0}),
       7,
       {1, 1ll << 32},
       {1, 0x1p32}},
      {9, b1, raw_of({1, 0}), 5, {1, 0}, {1, 0}},
      {12, u32, raw_of({1, 0, 0, 0, 254, 255, 255, 255}), 11, {1, 4294967294}, {1, 4294967294}},
      {13,
       u64,
       raw_of({1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0}),
       11,
       {1, 1ll << 32},
       {1, 0x1p32}},
      {21, u4, raw_of({0xf1}), 5, {0xf1}, {1, 15}},
      {22, i4, raw_of({0xf1}), 5, {0xf1}, {1, -1}},
      {25, u2, raw_of({0xd}), 5, {0xd}, {1, 3}},
      {26, i2, raw_of({0xd}), 5, {0xd}, {1, -1}},
  };
}

std::vector<Form> float_forms() {
  return {
      {10, f16, raw_of({0, 0x3c, 0, 0xc0}), 5, {0x3c00, 0xc000}, {1, -2}},
      {16, bf16, raw_of({0x80, 0x3f, 0, 0xc0}), 5, {0x3f80, 0xc000}, {1, -2}},
      {17, e4m3, raw_of({0x38, 0xc0}), 5, {0x38, 0xc0}, {1, -2}},
      {19, e5m2, raw_of({0x3c, 0xc0}), 5, {0x3c, 0xc0}, {1, -2}},
      {23, e2m1, raw_of({0xc2}), 5, {0xc2}, {1, -2}},
      {24, e8m0, raw_of({127, 128}), 5, {127, 128}, {1, 2}},
      {27, e2m3, raw_of({0x08, 0x0c}), 5, {0x08, 0x30}, {1, -2}},
      {28, e3m2, raw_of({0x0c, 0x0c}), 5, {0x0c, 0x30}, {1, -2}},
  };
}

TEST(OnnxTensor, ReadsEveryType) {
  std::vector<Form> forms = integer_forms();
  for (const Form& f : float_forms()) forms.push_back(f);
  for (const Form& f : forms) {
    SCOPED_TRACE(f.type);
    const Tensor raw = read(raw_tensor("t", f.type, {2}, f.raw));
    const Tensor listed = read(tensor_proto("t", f.type, {2}).numbers(f.field, f.numbers));
    EXPECT_EQ(raw.dtype(), f.dtype);
    EXPECT_EQ(listed.dtype(), f.dtype);
    EXPECT_EQ(to_doubles(raw), f.values);
    EXPECT_EQ(to_doubles(listed), f.values);
  }
  EXPECT_EQ(to_doubles(read(float_tensor("t", {2}, {1, -2}))), (std::vector<double>{1, -2}));
  EXPECT_EQ(to_doubles(read(tensor_proto("t", 11, {2}).doubles(10, {1, -2}))),
            (std::vector<double>{1, -2}));
  EXPECT_EQ(to_doubles(read(raw_tensor("t", kFloat, {}, raw_of({0, 0, 0x80, 0x3f})))),
            (std::vector<double>{1}));
  EXPECT_EQ(read(tensor_proto("t", kFloat, {0, 7})).dims(), (std::vector<int64_t>{0, 7}));
}

TEST(OnnxTensor, UnpacksRowsThatEndInsideAByte) {
  const Tensor t = read(raw_tensor("t", 21, {2, 3}, raw_of({0x21, 0x43, 0x65})));
  EXPECT_EQ(to_doubles(t), (std::vector<double>{1, 2, 3, 4, 5, 6}));
  const Tensor three = read(raw_tensor("t", 21, {1, 3}, raw_of({0x21, 0x03})));
  EXPECT_EQ(to_doubles(three), (std::vector<double>{1, 2, 3}));
}

TEST(OnnxTensor, TruthsAreZeroOrOne) {
  const Tensor t = read(raw_tensor("t", 9, {3}, raw_of({0, 7, 255})));
  EXPECT_EQ(t.data<uint8_t>()[1], 1);
  EXPECT_EQ(t.data<uint8_t>()[2], 1);
}

TEST(OnnxTensor, RefusesTypesThatWeLack) {
  for (const auto& [type, name] : std::vector<std::pair<int, const char*>>{{8, "string"},
                                                                           {14, "complex64"},
                                                                           {15, "complex128"},
                                                                           {18, "float8e4m3fnuz"},
                                                                           {20, "float8e5m2fnuz"},
                                                                           {0, "undefined"},
                                                                           {29, "29"},
                                                                           {-1, "-1"}})
    expect_fault(tensor_proto("t", type, {1}),
                 fmt::format("tensor 't' has elements of type {}, which we lack", name));
}

TEST(OnnxTensor, NamesWhatDoesNotFit) {
  expect_fault(float_tensor("t", {3}, {1, 2}),
               "tensor 't' has 8 bytes of elements, wanted 12 for extents [3]");
  expect_fault(raw_tensor("t", kFloat, {1}, "12345"), "has 5 bytes of elements, wanted 4");
  expect_fault(raw_tensor("t", 21, {3}, "1"), "has 1 bytes of elements, wanted 2");
  expect_fault(tensor_proto("t", kFloat, {2}), "has 0 bytes of elements, wanted 8");
  expect_fault(tensor_proto("t", kFloat, {-1}), "tensor 't' has extents [-1], wanted none below 0");
  expect_fault(tensor_proto("t", kFloat, {1ll << 32, 1ll << 31}),
               "whose product is not below 2^63");
  expect_fault(tensor_proto("t", kFloat, {0, 1ll << 62, 4}), "whose product is not below 2^63");
  expect_fault(tensor_proto("t", kFloat, {1ll << 61}), "too many elements");
  expect_fault(tensor_proto("t", kFloat, std::vector<int64_t>(65, 1)), "has 65 axes");
  expect_fault(float_tensor("t", {1}, {1}).text(9, "1234"), "gives its elements twice");
  expect_fault(tensor_proto("t", 3, {1}).numbers(5, {300}), "holds 300 at 0, which is too large");
  expect_fault(tensor_proto("t", 12, {1}).numbers(11, {-1}), "too large for its type, uint32");
  expect_fault(tensor_proto("t", kFloat, {1}).message(3, Wire().number(1, 0)), "segments");
  expect_fault(tensor_proto("a\nb", kFloat, {0}), "has the name 'a?b'; wanted UTF-8");
}

TEST(OnnxModel, ReadsASmallModel) {
  const Model m = read(small_model());
  EXPECT_EQ(m.ir_version, 8);
  EXPECT_EQ(m.opsets.at(""), 15);
  ASSERT_EQ(m.inputs.size(), 1);
  EXPECT_EQ(m.inputs[0].name, "x");
  EXPECT_EQ(m.inputs[0].dims, (std::vector<Extent>{"N", int64_t{3}}));
  ASSERT_EQ(m.nodes.size(), 2);
  EXPECT_EQ(m.nodes[0].title(), "Add 'block/add'");
  EXPECT_EQ(m.nodes[1].title(), "Relu 'y'");
  EXPECT_THAT(m.nodes[0].inputs, ElementsAre("x", "w"));
  EXPECT_EQ(to_doubles(m.initializers.at("w")), (std::vector<double>{1, -2, 0.5}));
}

TEST(OnnxModel, InputsThatInitializersGiveAreNone) {
  ModelProto m = small_model();
  m.inputs.push_back(value_proto("w", kFloat, {"3"}));
  EXPECT_EQ(read(m).inputs.size(), 1);
}

TEST(OnnxModel, ReadsAttributes) {
  const auto attribute = [](const char* name, int type) {
    return Wire().text(1, name).number(20, type);
  };
  ModelProto m = small_model();
  m.nodes[0]
      .message(5, attribute("f", 1).real(2, 0.5F))
      .message(5, attribute("i", 2).number(3, -7))
      .message(5, attribute("s", 3).text(4, "same"))
      .message(5, attribute("t", 4).message(5, float_tensor("", {1}, {3})))
      .message(5, attribute("fs", 6).real(7, 1).real(7, 2))
      .message(5, attribute("is", 7).number(8, 3).number(8, -4))
      .message(5, attribute("ss", 8).text(9, "a").text(9, "b"))
      .message(5, attribute("st", 4).message(5, tensor_proto("", kString, {1})))
      .message(5, attribute("g", 5).message(6, Wire().text(2, "body")))
      .message(5, Wire().text(1, "old").number(3, 9));
  const auto all = read(m).nodes[0].attributes;
  EXPECT_THAT(all.at("f").reals, ElementsAre(0.5F));
  EXPECT_THAT(all.at("i").integers, ElementsAre(-7));
  EXPECT_THAT(all.at("s").texts, ElementsAre("same"));
  EXPECT_EQ(get(all.at("t").tensor.value(), 0), 3);
  EXPECT_THAT(all.at("fs").reals, ElementsAre(1, 2));
  EXPECT_THAT(all.at("is").integers, ElementsAre(3, -4));
  EXPECT_THAT(all.at("ss").texts, ElementsAre("a", "b"));
  EXPECT_EQ(all.at("st").refused, "has elements of type string, which we lack");
  EXPECT_EQ(all.at("g").kind, Attribute::Kind::other);
  EXPECT_THAT(all.at("old").integers, ElementsAre(9));
}

TEST(OnnxModel, RefusesWhatItCannotKeep) {
  ModelProto m = small_model();
  m.more_of_graph.message(15, Wire().message(1, tensor_proto("thin", kFloat, {1})));
  expect_fault(m, "model.onnx': sparse initializers, which we lack: 'thin'");
  m = small_model();
  m.more.message(25, Wire().text(1, "Own")).message(25, Wire().text(1, "Other"));
  expect_fault(m, "functions of the model, which we lack: 'Own', 'Other'; inline them");
  m = small_model();
  m.nodes[0].message(5, Wire().text(1, "alpha").text(21, "beta").number(20, 1));
  expect_fault(m, "attribute 'alpha' of Add 'block/add' refers to an attribute of a function");
  m = small_model();
  for (int i = 0; i < 2; ++i) m.nodes[0].message(5, Wire().text(1, "axis").number(3, 1));
  expect_fault(m, "Add 'block/add' has two attributes 'axis'");
  m = small_model();
  m.initializers.push_back(m.initializers[0]);
  expect_fault(m, "two initializers are called 'w'");
  m = small_model();
  m.inputs.push_back(m.inputs[0]);
  expect_fault(m, "two inputs are called 'x'");
  m = small_model();
  m.outputs = {};
  expect_fault(m, "the graph has no outputs");
  m = small_model();
  m.opsets = {{"", 15}, {"ai.onnx", 13}};
  expect_fault(m, "two opsets of domain ''");
}

TEST(OnnxModel, RefusesFilesThatAreNone) {
  const ModelFolder folder;
  const std::string whole = small_model().bytes();
  TW_EXPECT_ERROR(UserError, "cannot read", [&] { read_model(folder.path("none.onnx")); });
  TW_EXPECT_ERROR(UserError, "is no file", [&] { read_model(folder.path("")); });
  TW_EXPECT_ERROR(UserError, "it has no graph", [&] { read_model(folder.write("e.onnx", "")); });
  TW_EXPECT_ERROR(UserError, "is no ONNX model, or a part of one", [&] {
    read_model(folder.write("cut.onnx", whole.substr(0, whole.size() - 20)));
  });
  TW_EXPECT_ERROR(UserError, "is no ONNX model, or a part of one",
                  [&] { read_model(folder.write("text.onnx", "no model at all")); });
  ASSERT_EQ(mkfifo(folder.path("pipe.onnx").c_str(), 0600), 0);
  TW_EXPECT_ERROR(UserError, "is no file", [&] { read_model(folder.path("pipe.onnx")); });
  std::filesystem::resize_file(folder.write("big.onnx", whole), 1ull << 31);
  TW_EXPECT_ERROR(UserError, "has 2147483648 bytes, wanted fewer than 2 GiB",
                  [&] { read_model(folder.path("big.onnx")); });
}

TEST(OnnxModel, MagikaIsWhatItIs) {
  std::string path;
  for (const auto& python : std::filesystem::directory_iterator(TW_TEST_DIR "/../../.venv/lib"))
    path = python.path() / "site-packages/magika/models/standard_v3_3/model.onnx";
  const Model m = read_model(path);
  std::set<std::string> ops;
  for (const Node& n : m.nodes) ops.insert(n.op);
  EXPECT_EQ(ops.size(), 24);
  EXPECT_EQ(m.initializers.size(), 36);
  EXPECT_EQ(m.opsets.at(""), 15);
  ASSERT_EQ(m.inputs.size(), 1);
  EXPECT_EQ(m.inputs[0].name, "bytes");
  EXPECT_EQ(m.inputs[0].dtype, i32);
  EXPECT_EQ(m.inputs[0].dims.at(1), Extent(int64_t{2048}));
  ASSERT_EQ(m.outputs.size(), 1);
  EXPECT_EQ(m.outputs[0].name, "target_label");
}

}  // namespace
}  // namespace tw::graph::onnx
