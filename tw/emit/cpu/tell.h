#pragma once

#include "tw/emit/cpu/context.h"

namespace tw::cpu {

/// An assert or print: calls the host's `tell`, of an assert for the first false element.
void emit_tell(Context& c, const Op& op, Writer& out);

}  // namespace tw::cpu
