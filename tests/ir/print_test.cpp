#include "tw/ir/print.h"

#include <gtest/gtest.h>
#include <set>

#include "tw/ir/verify.h"

#include "tests/ir/corpus.h"
#include "tests/support/random_program.h"

namespace tw {

TEST(Print, EveryCorpusTextComesBackByteForByte) {
  ASSERT_GE(test::corpus().size(), 3u);
  for (const auto& [name, text] : test::corpus()) {
    const Program p = parse(text, name);
    EXPECT_EQ(print(p), text) << name;
    verify(p, "parse");
  }
}

TEST(Print, RandomProgramsComeBack) {
  for (uint64_t seed = 0; seed < 300; ++seed) {
    const Program p = parse(print(test::random_program(seed).program));
    for (const PrintOptions& o :
         {PrintOptions{}, PrintOptions{true, true}, PrintOptions{false, false}}) {
      const std::string text = print(p, o);
      const Program back = parse(text, "random.tw");
      EXPECT_EQ(print(back, o), text) << seed;
      EXPECT_EQ(back.loops, p.loops);
    }
  }
}

TEST(Print, CanonicalValueIdsAreThePrintedNumbers) {
  const Program p = parse(test::corpus()[0].second);
  for (const Op& op : p.body.ops) {
    if (op.out.empty()) continue;
    EXPECT_NE(print(p, op).find(std::to_string(op.out.back()) + " ="), std::string::npos)
        << print(p, op);
  }
}

TEST(Print, LinesTravelThroughText) {
  Program p = parse(test::corpus()[0].second, "gemm.tw");
  p.body.ops[0].at = {"my kernels.cpp", 41};
  const std::string text = print(p, {.lines = true});
  EXPECT_NE(text.find("  // my kernels.cpp:41\n"), std::string::npos) << text;
  const Program back = parse(text, "other.tw");
  EXPECT_EQ(print(back, {.lines = true}), text);
  EXPECT_STREQ(back.body.ops[0].at.file, "my kernels.cpp");
  EXPECT_EQ(back.body.ops[0].at.line, 41u);
}

TEST(Print, NamesCanBeLeftOut) {
  const std::string text = test::read_text(TW_TEST_DIR "/corpus/gemm.tw");
  const Program p = parse(text);
  const std::string bare = print(p, {.names = false});
  EXPECT_EQ(bare.find("acc"), std::string::npos) << bare;
  EXPECT_NE(bare.find("%5 = for i0"), std::string::npos) << bare;
  EXPECT_EQ(print(parse(bare)), bare);
}

TEST(Print, CommentsAndBlankLinesAreFree) {
  const std::string text = test::read_text(TW_TEST_DIR "/corpus/gemm.tw");
  EXPECT_EQ(print(parse("// a kernel\n\n" + text + "\n// the end: here")), text);
}

TEST(Print, TheCorpusHoldsEveryKindOfAttributeAndRegion) {
  std::set<size_t> attributes;
  std::set<Opcode> with_regions;
  for (const auto& [name, text] : test::corpus())
    walk(parse(text), [&](const Op& op) {
      attributes.insert(op.attr.index());
      if (!op.regions.empty()) with_regions.insert(op.code);
    });
  EXPECT_EQ(attributes.size(), std::variant_size_v<Attr>);
  EXPECT_EQ(with_regions.size(), 7u);
}

}  // namespace tw
