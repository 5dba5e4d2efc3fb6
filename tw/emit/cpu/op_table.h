#pragma once

#include "tw/emit/cpu/expression.h"

namespace tw::cpu {

/// Computes one element (or lanes of them) of the op's result.
using EmitElement = Reg (*)(Expression& e, const Op& op, const Coords& at);

/// The function of the op's opcode; throws InternalError for ops that are not expressions.
EmitElement expression_of(const Op& op);
/// Whether elements of the op are computed where they are used; the others are statements.
bool is_expression(const Program& p, const Op& op);

/// Where an element of a reshape, transpose, slice, broadcast or kept value comes from in its
/// operand.
Coords source_of(const Context& c, const Op& op, const Coords& at);
/// What as_index looks through: sums and products, or divisions and tiles in memory too.
enum class Through : uint8_t { sums, everything };
/// An integer value as an expression of counters, where its arithmetic cannot wrap.
std::optional<Expr> as_index(Expression& e, ValueId v, const Coords& at,
                             Through through = Through::sums);

/// mask ? a : b, and a op b for an opcode of two operands, on registers.
Reg select(Expression& e, const Reg& mask, Reg a, Reg b);
Reg combine_pair(Expression& e, Opcode code, Reg a, Reg b);

Reg lookup_element(Expression& e, const Op& op, const Coords& at);
/// The C++ conversion of lanes or one element to a type: of integers, wrapping, to any; of floats
/// to floats.
Reg converted(Expression& e, const Reg& a, DType to);
Reg cast_element(Expression& e, const Op& op, const Coords& at);
/// An element of a short reduction: see is_short_reduction.
Reg reduce_element(Expression& e, const Op& op, const Coords& at);
/// An f32 element that is a function of four bits of a byte, where the machine has a table of
/// sixteen in a register.
std::optional<Reg> look_up(Expression& e, ValueId v, const Coords& at);
/// The constant that every element of v is, if it is one.
std::optional<Number> constant_of(const Context& c, ValueId v);

}  // namespace tw::cpu
