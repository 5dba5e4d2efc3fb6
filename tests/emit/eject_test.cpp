#include <fmt/format.h>
#include <gtest/gtest.h>

#include "tw/base/error.h"
#include "tw/emit/cuda/eject_cuda.h"
#include "tw/ir/print.h"
#include "tw/passes/pipeline.h"

#include "tests/emit/run_text.h"
#include "tests/support/expect_error.h"
#include "tests/support/golden.h"
#include "tests/support/guarded.h"

namespace tw::test {
namespace {

bool holds(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

// The exact kernel of the golden files: a promise, a broadcast, a dim of no tensor, in and out.
const char* const kProgram = R"(program scale_rows
dim M
dim N multiple_of 8
dim add
in x: f32[M, N]
in w: bf16[M, 1]
inout y: f32[M, N]
grid (M, cdiv(N, 64))
%0 = load x{pid0, pid1*64} : f32[1,64]
%1 = load w{pid0, 0} : bf16[1,1]
%2 = cast %1 : f32[1,1]
%3 = mul %0, %2 : f32[1,64]
if add != 0 {
  %4 = load y{pid0, pid1*64} : f32[1,64]
  %5 = add %3, %4 : f32[1,64]
  store %5 to y{pid0, pid1*64}
} else {
  store %3 to y{pid0, pid1*64}
}
)";

Ejected scale_rows(const std::string& isa) {
  Guarded x(f32, {4, 72}, {0, 1}), w(bf16, {4, 1}, {3, 1}), y(f32, {4, 72}, {80, 1});
  return ejected_for(kProgram, {x, w, y}, isa);
}

TEST(Eject, ReadsLikeASourceOfOnesOwn) {
  const Ejected e = scale_rows("avx2");
  TW_EXPECT_GOLDEN("scale_rows.h.txt", e.header);
  TW_EXPECT_GOLDEN("scale_rows.cpp.txt", e.source);
}

/// For tensors as those of scale_rows().
Ejected ejected_for_gpu(const std::string& ir, const std::string& arch,
                        EjectNames names = {"kernel"}) {
  const Program p = parse(ir);
  const Mapping mapping{"cuda1", {}};
  const auto lowered = [&](bool aligned) {
    LoweredFor l{p, contiguous_facts(p)};
    for (ParamFacts& facts : l.facts.params) facts.aligned = aligned;
    run_passes(l.program, cuda_passes(), {machine_named("generic"), mapping, l.facts}, true);
    return l;
  };
  return eject_cuda(lowered(true), lowered(false), gpu_named(arch), mapping, names);
}

TEST(EjectCuda, ReadsLikeASourceOfOnesOwn) {
  const Ejected e = ejected_for_gpu(kProgram, "sm_90a");
  TW_EXPECT_GOLDEN("scale_rows_cuda.h.txt", e.header);
  TW_EXPECT_GOLDEN("scale_rows.cu", e.source);
}

TEST(EjectCuda, AsksForItsArchitecture) {
  EXPECT_TRUE(holds(ejected_for_gpu(kProgram, "sm_80").source, "__CUDA_ARCH__ < 800\n#error"));
  EXPECT_TRUE(holds(ejected_for_gpu(kProgram, "sm_80").header, "nvcc -std=c++17 -arch=sm_80 -c"));
}

TEST(EjectCuda, OneKernelIsEnoughWhereFactsChangeNothing) {
  const Ejected e = ejected_for_gpu(R"(program single
dim N
in x: f32[N]
out y: f32[N]
grid (N)
%0 = load x{pid0} : f32[1]
store %0 to y{pid0}
)",
                                    "sm_90a");
  EXPECT_FALSE(holds(e.source, "namespace aligned"));
  EXPECT_TRUE(holds(e.source, "namespace any"));
  EXPECT_FALSE(holds(e.header, "faster where"));
}

// What a block cannot hold: 512 KB, summed along columns.
TEST(EjectCuda, WorkspaceIsOfTheCaller) {
  const Ejected e = ejected_for_gpu(R"(program large
dim M
in workspace: f32[M, 512]
out y: f32[M, 512]
grid (cdiv(M, 256))
%0 = load workspace{pid0*256, 0} : f32[256, 512]
%1 = scan sum %0 axis 0 : f32[256, 512]
store %1 to y{pid0*256, 0}
)",
                                    "sm_90a", {"kernel", "sums"});
  EXPECT_TRUE(holds(e.header, "size_t sums_workspace_bytes();")) << e.header;
  EXPECT_TRUE(holds(e.header, "const float* workspace_,"));
  EXPECT_TRUE(holds(e.header, "void* workspace, cudaStream_t stream = nullptr);"));
  EXPECT_TRUE(holds(e.source, "u8*)workspace};"));
}

TEST(Eject, EachIsaAsksForWhatItNeeds) {
  const std::string avx512 = scale_rows("avx512").source, avx2 = scale_rows("avx2").source;
  const std::string neon = scale_rows("neon").source, generic = scale_rows("generic").source;
  EXPECT_TRUE(holds(avx512, "#pragma GCC target(\"arch=x86-64-v4\")"));
  EXPECT_TRUE(holds(avx512, "__builtin_cpu_supports(\"avx512bw\")"));
  EXPECT_TRUE(holds(avx2, "#pragma GCC target(\"arch=x86-64-v3\")"));
  EXPECT_FALSE(holds(avx2, "avx512"));
  EXPECT_TRUE(holds(neon, "#if !defined(__aarch64__)\n#error"));
  for (const std::string& plain : {neon, generic}) {
    EXPECT_FALSE(holds(plain, "target("));
    EXPECT_FALSE(holds(plain, "__builtin_cpu_supports"));
    EXPECT_FALSE(holds(plain, "__x86_64__"));
  }
}

TEST(Eject, FactsThatNothingChecksAreRefused) {
  Specialisation narrow, aligned;
  narrow.fits32 = true;
  aligned.params.push_back({.aligned = true});
  for (const Specialisation& s : {narrow, aligned}) {
    TW_EXPECT_ERROR(InternalError, "facts of addresses or sizes",
                    [&] { eject_cpu({}, s, machine_named("avx2"), {}, {"kernel"}); });
    TW_EXPECT_ERROR(InternalError, "facts of addresses or sizes", [&] {
      eject_cuda({{}, s}, {{}, s}, gpu_named("sm_80"), {}, {"kernel"});
    });
  }
}

}  // namespace
}  // namespace tw::test
