#include <gtest/gtest.h>

#include "tw/ir/print.h"
#include "tw/ir/verify.h"

namespace tw {

// Divisions of floats have no check, nor have those of combiners, where nothing but elements
// stands.
TEST(Checks, StandBeforeIntegerDivisionsInLoopsAndBranches) {
  Program p = parse(R"(program p
dim N
in X: i32[4]
out Y: i32[4]
out Z: f32[1]
grid (1)

%0 = load X{0} : i32[4]
%2 = for i0 in 0..N step 1 carry (%1 = %0) : i32[4] {
  %5 = if i0 < 2 : i32[4] {
    %3 = rem %0, %1 : i32[4]
    yield %3
  } else {
    yield %1
  }
  yield %5
}
store %2 to Y{0}
print %2 "result"
%6 = cast %0 : f32[4]
%10 = reduce custom %6 axis 0 : f32[1] (%7, %8) {
  %9 = div %7, %8 : f32[]
  yield %9
}
store %10 to Z{0}
)");
  const std::string before = print(p);
  check_divisions(p);
  verify(p, "check_divisions");
  ASSERT_EQ(messages_of(p).size(), 2u);
  EXPECT_EQ(messages_of(p)[0]->as<MessageAttr>().text, "division by zero");
  EXPECT_EQ(messages_of(p)[1]->code, Opcode::print);
  const std::string text = print(p);
  EXPECT_LT(text.find("assert"), text.find("rem")) << text;
  EXPECT_GT(text.find("assert"), text.find("if i0 < 2")) << text;
  drop_messages(p, false);
  ASSERT_EQ(messages_of(p).size(), 1u);
  drop_messages(p, true);
  EXPECT_TRUE(messages_of(p).empty());
  EXPECT_EQ(print(p).find("print"), std::string::npos);
  EXPECT_NE(before.find("print"), std::string::npos);
}

}  // namespace tw
