#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <vector>

namespace tw {

/// An integer, or a tuple of such: a shape, a stride or a coordinate. Printed as `(4,(2,3))`.
class IntTuple {
 public:
  IntTuple(int64_t value) : value_(value), is_tuple_(false) {}
  IntTuple(std::initializer_list<IntTuple> modes) : modes_(modes) {}
  static IntTuple of(std::vector<IntTuple> modes);

  bool is_tuple() const { return is_tuple_; }
  /// Of an integer.
  int64_t value() const { return value_; }
  /// Of a tuple; empty for an integer.
  const std::vector<IntTuple>& modes() const { return modes_; }
  bool operator==(const IntTuple& other) const;

 private:
  int64_t value_ = 0;
  bool is_tuple_ = true;
  std::vector<IntTuple> modes_;
};

std::string to_string(const IntTuple& tuple);

}  // namespace tw
