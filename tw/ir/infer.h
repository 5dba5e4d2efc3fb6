#pragma once

#include <optional>

#include "tw/ir/program.h"

namespace tw {

/// The most elements and axes that a tile may have.
inline constexpr int64_t kMaxTileElements = int64_t{1} << 28;
inline constexpr size_t kMaxRank = 8;
/// The most bytes of scratch that the tensors of a program may have together.
inline constexpr int64_t kMaxScratchBytes = int64_t{1} << 26;

/// Throws UserError at `at` when t is no tile: extents >= 1, within the two limits above.
void check_type(const Type& t, SourceLoc at);

/// Result types of an op from its operand types; each throws UserError at `at` when the operands do
/// not fit, naming the op as text does.
Type infer_unary(Opcode code, const Type& a, SourceLoc at);
Type infer_binary(Opcode code, const Type& a, const Type& b, SourceLoc at);
Type infer_where(const Type& mask, const Type& a, const Type& b, SourceLoc at);
Type infer_cast(const Type& a, DType to, SourceLoc at);
Type infer_bitcast(const Type& a, DType to, SourceLoc at);
/// A mask, which an assert takes.
void check_assert(const Type& mask, SourceLoc at);
/// In a table of so many constants of `to`.
Type infer_lookup(const Type& index, DType to, size_t entries, SourceLoc at);
/// Values and indices of one part or two, in turns; gives those of the k first.
std::vector<Type> infer_top_k(const std::vector<Type>& in, int64_t k, SourceLoc at);
Type infer_philox(const Type& counter, const Type& seed, const Type& stream, SourceLoc at);
Type infer_reshape(const Type& a, const Extents& shape, SourceLoc at);
Type infer_transpose(const Type& a, const std::vector<int>& perm, SourceLoc at);
Type infer_broadcast(const Type& a, const Extents& shape, SourceLoc at);
Type infer_slice(const Type& a, const Extents& start, const Extents& shape, SourceLoc at);
Type infer_scan(const Type& a, int axis, Combiner combiner, SourceLoc at);
/// The type of a result of a reduce or scan for the operand `a`.
Type infer_fold(const Op& op, const Type& a);
Type infer_reduce(const Type& a, int axis, Combiner combiner, SourceLoc at);
Type infer_dot(const Type& a, const Type& b, const Type& acc, Precision precision, SourceLoc at);

/// Throws UserError at `at` when scratch of these extents cannot be: each at least 1, at most
/// kMaxScratchBytes with the `before` bytes of others. Gives its bytes.
int64_t check_scratch(const Type& t, int64_t before, SourceLoc at);

/// The extents to which coordinates (i32 or i64 tiles), a mask (b1) and what is written stretch.
/// `values`: what is written, and for a cas what is expected.
Extents infer_place(Opcode code, const std::vector<Type>& at, const std::vector<Type>& values,
                    const std::optional<Type>& mask, SourceLoc line);
/// Those extents for a gather, scatter or atomic of a program.
Extents place_extents(const Program& p, const Op& op);
/// What an atomic of this kind takes: i32 i64 u32 u64, and f32 f64 but for and, or, xor, cas.
void check_atomic(AtomicOp op, DType t, SourceLoc at);
/// Elements of less than a byte: a scatter may share bytes with other instances, and so may a store
/// whose view is not proved to start with a byte. (Where it ends does not matter: what another
/// instance stores after it starts with a byte too.)
void check_scatter(const Param& p, SourceLoc at);
void check_packed_store(const Program& p, const View& view, const Facts& facts, SourceLoc at);

/// True for ops that make each element of the result from the elements at its place, anywhere in
/// the tile: what a combiner region may hold.
bool is_elementwise(Opcode code);

/// The rule of casts about rounding and saturation: they choose among floats, so both types must be
/// floats when one is not the default.
void check_cast(DType from, DType to, const CastAttr& how, SourceLoc at);

/// The extents that both stretch to; `what` names the op in the error.
Extents broadcast_extents(const Extents& a, const Extents& b, const char* what, SourceLoc at);

/// The op's name as text writes it: "lt", "min_num", "RZ".
const char* name(Combiner c);
const char* name(CompareKind c);
const char* name(AtomicOp op);
const char* name(MemoryOrder order);
const char* name(MemoryScope scope);
const char* name(Precision p);
const char* name(Rounding r);

}  // namespace tw
