#include "tw/base/error.h"

#include <algorithm>
#include <numeric>

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

/// Levenshtein distance.
static size_t distance(const std::string& a, const std::string& b) {
  std::vector<size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), size_t{0});
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      size_t change = diagonal + (a[i - 1] != b[j - 1]);
      diagonal = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, change});
    }
  }
  return row[b.size()];
}

std::string did_you_mean(const std::string& name, const std::vector<std::string>& known) {
  if (known.empty()) return "";
  auto closer = [&](const std::string& a, const std::string& b) {
    return distance(name, a) < distance(name, b);
  };
  const std::string& nearest = *std::ranges::min_element(known, closer);
  if (distance(name, nearest) <= std::max<size_t>(2, name.size() / 3))
    return "did you mean '" + nearest + "'?";
  std::string all;
  for (const std::string& k : known) all += (all.empty() ? "" : ", ") + k;
  return "known: " + all;
}

}  // namespace tw
