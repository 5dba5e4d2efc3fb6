#pragma once

#include <vector>

#include "tw/check/verify.h"
#include "tw/measure/contestant.h"

namespace tw::check {

/// The tensors of a few sets in the memory of a callee. Each lies on pages of its own, between
/// pages that nobody may touch, at the begin of its pages or at their end; bytes there that are in
/// no element hold a pattern that must survive. Inputs cannot be written.
class Arrangement {
 public:
  enum class Side : uint8_t { begin, end };

  Arrangement(char* memory, const std::vector<Argument>& arguments, Layout layout, Side side,
              int sets);
  /// Of memory that it takes.
  static int64_t bytes(const std::vector<Argument>& arguments, int sets);

  const std::vector<measure::TensorSet>& sets() const { return sets_; }
  std::vector<measure::Callee::Pages> pages() const;

  void fill(int set, Values values, uint64_t seed);
  void poison(int set, unsigned char with);
  /// Of a set's outputs, all bytes of all elements.
  std::vector<std::string> contents(int set) const;
  /// Names a byte outside of the elements that was written; "" when there is none.
  std::string damage() const;

 private:
  struct Place {
    const Argument* argument;
    int64_t begin, end;         // of its pages
    int64_t first, last;        // of its elements' bytes
    std::vector<bool> element;  // of each byte of the pages: whether one has it
  };
  static unsigned char pattern(int64_t at) { return static_cast<unsigned char>(0xa5 + 59 * at); }
  void place(const Argument& a, Layout layout, Side side, int64_t& at);

  char* memory_;
  std::vector<Argument> arguments_;
  std::vector<measure::TensorSet> sets_;
  std::vector<Place> places_;
};

}  // namespace tw::check
