#include "tw/base/error.h"

#include "tw/base/env.h"
#include "tw/base/hash.h"

#include "tests/support/expect_error.h"

namespace tw {

TEST(Error, SaysPlaceMessageAndHint) {
  UserError e({"gemm.cpp", 41}, "ranks differ", "use as_row()");
  EXPECT_STREQ(e.what(), "gemm.cpp:41: error: ranks differ; use as_row()");
  EXPECT_EQ(e.exit_code(), 2);
}

TEST(Error, LeavesOutAnUnknownPlace) {
  EXPECT_STREQ(EnvError("no compiler").what(), "no compiler");
}

TEST(Error, ExpectErrorSeesTheText) {
  TW_EXPECT_ERROR(UserError, "ranks", [] { throw UserError("ranks differ"); });
}

TEST(Hash, IsTheDocumentedOne) {
  EXPECT_EQ(hash_hex(""), "99aa06d3014798d86001c324468d497f");
  EXPECT_EQ(hash64(""), 0x2d06800538d394c2u);
}

TEST(Env, ReadsTheVariableAtEachCall) {
  setenv("TW_VERIFY", "1", 1);
  EXPECT_TRUE(env_on(Env::verify));
  setenv("TW_VERIFY", "0", 1);
  EXPECT_FALSE(env_on(Env::verify));
  unsetenv("TW_VERIFY");
  EXPECT_EQ(env(Env::verify), "0");
}

TEST(Nearest, NamesTheCloseOne) {
  EXPECT_EQ(did_you_mean("sofmax", {"gemm", "softmax"}), "did you mean 'softmax'?");
  EXPECT_EQ(did_you_mean("rnu", {"opt", "run"}), "did you mean 'run'?");
  EXPECT_EQ(did_you_mean("xs", {"x"}), "did you mean 'x'?");
}

TEST(Nearest, ListsAllWhenNothingIsClose) {
  EXPECT_EQ(did_you_mean("conv", {"gemm", "softmax"}), "known: gemm, softmax");
  EXPECT_EQ(did_you_mean("conv", {}), "");
  EXPECT_EQ(did_you_mean("q", {"m", "n", "k"}), "known: m, n, k") << "no letter is like another";
  EXPECT_EQ(did_you_mean("dim", {"sum", "max"}), "known: sum, max");
  EXPECT_EQ(did_you_mean("", {"m"}), "known: m");
}

}  // namespace tw
