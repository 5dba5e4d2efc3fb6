#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <gtest/gtest.h>
#include <random>
#include <sys/resource.h>

#include "tw/base/error.h"
#include "tw/graph/onnx/importer.h"

#include "tests/support/onnx_writer.h"

// Damaged files: whatever bytes a model has, reading and importing it ends soon, in a graph or in a
// UserError with a text. TW_MUTANTS says how many are tried.
namespace tw::graph::onnx {
namespace {

using namespace tw::test;

ModelProto shape_model() {
  ModelProto m;
  m.inputs = {value_proto("x", kFloat, {"N", "4", ""})};
  m.outputs = {value_proto("y", kFloat, {"N", "M"}), value_proto("s", kInt64, {"3"})};
  const std::string one_and_rest("\1\0\0\0\0\0\0\0\377\377\377\377\377\377\377\377", 16);
  m.initializers = {raw_tensor("shape", kInt64, {2}, one_and_rest),
                    tensor_proto("ones", kInt64, {2}).numbers(7, {1, 1}),
                    raw_tensor("half", 10, {2}, std::string("\0\74\0\300", 4)),
                    raw_tensor("fours", 21, {3}, "\x21\x03")};
  m.nodes = {node_proto("Shape", {"x"}, {"s"}), node_proto("Reshape", {"x", "shape"}, {"r"}),
             node_proto("Expand", {"r", "ones"}, {"e"}), node_proto("Relu", {"e"}, {"y"}, "last")};
  m.nodes[1].message(5, Wire().text(1, "allowzero").number(3, 0).number(20, 2));
  return m;
}

ModelProto constant_model() {
  ModelProto m = small_model();
  m.opsets.emplace_back("ai.onnx.ml", 3);
  m.nodes.insert(m.nodes.begin(), node_proto("Constant", {}, {"c"}));
  m.nodes[0].message(
      5, Wire().text(1, "value").message(5, float_tensor("", {3}, {1, 2, 3})).number(20, 4));
  m.nodes[1] = node_proto("Add", {"x", "c"}, {"sum"});
  m.initializers.push_back(external_tensor("w2", {2}, "data.bin", "0", "8"));
  m.initializers.push_back(tensor_proto("words", kString, {1}));
  return m;
}

Wire integers_attribute(const char* name, const std::vector<int64_t>& all) {
  Wire a = Wire().text(1, name).number(20, 7);
  for (int64_t v : all) a.number(8, v);
  return a;
}

ModelProto image_model() {
  ModelProto m;
  m.inputs = {value_proto("x", kFloat, {"N", "2", "5", "5"})};
  m.outputs = {value_proto("y", kFloat, {"N", "3"})};
  m.initializers = {float_tensor("w", {2, 2, 3, 3}, std::vector<float>(36, 0.5)),
                    float_tensor("b", {2}, {1, 2}),
                    float_tensor("m", {8, 3}, std::vector<float>(24))};
  m.nodes = {node_proto("Conv", {"x", "w", "b"}, {"c"}), node_proto("MaxPool", {"c"}, {"p"}),
             node_proto("Flatten", {"p"}, {"f"}), node_proto("Gemm", {"f", "m"}, {"g"}),
             node_proto("Softmax", {"g"}, {"y"})};
  m.nodes[0].message(5, integers_attribute("pads", {1, 1, 0, 0}));
  m.nodes[0].message(5, integers_attribute("strides", {1, 1}));
  m.nodes[1].message(5, integers_attribute("kernel_shape", {2, 2}));
  m.nodes[1].message(5, integers_attribute("strides", {2, 2}));
  return m;
}

ModelProto moving_model() {
  ModelProto m;
  const auto list = [](const char* name, const std::vector<int64_t>& all) {
    return tensor_proto(name, kInt64, {std::ssize(all)}).numbers(7, all);
  };
  m.inputs = {value_proto("x", kFloat, {"N", "6", "4"})};
  m.outputs = {value_proto("y", kFloat, {}), value_proto("n", kInt64, {})};
  m.initializers = {list("zero", {0}), list("one", {1}), list("five", {5}), list("two", {2}),
                    list("pads", {0, 1, 0, 0, 1, 0})};
  m.nodes = {node_proto("Slice", {"x", "one", "five", "one", "two"}, {"s"}),
             node_proto("Gather", {"x", "two"}, {"g"}),
             node_proto("Transpose", {"s"}, {"t"}),
             node_proto("Concat", {"t", "t"}, {"c"}),
             node_proto("Pad", {"c", "pads"}, {"p"}),
             node_proto("Unsqueeze", {"p", "zero"}, {"u"}),
             node_proto("ReduceSum", {"u", "one"}, {"r"}),
             node_proto("Squeeze", {"r", "zero"}, {"q"}),
             node_proto("Cast", {"q"}, {"k"}),
             node_proto("ArgMax", {"k"}, {"n"}),
             node_proto("Mul", {"q", "q"}, {"y"})};
  m.nodes[1].message(5, Wire().text(1, "axis").number(3, 1).number(20, 2));
  m.nodes[2].message(5, integers_attribute("perm", {1, 0, 2}));
  m.nodes[3].message(5, Wire().text(1, "axis").number(3, 1).number(20, 2));
  m.nodes[8].message(5, Wire().text(1, "to").number(3, 7).number(20, 2));
  return m;
}

/// Damages a node, tensor or value, so that most of what is around stays whole; the order of them;
/// or bytes of the file.
class Mutator {
 public:
  Mutator(uint64_t seed, const std::vector<ModelProto>& models) : random_(seed), models_(models) {}

