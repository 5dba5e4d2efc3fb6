#include "tw/emit/cpu/contract_operand.h"

#include <algorithm>
#include <fmt/format.h>

namespace tw::cpu {

void bound_counter(Context& c, Symbol counter, const Expr& extent, int64_t length) {
  SymbolFact f;
  f.range = {0, Interval::kMax};
  f.below = simplify(extent - (length - 1), c.facts);
  c.facts[counter] = f;
}

ContractOperand::ContractOperand(Context& c, const Region& region, int kept_axis,
                                 const ContractShape& shape)
    : c_(c),
      region_(region),
      shape_(shape),
      kept_axis_(kept_axis),
      type_(c.program.type(region.yields[0]).dtype) {
  int kept = kept_axis, k = 1 - kept_axis;
  const Op* op = c.def[region.yields[0]];
  while (op->code == Opcode::transpose) {
    const std::vector<int>& perm = op->as<PermAttr>().perm;
    kept = perm[kept];
    k = perm[k];
    op = c.def[op->in[0]];
  }
  if (op->code == Opcode::load) {
    load_ = op;
    const View& view = op->as<ViewAttr>().view;
    kept_tensor_axis_ = view.axes[kept];
    k_tensor_axis_ = view.axes[k];
  }
  unit_ = find_unit();
}

Reg ContractOperand::value(Expression& e, const Expr& kept, const Expr& k) const {
  const Coords at = kept_axis_ == 0 ? Coords{kept, k} : Coords{k, kept};
  const Reg r = e.value(region_.yields[0], at);
  const DType wide = register_type(shape_.type);
  if (register_type(r.dtype) == wide) return r;
  const std::string type = c_.prelude.type(wide, r.lanes);
  return e.define(wide, r.lanes, r.loops,
                  r.lanes > 1 ? fmt::format("__builtin_convertvector({}, {})", r.text, type)
                              : fmt::format("({}){}", type, r.text));
}

std::string ContractOperand::stride(int tensor_axis) const {
  const int param = load_->as<ViewAttr>().view.param;
  const ParamFacts& facts = c_.specialisation.params[param];
  if (facts.zero_stride >> tensor_axis & 1) return "0";
  if (facts.unit_axis == tensor_axis) return "1";
  return fmt::format("{}_s{}", c_.program.params[param].name, tensor_axis);
}

std::string ContractOperand::address(const Expr& kept, const Expr& k, Writer& out) const {
  const View& view = load_->as<ViewAttr>().view;
  Coords at(view.origin.begin(), view.origin.end());
  at[kept_tensor_axis_] = simplify(at[kept_tensor_axis_] + kept, c_.facts);
  at[k_tensor_axis_] = simplify(at[k_tensor_axis_] + k, c_.facts);
  Expression e(c_);
  const Expression::Address a = e.address(view.param, at);
  out.append(e.body(0));
  return a.pointer;
}

ContractOperand::Unit ContractOperand::find_unit() const {
  const Draft draft(c_);
  Expression e(c_);
  const Symbol kept = c_.new_loop("kept", shape_.lanes), k = c_.new_loop("k", shape_.lanes);
  std::vector<Expression::Access> accesses;
  e.survey = &accesses;
  value(e, Expr::symbol(kept), Expr::symbol(k));
  for (const Expression::Access& a : accesses) {
    const auto runs = [&](Symbol s) {
      return std::any_of(a.at.begin(), a.at.end(), [&](const Expr& x) { return mentions(x, s); });
    };
    if (!runs(kept) || !runs(k)) continue;
    const int unit = c_.specialisation.params[a.param].unit_axis;
    if (unit < 0) return Unit::none;
    if (mentions(a.at[unit], kept)) return Unit::kept;
    return mentions(a.at[unit], k) ? Unit::k : Unit::none;
  }
  return Unit::none;
}

}  // namespace tw::cpu
