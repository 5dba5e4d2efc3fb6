#include "tw/base/error.h"

#include <algorithm>
#include <numeric>
#include <utility>

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

/// Of Damerau and Levenshtein: letters that were left out, added, changed, or swapped with the
/// next.
static size_t distance(const std::string& a, const std::string& b) {
  std::vector<size_t> before, last(b.size() + 1), row(b.size() + 1);
  std::iota(row.begin(), row.end(), size_t{0});
  for (size_t i = 1; i <= a.size(); ++i) {
    before = std::exchange(last, row);
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, last[j - 1] + (a[i - 1] != b[j - 1])});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        row[j] = std::min(row[j], before[j - 2] + 1);
    }
  }
  return row[b.size()];
}

/// Few letters differ, and at least half of the longer name is alike.
static bool is_near(const std::string& a, const std::string& b) {
  const size_t d = distance(a, b);
  return d <= std::max<size_t>(2, a.size() / 3) && 2 * d <= std::max(a.size(), b.size());
}

std::string did_you_mean(const std::string& name, const std::vector<std::string>& known) {
  if (known.empty()) return "";
  auto closer = [&](const std::string& a, const std::string& b) {
    return distance(name, a) < distance(name, b);
  };
  const std::string& nearest = *std::ranges::min_element(known, closer);
  if (is_near(name, nearest)) return "did you mean '" + nearest + "'?";
  std::string all;
  for (const std::string& k : known) all += (all.empty() ? "" : ", ") + k;
  return "known: " + all;
}

}  // namespace tw
