#include <fmt/format.h>
#include <gtest/gtest.h>

#include "tw/emit/cuda/emit_cuda.h"
#include "tw/ir/print.h"
#include "tw/passes/pipeline.h"

#include "tests/support/golden.h"

namespace tw::test {
namespace {

/// A program, and how many barriers of the block its text needs. Where blocks have memory one more
/// ends each instance, before the next may write that memory.
struct Small {
  const char *name, *params, *body;
  int barriers;
  friend std::ostream& operator<<(std::ostream& o, const Small& s) { return o << s.name; }
};

const Small kSmall[] = {
    {"copy", "dim N\nin x: f32[N]\nout y: f32[N]\ngrid (cdiv(N, 1024))\n",
     "%0 = load x{pid0*1024} : f32[1024]\nstore %0 to y{pid0*1024}\n", 0},
    {"store_bf16", "dim N\nin x: f32[N]\nout y: bf16[N]\ngrid (cdiv(N, 1024))\n",
     "%0 = load x{pid0*1024} : f32[1024]\n%1 = cast %0 : bf16[1024]\nstore %1 to y{pid0*1024}\n",
     0},
    // What is clamped to the largest number takes one instruction a pair; words are chosen.
    {"store_e4m3", "dim M\nin x: f32[M, 1024]\nout y: e4m3[M, 1024]\ngrid (M)\n",
     "%0 = load x{pid0, 0} : f32[1,1024]\n%1 = load x{pid0, 0} : f32[1,1]\n"
     "%2 = full -448 : f32[1,1]\n%3 = max %0, %2 : f32[1,1024]\n"
     "%4 = full 448 : f32[1,1]\n%5 = min %3, %4 : f32[1,1024]\n"
     "%6 = full 0 : f32[1,1]\n%7 = lt %6, %1 : b1[1,1]\n"
     "%8 = where %7, %5, %6 : f32[1,1024]\n%9 = cast %8 : e4m3[1,1024]\n"
     "store %9 to y{pid0, 0}\n",
     0},
    // Two windows that share nothing.
    {"halves", "dim M\nin x: f32[M, 64]\nout y: f32[M, 128]\ngrid (cdiv(M, 8))\n",
     "%0 = load x{pid0*8, 0} : f32[8,64]\nstore %0 to y{pid0*8, 0}\n"
     "%1 = neg %0 : f32[8,64]\nstore %1 to y{pid0*8, 64}\n",
     0},
    // A row lies in one warp.
    {"row_sum", "dim M\nin x: f32[M, 128]\nout y: f32[M, 1]\ngrid (cdiv(M, 8))\n",
     "%0 = load x{pid0*8, 0} : f32[8,128]\n%1 = reduce sum %0 axis 1 : f32[8,1]\n"
     "store %1 to y{pid0*8, 0}\n",
     0},
    // Warps share a row twice, for its largest element and for its sum, in memory of their own.
    {"softmax_row", "dim M\ndim N\nin x: f32[M, N]\nout y: f32[M, N]\ngrid (M)\n",
     "%0 = load x{pid0, 0} pad -inf : f32[1,2048]\n%1 = reduce max %0 axis 1 : f32[1,1]\n"
     "%2 = sub %0, %1 : f32[1,2048]\n%3 = exp %2 : f32[1,2048]\n"
     "%4 = reduce sum %3 axis 1 : f32[1,1]\n%5 = div %3, %4 : f32[1,2048]\n"
     "store %5 to y{pid0, 0}\n",
     3},
    // Written, then read by others.
    {"transpose",
     "dim M\ndim N\nin x: f32[M, N]\nout y: f32[N, M]\ngrid (cdiv(M, 32), cdiv(N, 32))\n",
     "%0 = load x{pid0*32, pid1*32} : f32[32,32]\n%1 = transpose %0 perm (1, 0) : f32[32,32]\n"
     "store %1 to y{pid1*32, pid0*32}\n",
     2},
    // Sums of warps, written, then read by all.
    {"column_sum", "dim M\ndim N\nin x: f32[M, N]\nout y: f32[1, N]\ngrid (cdiv(N, 32))\n",
     "%0 = load x{0, pid0*32} : f32[64,32]\n%1 = reduce sum %0 axis 0 : f32[1,32]\n"
     "store %1 to y{0, pid0*32}\n",
     2},
    {"loop_sum", "dim M\ndim N\nin x: f32[M, N]\nout y: f32[M, 1]\ngrid (cdiv(M, 8))\n",
     "%0 = full 0 : f32[8,128]\n"
     "%4 = for i0 in 0..cdiv(N, 128) step 1 carry (%1 = %0) : f32[8,128] {\n"
     "%2 = load x{pid0*8, i0*128} : f32[8,128]\n%3 = add %1, %2 : f32[8,128]\nyield %3\n}\n"
     "%5 = reduce sum %4 axis 1 : f32[8,1]\nstore %5 to y{pid0*8, 0}\n",
     0},
    {"gather", "dim N\ndim K\nin x: f32[K]\nin i: i32[N]\nout y: f32[N]\ngrid (cdiv(N, 256))\n",
     "%0 = load i{pid0*256} : i32[256]\n%1 = gather x{%0} : f32[256]\nstore %1 to y{pid0*256}\n",
     0},
    // Counts are cleared, then added to by all, then read.
    {"atomic_add", "dim N\nin i: i32[N]\nout y: i32[64]\nscratch counts: i32[64]\ngrid (1)\n",
     "%1 = full 1 : i32[1]\nfor i0 in 0..cdiv(N, 256) step 1 {\n"
     "%0 = load i{i0*256} pad -1 : i32[256]\natomic add relaxed device %1 to counts{%0}\n}\n"
     "%2 = load counts{0} : i32[64]\nstore %2 to y{0}\n",
     3},
    // Both folds of an iteration meet before their sums are written anew.
    {"row_parts", "dim M\ndim N\nin x: bf16[M, N]\nout y: f32[M, 1]\ngrid (M)\n",
     "%0 = full 0 : f32[1,1]\n%1 = full -inf : f32[1,1]\n"
     "%13, %14 = for i0 in 0..cdiv(N, 2048) step 1 carry (%2 = %0, %3 = %1) : f32[1,1], f32[1,1] "
     "{\n"
     "%16 = load x{pid0, i0*2048} pad -inf : bf16[1,2048]\n%4 = cast %16 : f32[1,2048]\n"
     "%5 = reduce max %4 axis 1 : f32[1,1]\n%6 = max %3, %5 : f32[1,1]\n"
     "%7 = sub %4, %6 : f32[1,2048]\n%8 = exp %7 : f32[1,2048]\n"
     "%9 = reduce sum %8 axis 1 : f32[1,1]\n%10 = exp %3 : f32[1,1]\n"
     "%11 = mul %2, %10 : f32[1,1]\n%12 = add %11, %9 : f32[1,1]\nyield %12, %6\n}\n"
     "%15 = add %13, %14 : f32[1,1]\nstore %15 to y{pid0, 0}\n",
     3},
    // An instance writes y in one branch only.
    {"branches", "dim N\nin x: f32[N]\nout y: f32[N]\ngrid (1)\n",
     "if N <= 1024 {\n%0 = load x{0} : f32[1024]\nstore %0 to y{0}\n} else {\n"
     "for i0 in 0..cdiv(N, 1024) step 1 {\n"
     "%1 = load x{i0*1024} : f32[1024]\nstore %1 to y{i0*1024}\n}\n}\n",
     0},
    {"if", "dim N\ndim S\nin x: f32[N]\nout y: f32[N]\ngrid (cdiv(N, 256))\n",
     "%0 = load x{pid0*256} : f32[256]\n%3 = if pid0 <= S - 1 : f32[256] {\n"
     "%1 = neg %0 : f32[256]\nyield %1\n} else {\n%2 = exp %0 : f32[256]\nyield %2\n}\n"
     "store %3 to y{pid0*256}\n",
     0},
};

/// What follows the functions of the prelude, for aligned tensors that lie one row after the other.
std::string program_part(const Small& small) {
  Program p = parse(fmt::format("program {}\n{}\n{}", small.name, small.params, small.body));
  canonicalize(p);
  Specialisation facts = contiguous_facts(p);
  for (ParamFacts& f : facts.params) f.aligned = true;
  const Mapping mapping{"cuda1", {}};
  run_passes(p, cuda_passes(), {machine_named("generic"), mapping, facts}, true);
  const EmittedCuda e = emit_cuda(p, facts, gpu_named("sm_90a"), mapping, false);
  return fmt::format("// {} threads, {} bytes of shared memory\n{}", e.launch.threads,
                     e.launch.shared_bytes, e.text.substr(e.text.find("struct Args")));
}

int count(const std::string& text, const std::string& part) {
  int n = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++n;
  return n;
}

class CudaText : public testing::TestWithParam<Small> {};

TEST_P(CudaText, ReadsLikeTheProgram) {
  TW_EXPECT_GOLDEN(fmt::format("{}.cu", GetParam().name), program_part(GetParam()));
}

TEST_P(CudaText, HasTheBarriersThatItNeeds) {
  const std::string text = program_part(GetParam());
  EXPECT_EQ(count(text, "tw_sync();"), GetParam().barriers) << text;
}

INSTANTIATE_TEST_SUITE_P(Small, CudaText, testing::ValuesIn(kSmall),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace tw::test
