#include "tests/layout/transcript.h"

#include <fmt/format.h>
#include <functional>
#include <map>
#include <sstream>

#include "tw/base/error.h"
#include "tw/layout/banks.h"
#include "tw/layout/draw.h"
#include "tw/layout/tiler.h"

namespace tw::test {
namespace {

using Arguments = std::vector<std::string>;

Layout layout(const std::string& text) { return parse_layout(text); }
int64_t integer(const std::string& text) { return std::stoll(text); }

bool is_swizzled(const std::string& text) { return text.starts_with("Sw<"); }

SwizzledLayout swizzled(const std::string& text) {
  Swizzle s;
  int end = 0;
  if (std::sscanf(text.c_str(), "Sw<%d,%d,%d> o %n", &s.bits, &s.base, &s.shift, &end) != 3)
    throw UserError("no swizzled layout: " + text);
  return SwizzledLayout(s, layout(text.substr(static_cast<size_t>(end))));
}

/// A tiler of layouts, not of tilers.
Tiler tiler(const std::string& text) {
  if (text[0] != '<') return text.find(':') == text.npos ? Tiler(integer(text)) : layout(text);
  std::vector<std::string> parts(1);
  int depth = 0;
  for (char c : text.substr(1, text.size() - 2)) {
    depth += (c == '(') - (c == ')');
    if (c == ',' && depth == 0)
      parts.emplace_back();
    else
      parts.back() += c;
  }
  if (parts.size() == 1) return {tiler(parts[0])};
  return {tiler(parts.at(0)), tiler(parts.at(1))};
}

std::string text(const BankConflicts& c) {
  return fmt::format("{} wavefronts, {} without conflicts", c.wavefronts, c.least);
}

using Function = std::function<std::string(const Arguments&)>;

const std::map<std::string, Function>& functions() {
  using A = const Arguments&;
  static const std::map<std::string, Function> kFunctions = {
      {"bank_conflicts",
       [](A a) {
         const int element = std::stoi(a.at(1)), access = std::stoi(a.at(2));
         if (is_swizzled(a[0])) return text(bank_conflicts(swizzled(a[0]), element, access));
         return text(bank_conflicts(layout(a[0]), element, access));
       }},
      {"blocked_product",
       [](A a) { return to_string(blocked_product(layout(a.at(0)), layout(a.at(1)))); }},
      {"coalesce", [](A a) { return to_string(coalesce(layout(a.at(0)))); }},
      {"coalesce_modes", [](A a) { return to_string(coalesce_modes(layout(a.at(0)))); }},
      {"complement", [](A a) { return to_string(complement(layout(a.at(0)), integer(a.at(1)))); }},
      {"composition",
       [](A a) {
         if (is_swizzled(a.at(0))) return to_string(composition(swizzled(a[0]), layout(a.at(1))));
         return to_string(composition(layout(a[0]), tiler(a.at(1))));
       }},
      {"cosize", [](A a) { return std::to_string(layout(a.at(0)).cosize()); }},
      {"draw",
       [](A a) {
         return draw(is_swizzled(a.at(0)) ? drawing(swizzled(a[0])) : drawing(layout(a[0])));
       }},
      {"draw_thread_values",
       [](A a) {
         return draw(thread_value_drawing(layout(a.at(0)), integer(a.at(1)), integer(a.at(2))));
       }},
      {"left_inverse", [](A a) { return to_string(left_inverse(layout(a.at(0)))); }},
      {"logical_divide",
       [](A a) { return to_string(logical_divide(layout(a.at(0)), tiler(a.at(1)))); }},
      {"logical_product",
       [](A a) { return to_string(logical_product(layout(a.at(0)), layout(a.at(1)))); }},
      {"offset", [](A a) { return std::to_string(layout(a.at(0))(integer(a.at(1)))); }},
      {"raked_product",
       [](A a) { return to_string(raked_product(layout(a.at(0)), layout(a.at(1)))); }},
      {"right_inverse", [](A a) { return to_string(right_inverse(layout(a.at(0)))); }},
      {"size", [](A a) { return std::to_string(layout(a.at(0)).size()); }},
      {"tiled_divide",
       [](A a) { return to_string(tiled_divide(layout(a.at(0)), tiler(a.at(1)))); }},
      {"zipped_divide",
       [](A a) { return to_string(zipped_divide(layout(a.at(0)), tiler(a.at(1)))); }},
  };
  return kFunctions;
}

}  // namespace

std::string answer(const std::string& call) {
  const size_t open = call.find('('), close = call.rfind(')');
  const auto function = functions().find(call.substr(0, open));
  if (function == functions().end()) return "no such function";
  std::string inside = call.substr(open + 1, close - open - 1);
  if (std::isalpha(inside[0]) && !is_swizzled(inside)) inside = answer(inside);
  Arguments arguments;
  for (size_t at = 0; at < inside.size();) {
    const size_t end = std::min(inside.find(", ", at), inside.size());
    arguments.push_back(inside.substr(at, end - at));
    at = end + 2;
  }
  try {
    return function->second(arguments);
  } catch (const UserError& e) {
    return "error: " + e.message();
  }
}

std::string answered(const std::string& page) {
  std::istringstream in(page);
  std::string out, line;
  bool in_block = false, in_answer = false;
  while (std::getline(in, line)) {
    if (line.starts_with("```")) in_block = !in_block, in_answer = false;
    if (line.empty()) in_answer = false;
    const bool is_call = in_block && line.starts_with("> ");
    if (is_call || !in_answer) out += line + "\n";
    if (!is_call) continue;
    in_answer = true;
    out += answer(line.substr(2));
    if (out.back() != '\n') out += "\n";
  }
  return out;
}

}  // namespace tw::test
