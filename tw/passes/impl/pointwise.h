#pragma once

#include <map>
#include <optional>
#include <vector>

#include "tw/ir/program.h"

namespace tw {

/// The defining op of every value; null for arguments of regions. Holds until ops move.
class Definitions {
 public:
  explicit Definitions(const Program& p);
  const Op* of(ValueId v) const { return v < ops_.size() ? ops_[v] : nullptr; }

 private:
  void record(const Region& r);
  std::vector<const Op*> ops_;
};

/// True for ops whose result elements each depend on one element of every operand (or on none):
/// elementwise ops, constants, loads of tensors that nobody writes, moves of axes.
bool is_pointwise(const Program& p, const Op& op);
/// The axis of a pointwise op's operands that holds axis `axis` of the result; nothing when a
/// reshape mixes it with others.
std::optional<int> operand_axis(const Program& p, const Op& op, int axis);
/// The pointwise ops that keep every coordinate: no transpose, reshape, broadcast.
bool keeps_coordinates(const Op& op);

/// Copies of the pointwise ops that compute values, in an order that defines before it uses.
class Slice {
 public:
  Slice(Program& p, const Definitions& definitions) : p_(p), definitions_(definitions) {}

  /// `v` is what `copy` is in the slice.
  void know(ValueId v, ValueId copy) { copies_[v] = copy; }
  /// The copy of v; nothing when some op that it depends on is not pointwise.
  std::optional<ValueId> add(ValueId v);
  void push(Op op);

  const std::vector<Op>& ops() const { return ops_; }
  std::vector<Op> take() { return std::move(ops_); }
  const Op* defining(ValueId v) const;

 private:
  Program& p_;
  const Definitions& definitions_;
  std::map<ValueId, ValueId> copies_;
  std::vector<Op> ops_;
  std::map<ValueId, size_t> made_by_;  ///< which of the ops gives a value
};

/// How a tensor is read along one axis of a tile: element t is at coordinate origin + t of `dim`.
struct Span {
  Expr origin, dim;
  bool operator==(const Span&) const = default;
};

/// The spans of all loads that v of the slice depends on along its axis; nothing when an element
/// depends on its position in another way (an iota, a reshape that mixes axes).
std::optional<std::vector<Span>> spans_along(const Program& p, const Slice& s, ValueId v, int axis);

/// True when elements of v are zero wherever they lie outside every span along the axis.
bool zero_outside(const Program& p, const Slice& s, ValueId v, int axis);

}  // namespace tw
