#include <algorithm>
#include <gtest/gtest.h>

#include "tw/jit/compiler.h"

#include "tests/emu/run.h"

namespace tw::test {
namespace {

constexpr uint64_t kMutantSeeds = 8;

struct Mutant {
  const char* name;
  Case base;
  const char* part;
  const char* by;
  std::vector<EmuFault> faults;      ///< any of them
  std::vector<const char*> accused;  ///< parts of lines, one of which a report must name
};

/// Every seed finds a fault of the kinds, and some report names each of the lines.
void expect_caught(const Mutant& m) {
  SCOPED_TRACE(m.name);
  const Case c = changed(m.base, m.part, m.by);
  std::vector<int> named;
  std::string texts;
  for (uint64_t seed = 0; seed < kMutantSeeds; ++seed) {
    const EmuReport r = run(c, {.seed = seed});
    ASSERT_FALSE(r.clean()) << "seed " << seed;
    EXPECT_NE(std::find(m.faults.begin(), m.faults.end(), *r.fault), m.faults.end()) << r.text;
    named.insert(named.end(), r.lines.begin(), r.lines.end());
    texts += r.text + "\n";
  }
  for (const char* part : m.accused) {
    EXPECT_NE(std::find(named.begin(), named.end(), line_with(c, part)), named.end())
        << "no report names `" << part << "`:\n"
        << texts;
  }
}

constexpr EmuFault kRace = EmuFault::race, kUnwritten = EmuFault::uninitialised,
                   kBounds = EmuFault::out_of_bounds, kDiverge = EmuFault::divergence;

TEST(Mutants, Softmax) {
  const Case c = softmax_case(4, 300);
  for (const Mutant& m : std::vector<Mutant>{
           {"no barrier before reads",
            c,
            "tw_sync();  // maxima are there",
            "",
            {kRace, kUnwritten},
            {"most = larger(most, part[w]);"}},
           {"no barrier before writes",
            c,
            "tw_sync();  // maxima are read",
            "",
            {kRace},
            {"most = larger(most, part[w]);", "part[tw_thread() / 32] = sum;"}},
           {"no barrier before sums",
            c,
            "tw_sync();  // sums are there",
            "",
            {kRace},
            {"sum += part[w];", "part[tw_thread() / 32] = sum;"}},
           {"a shuffle of half a warp",
            c,
            "most = larger(most, tw_shuffle_xor(most, by));",
            "if (tw_thread() % 32 < 16)\n  most = larger(most, tw_shuffle_xor(most, by));",
            {kDiverge},
            {"most = larger(most, tw_shuffle_xor", "tw_sync();  // maxima are there"}},
           {"a barrier of half a block",
            c,
            "tw_sync();  // maxima are read",
            "if (tw_thread() < 128) tw_sync();  // of some\n  tw_sync();  // of all",
            {kDiverge},
            {"tw_sync();  // of some", "tw_sync();  // of all"}},
           {"one element too many",
            c,
            "i < n; i += 256) y[i] /= sum;",
            "i <= n; i += 256) y[i] /= sum;",
            {kBounds, kRace, kUnwritten},
            {"y[i] /= sum;"}},
           {"a shared index too large",
            c,
            "part[tw_thread() / 32] = most;",
            "part[tw_thread() / 32 + 1] = most;",
            {kBounds, kUnwritten, kRace},
            {"part[tw_thread() / 32 + 1] = most;"}},
           {"the wrong lane writes",
            c,
            "if (tw_thread() % 32 == 0) {",
            "if (tw_thread() == 0) {",
            {kUnwritten},
            {"most = larger(most, part[w]);"}},
           {"all lanes write",
            c,
            "if (tw_thread() % 32 == 0) {",
            "{",
            {kRace},
            {"part[tw_thread() / 32] = most;"}},
           {"output read before it is written", c, "y[i] = e;", "", {kUnwritten}, {"y[i] /= sum;"}},
           {"the input is written",
            c,
            "y[i] = e;",
            "y[i] = e; ((f32*)x)[i] = e;",
            {kBounds},
            {"((f32*)x)[i]"}},
       }) {
    expect_caught(m);
  }
}

TEST(Mutants, RowsOfOneBlock) {
  const Case c = changed(softmax_case(4, 300), "tw_sync();  // sums are read", "");
  for (uint64_t seed = 0; seed < kMutantSeeds; ++seed) {
    const EmuReport r = run(c, {.seed = seed, .blocks = 1});
    ASSERT_EQ(r.fault, kRace) << r.text;
    EXPECT_NE(r.text.find("sum += part[w];"), std::string::npos) << r.text;
  }
}

TEST(Mutants, Transpose) {
  const Case c = transpose_case(70, 45);
  const char* read = "= tile[lane * 33 + c];";
  for (const Mutant& m : std::vector<Mutant>{
           {"no barrier", c, "tw_sync();", "", {kRace, kUnwritten}, {read}},
           {"rows not bounded", c, "row0 + r < m && col0", "col0", {kBounds}, {"tile[r * 33"}},
           {"columns not bounded",
            c,
            "if (row0 + lane < m && col0 + c < n)",
            "if (row0 + lane < m)",
            {kBounds, kUnwritten},
            {read}},
           {"a row of tiles too short",
            c,
            "tile[r * 33 + lane]",
            "tile[r * 31 + lane]",
            {kRace, kUnwritten},
            {"tile[r * 31 + lane]"}},
           {"the same rows twice",
            c,
            "for (int c = warp; c < 32; c += 4)",
            "for (int c = 0; c < 32; c += 4)",
            {kRace},
            {"y[(col0 + c)"}},
       }) {
    expect_caught(m);
  }
}

TEST(Mutants, Matmul) {
  const Case c = matmul_case(64, 16, 80);
  const char* load = "tw_ldmatrix_x4(a, stage";
  const char* copy_a = "tw_copy_async_16(stage + t * 8, a, 16);";
  for (const Mutant& m : std::vector<Mutant>{
           {"waits for too little",
            c,
            "tw_copy_async_wait<1>",
            "tw_copy_async_wait<2>",
            {kRace},
            {load, copy_a}},
           {"waits behind the barrier",
            c,
            "tw_copy_async_wait<1>();\n    tw_sync();",
            "tw_sync();\n    tw_copy_async_wait<1>();",
            {kRace},
            {load, copy_a}},
           {"no barrier before reads",
            c,
            "tw_sync();  // the stage is there",
            "",
            {kRace, kUnwritten},
            {load}},
           {"no barrier after reads", c, "tw_sync();  // the stage is read", "", {kRace}, {copy_a}},
           {"no commit", c, "tw_copy_async_commit();\n    tw", "tw", {kRace}, {load}},
           {"one stage", c, "shared + (k + 1) % 2 * 640", "shared", {kRace}, {copy_a}},
           {"rows of the other half",
            c,
            "lane / 16 * 8);",
            "lane / 16 * 8 + 512);",
            {kBounds, kUnwritten, kRace},
            {load}},
           {"copies not aligned",
            c,
            "stage + t * 8, a, 16",
            "stage + t * 8 + 1, a, 16",
            {EmuFault::misaligned},
            {"stage + t * 8 + 1"}},
           {"past the local array",
            c,
            "u32 a[4];",
            "u32 a[4]; d[lane] = 0;",
            {kBounds},
            {"d[lane] = 0;"}},
           {"a multiplication by one warp's half",
            c,
            "tw_mma_m16n8k16_f32_bf16(d, a, b);",
            "if (lane < 16) tw_mma_m16n8k16_f32_bf16(d, a, b);",
            {kDiverge},
            {"tw_mma_m16n8k16_f32_bf16(d, a, b);", "tw_sync();  // the stage is read"}},
       }) {
    expect_caught(m);
  }
}

TEST(Mutants, PairsNotAligned) {
  if (find_compiler().family == CompilerFamily::clang)
    GTEST_SKIP() << "clang does not check the addresses of structs that are copied";
  expect_caught({"pairs not aligned",
                 matmul_case(64, 16, 80),
                 "(c + lane % 4 * 2)",
                 "(c + lane % 4 * 2 + 1)",
                 {EmuFault::misaligned},
                 {"(c + lane % 4 * 2 + 1)"}});
}

TEST(Mutants, Histogram) {
  const Case c = histogram_case(1000, 37);
  for (const Mutant& m : std::vector<Mutant>{
           {"no zeros", c, "own[b] = 0;", ";", {kUnwritten}, {"tw_atomic_add_relaxed_block"}},
           {"no barrier behind zeros",
            c,
            "tw_sync();  // zeros are there",
            "",
            {kRace, kUnwritten},
            {"tw_atomic_add_relaxed_block"}},
           {"no barrier behind counts",
            c,
            "tw_sync();  // counts are there",
            "",
            {kRace},
            {"counts + b, own[b]"}},
           {"a plain sum",
            c,
            "tw_atomic_add_relaxed_block(own + x[i], 1);",
            "own[x[i]] += 1;",
            {kRace},
            {"own[x[i]] += 1;"}},
           {"a scope too small",
            c,
            "tw_atomic_add_relaxed_device",
            "tw_atomic_add_relaxed_block",
            {kRace},
            {"counts + b, own[b]"}},
           {"a thread leaves",
            c,
            "if (i < n) {",
            "if (i >= n) return;\n  {",
            {kDiverge},
            {"tw_sync();  // counts are there"}},
       }) {
    expect_caught(m);
  }
}

TEST(Mutants, Chain) {
  const Case c = chain_case(10);
  const char* wait = "while (tw_atomic_or_acquire_device";
  for (const Mutant& m : std::vector<Mutant>{
           {"waits without acquiring",
            c,
            "or_acquire",
            "or_relaxed",
            {kRace},
            {"sum += y[ticket - 1];", "y[ticket] = sum;"}},
           {"tells without releasing",
            c,
            "exch_release",
            "exch_relaxed",
            {kRace},
            {"sum += y[ticket - 1];", "y[ticket] = sum;"}},
           {"waits for nobody", c, "if (ticket > 0) {", "{", {kBounds}, {wait}},
           {"nobody tells",
            c,
            "tw_atomic_exch_release_device(flags + ticket, 1);",
            "",
            {EmuFault::deadlock},
            {wait}},
           {"waits for a later one",
            c,
            "flags + ticket - 1, 0",
            "flags + ticket, 0",
            {EmuFault::deadlock},
            {"flags + ticket, 0"}},
       }) {
    expect_caught(m);
  }
}

}  // namespace
}  // namespace tw::test
