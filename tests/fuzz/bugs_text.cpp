#include <regex>

#include "tests/fuzz/bugs.h"

namespace tw::test {

namespace {

/// Replaces every match; says whether there was one.
bool replace(std::string& text, const std::string& pattern, const std::string& by) {
  std::string out = std::regex_replace(text, std::regex(pattern), by);
  if (out == text) return false;
  text = std::move(out);
  return true;
}

Bug in_text(const char* name, const std::string& pattern, const std::string& by) {
  Hooks h;
  h.text = [pattern, by](std::string& text) { return replace(text, pattern, by); };
  return {name, h};
}

/// Inside the functions whose names start so only.
Bug in_function(const char* name, const std::string& function, const std::string& pattern,
                const std::string& by) {
  Hooks h;
  h.text = [=](std::string& text) {
    bool changed = false;
    for (size_t at = 0; (at = text.find(function, at)) != std::string::npos; ++at) {
      const size_t line = text.rfind('\n', at) + 1;
      if (text.compare(line, 9, "TW_INLINE") != 0 && text.compare(line, 6, "static") != 0) continue;
      const size_t end = text.find("\n\n", line);
      std::string body = text.substr(line, end - line);
      if (!replace(body, pattern, by)) continue;
      text.replace(line, end - line, body);
      changed = true;
    }
    return changed;
  };
  return {name, h};
}

Bug assuming(const char* name, std::function<bool(Specialisation&)> edit) {
  Hooks h;
  h.assumptions = std::move(edit);
  return {name, h};
}

bool last_axis_has_unit_stride(Specialisation& s) {
  bool changed = false;
  for (ParamFacts& f : s.params) {
    if (f.rank == 0 || f.unit_axis == f.rank - 1) continue;
    f.unit_axis = f.rank - 1;
    changed = true;
  }
  return changed;
}

bool first_axis_repeats(Specialisation& s) {
  for (ParamFacts& f : s.params) {
    if (f.rank < 2 || (f.zero_stride & 1) != 0 || f.unit_axis == 0) continue;
    f.zero_stride |= 1;
    return true;
  }
  return false;
}

/// Joins the accumulators of a reduction, all but the first of them left out.
bool accumulators_not_joined(std::string& text) {
  return replace(text, R"((\w+)\((acc\w*0_0), acc\w*1_0\);)", "$2;") ||
         replace(text, R"(= (acc\w*0_0) [+*&|^] acc\w*1_0;)", "= $1;");
}

Bug with_text(const char* name, std::function<bool(std::string&)> edit) {
  Hooks h;
  h.text = std::move(edit);
  return {name, h};
}

}  // namespace

std::vector<Bug> text_bugs() {
  return {
      in_function("store of a tail writes one lane more", "tw_store_part_", R"(min\(n, (\d+)\))",
                  "min(n + 1, $1)"),
      in_function("load of a tail reads past the end", "tw_load_part_", R"(min\(last, (\d+)\))",
                  "$1"),
      in_text("reduction skips the last vector",
              R"((i64 \w+ = 0;\n *const i64 \w+_full = [^\n]*\n *for \(; \w+ \+ \d+) <=)", "$1 <"),
      with_text("accumulators of a reduction not joined", accumulators_not_joined),
      assuming("last axis taken for contiguous", last_axis_has_unit_stride),
      assuming("first axis taken for repeated", first_axis_repeats),
      in_text("offsets held in too few bits", R"(\* (\w+_s\d)\b)", "* (i8)$1"),
      in_function("exp loses digits of a coefficient", "tw_exp_scale", R"(4\.1665795894e-2f)",
                  "4.16e-2f"),
      in_function("bf16 ties away from even", "tw_round_bf16", R"(0x7fff \+ \(u >> 16 & 1\))",
                  "0x8000"),
      in_text("cast of NaN to an integer left open", R"(x == x \? c : [^,]*,)", "c,"),
      in_function("random words all the same", "tw_philox", R"(u32 c0 = \(u32\)counter)",
                  "u32 c0 = 0"),
      in_text("tiles share scratch", R"(\(char\*\)scratch \+ [1-9]\d*\))", "(char*)scratch + 0)"),
      in_text("ranges of instances start at 0", R"(i64 instance = first;)", "i64 instance = 0;"),
      in_function("division by zero not caught", "tw_div_", R"(b == 0 \?[^:]*:)", ""),
  };
}

}  // namespace tw::test
