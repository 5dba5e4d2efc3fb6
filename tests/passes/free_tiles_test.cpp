#include "tw/passes/free_tiles.h"

#include <algorithm>
#include <gtest/gtest.h>

#include "tw/ir/print.h"
#include "tw/passes/fuse_contraction.h"

#include "tests/passes/run_pass.h"
#include "tests/support/golden.h"

namespace tw {
namespace {

/// A product with an epilogue; each test changes one line. Tiles are of 64x32.
struct Tiled {
  std::string params = "in A: f32[M, K]\nin B: f32[N, K]\nin bias: f32[N]\nout C: f32[M, N]\n";
  std::string grid = "cdiv(M, 64), cdiv(N, 32)";
  std::string a = "  %2 = load A{pid0*64, i0*16} : f32[64,16]\n";
  std::string before;
  std::string bias = "%6 = load bias{pid1*32} : f32[32]\n";
  std::string last = "%8 = add %5, %7 : f32[64,32]\n";
  std::string store = "store %8 to C{pid0*64, pid1*32}\n";
};

std::string program_of(const Tiled& p) {
  return "program gemm\ndim M\ndim N\ndim K\n" + p.params + "grid (" + p.grid + ")\n\n" + p.before +
         "%0 = full 0 : f32[64,32]\n"
         "%5 = for i0 in 0..cdiv(K, 16) step 1 carry (%1 = %0) : f32[64,32] {\n" +
         p.a +
         "  %20 = load B{pid1*32, i0*16} : f32[32,16]\n"
         "  %3 = transpose %20 perm (1, 0) : f32[16,32]\n"
         "  %4 = dot ieee %2, %3, %1 : f32[64,32]\n  yield %4\n}\n" +
         p.bias + "%7 = reshape %6 : f32[1,32]\n" + p.last + p.store;
}

Program freed(const std::string& text) {
  const Program fused = test::run_pass(fuse_contraction, parse(text, "test.tw"));
  EXPECT_EQ(fused.body.ops[0].code, Opcode::contract) << "the test's program does not fuse";
  Program p = test::run_pass(free_tiles, fused);
  const std::string out = print(p);
  EXPECT_EQ(print(parse(out)), out);
  return p;
}

bool is_free(const Program& p, const std::string& side) {
  return std::ranges::any_of(p.dims, [&](const Dim& d) { return d.name == "Piece" + side; });
}

TEST(FreeTiles, OperandsTransposesAndEpilogue) {
  TW_EXPECT_GOLDEN("free_tiles.tw", print(freed(program_of({}))));
}

TEST(FreeTiles, BatchesStay) {
  const Program p = freed(
      "program bmm\ndim S\ndim M\nin X: f32[S, M, 8]\nin Y: f32[S, 8, 4]\nout Z: f32[S, M, 4]\n"
      "grid (S, cdiv(M, 8))\n\n"
      "%0 = load X[pid0]{pid1*8, 0} : f32[8,8]\n%1 = load Y[pid0]{0, 0} : f32[8,4]\n"
      "%2 = full 0 : f32[8,4]\n%3 = dot ieee %0, %1, %2 : f32[8,4]\n"
      "store %3 to Z[pid0]{pid1*8, 0}\n");
  EXPECT_TRUE(is_free(p, "Rows"));
  EXPECT_FALSE(is_free(p, "Cols"));  // one tile of 4 has all of them
  EXPECT_EQ(p.grid[0], Expr::symbol(SymbolKind::dim, 0));
}

/// Instances of a grid that ends before the tensor, or begins inside it, store no more and no less.
TEST(FreeTiles, TheGridSaysHowFarTilesReach) {
  Tiled p;
  p.grid = "3, cdiv(N, 32)";
  const Program part = freed(program_of(p));
  const SymbolName names = [&](Symbol s) { return symbol_name(part, s); };
  EXPECT_EQ(to_string(part.grid[0], names), "cdiv(min(M, 192), PieceRows)");

  p = {};
  p.a = "  %2 = load A{pid0*64 + 5, i0*16} : f32[64,16]\n";
  p.store = "store %8 to C{pid0*64 + 5, pid1*32}\n";
  const Program from = freed(program_of(p));
  EXPECT_EQ(to_string(from.grid[0], [&](Symbol s) { return symbol_name(from, s); }),
            "cdiv(M - 5, PieceRows)");
}

struct Freedom {
  const char* why;
  void (*change)(Tiled& p);
  bool rows = false, cols = true;  ///< which are free
};

const Freedom kFreedoms[] = {
    {"nothing stands in the way", [](Tiled&) {}, true, true},
    {"an element knows its row in the tile",
     [](Tiled& p) {
       p.before = "%30 = iota axis 0 : i32[64,1]\n%31 = cast %30 : f32[64,1]\n";
       p.last = "%33 = add %5, %7 : f32[64,32]\n%8 = add %33, %31 : f32[64,32]\n";
     }},
    {"an iota along columns says nothing of rows",
     [](Tiled& p) {
       p.before = "%30 = iota axis 1 : i32[1,32]\n%31 = cast %30 : f32[1,32]\n";
       p.last = "%33 = add %5, %7 : f32[64,32]\n%8 = add %33, %31 : f32[64,32]\n";
     },
     true, false},
    {"all instances read one tile", [](Tiled& p) { p.bias = "%6 = load bias{0} : f32[32]\n"; },
     true, false},
    {"the coordinate is a number",
     [](Tiled& p) {
       p.before = "%30 = index pid0 : i32[1,1]\n%31 = cast %30 : f32[1,1]\n";
       p.last = "%33 = add %5, %7 : f32[64,32]\n%8 = add %33, %31 : f32[64,32]\n";
     }},
    {"rows move faster in the residual than in C",
     [](Tiled& p) {
       p.params =
           "in A: f32[M, K]\nin B: f32[N, K]\nin bias: f32[N]\nin R: f32[M, N]\n"
           "out C: f32[M, N]\n";
       p.before = "%30 = load R{pid0*128, pid1*32} : f32[64,32]\n";
       p.last = "%33 = add %5, %7 : f32[64,32]\n%8 = add %33, %30 : f32[64,32]\n";
     }},
    {"a fixed axis follows the coordinate",
     [](Tiled& p) {
       p.params = "in A: f32[M, K]\nin B: f32[N, K]\nin bias: f32[M, N]\nout C: f32[M, N]\n";
       p.bias = "%6 = load bias[pid0]{pid1*32} : f32[32]\n";
     }},
    {"random bits count elements of the tile",
     [](Tiled& p) {
       p.params = "in A: f32[M, K]\nin B: f32[N, K]\nin bias: f32[N]\nout C: bf16[M, N]\n";
       p.last = "%9 = add %5, %7 : f32[64,32]\n%8 = cast %9 SR seed 3 : bf16[64,32]\n";
     },
     false, false},
};

TEST(FreeTiles, StaysWhereTheTileHasAMeaning) {
  for (const Freedom& c : kFreedoms) {
    Tiled p;
    c.change(p);
    const Program got = freed(program_of(p));
    EXPECT_EQ(is_free(got, "Rows"), c.rows) << c.why;
    EXPECT_EQ(is_free(got, "Cols"), c.cols) << c.why;
  }
}

}  // namespace
}  // namespace tw
