// Ejected CUDA source, as its owner left it, checked on the emulator.
#include <algorithm>

#include "tests/cli/command.h"

namespace tw {
namespace {

class CheckText : public Command {
 protected:
  CheckText() { expect("eject softmax --device sm_90a --output mine.cu", 0, "wrote mine.cu"); }

  /// Writes FILE, which is mine.cu with a part that it has, behind `after`, replaced.
  void change(const std::string& file, const std::string& part, const std::string& by,
              const std::string& after = "namespace any {") {
    std::string text = read("mine.cu");
    const size_t at = text.find(part, text.find(after));
    ASSERT_NE(at, std::string::npos) << part;
    line_ = 1 + std::count(text.begin(), text.begin() + static_cast<long>(at), '\n');
    write(file, text.replace(at, part.size(), by));
  }
  void expect_check(const std::string& words, int code, const std::string& part) const {
    expect("check softmax --device emu:0 --text " + words, code, part);
  }
  /// "mine.cu:12": where the last change() found its part, or lines after it.
  std::string place(const std::string& file, long lines_after = 0) const {
    return file + ":" + std::to_string(line_ + lines_after);
  }

  long line_ = 0;
};

const char* const kOddRows = " --shape m=3,n=4099";  // of several tiles, of the last kernel

TEST_F(CheckText, IsRightAsItWasEjected) {
  expect_check("mine.cu --seeds 2 --shape m=3,n=40", 0, "right");
  expect_check(std::string("./mine.cu") + kOddRows, 0, "right");
  expect_check("mine.cu --shape m=0,n=5", 0, "'softmax_aligned_kernel' did not run: ");
  expect("eject gemm --device sm_90a --dtype f16 --option epilogue=bias --output g.cu", 0, "wrote");
  expect("check gemm --device emu:0 --text g.cu --shape m=70,n=45,k=40", 0, "right");
}

/// What it is for: one barrier less is a race, told with the owner's lines.
TEST_F(CheckText, TellsOfARaceWithFileAndLine) {
  change("race.cu", "      tw_sync();\n", "      ;\n");
  const std::string words =
      std::string("check softmax --device emu:0 --text race.cu --seeds 8") + kOddRows;
  const Ended e = call(words);
  EXPECT_EQ(e.code, 1) << e.out;
  EXPECT_TRUE(e.out.find("race: ") != std::string::npos ||
              e.out.find("uninitialised read: ") != std::string::npos)
      << e.out;
  // Whichever read of what other warps write comes first.
  EXPECT_TRUE(e.out.find(place("race.cu", 1) + " `acc = part[0];`") != std::string::npos ||
              e.out.find(place("race.cu", 4) + " `const f32 x_13 =") != std::string::npos)
      << place("race.cu") << e.out;
  EXPECT_NE(e.out.find("WRONG"), std::string::npos) << e.out;
}

TEST_F(CheckText, FindsWhatThrowsNoReport) {
  change("wrong.cu", " - v_reduce_3", " + v_reduce_3");
  expect_check("wrong.cu --shape m=3,n=41", 1, "times the allowed error");
  change("endless.cu", "i0 += 1", "i0 += 0");
  expect_check(std::string("endless.cu --timeout 3") + kOddRows, 1, "no answer within 3 s");
  change("crash.cu", "v_l = 0.0f;", "v_l = 0.0f; __builtin_trap();");
  expect_check(std::string("crash.cu") + kOddRows, 1, "its process ended by signal");
}

/// Files of kernels whose axes must fit each other, and of ones whose type is not f32.
TEST_F(CheckText, TakesEveryKindOfKernel) {
  for (const char* const words :
       {"rope --dtype f32", "top_k --dtype f32", "matmul_integer --dtype u8"}) {
    const std::string all = words, kernel = all.substr(0, all.find(' '));
    expect("eject " + all + " --device sm_90a --output k.cu", 0, "wrote");
    expect("check " + kernel + " --device emu:0 --text k.cu", 0, "right");
  }
  expect("eject attention --dtype f16 --device sm_90a --output k.cu", 0, "wrote");
  expect(
      "check attention --device emu:0 --text k.cu --shape batch=1,heads=4,kv_heads=2,sq=9,skv=20",
      0, "right");
}

/// What small problems, or one number of blocks, would not show.
TEST_F(CheckText, FindsWhatHidesFromOneLaunch) {
  change("tail.cu", "v_5 < 4", "v_5 < 1", "namespace aligned {");
  expect_check("tail.cu --shape m=5,n=255", 1, "gapped uniform");
  change("unset.cu", "acc_3 = -__builtin_inff();", "", "namespace any {");
  expect_check("unset.cu --shape m=1,n=1", 1, "a second run over other poison differs");
  change("blocks.cu", "instance += tw_blocks()", "instance += min(tw_blocks(), (i64)4)");
  expect_check("blocks.cu --shape m=9,n=77", 1, "race: ");
  change("gpu_only.cu", "      tw_sync();\n", "#ifndef __CUDACC__\n      tw_sync();\n#endif\n");
  expect_check(std::string("gpu_only.cu") + kOddRows, 1, "WRONG");
}

TEST_F(CheckText, TellsOfVectorAccessesAndInfiniteErrors) {
  change("far.cu", "tw_store_run(p_13", "tw_store_run(100000 + p_13", "namespace aligned {");
  expect_check("far.cu --shape m=3,n=64", 1, " at " + place("far.cu"));
  change("none.cu", "v_l = 0.0f;", "v_l = __builtin_nanf(\"\");");
  expect_check(std::string("none.cu") + kOddRows, 1, "worst error inf of its bound: WRONG");
  change("exits.cu", "v_l = 0.0f;", "v_l = 0.0f; _exit(0);");
  write("mine.cu", read("exits.cu"));
  change("exits.cu", "struct Args {", "extern \"C\" void _exit(int);\nstruct Args {");
  expect_check(std::string("exits.cu") + kOddRows, 1, "its process ended without a result");
}

/// The launch is the file's own.
TEST_F(CheckText, LaunchesAsTheFileDoes) {
  change("short.cu", ", blocks, 128, 32,", ", blocks, 128, 16,", "any::softmax_kernel");
  expect_check(std::string("short.cu") + kOddRows, 1,
               "of shared memory, which has 16 at short.cu:");
  change("helped.cu", "v_l = 0.0f;", "v_l = nothing();");
  write("mine.cu", read("helped.cu"));
  change("helped.cu", "struct Args {", "TW_INLINE f32 nothing() { return 0.0f; }\nstruct Args {");
  expect_check(std::string("helped.cu") + kOddRows, 0, "right");
}

TEST_F(CheckText, RefusesLaunchesThatAGpuRefuses) {
  const std::string launch = "launch((const void*)any::softmax_kernel, blocks, 128, 32,";
  const auto refuses = [&](const std::string& by, const std::string& what) {
    change("launch.cu", launch, by, "any::Args args");
    expect_check("launch.cu", 2, place("launch.cu") + ": " + what);
  };
  const std::string begin = launch.substr(0, launch.find(" 128"));
  refuses(begin + " 256, 32,", "a block of 256 threads; wanted 1 to 128, by its __launch_bounds__");
  refuses(begin + " 0, 32,", "a block of 0 threads");
  refuses(begin + " 128, 900000,",
          "a block with 900000 bytes of shared memory; sm_90a has at most");
  refuses(begin + " 64 * 2, 32,", "'softmax_kernel' is not launched with plain numbers");
  change("cluster.cu", "__launch_bounds__", "__cluster_dims__(3, 1, 1) __launch_bounds__");
  expect_check("cluster.cu", 2, "'softmax_kernel' has clusters of 3 blocks; wanted 1");
  change("two.cu", "}  // namespace any", "__global__ void two() {}\n}  // namespace any");
  expect_check("two.cu", 2, place("two.cu") + ": namespace 'any' has another kernel");
}

/// Comments, the ends of lines and the name of the file are the owner's.
TEST_F(CheckText, ReadsFilesAsEditorsLeaveThem) {
  const std::string launch = "launch((const void*)any::softmax_kernel, blocks, 128, 32,";
  change("a\"b.cu", launch,
         "/* " + launch + "\n*/ // " + launch + std::string(40'000, ' ') + "\n" + launch,
         "any::Args args");
  std::string text = read("a\"b.cu");
  for (size_t at = 0; (at = text.find('\n', at)) != std::string::npos; at += 2)
    text.replace(at, 1, "\r\n");
  write("a\"b.cu", text);
  expect("check softmax --device emu:0 --shape m=3,n=40 --text 'a\"b.cu'", 0, "right");
  change("include.cu", "struct Args {", "#include \"nothing.h\"\nstruct Args {");
  expect_check("include.cu", 2, place("include.cu") + ":10: fatal error: nothing.h");
}

TEST_F(CheckText, RefusesWhatItCannotJudge) {
  expect_check("none.cu", 2, "cannot read 'none.cu'");
  expect_check("mine.cu --dtype bf16", 2,
               "--dtype bf16 with --text 'mine.cu'; the file was ejected");
  expect("eject quantize_int8 --device sm_90a --output q.cu", 0, "wrote");
  expect("check quantize_int8 --device emu:0 --text q.cu --shape group=16", 2, "which fixes group");
  expect_check("mine.cu --mapping cuda1", 2, "--mapping with --text");
  expect("check softmax --text mine.cu", 2, "--text with --device cpu:0; wanted --device emu:0");
  expect("check --device emu:0 --text mine.cu", 2, "--text needs the kernel");
  expect("check rmsnorm --device emu:0 --text mine.cu", 2, "'mine.cu' was ejected from 'softmax'");
  write("text.cu", "__global__ void softmax() {}\n");
  expect_check("text.cu", 2, "'text.cu' does not begin as CUDA source that was ejected");
  change("name.cu", "__global__ void", "void");
  expect_check("name.cu", 2, "namespace 'any' has no kernel");
  change("launch.cu", "any::softmax_kernel", "any::another", "any::Args args");
  expect_check("launch.cu", 2, "'launch.cu' does not launch 'softmax_kernel'");
  change("parameter.cu", "const Args& args, i64 instance", "const Args& args, index instance");
  expect_check("parameter.cu", 2, place("parameter.cu") + ":");
  change("sync.cu", "void tw_sync() { __syncthreads(); }", "void tw_sync() {}");
  expect_check("sync.cu", 2,
               place("sync.cu") + ": wanted '__device__ __forceinline__ void tw_sync()");
}

}  // namespace
}  // namespace tw
