#pragma once

#include <optional>
#include <vector>

#include "tw/limit/impl/sizes.h"

namespace tw {

/// Integers and masks that follow from coordinates and sizes alone and decide which elements are
/// needed: masks of `where`, coordinates and masks of gathers and scatters.
class Known {
 public:
  explicit Known(const Program& p);

  /// Follows from coordinates and sizes alone.
  bool follows(ValueId v) const { return follows_[v]; }
  /// Is the same whatever a call gives and wherever.
  bool constant(ValueId v) const { return constant_[v]; }
  /// Computes what the op gives, if anybody asks for it.
  void compute(const Op& op, const Sizes& sizes, const Coordinates& at);
  /// Of an element each; what compute() found last.
  const std::vector<int64_t>& elements(ValueId v) const { return elements_[v]; }
  /// The op that gives a value.
  const Op* giver(ValueId v) const { return givers_[v]; }

 private:
  void mark(const Op& op);
  void ask(ValueId v);
  bool computable(const Op& op) const;
  std::vector<int64_t> taken(ValueId from, const Extents& shape) const;
  std::vector<int64_t> result(const Op& op, const Sizes& sizes, const Coordinates& at) const;

  const Program& p_;
  std::vector<bool> follows_, constant_, asked_;
  std::vector<const Op*> givers_;
  std::vector<std::vector<int64_t>> elements_;
};

/// What an op compares by; nothing for other ops.
std::optional<CompareKind> comparison(Opcode code);

/// The result of an op of two integers (b1: 0 or 1); nothing for other ops.
std::optional<int64_t> combined(Opcode code, int64_t a, int64_t b);

/// Values whose elements decide what is needed.
std::vector<ValueId> deciding(const Op& op);

}  // namespace tw
