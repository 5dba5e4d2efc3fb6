#include <nlohmann/json.hpp>

#include "tests/cli/command.h"
#include "tests/support/onnx_writer.h"

namespace tw {
namespace {

/// With the cache that all tests share: of one of its own the kernels would be compiled each time.
Ended conformance(const std::string& words) {
  return shell("'" TW_COMMAND "' conformance " + words + " 2>&1");
}

/// Tests of onnx 1.12, from libonnx-testdata.
const std::string kNodeTests = "/usr/share/libonnx-testdata/data/node";

/// Of each family the operators that can go wrong in most ways; all of them take half a minute when
/// nothing is cached.
const char* const kSample[] = {"Add",      "Atan",          "AveragePool",  "BatchNormalization",
                               "BitShift", "Cast",          "Clip",         "Concat",
                               "Conv",     "ConvTranspose", "DepthToSpace", "Dropout",
                               "Einsum",   "Gather",        "GatherND",     "Gemm",
                               "Hardmax",  "IsInf",         "LRN",          "MatMul",
                               "MaxPool",  "Mod",           "OneHot",       "Pad",
                               "Pow",      "Range",         "ReduceMax",    "ReduceL2",
                               "Resize",   "Slice",         "Softmax",      "Split",
                               "Tile",     "Transpose",     "Trilu",        "MatMulInteger",
                               "Expand"};

TEST(Conformance, SampleOfOperatorsPasses) {
  std::string words = kNodeTests;
  for (const char* op : kSample) words += std::string(" --op ") + op;
  const Ended said = conformance(words);
  EXPECT_EQ(said.code, 0) << said.out;
  EXPECT_NE(said.out.find(" tests pass"), std::string::npos) << said.out;
  for (const char* op : kSample)
    EXPECT_NE(said.out.find(std::string("\n") + op + " "), std::string::npos)
        << op << " has no test in " << kNodeTests;
}

class ConformanceCommand : public Command {
 protected:
  /// A test of y = Relu(x + [1, -2, 0.5]).
  void write_test() const {
    std::filesystem::create_directories(folder_ + "/all/relu/test_data_set_0");
    write("all/relu/model.onnx", test::small_model().bytes());
  }
  void write_data(const std::vector<float>& y) const {
    const std::string data = "all/relu/test_data_set_0/";
    write(data + "input_0.pb", test::float_tensor("x", {1, 3}, {1, 1, 1}).bytes());
    write(data + "output_0.pb", test::float_tensor("y", {1, 3}, y).bytes());
  }
};

TEST_F(ConformanceCommand, ComparesOutputs) {
  write_test();
  expect("conformance all", 0, "refused relu: cannot read 'all/relu/test_data_set_0/input_0.pb'");
  std::filesystem::remove(folder_ + "/all/relu/test_data_set_0");
  expect("conformance all", 0, "0 of 1 tests pass (0.0 %); 0 wrong, 1 refused");
  std::filesystem::create_directory(folder_ + "/all/relu/test_data_set_0");
  write_data({2, 0, 1.5});
  expect("conformance all", 0, "1 of 1 tests pass");
  write_data({2, 0, 1.51});
  expect("conformance all", 1, "wrong relu: output 'y' has 1.5 at element 2, wanted 1.5");
}

TEST_F(ConformanceCommand, RefusesOperatorsWithoutATest) {
  write_test();
  write_data({2, 0, 1.5});
  expect("conformance all --op Relu --op Relo", 2, "--op Relo is in no test; wanted the name");
}

TEST_F(ConformanceCommand, PrintsOnlyJsonOnStandardOutputWhenItIsAsked) {
  write_test();
  write_data({2, 0, 1.25});
  const Ended e = call("conformance all --json", "2>errors");
  EXPECT_EQ(e.code, 1);
  EXPECT_EQ(nlohmann::json::parse(e.out)["verdict"], "wrong");
  EXPECT_NE(read("errors").find("0 of 1 tests pass"), std::string::npos);
}

TEST(Conformance, SaysWhatAFolderMustHave) {
  const Ended said = conformance("/nowhere");
  EXPECT_EQ(said.code, 2);
  EXPECT_NE(said.out.find("there are no tests in '/nowhere'"), std::string::npos) << said.out;
}

}  // namespace
}  // namespace tw
