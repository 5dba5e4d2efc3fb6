#include "tw/target/specialisation.h"

#include <fmt/format.h>

namespace tw {

static std::string to_string(const ParamFacts& p) {
  std::string text = fmt::format("{} rank {}", name(p.dtype), p.rank);
  if (p.unit_axis >= 0) text += fmt::format(" unit {}", p.unit_axis);
  std::string zeros;
  for (int k = 0; k < p.rank; ++k) {
    if (p.zero_stride >> k & 1) zeros += fmt::format("{}{}", zeros.empty() ? "" : ",", k);
  }
  if (!zeros.empty()) text += " zero " + zeros;
  if (p.aligned) text += " aligned";
  if (p.whole) text += " whole";
  return text;
}

std::string to_string(const Specialisation& s, const std::vector<std::string>& names) {
  std::string text;
  for (size_t i = 0; i < s.params.size(); ++i) {
    text += fmt::format("{} {}; ", names.at(i), to_string(s.params[i]));
  }
  text += s.fits32 ? "fits32" : "fits64";
  if (s.streaming) text += " streaming";
  return text;
}

}  // namespace tw