  std::string mutant() {
    ModelProto m = any(models_);
    const size_t changes = 1 + below(3);
    for (size_t n = 0; n < changes; ++n) change_parts(m);
    std::string bytes = m.bytes();
    if (below(4) == 0) change_bytes(bytes);
    return bytes;
  }

 private:
  size_t below(size_t n) { return random_() % n; }
  template <class T>
  const T& any(const std::vector<T>& all) {
    return all[below(all.size())];
  }

  static std::vector<Wire>& parts_of(ModelProto& m, size_t kind) {
    std::vector<Wire>* all[] = {&m.nodes, &m.nodes, &m.initializers, &m.inputs, &m.outputs};
    return *all[kind];
  }

  void change_parts(ModelProto& m) {
    const size_t kind = below(5);
    std::vector<Wire>& parts = parts_of(m, kind);
    if (parts.empty()) return;
    const size_t at = below(parts.size());
    switch (below(8)) {
      case 0:
        parts.erase(parts.begin() + static_cast<int64_t>(at));
        return;
      case 1:
        parts.push_back(Wire(parts[at]));
        return;
      case 2:
        std::swap(parts[at], parts[below(parts.size())]);
        return;
      case 3: {
        ModelProto other = any(models_);
        const std::vector<Wire>& others = parts_of(other, kind);
        if (!others.empty()) parts[at] = any(others);
        return;
      }
      case 4:
        m.opsets[0].second = static_cast<int64_t>(below(26));
        return;
      case 5:
      case 6:
      case 7: {
        std::string bytes = parts[at].bytes();
        change_bytes(bytes);
        parts[at] = Wire(bytes);
        return;
      }
    }
  }

  void change_bytes(std::string& bytes) {
    if (bytes.empty()) return;
    const size_t at = below(bytes.size());
    switch (below(9)) {
      case 0:
      case 1:
      case 2:
        bytes[at] = static_cast<char>(bytes[at] ^ (1 << below(8)));
        return;
      case 3:
      case 4:  // a length, or whatever the byte is, a little off
        bytes[at] = static_cast<char>(bytes[at] + static_cast<int>(below(9)) - 4);
        return;
      case 5:
        bytes.resize(at);
        return;
      case 6:  // a large number
        bytes.replace(at, 1, "\xff\xff\xff\xff\xff\xff\xff\xff\x7f");
        return;
      case 7:
        bytes.insert(at, bytes.substr(at, 1 + below(40)));
        return;
      case 8:
        bytes.erase(at, 1 + below(40));
        return;
    }
  }

  std::mt19937_64 random_;
  const std::vector<ModelProto>& models_;
};

/// Megabytes that this process ever had at once.
int64_t peak_megabytes() {
  rusage use;
  getrusage(RUSAGE_SELF, &use);
  return use.ru_maxrss / 1024;
}

/// Whether it became a graph.
bool outcome(const std::string& path) {
  try {
    import(read_model(path));
    return true;
  } catch (const UserError& e) {
    EXPECT_FALSE(e.message().empty());
    EXPECT_EQ(e.message().find('\n'), std::string::npos) << e.message();
  } catch (const std::exception& e) {
    ADD_FAILURE() << "not a UserError: " << e.what();
  }
  return false;
}

int mutant_count() {
  const char* text = std::getenv("TW_MUTANTS");
  return text != nullptr ? std::atoi(text) : 2000;
}

TEST(OnnxMutation, EndsInAGraphOrAnError) {
  const ModelFolder folder;
  folder.write("data.bin", "12345678");
  const std::vector<ModelProto> models = {small_model(), shape_model(), constant_model(),
                                          image_model(), moving_model()};
  for (const ModelProto& m : models) EXPECT_TRUE(outcome(folder.write(m)));
  const int64_t before = peak_megabytes();
  int graphs = 0;
  for (int i = 0; i < mutant_count(); ++i) {
    SCOPED_TRACE(i);
    Mutator mutator(static_cast<uint64_t>(i), models);
    const auto start = std::chrono::steady_clock::now();
    graphs += outcome(folder.write("model.onnx", mutator.mutant()));
    EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(5));
    if (HasFailure()) {
      std::filesystem::copy_file(folder.path("model.onnx"), testing::TempDir() + "mutant.onnx",
                                 std::filesystem::copy_options::overwrite_existing);
      FAIL() << "the file is " << testing::TempDir() << "mutant.onnx";
    }
  }
  EXPECT_GT(graphs, 0);
  EXPECT_LT(graphs, mutant_count());
  EXPECT_LT(peak_megabytes() - before, 256);
}

TEST(OnnxMutation, EveryCutIsAnError) {
  const ModelFolder folder;
  const std::string whole = small_model().bytes();
  int graphs = 0;
  for (size_t n = 0; n < whole.size(); ++n)
    graphs += outcome(folder.write("m.onnx", whole.substr(0, n)));
  EXPECT_EQ(graphs, 0);
}

}  // namespace
}  // namespace tw::graph::onnx
