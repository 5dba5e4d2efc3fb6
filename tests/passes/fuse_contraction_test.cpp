#include "tw/passes/fuse_contraction.h"

#include <gtest/gtest.h>

#include "tw/ir/print.h"

#include "tests/passes/run_pass.h"
#include "tests/support/golden.h"

namespace tw {
namespace {

/// What a GEMM is made of; each test changes one line.
struct Parts {
  std::string params = "in A: f32[M, K]\nin B: f32[K, N]\nout C: f32[M, N]\n";
  std::string before;
  std::string init = "full 0";
  std::string range = "0..cdiv(K, 16) step 1";
  std::string a = "  %2 = load A{pid0*64, i0*16} : f32[64,16]\n";
  std::string b = "  %3 = load B{i0*16, pid1*32} : f32[16,32]\n";
  std::string after = "store %5 to C{pid0*64, pid1*32}\n";
};

std::string text(const Parts& p) {
  return "program gemm\ndim M\ndim N\ndim K\n" + p.params + "grid (cdiv(M, 64), cdiv(N, 32))\n\n" +
         p.before + "%0 = " + p.init + " : f32[64,32]\n%5 = for i0 in " + p.range +
         " carry (%1 = %0) : f32[64,32] {\n" + p.a + p.b +
         "  %4 = dot ieee %2, %3, %1 : f32[64,32]\n  yield %4\n}\n" + p.after;
}

Program fused(const std::string& text) {
  Program p = test::run_pass(fuse_contraction, parse(text, "test.tw"), "avx512");
  const std::string out = print(p);
  EXPECT_EQ(print(parse(out)), out);
  return p;
}

bool has_contract(const Program& p) {
  bool found = false;
  walk(p, [&](const Op& op) { found = found || op.code == Opcode::contract; });
  return found;
}

TEST(FuseContraction, LoopOfDotsAndPlainStore) {
  TW_EXPECT_GOLDEN("plain.tw", print(fused(text({}))));
}

TEST(FuseContraction, PrologueInitAndEpilogue) {
  Parts p;
  p.params =
      "in A: bf16[M, K]\nin B: f32[N, K]\nin bias: f32[N]\nin R: f32[M, N]\nout C: f32[M, N]\n"
      "out D: bf16[M, N]\n";
  p.init = "load R{pid0*64, pid1*32}";
  p.a =
      "  %20 = load A{pid0*64, i0*16} : bf16[64,16]\n  %21 = cast %20 : f32[64,16]\n"
      "  %22 = full 2 : f32[1,1]\n  %2 = mul %21, %22 : f32[64,16]\n";
  p.b =
      "  %23 = load B{pid1*32, i0*16} : f32[32,16]\n"
      "  %3 = transpose %23 perm (1, 0) : f32[16,32]\n";
  p.after =
      "%6 = load bias{pid1*32} : f32[32]\n%7 = reshape %6 : f32[1,32]\n"
      "%8 = add %5, %7 : f32[64,32]\n%9 = tanh %8 : f32[64,32]\n"
      "store %8 to C{pid0*64, pid1*32}\n%10 = cast %9 : bf16[64,32]\n"
      "store %10 to D{pid0*64, pid1*32}\n";
  TW_EXPECT_GOLDEN("fused.tw", print(fused(text(p))));
}

TEST(FuseContraction, BatchAndALoneDot) {
  const std::string text =
      "program bmm\ndim B\ndim M\nin X: f32[B, M, 8]\nin Y: f32[B, 8, 4]\nout Z: f32[B, M, 4]\n"
      "grid (B, cdiv(M, 8))\n\n"
      "%0 = load X[pid0]{pid1*8, 0} : f32[8,8]\n%1 = load Y[pid0]{0, 0} : f32[8,4]\n"
      "%2 = full 0 : f32[8,4]\n%3 = dot ieee %0, %1, %2 : f32[8,4]\n"
      "store %3 to Z[pid0]{pid1*8, 0}\n";
  TW_EXPECT_GOLDEN("batch.tw", print(fused(text)));
}

TEST(FuseContraction, InsideTheLoopsOfTheGrid) {
  Parts p;
  p.before = "par axis 0 {\n";
  p.after += "}\n";
  EXPECT_TRUE(has_contract(fused(text(p))));
}

struct Case {
  const char* why;
  void (*change)(Parts& p);
};

const Case kFuses[] = {
    {"a whole number of tiles needs no zeros outside",
     [](Parts& p) {
       p.range = "0..4 step 1";
       p.params = "in A: f32[M, 64]\nin B: f32[64, N]\nout C: f32[M, N]\n";
       p.a = "  %9 = load A{pid0*64, i0*16} : f32[64,16]\n  %2 = exp %9 : f32[64,16]\n";
     }},
    {"a counter in steps",
     [](Parts& p) {
       p.range = "0..K step 16";
       p.a = "  %2 = load A{pid0*64, i0} : f32[64,16]\n";
       p.b = "  %3 = load B{i0, pid1*32} : f32[16,32]\n";
     }},
    {"the part of k from an offset on", [](Parts& p) { p.range = "2..cdiv(K, 16) step 1"; }},
    {"two stores of one sum",
     [](Parts& p) {
       p.params += "out D: f32[M, N]\n";
       p.after += "%8 = neg %5 : f32[64,32]\nstore %8 to D{pid0*64, pid1*32}\n";
     }},
};

TEST(FuseContraction, AlsoFuses) {
  for (const Case& c : kFuses) {
    Parts p;
    c.change(p);
    EXPECT_TRUE(has_contract(fused(text(p)))) << c.why;
  }
}

const Case kStays[] = {
    {"k is walked with gaps", [](Parts& p) { p.range = "0..cdiv(K, 16) step 2"; }},
    {"A and B walk k apart",
     [](Parts& p) { p.b = "  %3 = load B{i0*16 + 16, pid1*32} : f32[16,32]\n"; }},
    {"A does not move along k", [](Parts& p) { p.a = "  %2 = load A{pid0*64, 0} : f32[64,16]\n"; }},
    {"A moves along its rows too",
     [](Parts& p) { p.a = "  %2 = load A{pid0*64 + i0, i0*16} : f32[64,16]\n"; }},
    {"outside A exp gives 1",
     [](Parts& p) {
       p.a = "  %9 = load A{pid0*64, i0*16} : f32[64,16]\n  %2 = exp %9 : f32[64,16]\n";
     }},
    {"outside A stands a pad that is not zero",
     [](Parts& p) { p.a = "  %2 = load A{pid0*64, i0*16} pad 1 : f32[64,16]\n"; }},
    {"B ends elsewhere than A",
     [](Parts& p) { p.params = "in A: f32[M, K]\nin B: f32[M, N]\nout C: f32[M, N]\n"; }},
    {"C has rows that A lacks",
     [](Parts& p) { p.params = "in A: f32[K, K]\nin B: f32[K, N]\nout C: f32[M, N]\n"; }},
    {"the operand depends on the counter",
     [](Parts& p) {
       p.a =
           "  %9 = index i0 : i32[1,1]\n  %8 = cast %9 : f32[1,1]\n"
           "  %7 = load A{pid0*64, i0*16} : f32[64,16]\n  %2 = mul %7, %8 : f32[64,16]\n";
     }},
    {"the sum is reduced",
     [](Parts& p) {
       p.params += "out R: f32[M, 1]\n";
       p.after += "%8 = reduce sum %5 axis 1 : f32[64,1]\nstore %8 to R{pid0*64, 0}\n";
     }},
    {"the sum is moved",
     [](Parts& p) {
       p.params = "in A: f32[M, K]\nin B: f32[K, N]\nout C: f32[N, M]\n";
       p.after = "%8 = transpose %5 perm (1, 0) : f32[32,64]\nstore %8 to C{pid1*32, pid0*64}\n";
     }},
    {"the epilogue reads what others write",
     [](Parts& p) {
       p.params += "inout D: f32[M, N]\n";
       p.after =
           "%8 = load D{pid0*64, pid1*32} : f32[64,32]\n%9 = add %5, %8 : f32[64,32]\n"
           "store %9 to C{pid0*64, pid1*32}\n";
     }},
    {"another store stands between",
     [](Parts& p) {
       p.params += "out D: f32[M, N]\n";
       p.after = "store %0 to D{pid0*64, pid1*32}\n" + p.after;
     }},
    {"stores at two places",
     [](Parts& p) {
       p.params += "out D: f32[N, M]\n";
       p.after += "store %5 to D{pid1*32, pid0*64}\n";
     }},
};

TEST(FuseContraction, StaysWhereMeaningWouldChange) {
  for (const Case& c : kStays) {
    Parts p;
    c.change(p);
    EXPECT_FALSE(has_contract(fused(text(p)))) << c.why;
  }
}

}  // namespace
}  // namespace tw
