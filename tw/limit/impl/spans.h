#pragma once

#include <functional>
#include <map>
#include <optional>
#include <vector>

#include "tw/limit/impl/known.h"
#include "tw/math/facts.h"

namespace tw {

/// Values of a symbol that count alike: the one to look at, and how many there are.
struct Span {
  int64_t value = 0;
  double count = 1;
};

/// Finds values of coordinates and counters of which one tells of all: tiles lie inside the tensors
/// and masks are the same.
class Spans {
 public:
  Spans(const Program& p, const Sizes& sizes, const Known& known);

  /// Of lo, lo + step, .. (n of them), where `at` says the symbols further out. Values that count
  /// each for itself are told apart until there are `most` of them, then evenly chosen.
  std::vector<Span> of(Symbol s, int64_t lo, int64_t n, int64_t step, const Coordinates& at,
                       int64_t most) const;

 private:
  /// What is known of symbols while one takes some range of values.
  struct Range {
    const Coordinates& at;
    Symbol spanned;
    Interval values;
  };
  using Check = std::function<bool(const Range&)>;

  void look(const Op& op);
  void look_view(const Op& op, const View& view);
  void look_coordinates(const Op& op);
  void add(const std::vector<Expr>& of, const Check& check);
  void add(ValueId of, const Check& check);
  Interval bounds(Symbol s, const Range& r) const;
  Interval bounds(const Expr& e, const Range& r) const;
  std::optional<Interval> bounds(ValueId v, const Range& r) const;
  bool alike(Symbol s, const Range& r) const;
  bool decided(CompareKind kind, const Interval& a, const Interval& b) const;

  const Program& p_;
  const Sizes& sizes_;
  const Known& known_;
  std::map<Symbol, std::vector<Check>> checks_;
  std::map<int, LoopAttr> loops_;
};

}  // namespace tw
