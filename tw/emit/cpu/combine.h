#pragma once

#include "tw/emit/cpu/op_table.h"

namespace tw::cpu {

using Regs = std::vector<Reg>;

/// What the region of a custom combiner makes of a left and a right tuple.
Regs combine_tuples(Expression& e, const Region& combiner, const Regs& left, const Regs& right);

}  // namespace tw::cpu
