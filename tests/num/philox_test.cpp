#include <gmock/gmock.h>

#include "tw/num/codec.h"

namespace tw {
namespace {

using testing::ElementsAre;

// Rows "philox4x32 10" of tests/kat_vectors of Random123 1.14.0: counter words c0..c3, key words
// k0 k1. Here c0 c1 are the halves of counter, k0 c2 those of seed, k1 c3 those of stream.
TEST(Philox, KnownAnswersOfRandom123) {
  EXPECT_THAT(philox(0, 0, 0).word, ElementsAre(0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8));
  EXPECT_THAT(philox(~0ull, ~0ull, ~0ull).word,
              ElementsAre(0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd));
  EXPECT_THAT(philox(0x13198a2ea4093822, 0x03707344299f31d0, 0x85a308d3243f6a88).word,
              ElementsAre(0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1));
}

TEST(Philox, EveryHalfOfTheArgumentsCounts) {
  const Philox base = philox(1, 2, 3);
  const uint64_t high = uint64_t{1} << 40;
  for (const Philox& other :
       {philox(1 + high, 2, 3), philox(1, 2 + high, 3), philox(1, 2, 3 + high), philox(2, 1, 3)})
    EXPECT_NE(other.word[0], base.word[0]);
}

}  // namespace
}  // namespace tw
