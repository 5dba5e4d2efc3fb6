#include "tw/passes/place_tiles.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include "tw/base/error.h"
#include "tw/ir/print.h"

#include "tests/passes/run_pass.h"
#include "tests/support/expect_error.h"

namespace tw {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

const char* const kSignature =
    "program p\ndim N\nin X: f32[N]\ninout Y: f32[N]\nout Z: f32[N]\ngrid (cdiv(N, 16))\n\n";

/// What the pass keeps, as the operands of the `keep` ops it adds, in order.
std::vector<std::string> kept(const std::string& body) {
  const Program p = test::run_pass(place_tiles, parse(kSignature + body), "avx2");
  std::vector<const Op*> def(p.values.size());
  walk(p, [&](const Op& op) {
    for (const ValueId v : op.out) def[v] = &op;
  });
  std::vector<std::string> names;
  walk(p, [&](const Op& op) {
    if (op.code == Opcode::keep) names.push_back(info(def[op.in[0]]->code).name);
  });
  return names;
}

TEST(PlaceTiles, CheapChainsAreComputedAgain) {
  EXPECT_THAT(kept("%0 = load X{pid0*16} : f32[16]\n"
                   "%1 = add %0, %0 : f32[16]\n"
                   "%2 = reduce sum %1 axis 0 : f32[1]\n"
                   "%3 = mul %1, %2 : f32[16]\n"
                   "store %3 to Z{pid0*16}\n"),
              IsEmpty());
}

// Each link reads the one before three times.
TEST(PlaceTiles, LongChainsThatReuseTheirValuesAreOneNest) {
  std::string body = "%0 = load Y{pid0*16} : f32[16]\n";
  for (int k = 0; k < 400; k += 2) {
    body += fmt::format("%{1} = mul %{0}, %{0} : f32[16]\n%{2} = sub %{0}, %{1} : f32[16]\n", k,
                        k + 1, k + 2);
  }
  EXPECT_THAT(kept(body + "store %400 to Y{pid0*16}\n"), IsEmpty());
  EXPECT_THAT(kept(body + "%500 = reshape %400 : f32[4,4]\n"
                          "%501 = transpose %500 perm (1, 0) : f32[4,4]\n"
                          "%502 = reshape %501 : f32[16]\n%503 = add %400, %502 : f32[16]\n"
                          "store %503 to Y{pid0*16}\n"),
              ElementsAre("load"));
}

// Of coordinates in tiles nothing is known: what a later write may change is read before it.
TEST(PlaceTiles, GathersAndLoadsBeforeWritesToTheirTensorAreKept) {
  const std::string at = "%0 = iota axis 0 : i64[16]\n";
  EXPECT_THAT(kept(at + "%1 = gather Y{%0} : f32[16]\nscatter %1 to Y{%0}\n"),
              ElementsAre("gather"));
  EXPECT_THAT(kept(at + "%1 = gather Y{%0} : f32[16]\nstore %1 to Y{pid0*16}\n"),
              ElementsAre("gather"));
  EXPECT_THAT(kept(at + "%1 = load Y{0} : f32[16]\nscatter %1 to Y{%0}\n"), ElementsAre("load"));
  EXPECT_THAT(kept(at + "%1 = load Y{0} : f32[16]\n"
                        "atomic add relaxed device %1 to Y{%0}\nstore %1 to Z{pid0*16}\n"),
              ElementsAre("load"));
  EXPECT_THAT(kept(at + "%1 = gather Y{%0} : f32[16]\nscatter %1 to Z{%0}\n"), IsEmpty());
  EXPECT_THAT(kept(at + "%1 = gather X{%0} : f32[16]\nscatter %1 to Y{%0}\n"), IsEmpty());
}

TEST(PlaceTiles, GathersThatTwoNestsReadAreKept) {
  EXPECT_THAT(kept("%0 = iota axis 0 : i64[16]\n%1 = gather X{%0} : f32[16]\n"
                   "%2 = reduce sum %1 axis 0 : f32[1]\n%3 = mul %1, %2 : f32[16]\n"
                   "store %3 to Z{pid0*16}\n"),
              ElementsAre("gather"));
}

TEST(PlaceTiles, DearValuesOfTwoNestsAreKept) {
  EXPECT_THAT(kept("%0 = load X{pid0*16} : f32[16]\n"
                   "%1 = exp %0 : f32[16]\n"
                   "%2 = reduce sum %1 axis 0 : f32[1]\n"
                   "%3 = mul %1, %2 : f32[16]\n"
                   "store %3 to Z{pid0*16}\n"),
              ElementsAre("exp"));
}

TEST(PlaceTiles, DearValuesOfOneNestAreNot) {
  EXPECT_THAT(kept("%0 = load X{pid0*16} : f32[16]\n"
                   "%1 = exp %0 : f32[16]\n"
                   "%2 = add %1, %1 : f32[16]\n"
                   "store %2 to Z{pid0*16}\n"),
              IsEmpty());
}

TEST(PlaceTiles, DearValuesReadInALoopAreKeptBeforeIt) {
  EXPECT_THAT(kept("%0 = load X{pid0*16} : f32[16]\n"
                   "%1 = log %0 : f32[16]\n"
                   "for i0 in 0..N step 1 {\n"
                   "  store %1 to Z{i0}\n"
                   "}\n"),
              ElementsAre("log"));
}

TEST(PlaceTiles, ALoadThatAStoreChangesIsKept) {
  EXPECT_THAT(kept("%0 = load Y{pid0*16} : f32[16]\n"
                   "%1 = full 0 : f32[16]\n"
                   "store %1 to Y{pid0*16}\n"
                   "store %0 to Z{pid0*16}\n"),
              ElementsAre("load"));
}

TEST(PlaceTiles, ALoadOfTheVeryElementThatIsStoredIsNot) {
  EXPECT_THAT(kept("%0 = load Y{pid0*16} : f32[16]\n"
                   "%1 = add %0, %0 : f32[16]\n"
                   "store %1 to Y{pid0*16}\n"),
              IsEmpty());
}

TEST(PlaceTiles, AStoreOfOtherElementsKeepsItsLoad) {
  EXPECT_THAT(kept("%0 = load Y{pid0*16 + 1} : f32[16]\n"
                   "store %0 to Y{pid0*16}\n"),
              ElementsAre("load"));
  EXPECT_THAT(kept("%0 = load Y{pid0*16} : f32[16]\n"
                   "%1 = reshape %0 : f32[4,4]\n"
                   "%2 = transpose %1 perm (1, 0) : f32[4,4]\n"
                   "%3 = reshape %2 : f32[16]\n"
                   "store %3 to Y{pid0*16}\n"),
              ElementsAre("load"));
}

TEST(PlaceTiles, AStoreInTheSameLoopKeepsALoadBeforeIt) {
  EXPECT_THAT(kept("%0 = load Y{pid0*16} : f32[16]\n"
                   "for i0 in 0..2 step 1 {\n"
                   "  store %0 to Z{i0}\n"
                   "  %1 = full 1 : f32[16]\n"
                   "  store %1 to Y{pid0*16}\n"
                   "}\n"),
              ElementsAre("load"));
}

TEST(PlaceTiles, VariablesThatSwapAreKept) {
  EXPECT_THAT(kept("%0 = load X{pid0*16} : f32[16]\n"
                   "%1 = full 0 : f32[16]\n"
                   "%6, %7 = for i0 in 0..3 step 1 carry (%2 = %0, %3 = %1) : f32[16], f32[16] {\n"
                   "  %4 = neg %3 : f32[16]\n"
                   "  %5 = neg %2 : f32[16]\n"
                   "  yield %4, %5\n"
                   "}\n"
                   "%8 = add %6, %7 : f32[16]\n"
                   "store %8 to Z{pid0*16}\n"),
              ElementsAre("neg", "neg"));
}

TEST(PlaceTiles, VariablesUpdatedInPlaceAreNot) {
  EXPECT_THAT(kept("%0 = load X{pid0*16} : f32[16]\n"
                   "%3 = for i0 in 0..3 step 1 carry (%1 = %0) : f32[16] {\n"
                   "  %2 = neg %1 : f32[16]\n"
                   "  yield %2\n"
                   "}\n"
                   "store %3 to Z{pid0*16}\n"),
              IsEmpty());
}

TEST(Pipeline, PassesAreFoundByName) {
  EXPECT_STREQ(pass_named("place_tiles").name, "place_tiles");
  TW_EXPECT_ERROR(UserError, "no pass is named 'place'", [] { return pass_named("place"); });
}

}  // namespace
}  // namespace tw
