#include "tw/layout/int_tuple.h"

namespace tw {

IntTuple IntTuple::of(std::vector<IntTuple> modes) {
  IntTuple tuple(std::initializer_list<IntTuple>{});
  tuple.modes_ = std::move(modes);
  return tuple;
}

bool IntTuple::operator==(const IntTuple& other) const {
  return is_tuple_ == other.is_tuple_ && value_ == other.value_ && modes_ == other.modes_;
}

std::string to_string(const IntTuple& tuple) {
  if (!tuple.is_tuple()) return std::to_string(tuple.value());
  std::string text;
  for (const IntTuple& mode : tuple.modes()) text += (text.empty() ? "" : ",") + to_string(mode);
  return "(" + text + ")";
}

}  // namespace tw
