#pragma once

#include <gtest/gtest.h>
#include <string>

#include "tw/base/error.h"

namespace tw::test {

/// What `body` throws as an E, or a text that no message contains when it throws nothing.
template <class E, class F>
std::string error_text(F&& body) {
  try {
    body();
  } catch (const E& e) {
    return e.what();
  }
  return "<no error was thrown>";
}

}  // namespace tw::test

/// The statement `body` (a lambda) must throw an E whose what() contains `part`.
#define TW_EXPECT_ERROR(E, part, ...)                                                        \
  EXPECT_PRED2([](const std::string& text,                                                   \
                  const std::string& want) { return text.find(want) != std::string::npos; }, \
               (::tw::test::error_text<E>(__VA_ARGS__)), std::string(part))
