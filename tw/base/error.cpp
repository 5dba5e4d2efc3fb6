#include "tw/base/error.h"

namespace tw {

static std::string compose(SourceLoc at, const std::string& message, const std::string& hint) {
  std::string place = at.known() ? fmt::format("{}:{}: error: ", at.file, at.line) : "";
  return place + message + (hint.empty() ? "" : "; " + hint);
}

Error::Error(SourceLoc at, std::string message, std::string hint)
    : std::runtime_error(compose(at, message, hint)),
      at_(at),
      message_(std::move(message)),
      hint_(std::move(hint)) {}

}  // namespace tw
