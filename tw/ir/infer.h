#pragma once

#include "tw/ir/program.h"

namespace tw {

/// Result types of an op from its operand types; each throws UserError at `at` when the operands do
/// not fit. `what` names the op as the user wrote it.
Type infer_unary(Opcode code, const Type& a, SourceLoc at);
Type infer_binary(Opcode code, const Type& a, const Type& b, SourceLoc at);
Type infer_where(const Type& mask, const Type& a, const Type& b, SourceLoc at);
Type infer_cast(const Type& a, DType to, SourceLoc at);
Type infer_bitcast(const Type& a, DType to, SourceLoc at);
Type infer_reshape(const Type& a, const Extents& shape, SourceLoc at);
Type infer_transpose(const Type& a, const std::vector<int>& perm, SourceLoc at);
Type infer_broadcast(const Type& a, const Extents& shape, SourceLoc at);
Type infer_reduce(const Type& a, int axis, Combiner combiner, SourceLoc at);
Type infer_dot(const Type& a, const Type& b, const Type& acc, SourceLoc at);

}  // namespace tw
