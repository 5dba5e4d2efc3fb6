#pragma once

#include "tw/emit/cpu/expression.h"

namespace tw::cpu {

/// Computes one element (or lanes of them) of the op's result.
using EmitElement = Reg (*)(Expression& e, const Op& op, const Coords& at);

/// The function of the op's opcode; throws InternalError for ops that are not expressions.
EmitElement expression_of(const Op& op);
/// Whether elements of such ops are computed where they are used; the others are statements.
bool is_expression(Opcode code);

/// An integer value as an expression of counters, where its arithmetic cannot wrap.
std::optional<Expr> as_index(Expression& e, ValueId v, const Coords& at);

/// mask ? a : b, and a op b for an opcode of two operands, on registers.
Reg select(Expression& e, const Reg& mask, Reg a, Reg b);
Reg combine_pair(Expression& e, Opcode code, Reg a, Reg b);

Reg cast_element(Expression& e, const Op& op, const Coords& at);

}  // namespace tw::cpu
