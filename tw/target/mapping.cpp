#include "tw/target/mapping.h"

#include <array>
#include <charconv>
#include <fmt/format.h>
#include <sstream>

#include "tw/base/error.h"

namespace tw {

static constexpr std::array kCpuKnobs = {
    Knob{"ip", 0, 1 << 20, "most KB of the B of a contraction that is read in place"},
    Knob{"kc", 8, 1 << 16, "elements of k in one packed block of a contraction"},
    Knob{"mc", 1, 1 << 16, "rows in one packed block of a contraction"},
    Knob{"mr", 1, 32, "rows of the register tile"},
    Knob{"nc", 1, 1 << 20, "columns in one packed block of a contraction"},
    Knob{"nv", 1, 8, "vectors in a row of the register tile"},
    Knob{"pm", 1, 4096, "rows of a contraction that one instance does"},
    Knob{"pn", 1, 16384, "columns of a contraction that one instance does"},
};

static constexpr std::array kCudaKnobs = {
    Knob{"cluster", 1, 8, "blocks that share an instance's rows"},
    Knob{"stages", 1, 8, "iterations whose operands of dots are in shared memory at once"},
    Knob{"warps", 1, 32, "warps of a block"},
};

std::span<const Knob> cpu_knobs() { return kCpuKnobs; }
std::span<const Knob> cuda_knobs() { return kCudaKnobs; }

/// Those of a scheme; throws UserError when there is none of that name.
static std::span<const Knob> knobs_of(const std::string& scheme) {
  if (scheme == "cpu1") return kCpuKnobs;
  if (scheme == "cuda1") return kCudaKnobs;
  throw UserError(fmt::format("mapping: scheme '{}'", scheme), "known schemes: cpu1, cuda1");
}

static const Knob& knob_named(const std::string& scheme, const std::string& name) {
  std::string known;
  for (const Knob& k : knobs_of(scheme)) {
    if (name == k.name) return k;
    known += fmt::format("{}{}", known.empty() ? "" : ", ", k.name);
  }
  throw UserError(fmt::format("mapping: unknown key '{}'", name), "known keys: " + known);
}

[[noreturn]] static void refuse_value(const Knob& knob, const std::string& got) {
  throw UserError(fmt::format("mapping: {}='{}': wanted an integer in {}..{}", knob.name, got,
                              knob.lo, knob.hi));
}

int64_t Mapping::get(const std::string& knob, int64_t otherwise) const {
  auto found = knobs.find(knob_named(scheme, knob).name);
  return found == knobs.end() ? otherwise : found->second;
}

std::string to_string(const Mapping& m) {
  std::string text = m.scheme;
  for (const auto& [name, value] : m.knobs) text += fmt::format(" {}={}", name, value);
  return text;
}

void check_mapping(const Mapping& m) {
  knobs_of(m.scheme);
  for (const auto& [name, value] : m.knobs) {
    const Knob& knob = knob_named(m.scheme, name);
    if (value < knob.lo || value > knob.hi) refuse_value(knob, std::to_string(value));
  }
}

Mapping parse_mapping(const std::string& text) {
  std::istringstream words(text);
  Mapping m;
  m.scheme.clear();
  words >> m.scheme;
  knobs_of(m.scheme);
  for (std::string word; words >> word;) {
    const size_t equal = word.find('=');
    const std::string name = word.substr(0, equal);
    const std::string digits = equal == std::string::npos ? "" : word.substr(equal + 1);
    const Knob& knob = knob_named(m.scheme, name);
    int64_t value = 0;
    auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    if (error != std::errc() || end != digits.data() + digits.size()) refuse_value(knob, digits);
    if (!m.knobs.emplace(name, value).second) {
      throw UserError(fmt::format("mapping: key '{}' stands twice", name));
    }
  }
  check_mapping(m);
  return m;
}

}  // namespace tw
