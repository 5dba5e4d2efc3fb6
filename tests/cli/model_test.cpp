#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "tw/tensor/npy.h"

#include "tests/cli/command.h"
#include "tests/support/onnx_writer.h"

namespace tw {
namespace {

using namespace tw::test;

/// The command on y = Relu(x + [1, -2, 0.5]) of x: f32[N,3].
class ModelCommand : public Command {
 protected:
  ModelCommand() {
    write("m.onnx", small_model().bytes());
    write("x.pb", float_tensor("x", {1, 3}, {1, 1, 1}).bytes());
    Tensor x = host_tensor(f32, {2, 3});
    for (int64_t i = 0; i < x.count(); ++i) set(x, i, static_cast<double>(i));
    write_npy(folder_ + "/x.npy", x);
  }
};

TEST_F(ModelCommand, RunsOnFiles) {
  expect("run m.onnx --input x=x.pb", 0, "  y f32[1,3] = 2 0 1.5\n");
  expect("run m.onnx --input x=x.npy", 0, "  y f32[2,3] = 1 0 2.5 4 2 5.5\n");
  expect("run m.onnx --input x=x.npy --output .", 0, "  wrote ./y.npy\n");
  EXPECT_EQ(to_doubles(read_npy(folder_ + "/y.npy")), (std::vector<double>{1, 0, 2.5, 4, 2, 5.5}));
  expect("run m.onnx --input x=x.pb --output y=own.npy --threads 1", 0, "  wrote own.npy\n");
  EXPECT_EQ(to_doubles(read_npy(folder_ + "/own.npy")), (std::vector<double>{2, 0, 1.5}));
}

TEST_F(ModelCommand, MakesInputsUp) {
  expect("run m.onnx --shape x=4,3", 0, "  inputs that no --input names: x=random:1\n");
  expect("run m.onnx --shape x=4,3 --input x=random:7", 0, "  y f32[4,3] = ");
  expect("run m.onnx --shape x=0,3", 0, "  y f32[0,3] = \n");
  expect("run m.onnx", 2,
         "input 'x' is f32[N,3]: some extent is open; give --shape x=.. or --input x=FILE.npy");
}

TEST_F(ModelCommand, NamesWinOverTheFolder) {
  expect("run m.onnx --input x=x.pb --output y=own.npy --output .", 0, "  wrote own.npy\n");
  EXPECT_FALSE(std::filesystem::exists(folder_ + "/y.npy"));
  expect("run m.onnx --shape x=4,3 --json=rows.json", 0,
         "inputs that no --input names: x=random:1");
}

TEST_F(ModelCommand, GivesRows) {
  const auto row = nlohmann::json::parse(call("run m.onnx --input x=x.pb --json").out);
  EXPECT_EQ(row["name"], "y");
  EXPECT_EQ(row["dims"], (std::vector<int>{1, 3}));
  EXPECT_EQ(row["first"], (std::vector<std::string>{"2", "0", "1.5"}));
  const auto plan = nlohmann::json::parse(call("explain m.onnx --shape x=4,3 --json").out);
  EXPECT_EQ(plan["dims"], std::vector<std::string>{"N"});
  EXPECT_EQ(plan["inputs"][0]["name"], "x");
  EXPECT_EQ(plan["steps"].size(), 1);
  EXPECT_EQ(plan["workspace_bytes"], 0);
}

TEST_F(ModelCommand, TimesSteps) {
  expect("run m.onnx --shape x=4,3 --profile", 0, "100.0%");
  const auto row = nlohmann::json::parse(call("run m.onnx --shape x=4,3 --profile --json").out);
  EXPECT_EQ(row["name"], "y");
  EXPECT_EQ(row["bytes"], 4 * (12 + 3 + 12));
  EXPECT_EQ(row["flops"], 24);
  EXPECT_GT(row["us"], 0);
  expect("run m.onnx --shape x=4,3 --profile --output .", 2, "--profile shows no outputs");
  expect("run softmax --shape m=2,n=2 --profile", 2, "--profile is for models");
}

TEST_F(ModelCommand, ExplainsThePlan) {
  expect("explain m.onnx", 0,
         "    x f32[N,3]\n  outputs\n    y f32[N,3]\n  dims, of any size: N\n");
  expect("explain m.onnx", 0, "give --shape input=extent,.. for the workspace");
  expect("explain m.onnx --shape x=5,3", 0, "  1 steps\n      0 elements y\n");
  expect("explain m.onnx --shape x=5,3", 0, "  workspace 0 bytes\n");
  ModelProto m = small_model();
  m.inputs = {shapeless_proto("x", kFloat)};
  write("open.onnx", m.bytes());
  expect("explain open.onnx", 0,
         "made anew for each extents of the inputs: input 'x' has no shape");
  expect("explain open.onnx --shape x=5,3", 0, "  workspace 0 bytes\n");
}

TEST_F(ModelCommand, SaysWhatIsWrong) {
  expect("run none.onnx", 2, "tilewright: cannot read 'none.onnx': No such file or directory");
  expect("run m.onnx --input z=x.pb", 2, "--input names 'z', which is no input of the model");
  expect("run m.onnx --input x=x.pb --input x=x.pb", 2, "--input names 'x' twice; give it once");
  expect("run m.onnx --input x=none.pb", 2, "cannot read 'none.pb'");
  expect("run m.onnx --input x=m.onnx", 2, "tilewright: ");
  expect("run m.onnx --shape x=4", 2, "input 'x' has extents [4], wanted [N,3]");
  expect("run m.onnx --shape x=4,q", 2, "--shape x got 'q'; wanted a whole number");
  expect("run m.onnx --shape x=-1,3", 2, "--shape x got '-1'; wanted a whole number from 0");
  expect("run m.onnx --shape z=4", 2, "--shape names 'z', which is no input of the model");
  expect("run m.onnx --shape x=4,3 --shape x=4,3", 2, "--shape names 'x' twice");
  expect("run m.onnx --shape x=2,3 --input x=x.pb", 2, "has extents [1,3], --shape says [2,3]");
  expect("run m.onnx --input x=x.pb --output none", 2, "cannot write 'none/y.npy'");
  expect("run m.onnx --input x=x.pb --output z=z.npy", 2, "which is no output of the model");
  expect("run m.onnx --input x=x.pb --output y=a.npy --output y=b.npy", 2,
         "--output names 'y' twice; give it once");
  expect("run m.onnx --input x=x.pb --output . --output cache", 2, "got 'cache', a second folder");
  expect("run m.onnx --input x=x.pb --output a.npy", 2,
         "--output got 'a.npy'; wanted FOLDER or name=FILE.npy");
  for (const char* target : {"m.pt", "folder/m"})
    expect(fmt::format("run {}", target), 2,
           fmt::format("'{}' is neither a kernel nor a model; wanted a file that ends in .onnx",
                       target));
  expect("run m.onnx --shape x=400000000000,3", 3, "the machine has");
  for (const char* flags : {"--dtype f32", "--check", "--mapping 'cpu1'", "--option a=b"})
    expect(fmt::format("run m.onnx {}", flags), 2, "is for kernels, the target is a model");
  expect("run softmax --shape m=2,n=2 --json", 2, "--json is for models");
  ModelProto m = small_model();
  m.nodes[0] = node_proto("Nope", {"x", "w"}, {"sum"});
  write("nope.onnx", m.bytes());
  expect("run nope.onnx --shape x=1,3", 2,
         "'nope.onnx': operators that are not supported: Nope (opset 15, node 'sum')");
}

}  // namespace
}  // namespace tw
