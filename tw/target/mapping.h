#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>

namespace tw {

/// How a program runs, apart from what it means: one line of text, "cpu1 kc=384 mc=264". The scheme
/// says on what kind of device. Knobs are declared in mapping.cpp with name, range and sentence.
/// Knobs that are absent are chosen from the machine.
struct Mapping {
  std::string scheme = "cpu1";
  std::map<std::string, int64_t> knobs = {};
  int64_t get(const std::string& knob, int64_t otherwise) const;
  bool operator==(const Mapping&) const = default;
};

struct Knob {
  const char* name;
  int64_t lo, hi;
  const char* sentence;
};
/// The knobs of schemes cpu1 and cuda1, sorted by name.
std::span<const Knob> cpu_knobs();
std::span<const Knob> cuda_knobs();

std::string to_string(const Mapping& m);
/// Throws UserError on an unknown scheme, an unknown key, or a value out of range.
void check_mapping(const Mapping& m);
/// A checked mapping. Throws UserError as check_mapping() does, and on a repeated key.
Mapping parse_mapping(const std::string& text);

}  // namespace tw
