#pragma once

#include <string>

#include "tw/emit/cpu/contract_shape.h"
#include "tw/emit/cpu/expression.h"

namespace tw::cpu {

/// One operand of a contraction: a tile whose elements are found by their place along the axis that
/// stays (rows of A, columns of B: "kept") and along k.
class ContractOperand {
 public:
  ContractOperand(Context& c, const Region& region, int kept_axis, const ContractShape& shape);

  /// The element at these coordinates, in the type of the sum.
  Reg value(Expression& e, const Expr& kept, const Expr& k) const;

  /// The operand is a load of the type of the sum: it can be read in place.
  bool plain() const { return load_ != nullptr && type_ == shape_.type; }
  /// C++ text of strides in elements and of an element's address; only when plain.
  std::string kept_stride() const { return stride(kept_tensor_axis_); }
  std::string k_stride() const { return stride(k_tensor_axis_); }
  std::string address(const Expr& kept, const Expr& k, Writer& out) const;

  /// Neighbours along that axis lie side by side in the first load that runs along both.
  bool unit_kept() const { return unit_ == Unit::kept; }
  bool unit_k() const { return unit_ == Unit::k; }

 private:
  enum class Unit : uint8_t { none, kept, k };

  std::string stride(int tensor_axis) const;
  Unit find_unit() const;

  Context& c_;
  const Region& region_;
  const ContractShape& shape_;
  int kept_axis_;
  DType type_;
  const Op* load_ = nullptr;  ///< when nothing but transposes lies between it and the product
  int kept_tensor_axis_ = -1, k_tensor_axis_ = -1;
  Unit unit_ = Unit::none;
};

/// Counters of the loops of a contraction, whose C++ names hold absolute places, and its extents.
struct ContractLoops {
  Symbol row, col;  ///< of a panel
  Symbol i, j, k;   ///< of an element
  Expr rows, cols, depth;
};

/// Says of a counter that counter + length <= extent. A counter of lanes stands for each of them: a
/// fact about the first lane alone would turn masks and the step from lane to lane into constants.
void bound_counter(Context& c, Symbol counter, const Expr& extent, int64_t length);

/// Packs panels of B from column `first` up to col_end, for k in [k0, k0 + kc): [panel][k][cols].
/// Whole panels by vectors, the last one with zeros for the columns that it lacks.
void emit_pack_b(Context& c, const ContractOperand& b, const ContractShape& s,
                 const ContractLoops& loops, Writer& out);
/// Packs panels of A from row `first` up to row_end: [panel][k][height]; the last panel as high as
/// its register tile.
void emit_pack_a(Context& c, const ContractOperand& a, const ContractShape& s,
                 const ContractLoops& loops, Writer& out);

}  // namespace tw::cpu
