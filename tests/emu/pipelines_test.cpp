#include "tests/emu/pipelines.h"

#include <cstdlib>
#include <gtest/gtest.h>

#include "tw/jit/nvrtc.h"

namespace tw::test {
namespace {

/// Few in the suite of tests, many in a soak.
uint64_t seeds(uint64_t few) {
  const char* text = std::getenv("TW_EMU_SEEDS");
  return text != nullptr ? std::strtoull(text, nullptr, 10) : few;
}

struct Launch {
  const char *name, *config;
};
const Launch kLaunches[] = {
    {"rows", "cols=1024 tpr=64 rpb=2 rows=5"},
    {"rows", "cols=256 tpr=32 rpb=4 rows=9 rms=1"},
    {"gemv", ""},
    {"gemv", "n=16 k=512 nb=8 wpb=4"},
    {"ring", ""},
    {"ring", "st=3 m=45 n=96"},
    {"ring", "rank=1 m=64 n=32"},
    {"ring", "cl=2 st=3 m=40"},
    {"ring", "cl=4 m=19 grid=1"},
    {"gemm", "st=4 m=128 n=128 k=256"},
    {"gemm", "st=5 m=328 n=264 k=208 grid=2"},
    {"gemm", "st=4 tb=1 m=256 n=264 k=328 grid=2"},
    {"gemm", "st=4 cm=2 m=384 n=256 k=320"},
    {"gemm", "st=4 cn=2 m=256 n=384 k=320"},
    {"gemm", "st=4 sk=2 m=128 n=128 k=512"},
    {"gemm", "st=4 eb=1 m=256 n=128 k=512"},
    {"gemm", "st=4 cwg=3 bm=192 m=384 n=128 k=256"},
    {"gemm", "st=4 bn=48 epw=16 m=128 n=96 k=256"},
    {"gemm", "st=5 pp=1 m=512 n=256 k=256 grid=2"},
    {"fa", "sq=128 sk=256"},
    {"fa", "sq=200 sk=300 heads=2 kvdiv=2"},
    {"fa", "causal=1 sq=200 sk=328"},
    {"fa", "bnk=176 osep=0 sq=256 sk=400 heads=2"},
};

class Pipelines : public testing::TestWithParam<Launch> {
 public:
  static void TearDownTestSuite() {
    std::cout << runs << " runs, " << alarms << " that end with a report" << std::endl;
  }

 protected:
  static inline uint64_t runs = 0, alarms = 0;
};

TEST_P(Pipelines, RunCleanAndRight) {
  const Pipeline p =
      pipeline(GetParam().name, kernel_text(GetParam().name), Config(GetParam().config));
  uint64_t seed = 0;
  const std::string fault = first_fault(p, seeds(8), &seed).text;
  runs += seed + 1;
  alarms += fault.empty() ? 0 : 1;
  EXPECT_EQ(fault, "");
}

TEST_P(Pipelines, AreCudaThatNvrtcTakes) {
  const Pipeline p =
      pipeline(GetParam().name, kernel_text(GetParam().name), Config(GetParam().config));
  EXPECT_NO_THROW(compile_cubin(find_nvrtc(), "sm_90a", cuda_text(p), false));
}

/// Groups that take turns skip each other's stages by arithmetic. Without an order of the groups
/// one waits for a phase two ahead of the barrier's, which is of the parity that has passed: it
/// goes on at once, multiplies what is not there, and gives back a stage that was not its own.
TEST(PipelinesReport, TheCauseOfAPingPongThatHangs) {
  const Pipeline p =
      pipeline("gemm", kernel_text("gemm"), Config("pp=2 st=5 m=512 n=256 k=1024 grid=2"));
  const EmuReport r = run(p.launch, {.seed = 0});
  ASSERT_TRUE(r.fault == EmuFault::race || r.fault == EmuFault::uninitialised) << r.text;
  EXPECT_NE(r.text.find("a product of warps"), std::string::npos) << r.text;
  EXPECT_NE(r.text.find("WGMMA("), std::string::npos) << r.text;
  EmuReport hang;
  for (uint64_t seed = 0; seed < 8 && hang.fault != EmuFault::deadlock; ++seed)
    hang = run(p.launch, {.seed = seed, .check_races = false});
  ASSERT_EQ(hang.fault, EmuFault::deadlock) << hang.text;
  for (const char* part : {"thread ", "for the end of a phase of parity", "arrivals and",
                           "bytes are missing", "tw_mbarrier_wait(full + s, ph);",
                           "tw_mbarrier_wait(empty + s, ph);", "in the phase before: threads"})
    EXPECT_NE(hang.text.find(part), std::string::npos) << part << "\n" << hang.text;
  std::cout << r.text << "\n" << hang.text << std::endl;
}

INSTANTIATE_TEST_SUITE_P(All, Pipelines, testing::ValuesIn(kLaunches), [](const auto& info) {
  return std::string(info.param.name) + std::to_string(info.index);
});

}  // namespace
}  // namespace tw::test
