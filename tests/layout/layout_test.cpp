#include "tw/layout/layout.h"

#include "tw/layout/tiler.h"

#include "tests/support/expect_error.h"

namespace tw::test {
namespace {

Layout operator""_l(const char* text, size_t) { return parse_layout(text); }

TEST(Layout, BuildsFromShapeAndStride) {
  const Layout layout({4, {2, 3}}, {1, {8, 16}});
  EXPECT_EQ(to_string(layout), "(4,(2,3)):(1,(8,16))");
  EXPECT_EQ(layout, parse_layout(" ( 4,( 2,3 ) ) : (1,(8,16)) "));
  EXPECT_EQ(layout.rank(), 2);
  EXPECT_EQ(to_string(layout.mode(1)), "(2,3):(8,16)");
  EXPECT_EQ(layout(IntTuple{3, IntTuple{1, 2}}), 3 + 8 + 32);
  EXPECT_EQ(layout(IntTuple{3, 5}), 3 + 8 + 32);
  EXPECT_EQ(layout(23), 3 + 8 + 32);
  EXPECT_EQ(to_string(Layout::compact({4, {2, 3}})), "(4,(2,3)):(1,(4,8))");
  EXPECT_EQ(to_string(Layout()), "1:0");
  EXPECT_EQ(Layout::compact(8).rank(), 1);
  EXPECT_EQ(Layout::compact(8).mode(0), Layout::compact(8));
  EXPECT_FALSE("(8):(1)"_l == "8:1"_l);
}

TEST(Layout, RefusesWhatIsNone) {
  TW_EXPECT_ERROR(UserError, "layout '(4,2:1': wanted ')' at offset 4",
                  [] { parse_layout("(4,2:1"); });
  TW_EXPECT_ERROR(UserError, "wanted an integer or '(' at offset 2", [] { parse_layout("4:"); });
  TW_EXPECT_ERROR(UserError, "wanted an integer or '(' at offset 1", [] { parse_layout("():()"); });
  TW_EXPECT_ERROR(UserError, "wanted the end at offset 4", [] { parse_layout("4:1 x"); });
  TW_EXPECT_ERROR(UserError, "wanted fewer parentheses inside each other",
                  [] { parse_layout(std::string(100'000, '(')); });
  TW_EXPECT_ERROR(UserError, "shape (4,2) and stride 1 differ in form",
                  [] { parse_layout("(4,2):1"); });
  TW_EXPECT_ERROR(UserError, "shape 0: wanted at least 1", [] { parse_layout("(4,0):(1,4)"); });
  TW_EXPECT_ERROR(UserError, "stride -1: wanted at least 0", [] { parse_layout("4:-1"); });
  TW_EXPECT_ERROR(UserError, "a tuple without modes", [] { Layout(IntTuple{}, IntTuple{}); });
}

TEST(Layout, RefusesWhatDoesNotFit) {
  const char* const kSentence = "does not fit in 64 bits";
  TW_EXPECT_ERROR(UserError, "wanted an integer of 64 bits at offset 0",
                  [] { parse_layout("99999999999999999999:1"); });
  TW_EXPECT_ERROR(UserError, kSentence, [] { parse_layout("9223372036854775807:2"); });
  TW_EXPECT_ERROR(UserError, kSentence, [] { parse_layout("2:9223372036854775807"); });
  TW_EXPECT_ERROR(UserError, kSentence,
                  [] { parse_layout("(2,2):(4611686018427387904,4611686018427387904)"); });
  TW_EXPECT_ERROR(UserError, kSentence, [] { Layout::compact({1LL << 32, 1LL << 32}); });
  TW_EXPECT_ERROR(UserError, kSentence,
                  [] { logical_product(Layout::compact(1LL << 40), Layout::compact(1LL << 40)); });
  const Layout longest("9223372036854775807:1"_l);
  EXPECT_EQ(longest.cosize(), INT64_MAX);
  EXPECT_EQ(coalesce("(2,2):(4611686018427387904,1)"_l), "(2,2):(4611686018427387904,1)"_l);
  EXPECT_EQ(composition(longest, "2:4611686018427387904"_l), "2:4611686018427387904"_l);
  EXPECT_EQ(right_inverse(longest), longest);
}

TEST(Layout, ChecksIndicesAndCoordinates) {
  const Layout layout = "(4,(2,3)):(1,(8,16))"_l;
  TW_EXPECT_ERROR(InternalError, "index 24 of (4,(2,3)):(1,(8,16)): wanted 0..23",
                  [&] { layout(24); });
  TW_EXPECT_ERROR(InternalError, "index -1", [&] { layout(-1); });
  TW_EXPECT_ERROR(InternalError, "index 4 of 4:1: wanted 0..3", [&] { layout(IntTuple{4, 0}); });
  TW_EXPECT_ERROR(InternalError, "coordinate (1,2,3) of (4,(2,3)):(1,(8,16)): its form differs",
                  [&] {
                    layout(IntTuple{1, 2, 3});
                  });
  TW_EXPECT_ERROR(InternalError, "mode 2 of (4,(2,3)):(1,(8,16)), which has 2",
                  [&] { layout.mode(2); });
}

TEST(Layout, RefusesResultsThatAreNoLayout) {
  TW_EXPECT_ERROR(UserError,
                  "composition: mode 4:3 of (2,4):(1,3) does not divide the modes of (4,8):(1,8)",
                  [] { composition("(4,8):(1,8)"_l, "(2,4):(1,3)"_l); });
  // Each mode divides, but their sum carries from mode to mode.
  TW_EXPECT_ERROR(UserError, "composition: mode 2:2 of (3,2):(1,2) does not divide the modes of",
                  [] { composition("(4,4):(1,100)"_l, "(3,2):(1,2)"_l); });
  TW_EXPECT_ERROR(UserError, "composition: 8:1 reaches index 7: wanted below 4, the size of 4:1",
                  [] { composition("4:1"_l, "8:1"_l); });
  TW_EXPECT_ERROR(UserError, "complement: (2,2):(1,3): stride 3: wanted a multiple of 2",
                  [] { complement("(2,2):(1,3)"_l, 12); });
  TW_EXPECT_ERROR(UserError, "complement: up to 0: wanted at least 1",
                  [] { complement("2:1"_l, 0); });
  TW_EXPECT_ERROR(UserError, "left inverse: (2,2):(1,0): stride 0 of shape 2",
                  [] { left_inverse("(2,2):(1,0)"_l); });
  TW_EXPECT_ERROR(UserError,
                  "logical divide: tiles 4:1 cover 12 indices: wanted 10, the size of 10:1",
                  [] { logical_divide("10:1"_l, "4:1"_l); });
  TW_EXPECT_ERROR(UserError, "tiler of 3 modes for (4,4):(1,4): wanted 1..2", [] {
    zipped_divide("(4,4):(1,4)"_l, Tiler{2, 2, 2});
  });
}

TEST(Layout, TilersLeaveModesThatTheyDoNotName) {
  const Layout a = "(4,6,5):(1,4,24)"_l;
  EXPECT_EQ(composition(a, Tiler{2, 3}), "(2,3,5):(1,4,24)"_l);
  EXPECT_EQ(logical_divide(a, Tiler{2}), "((2,2),6,5):((1,2),4,24)"_l);
  EXPECT_EQ(zipped_divide(a, Tiler{2, 3}), "((2,3),(2,2,5)):((1,4),(2,12,24))"_l);
  EXPECT_EQ(tiled_divide(a, Tiler{2, 3}), "((2,3),2,2,5):((1,4),2,12,24)"_l);
  const Layout nested = "((4,2),6):((1,4),8)"_l;
  EXPECT_EQ(logical_divide(nested, Tiler{Tiler{2, 2}, 3}),
            "(((2,2),(2,1)),(3,2)):(((1,2),(4,0)),(8,24))"_l);
}

}  // namespace
}  // namespace tw::test
