#include <cstdlib>
#include <fstream>
#include <sstream>

#include "tw/layout/draw.h"

#include "tests/layout/transcript.h"
#include "tests/support/golden.h"

namespace tw::test {
namespace {

TEST(LayoutPage, AnswersAreCurrent) {
  GoldenFolder docs(TW_TEST_DIR "/../../docs", std::getenv("TW_UPDATE_GOLDEN") != nullptr);
  std::stringstream page;
  page << std::ifstream(TW_TEST_DIR "/../../docs/layout.md").rdbuf();
  EXPECT_TRUE(docs.compare("layout.md", answered(page.str())));
}

TEST(LayoutPage, AnswersReplaceOldOnes) {
  EXPECT_EQ(
      answered(
          "> no block\n```text\n> size((2,3):(1,2))\nold\nlines\n\n> offset(4:3, 2)\n```\nend\n"),
      "> no block\n```text\n> size((2,3):(1,2))\n6\n\n> offset(4:3, 2)\n6\n```\nend\n");
}

/// Worked examples of CuTe's documentation that docs/layout.md does not show.
TEST(LayoutPage, ExamplesOfCute) {
  std::string all;
  for (const char* call : {"coalesce((2,(1,6)):(1,(6,2)))",
                           "coalesce_modes((2,(1,6)):(1,(6,2)))",
                           "composition((6,2):(8,2), (4,3):(3,1))",
                           "composition(20:2, (5,4):(4,1))",
                           "composition((10,2):(16,4), (5,4):(1,5))",
                           "composition((3,6,2,8):(1,10,100,1000), 16:9)",
                           "composition((12,(4,8)):(59,(13,1)), <3:4,8:2>)",
                           "composition((12,(4,8)):(59,(13,1)), <3,8>)",
                           "complement(4:1, 24)",
                           "complement(6:4, 24)",
                           "complement((4,6):(1,4), 24)",
                           "complement(4:2, 24)",
                           "complement((2,4):(1,6), 24)",
                           "complement((2,2):(1,6), 24)",
                           "logical_divide((4,2,3):(2,1,8), 4:2)",
                           "logical_divide((9,(4,8)):(59,(13,1)), <3:3,(2,4):(1,8)>)",
                           "zipped_divide((9,(4,8)):(59,(13,1)), <3:3,(2,4):(1,8)>)",
                           "tiled_divide((9,(4,8)):(59,(13,1)), <3:3,(2,4):(1,8)>)",
                           "logical_product((2,2):(4,1), 6:1)",
                           "logical_product((2,2):(4,1), (4,2):(2,1))",
                           "blocked_product((2,5):(5,1), (3,4):(1,3))",
                           "raked_product((2,5):(5,1), (3,4):(1,3))"})
    all += std::string(call) + "\n  " + answer(call) + "\n";
  TW_EXPECT_GOLDEN("cute.txt", all);
}

TEST(LayoutPage, Drawings) {
  const Layout rows = parse_layout("(2,3):(3,1)");
  TW_EXPECT_GOLDEN("layout.svg", draw_svg(rows));
  const Layout row_of_four = parse_layout("4:2");
  EXPECT_EQ(draw(row_of_four), "  | 0 1 2 3\n--+--------\n0 | 0 2 4 6\n");
  // Thread 0 and 1 hold a row each, as 2 values; the last column belongs to nobody.
  const Layout held = parse_layout("(2,2):(1,2)");
  TW_EXPECT_GOLDEN("thread_values.svg", draw_svg(thread_value_drawing(held, 2, 3)));
}

TEST(LayoutPage, DrawingsOfFunctions) {
  const Drawing drawing = thread_value_drawing(
      2, 4, [](int64_t row, int64_t column) { return row * 2 + column / 2; },
      [](int64_t, int64_t column) { return column % 2; });
  EXPECT_EQ(draw(drawing),
            "  |    0    1    2    3\n"
            "--+--------------------\n"
            "0 | T0V0 T0V1 T1V0 T1V1\n"
            "1 | T2V0 T2V1 T3V0 T3V1\n");
}

TEST(LayoutPage, DrawingsHaveLimits) {
  EXPECT_EQ(answer("draw((2,2,2):(1,2,4))"),
            "error: drawing of (2,2,2):(1,2,4): 3 modes: wanted at most 2");
  EXPECT_EQ(answer("draw((4096,4096):(1,4096))"),
            "error: drawing of 4096 x 4096 elements: wanted 1..65536");
  EXPECT_EQ(answer("draw_thread_values((4,2):(1,4), 2, 2)"),
            "error: (4,2):(1,4) reaches element 7: wanted below 4");
  EXPECT_EQ(answer("draw_thread_values(4:1, 2, 2)"), "error: 4:1: 1 modes: wanted (thread, value)");
}

}  // namespace
}  // namespace tw::test
