#pragma once

#include <cmath>
#include <cstdint>
#include <vector>

namespace tw::test {

/// splitmix64 (Steele, Lea, Flood 2014): the same numbers on every machine and library.
class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed) {}

  uint64_t next() {
    uint64_t z = (state_ += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
  }
  uint64_t below(uint64_t n) { return next() % n; }
  int64_t between(int64_t lo, int64_t hi) {
    return lo + static_cast<int64_t>(below(static_cast<uint64_t>(hi - lo + 1)));
  }
  bool one_in(int n) { return below(static_cast<uint64_t>(n)) == 0; }
  bool percent(int p) { return below(100) < static_cast<uint64_t>(p); }
  double unit() { return static_cast<double>(next() >> 11) * 0x1p-53; }
  double normal() {
    const double u = 1 - unit(), v = unit();
    return std::sqrt(-2 * std::log(u)) * std::cos(6.283185307179586 * v);
  }
  template <class T>
  const T& of(const std::vector<T>& list) {
    return list[below(list.size())];
  }

 private:
  uint64_t state_;
};

}  // namespace tw::test
