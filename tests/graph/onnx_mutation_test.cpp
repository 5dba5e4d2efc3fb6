#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <gtest/gtest.h>
#include <random>
#include <sys/resource.h>

#include "tw/base/error.h"
#include "tw/graph/onnx/importer.h"

#include "tests/graph/onnx_writer.h"

// Damaged files: whatever bytes a model has, reading and importing it ends soon, in a graph or in a
// UserError with a text. TW_MUTANTS says how many are tried.
namespace tw::graph::onnx {
namespace {

using namespace tw::test;
using Random = std::mt19937_64;

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

class Mutator {
 public:
  explicit Mutator(uint64_t seed) : random_(seed) {}

  std::string mutant(const std::vector<std::string>& seeds) {
    std::string bytes = seeds[below(seeds.size())];
    for (size_t n = 1 + below(3); n > 0 && !bytes.empty(); --n) change(bytes, seeds);
    return bytes;
  }

 private:
  size_t below(size_t n) { return random_() % n; }

  void change(std::string& bytes, const std::vector<std::string>& seeds) {
    const size_t at = below(bytes.size());
    switch (below(7)) {
      case 0:  // a bit
        bytes[at] = static_cast<char>(bytes[at] ^ (1 << below(8)));
        return;
      case 1:  // a cut
        bytes.resize(at);
        return;
      case 2:  // a length, or whatever the byte is, a little off
        bytes[at] = static_cast<char>(bytes[at] + static_cast<int>(below(9)) - 4);
        return;
      case 3:  // a large number
        bytes.replace(at, 1, "\xff\xff\xff\xff\xff\xff\xff\xff\x7f");
        return;
      case 4:  // a part twice
        bytes.insert(at, bytes.substr(at, 1 + below(40)));
        return;
      case 5:  // a part less
        bytes.erase(at, 1 + below(40));
        return;
      case 6: {  // a part of another model
        const std::string& other = seeds[below(seeds.size())];
        bytes.insert(at, other.substr(below(other.size()), 1 + below(60)));
        return;
      }
    }
  }

  Random random_;
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
  const std::vector<std::string> seeds = {small_model().bytes(), shape_model().bytes(),
                                          constant_model().bytes()};
  for (const std::string& seed : seeds) EXPECT_TRUE(outcome(folder.write("m.onnx", seed)));
  const int64_t before = peak_megabytes();
  int graphs = 0;
  for (int i = 0; i < mutant_count(); ++i) {
    SCOPED_TRACE(i);
    Mutator mutator(static_cast<uint64_t>(i));
    const auto start = std::chrono::steady_clock::now();
    graphs += outcome(folder.write("m.onnx", mutator.mutant(seeds)));
    EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(5));
    if (HasFailure()) {
      std::filesystem::copy_file(folder.path("m.onnx"), testing::TempDir() + "mutant.onnx",
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
