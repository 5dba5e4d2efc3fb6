#include "tw/emu/apart.h"

#include <atomic>
#include <csignal>
#include <gtest/gtest.h>
#include <stdexcept>
#include <string>
#include <unistd.h>

namespace tw::test {
namespace {

using Tell = std::function<void(std::string_view)>;

TEST(Apart, TellsAllThatTheWorkSays) {
  const std::string much(100'000, 'x');
  const Apart a = run_apart(
      [&](const Tell& tell) {
        tell("first ");
        tell(much);
      },
      {});
  EXPECT_EQ(a.told, "first " + much);
  EXPECT_TRUE(a.ended);
  EXPECT_EQ(a.signal, 0);
}

TEST(Apart, ChangesNothingHere) {
  int here = 1;
  EXPECT_TRUE(run_apart([&](const Tell&) { here = 2; }, {}).ended);
  EXPECT_EQ(here, 1);
}

TEST(Apart, ASignalOrAnExceptionIsNoEnd) {
  const Apart crashed = run_apart(
      [](const Tell& tell) {
        tell("before");
        raise(SIGSEGV);
      },
      {});
  EXPECT_EQ(crashed.told, "before");
  EXPECT_FALSE(crashed.ended);
  EXPECT_EQ(crashed.signal, SIGSEGV);
  EXPECT_FALSE(crashed.late);
  const Apart threw = run_apart([](const Tell&) { throw std::runtime_error("lost"); }, {});
  EXPECT_FALSE(threw.ended);
  EXPECT_EQ(threw.signal, 0);
}

TEST(Apart, LimitsEndWhatDoesNotEnd) {
  std::atomic<bool> goes_on = true;
  const Apart busy = run_apart(
      [&](const Tell&) {
        while (goes_on) {
        }
      },
      {.cpu = 1});
  EXPECT_TRUE(busy.late);
  EXPECT_FALSE(busy.silent);
  const Apart asleep = run_apart(
      [](const Tell& tell) {
        tell("good night");
        pause();
      },
      {.silence = 1});
  EXPECT_TRUE(asleep.silent);
  EXPECT_FALSE(asleep.late);
  EXPECT_EQ(asleep.told, "good night");
}

}  // namespace
}  // namespace tw::test
