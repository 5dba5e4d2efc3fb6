#pragma once

#include "tw/emit/cpu/op_table.h"

namespace tw::cpu {

using Regs = std::vector<Reg>;

/// The op of two elements that a combiner without a region applies.
Opcode opcode_of(Combiner c);
/// What leaves every element as it is when combined with it.
Number neutral(Combiner c, DType t);
/// What the region of a custom combiner makes of a left and a right tuple.
Regs combine_tuples(Expression& e, const Region& combiner, const Regs& left, const Regs& right);

}  // namespace tw::cpu
