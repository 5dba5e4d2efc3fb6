#include <filesystem>
#include <gmock/gmock.h>
#include <sys/stat.h>

#include "tw/graph/onnx/model.h"

#include "tests/support/expect_error.h"
#include "tests/support/onnx_writer.h"

namespace tw::graph::onnx {
namespace {

namespace fs = std::filesystem;
using namespace tw::test;

/// A folder with a model inside a folder, so that there is an outside.
class OnnxExternal : public testing::Test {
 protected:
  OnnxExternal() {
    fs::create_directories(folder_.path("in/sub"));
    for (const char* name : {"in/data.bin", "in/sub/data.bin", "secret.bin"})
      folder_.write(name, floats_);
  }

  std::vector<double> read(const Wire& tensor) const {
    ModelProto m = small_model();
    m.initializers = {tensor};
    return to_doubles(read_model(folder_.write("in/model.onnx", m.bytes())).initializers.at("w"));
  }

  void expect_external_fault(const Wire& tensor, const std::string& part) const {
    TW_EXPECT_ERROR(UserError, part, [&] { read(tensor); });
  }

  ModelFolder folder_;
  std::string floats_ = [] {
    const float all[] = {1, 2, 3, 4};
    return std::string(reinterpret_cast<const char*>(all), sizeof all);
  }();
};

TEST_F(OnnxExternal, IsMapped) {
  EXPECT_EQ(read(external_tensor("w", {4}, "data.bin")), (std::vector<double>{1, 2, 3, 4}));
  EXPECT_EQ(read(external_tensor("w", {2}, "sub/data.bin", "8", "8")), (std::vector<double>{3, 4}));
  EXPECT_EQ(read(external_tensor("w", {3}, "./data.bin", "4")), (std::vector<double>{2, 3, 4}));
  fs::create_symlink("sub/data.bin", folder_.path("in/link.bin"));
  EXPECT_EQ(read(external_tensor("w", {4}, "link.bin")), (std::vector<double>{1, 2, 3, 4}));
  EXPECT_EQ(read(external_tensor("w", {0}, "data.bin")), std::vector<double>());
}

TEST_F(OnnxExternal, OutlivesTheModelAndTheFile) {
  ModelProto m = small_model();
  m.initializers = {external_tensor("w", {4}, "data.bin")};
  const Tensor t = read_model(folder_.write("in/model.onnx", m.bytes())).initializers.at("w");
  fs::remove(folder_.path("in/data.bin"));
  EXPECT_EQ(get(t, 3), 4);
}

TEST_F(OnnxExternal, TakesNoMemoryUntilItIsRead) {
  fs::resize_file(folder_.path("in/data.bin"), uint64_t{1} << 40);
  ModelProto m = small_model();
  m.initializers = {external_tensor("w", {int64_t{1} << 38}, "data.bin")};
  const Tensor t = read_model(folder_.write("in/model.onnx", m.bytes())).initializers.at("w");
  EXPECT_EQ(get(t, 3), 4);
}

TEST_F(OnnxExternal, UnalignedDataAreCopied) {
  folder_.write("in/odd.bin", "x" + floats_);
  EXPECT_EQ(read(external_tensor("w", {4}, "odd.bin", "1")), (std::vector<double>{1, 2, 3, 4}));
}

TEST_F(OnnxExternal, StaysInTheFolder) {
  const std::string secret = folder_.path("secret.bin");
  for (const std::string& location :
       {std::string("../secret.bin"), std::string("sub/../../secret.bin"),
        std::string("sub/../data.bin"), secret, std::string("..")})
    expect_external_fault(external_tensor("w", {4}, location),
                          "wanted a path inside the model's folder");
  fs::create_symlink("../secret.bin", folder_.path("in/relative.bin"));
  fs::create_symlink(secret, folder_.path("in/absolute.bin"));
  fs::create_symlink("..", folder_.path("in/up"));
  fs::create_symlink("relative.bin", folder_.path("in/twice.bin"));
  for (const char* location : {"relative.bin", "absolute.bin", "up/secret.bin", "twice.bin"})
    expect_external_fault(external_tensor("w", {4}, location), "a link out of the model's folder");
}

TEST_F(OnnxExternal, FoldersWithACommonBeginningAreOthers) {
  fs::create_directory(folder_.path("inside"));
  folder_.write("inside/data.bin", floats_);
  fs::create_symlink("../inside/data.bin", folder_.path("in/near.bin"));
  expect_external_fault(external_tensor("w", {4}, "near.bin"), "a link out of the model's folder");
}

TEST_F(OnnxExternal, IsAFile) {
  expect_external_fault(external_tensor("w", {4}, "none.bin"),
                        "external data of tensor 'w': cannot read");
  expect_external_fault(external_tensor("w", {4}, "sub"), "is no file");
  ASSERT_EQ(mkfifo(folder_.path("in/pipe").c_str(), 0600), 0);
  expect_external_fault(external_tensor("w", {4}, "pipe"), "is no file");
  fs::create_symlink("loop", folder_.path("in/loop"));
  expect_external_fault(external_tensor("w", {4}, "loop"), "cannot read");
  expect_external_fault(external_tensor("w", {4}, std::string("data.bin\0x", 10)),
                        "control characters");
  expect_external_fault(external_tensor("w", {4}, ""), "has external data without a location");
}

TEST_F(OnnxExternal, LiesInsideTheFile) {
  expect_external_fault(external_tensor("w", {5}, "data.bin"),
                        "has 20 bytes from 0 on, but 'data.bin' has 16 bytes");
  expect_external_fault(external_tensor("w", {1}, "data.bin", "17"), "but 'data.bin' has 16 bytes");
  expect_external_fault(external_tensor("w", {4}, "data.bin", "4", "16"),
                        "but 'data.bin' has 16 bytes");
  expect_external_fault(external_tensor("w", {4}, "data.bin", "0", "12"),
                        "has 12 bytes of elements, wanted 16");
  for (const char* number : {"-1", "x", "1.5", "0x8", "99999999999999999999"}) {
    expect_external_fault(external_tensor("w", {4}, "data.bin", number), "wanted a whole number");
    expect_external_fault(external_tensor("w", {4}, "data.bin", "0", number),
                          "wanted a whole number");
  }
  expect_external_fault(external_tensor("w", {4}, "data.bin", "9223372036854775807"),
                        "but 'data.bin' has 16 bytes");
  folder_.write("in/empty.bin", "");
  expect_external_fault(external_tensor("w", {1}, "empty.bin"), "but 'empty.bin' has 0 bytes");
}

}  // namespace
}  // namespace tw::graph::onnx
