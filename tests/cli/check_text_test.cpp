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
  expect_check(std::string("./mine.cu") + kOddRows, 0, "'softmax_aligned_kernel' did not run");
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
