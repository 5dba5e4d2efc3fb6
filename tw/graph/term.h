#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "tw/ir/program.h"
#include "tw/math/facts.h"

namespace tw::graph {

class TermNode;
/// One element of a computation, as a tree of immutable nodes; equal parts may be shared. Index
/// notation: axes of the computation are loop symbols, axis k is Symbol{loop, k}.
using Term = std::shared_ptr<const TermNode>;

/// What a term is.
///   constant  `value`
///   index     `index`, an i64 over axes and dims
///   load      the element of operand `operand` at coordinates `in` (i64, one an axis). With `pad`,
///             coordinates may lie outside, and the element is `pad` there; without, they are
///             inside by construction, but for those that come from data: those give 0 outside
///   op        `code` applied to `in`: an elementwise op of the tile language, or `where`
///   cast      `in[0]` converted as the tile language converts
///   result    what the reduction gave; only in Compute::finish
enum class TermKind : uint8_t { constant, index, load, op, cast, result };

class TermNode {
 public:
  TermKind kind = TermKind::constant;
  DType dtype = f32;
  Number value = {};
  Expr index = {};
  int operand = 0;
  std::optional<Number> pad = {};
  Opcode code = Opcode::add;
  std::vector<Term> in = {};
};

/// Builders check: operands of one dtype where ops want one. InternalError otherwise, because
/// whoever builds terms has checked what the user gave.
Term constant(DType t, double value);
Term constant_int(DType t, int64_t value);
Term constant(DType t, const Number& value);
Term index(const Expr& e);
Term axis(int k);                         ///< index() of Symbol{loop, k}
std::vector<Term> axis_terms(int count);  ///< the first axes
Term load(int operand, DType t, std::vector<Term> at, std::optional<Number> pad = {});
Term op(Opcode code, const Term& a);
Term op(Opcode code, const Term& a, const Term& b);
Term where(const Term& mask, const Term& a, const Term& b);
Term cast(const Term& x, DType t);  ///< x itself when it has the type
Term result(DType t);

bool compares(Opcode c);  ///< eq, ne, lt, le: gives b1

inline Symbol axis_symbol(int k) { return {SymbolKind::loop, k}; }

/// Every node once, operands first.
void for_each(const Term& t, const std::function<void(const TermNode&)>& visit);
/// The tree rebuilt from the bottom: `change` sees each node with changed operands and gives what
/// stands for it, or null to keep it. Shared nodes stay shared.
using Change = std::function<Term(const Term&)>;
Term rewrite(const Term& t, const Change& change);
/// Axes replaced by terms: in index expressions that stay expressions where all of their axes are
/// replaced by index terms, else by ops on i64. `axes[k]` null: axis k stays.
Term substitute(const Term& t, const std::vector<Term>& axes);
/// The axis that a term is, when it is just that.
std::optional<int> axis_at(const Term& t);
/// An index expression as i64 ops, one deep: of a symbol and of what mentions no axis, itself.
/// Divisions of what the facts say is not negative truncate.
Term as_ops(const Expr& e, const Facts& facts);
Expr product_of_dims(std::span<const Expr> dims);
/// Coordinates in a tensor of those extents of what lies at a place in row-major order.
std::vector<Expr> unflatten(const Expr& flat, std::span<const Expr> extents);
/// Whether an expression mentions axes.
bool mentions_axes(const Expr& e);
/// Axes that the term mentions, as bits.
uint64_t axes_of(const Term& t);
/// Nodes of the tree, shared ones once.
int64_t size(const Term& t);

}  // namespace tw::graph
