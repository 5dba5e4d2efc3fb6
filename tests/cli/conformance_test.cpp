#include <array>
#include <cstdio>
#include <gtest/gtest.h>
#include <string>
#include <sys/wait.h>

namespace tw {
namespace {

struct Said {
  int code;
  std::string text;
};

Said conformance(const std::string& words) {
  FILE* pipe = popen(("'" TW_COMMAND "' conformance " + words + " 2>&1").c_str(), "r");
  std::string text;
  std::array<char, 4096> buffer;
  for (size_t n; (n = fread(buffer.data(), 1, buffer.size(), pipe)) > 0;)
    text.append(buffer.data(), n);
  const int status = pclose(pipe);
  return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, text};
}

/// Tests of onnx 1.12, from libonnx-testdata.
const std::string kNodeTests = "/usr/share/libonnx-testdata/data/node";

/// Of each family the operators that can go wrong in most ways; all of them take half a minute when
/// nothing is cached.
const char* const kSample[] = {"Add",       "Atan",          "AveragePool",   "BatchNormalization",
                               "BitShift",  "Cast",          "Clip",          "Concat",
                               "Conv",      "ConvTranspose", "DepthToSpace",  "Einsum",
                               "Gather",    "GatherND",      "Gemm",          "Hardmax",
                               "IsInf",     "LRN",           "MatMul",        "MaxPool",
                               "Mod",       "OneHot",        "Pad",           "Pow",
                               "Range",     "ReduceMax",     "ReduceL2",      "Resize",
                               "Slice",     "Softmax",       "Split",         "Tile",
                               "Transpose", "Trilu",         "MatMulInteger", "Expand"};

TEST(Conformance, SampleOfOperatorsPasses) {
  std::string words = kNodeTests;
  for (const char* op : kSample) words += std::string(" --op ") + op;
  const Said said = conformance(words);
  EXPECT_EQ(said.code, 0) << said.text;
  EXPECT_NE(said.text.find(" tests pass"), std::string::npos) << said.text;
  for (const char* op : kSample)
    EXPECT_NE(said.text.find(std::string("\n") + op + " "), std::string::npos)
        << op << " has no test in " << kNodeTests;
}

TEST(Conformance, SaysWhatAFolderMustHave) {
  const Said said = conformance("/nowhere");
  EXPECT_EQ(said.code, 2);
  EXPECT_NE(said.text.find("there are no tests in '/nowhere'"), std::string::npos) << said.text;
}

}  // namespace
}  // namespace tw
