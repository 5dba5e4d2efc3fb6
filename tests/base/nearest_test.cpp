#include "tw/base/nearest.h"

#include <gtest/gtest.h>

namespace tw {

TEST(Nearest, NamesTheCloseOne) {
  EXPECT_EQ(did_you_mean("sofmax", {"gemm", "softmax"}), "did you mean 'softmax'?");
}

TEST(Nearest, ListsAllWhenNothingIsClose) {
  EXPECT_EQ(did_you_mean("conv", {"gemm", "softmax"}), "known: gemm, softmax");
  EXPECT_EQ(did_you_mean("conv", {}), "");
}

}  // namespace tw
