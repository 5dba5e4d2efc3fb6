#include "tw/ir/verify.h"

#include <fmt/format.h>

#include "tw/base/error.h"
#include "tw/ir/impl/rules.h"
#include "tw/ir/print.h"

namespace tw {
namespace {

// A program may be too broken to print.
std::string text_of(const Program& p) {
  try {
    return print(p, {.lines = true});
  } catch (const std::exception& e) {
    return fmt::format("<the program cannot be printed: {}>", e.what());
  }
}

}  // namespace

void verify(const Program& p, const std::string& pass) {
  if (auto broken = first_violation(p))
    throw InternalError(fmt::format("after pass '{}': {}", pass, broken->what), text_of(p),
                        broken->at);
}

}  // namespace tw
