#include <cmath>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <sstream>

#include "tests/cli/command.h"

namespace tw {

using nlohmann::json;

class Explain : public Command {
 protected:
  json explain(const std::string& words) const {
    const Ended e = call("explain " + words + " --json");
    EXPECT_EQ(e.code, 0) << e.out;
    return json::parse(e.out, nullptr, false);
  }
  /// In nanoseconds.
  static int64_t least(const json& row, const char* resource, const char* of = "limit_us_of") {
    return std::llround(row.at(of).at(resource).get<double>() * 1000);
  }
};

TEST_F(Explain, ProductsOnAnH200ByHand) {
  const json row = explain("gemm --device h200 --dtype bf16 --shape m=4096,n=4096,k=4096");
  EXPECT_EQ(row["bound"], "matrix");
  EXPECT_EQ(least(row, "matrix"), 138968);    // 2 * 4096^3 / 989e12 s
  EXPECT_EQ(least(row, "bandwidth"), 20972);  // 3 * 2 * 4096^2 / 4.8e12 s
  EXPECT_EQ(row["spill_bytes"], 0);
  EXPECT_GT(row["registers"], 32);
  EXPECT_GT(row["shared_bytes"], 0);
  EXPECT_GE(row["blocks_resident"], 1);
  EXPECT_GT(row["waves"], 0);
  EXPECT_EQ(least(row, "matrix", "ceiling_us_of"), 142868);    // by 962e12 a second
  EXPECT_EQ(least(row, "bandwidth", "ceiling_us_of"), 22834);  // two thirds copied
  EXPECT_EQ(row["ceiling_us"], row["ceiling_us_of"]["matrix"]);
}

TEST_F(Explain, SoftmaxOnAnH200ByHand) {
  const json row = explain("softmax --device h200 --shape m=4096,n=4096");
  EXPECT_EQ(row["bound"], "bandwidth");
  EXPECT_EQ(row["bytes"], 2 * 4 * 4096 * 4096);
  EXPECT_EQ(least(row, "bandwidth"), 27962);  // those / 4.8e12 s
  EXPECT_GE(row["operations"]["special"], 4096 * 4096);
  EXPECT_LT(row["operations"]["special"], 2 * 4096 * 4096);
}

TEST_F(Explain, AttentionOnAnH200ByHand) {
  const json row = explain(
      "attention --device h200 --dtype bf16 "
      "--shape batch=4,heads=16,kv_heads=16,sq=4096,skv=4096,head=128");
  EXPECT_EQ(row["bound"], "matrix");
  EXPECT_EQ(least(row, "matrix"), 555870);  // 4 * 4 * 16 * 4096^2 * 128 / 989e12 s
  // A function for each score, and few to rescale: at 16 a clock of 132 processors.
  EXPECT_GE(least(row, "special"), 256876);
  EXPECT_LT(least(row, "special"), 256876 + 256876 / 16);
}

TEST_F(Explain, AttentionCountsTheKeysAndQueriesThatThereAre) {
  const std::string words =
      "attention --device avx2 --shape heads=8,kv_heads=8,sq=1024,head=64,skv=";
  for (int64_t skv : {1, 64, 65, 129, 1000}) {
    const json done = explain(words + std::to_string(skv))["operations"];
    EXPECT_EQ(done["dot f32"], 4 * 8 * 1024 * 64 * skv) << skv;
    EXPECT_EQ(done["special"], 8 * 1024 * (skv + 1)) << skv;  // and the logarithm of each sum
  }
  const json causal = explain(words + "1024 --option mask=causal")["operations"];
  EXPECT_EQ(causal["dot f32"], 4 * 8 * (1024 * 1025 / 2) * 64);
}

TEST_F(Explain, ConvolutionsCountNoPadding) {
  const json row = explain(
      "conv2d --device avx2 --shape "
      "h=31,w=29,c=37,k=45,before_h=1,after_h=1,before_w=1,after_w=1");
  const int64_t taps = (3 * 31 - 2) * (3 * 29 - 2);  // of the windows at all places
  EXPECT_EQ(row["operations"]["dot f32"], 2 * taps * 37 * 45);
}

TEST_F(Explain, NoCeilingLiesBelowItsLimit) {
  for (const char* words :
       {"attention --dtype bf16 --shape sq=4096,skv=4096,head=128 --option mask=causal", "softmax",
        "gemm --dtype bf16"}) {
    const json row = explain(words + std::string(" --device h200"));
    for (const auto& [resource, us] : row["limit_us_of"].items())
      EXPECT_LE(us, row["ceiling_us_of"][resource]) << words << " " << resource;
  }
}

TEST_F(Explain, PackedWeightsOnAnH200ByHand) {
  const json row = explain("gemv_int4 --device h200 --shape m=1,n=4096,k=4096,group=64");
  EXPECT_EQ(row["bound"], "bandwidth");
  // 4 bits a weight, 4 bytes a group of 64, a row of X and of Y in f32.
  EXPECT_EQ(row["bytes"], 4096 * 4096 / 2 + 4096 * 4096 / 64 * 4 + 2 * 4 * 4096);
  EXPECT_EQ(least(row, "bandwidth"), 1973);
}

TEST_F(Explain, SaysWhichRowWasMeasured) {
  write("rows.json",
        R"({"kernel": "softmax", "shape": "m=64,n=128", "dtype": "f32", "device": "NVIDIA H200",)"
        R"( "verified": true, "ceiling_fraction": 0.5,)"
        R"( "time_us": 2.0, "date": "2026-12-01", "commit": "abc"})"
        "\n"
        R"({"kernel": "softmax", "shape": "m=64,n=256", "dtype": "f32", "device": "NVIDIA H200",)"
        R"( "verified": true, "ceiling_fraction": 0.5,)"
        R"( "time_us": 9.0, "date": "2026-12-02", "commit": "def"})"
        "\n");
  const std::string words = "softmax --device h200 --shape m=64,n=128 --rows rows.json";
  const json row = explain(words);
  EXPECT_EQ(row["time_us"], 2);
  EXPECT_EQ(row["fraction"], row["limit_us"].get<double>() / 2);
  expect("explain " + words, 0, "took 2.00 us (2026-12-01, abc): ");
  expect("explain " + words, 0, "blocks a multiprocessor");
  EXPECT_FALSE(
      explain("softmax --device h200 --shape m=8,n=128 --rows rows.json").contains("time_us"));
  expect("explain softmax --device h200 --rows none.json", 2,
         "--rows: cannot read 'none.json': No such file or directory; name a file or a folder of");
  for (const char* device : {"cpu:0", "avx512"})
    expect(std::string("explain softmax --rows rows.json --device ") + device, 2,
           std::string("--rows with ") + device + "; rows are read for a kernel on a GPU");
  write("bad.json", "{\n");
  expect("explain softmax --device h200 --rows bad.json", 2, "bad.json:1: no JSON");
}

TEST_F(Explain, FindsRowsByTheirProgramAndOptions) {
  const auto row = [](const char* program, double us) {
    return fmt::format(
        R"({{"kernel": "argmax", "shape": "m=64,n=128", "program": "{}", "dtype": "f32",)"
        R"( "verified": true, "ceiling_fraction": 0.5,)"
        R"( "device": "NVIDIA H200", "time_us": {}, "date": "2026-12-01", "commit": "abc"}})"
        "\n",
        program, us);
  };
  write("rows.json", row("row_reduce m=64,n=128 op=argmax", 3) + row("row_reduce m=64,n=128", 4) +
                         row("sum n=64 parts=16; sum n=16 parts=1", 5));
  const auto took = [&](const std::string& words) {
    return explain(words + " --device h200 --rows rows.json").value("time_us", 0);
  };
  const std::string words = "row_reduce --shape m=64,n=128";
  EXPECT_EQ(took(words + " --option op=argmax"), 3);
  EXPECT_EQ(took(words), 4) << "options left out are the usual ones";
  EXPECT_EQ(took(words + " --option op=max"), 0);
  EXPECT_EQ(took("sum --shape n=16 --option parts=1"), 0) << "one step of two";
  expect("explain swiglu --device h200", 2,
         "no kernel is called 'swiglu'; elementwise has op=swiglu");
}

TEST_F(Explain, CpusByTheirDataSheets) {
  const json row = explain("gemm --device avx512 --threads 2 --shape m=1024,n=1024,k=1024");
  EXPECT_EQ(row["bound"], "arithmetic");
  EXPECT_EQ(least(row, "arithmetic"), 4301850);  // 2 * 1024^3 / (2 x 3.9 GHz x 64) s
  expect("explain softmax --device neon --threads 99", 2,
         "--threads got 99; the Arm Neoverse V1 has 64 cores");
}

TEST_F(Explain, RefusesMachinesThatItDoesNotKnow) {
  expect("explain softmax --device sm_70", 2, "unknown gpu 'sm_70'; known gpus: sm_80 (a100)");
  expect("explain softmax --device h100", 2,
         "unknown device 'h100'; known devices: cpu:0, cuda:0, a100 (sm_80), h200 (sm_90a), avx2");
  expect("eject softmax --output own.cu --device h100", 2, "a100 (sm_80), h200 (sm_90a)");
  expect("devices --measure --device h100", 2, "known devices: cpu:0, cuda:0\n");
  expect("devices --measure --device interp", 2, "the interpreter has no rates; measure cpu:0");
  expect("devices --device cuda:0", 2, "--device cuda:0 without --measure");
  setenv("TW_CUDA_DRIVER", "/nowhere/libcuda.so", 1);
  expect("explain softmax --device cuda:0", 3, "no CUDA driver");
  unsetenv("TW_CUDA_DRIVER");
  expect("explain softmax --device emu:0", 2, "device 'emu:0' is used as a CPU");
}

TEST_F(Explain, MeasuresGpus) {
  setenv("TW_CUDA_DRIVER", TW_FAKE_CUDA, 1);
  const Ended e = call("devices --measure --device cuda:0 --json");
  unsetenv("TW_CUDA_DRIVER");
  ASSERT_EQ(e.code, 0) << e.out;
  const json row = json::parse(e.out);
  for (const char* rate :
       {"f32", "half", "f64", "integer", "special", "convert", "dot_half", "dot_tf32", "dot_i8",
        "memory_read", "memory_copy", "cache_read", "cache_copy", "load", "cached_load", "launch"})
    EXPECT_GT(row.at(rate).at("value"), 0) << rate;
  expect("devices --measure --device emu:0", 2, "an emulated device has no rates");
}

TEST_F(Explain, DevicesListsGpus) {
  setenv("TW_CUDA_DRIVER", TW_FAKE_CUDA, 1);
  const Ended text = call("devices"), rows = call("devices --json");
  setenv("TW_CUDA_DRIVER", "/nowhere/libcuda.so", 1);
  const Ended none = call("devices");
  unsetenv("TW_CUDA_DRIVER");
  EXPECT_NE(text.out.find("cuda:1  Fake 1\n        132 multiprocessors, sm_90a"), text.out.npos)
      << text.out;
  std::istringstream lines(rows.out);
  std::vector<std::string> names;
  for (std::string line; std::getline(lines, line);) names.push_back(json::parse(line)["device"]);
  EXPECT_EQ(names, (std::vector<std::string>{"cpu:0", "cuda:0", "cuda:1"}));
  EXPECT_EQ(none.code, 0);
  EXPECT_EQ(none.out.find("cuda:"), none.out.npos) << none.out;
}

TEST_F(Explain, MeasuresThisCpu) {
  const json row = json::parse(call("devices --measure --threads 1 --json").out);
  for (const char* rate : {"f32", "memory_read", "memory_write", "memory_copy", "cache_read"})
    EXPECT_GT(row.at(rate).at("value"), 0) << rate;
}

TEST_F(Command, BenchBesideAnEarlierBuild) {
  const Ended e = call("bench row_reduce --shape m=64,n=512 --threads 1 --before " TW_COMMAND);
  EXPECT_TRUE(e.code == 0 || e.code == 1) << e.out;  // by the noise of the machine
  EXPECT_NE(e.out.find("of its speed"), std::string::npos) << e.out;
}

TEST_F(Command, BenchBesideAnEarlierBuildThatLacksTheKernel) {
  program("older", "case $1 in --version) echo tilewright 0.0.9;; *) exit 2;; esac\n");
  expect("bench row_reduce --shape m=4,n=8 --threads 1 --before ./older", 0, "new      row_reduce");
  expect("bench row_reduce --shape m=4,n=8 --threads 1 --before older", 0, "new      row_reduce");
}

TEST_F(Command, BenchRefusesWhatIsNoEarlierBuild) {
  program("broken", "case $1 in --version) echo tilewright 0.0.9;; *) exit 3;; esac\n");
  program("silent", "exit 0\n");
  write("text", "tilewright\n");
  const std::pair<const char*, const char*> cases[] = {
      {"/no/such/file", "is no tilewright: there is no such file; name the command of an earlier"},
      {"text", "is no tilewright: it is no program that may be run"},
      {".", "is no tilewright: it is no file"},
      {"/bin/cat", "is no tilewright: --version does not say so"},
      {"/bin/false", "is no tilewright: --version does not say so"},
      {"./silent", "is no tilewright: --version does not say so"},
      {"./broken", "fails at 'opt row_reduce --dtype f32 --threads 1 "}};
  for (const auto& [before, why] : cases)
    expect(std::string("bench row_reduce --shape m=4,n=8 --threads 1 --before ") + before, 2, why);
}

}  // namespace tw
