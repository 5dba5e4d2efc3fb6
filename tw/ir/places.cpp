// What gather, scatter and atomic ask of their operands.
#include <fmt/format.h>

#include "tw/base/error.h"
#include "tw/ir/infer.h"

namespace tw {

int64_t check_scratch(const Type& t, int64_t before, SourceLoc at) {
  if (is_packed(t.dtype))
    throw UserError(at, fmt::format("scratch {} holds elements of less than a byte", to_string(t)),
                    "keep them in i8 or u8");
  int64_t size = bytes(t.dtype);
  for (const int64_t e : t.shape) {
    if (e < 1)
      throw UserError(at, fmt::format("scratch {} has an extent of {}", to_string(t), e),
                      "extents of scratch are constants >= 1");
    size = e > kMaxScratchBytes / size ? kMaxScratchBytes + 1 : size * e;
    if (size + before > kMaxScratchBytes)
      throw UserError(at,
                      fmt::format("scratch {} makes more than {} bytes of scratch", to_string(t),
                                  kMaxScratchBytes),
                      "let more instances do less each");
  }
  return size;
}

int64_t scratch_bytes(const Param& p) {
  int64_t size = bytes(p.dtype);
  for (const Expr& e : p.dims) size *= e.constant();
  return size;
}

Extents infer_place(Opcode code, const std::vector<Type>& at, const std::vector<Type>& values,
                    const std::optional<Type>& mask, SourceLoc line) {
  const char* what = info(code).name;
  std::optional<Extents> shape;
  const auto stretch = [&](const Type& t) {
    shape = shape ? broadcast_extents(*shape, t.shape, what, line) : t.shape;
  };
  for (const Type& t : at) {
    if (t.dtype != i32 && t.dtype != i64)
      throw UserError(line,
                      fmt::format("'{}' at coordinates {}, wanted i32 or i64", what, to_string(t)),
                      "cast them");
    stretch(t);
  }
  for (const Type& t : values) stretch(t);
  if (mask && mask->dtype != b1)
    throw UserError(line, fmt::format("'{}' needs a b1 mask, got {}", what, to_string(*mask)),
                    "compare with ne(x, 0)");
  if (mask) stretch(*mask);
  const Extents all = shape.value_or(Extents());
  check_type({i64, all}, line);
  return all;
}

Extents place_extents(const Program& p, const Op& op) {
  const PlaceOperands in = place_operands(op);
  std::vector<Type> at;
  for (const ValueId v : in.at) at.push_back(p.type(v));
  std::vector<Type> values;
  for (const auto& v : {in.value, in.expected})
    if (v) values.push_back(p.type(*v));
  const auto mask = in.mask ? std::optional(p.type(*in.mask)) : std::nullopt;
  return infer_place(op.code, at, values, mask, op.at);
}

void check_assert(const Type& mask, SourceLoc at) {
  if (mask.dtype == b1) return;
  throw UserError(at, fmt::format("'assert' needs a b1 tile, got {}", to_string(mask)),
                  "compare with ne(x, 0)");
}

void check_atomic(AtomicOp op, DType t, SourceLoc at) {
  const bool bits =
      op == AtomicOp::and_ || op == AtomicOp::or_ || op == AtomicOp::xor_ || op == AtomicOp::cas;
  const bool fits = t == i32 || t == i64 || t == u32 || t == u64 || t == f32 || t == f64;
  if (fits && !(bits && is_float(t))) return;
  throw UserError(at, fmt::format("atomic {} on elements of {}", name(op), name(t)),
                  bits ? "wanted i32, i64, u32 or u64" : "wanted i32, i64, u32, u64, f32 or f64");
}

void check_scatter(const Param& p, SourceLoc at) {
  if (!is_packed(p.dtype)) return;
  throw UserError(at,
                  fmt::format("scatter into '{}': elements of {} share bytes with those of other "
                              "instances",
                              p.name, name(p.dtype)),
                  "scatter bytes, such as i8, or store a tile");
}

void check_packed_store(const Program& p, const View& view, const Facts& facts, SourceLoc at) {
  const Param& a = p.params[static_cast<size_t>(view.param)];
  if (!is_packed(a.dtype) || a.dims.empty()) return;
  const int64_t whole = elements_of_bytes(a.dtype);
  const Expr& start = view.origin.back();
  if (divisor(start, facts) % whole == 0) return;
  throw UserError(
      at,
      fmt::format("store into '{}' from element {} of a row: it is not proved to start with a "
                  "byte, which {} elements of {} share",
                  a.name, to_string(start, [&](Symbol s) { return symbol_name(p, s); }), whole,
                  name(a.dtype)),
      fmt::format("start at multiples of {}: tile() with such an extent, or a dim that promises "
                  ".multiple_of",
                  whole));
}

const char* name(AtomicOp op) {
  switch (op) {
    case AtomicOp::add:
      return "add";
    case AtomicOp::min:
      return "min";
    case AtomicOp::max:
      return "max";
    case AtomicOp::and_:
      return "and";
    case AtomicOp::or_:
      return "or";
    case AtomicOp::xor_:
      return "xor";
    case AtomicOp::exch:
      return "exch";
    case AtomicOp::cas:
      return "cas";
  }
  return "?";
}

const char* name(MemoryOrder order) {
  switch (order) {
    case MemoryOrder::relaxed:
      return "relaxed";
    case MemoryOrder::acquire:
      return "acquire";
    case MemoryOrder::release:
      return "release";
    case MemoryOrder::acq_rel:
      return "acq_rel";
  }
  return "?";
}

const char* name(MemoryScope scope) {
  switch (scope) {
    case MemoryScope::block:
      return "block";
    case MemoryScope::device:
      return "device";
    case MemoryScope::system:
      return "system";
  }
  return "?";
}

}  // namespace tw
