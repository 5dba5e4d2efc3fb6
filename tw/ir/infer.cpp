#include "tw/ir/infer.h"

#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "tw/base/error.h"

namespace tw {
namespace {

// What an op asks of the element type of its operands.
enum class Needs { any, number, floating, integer, bits };

Needs needs(Opcode code) {
  switch (code) {
    case Opcode::neg:
    case Opcode::abs:
    case Opcode::add:
    case Opcode::sub:
    case Opcode::mul:
    case Opcode::div:
    case Opcode::min:
    case Opcode::max:
    case Opcode::min_num:
    case Opcode::max_num:
    case Opcode::lt:
    case Opcode::le:
      return Needs::number;
    case Opcode::sqrt:
    case Opcode::rsqrt:
    case Opcode::exp:
    case Opcode::exp2:
    case Opcode::log:
    case Opcode::sin:
    case Opcode::cos:
    case Opcode::tanh:
    case Opcode::erf:
    case Opcode::tanh_fast:
    case Opcode::erf_fast:
    case Opcode::floor:
    case Opcode::ceil:
    case Opcode::round:
      return Needs::floating;
    case Opcode::rem:
    case Opcode::shl:
    case Opcode::shr:
      return Needs::integer;
    case Opcode::not_:
    case Opcode::and_:
    case Opcode::or_:
    case Opcode::xor_:
      return Needs::bits;
    case Opcode::eq:
    case Opcode::ne:
    case Opcode::full:
    case Opcode::iota:
    case Opcode::index:
    case Opcode::load:
    case Opcode::store:
    case Opcode::gather:
    case Opcode::scatter:
    case Opcode::atomic:
    case Opcode::assert_:
    case Opcode::print:
    case Opcode::cast:
    case Opcode::bitcast:
    case Opcode::lookup:
    case Opcode::philox:
    case Opcode::where:
    case Opcode::reshape:
    case Opcode::transpose:
    case Opcode::broadcast:
    case Opcode::slice:
    case Opcode::reduce:
    case Opcode::scan:
    case Opcode::top_k:
    case Opcode::dot:
    case Opcode::for_:
    case Opcode::while_:
    case Opcode::if_:
    case Opcode::par:
    case Opcode::keep:
    case Opcode::contract:
      return Needs::any;
  }
  return Needs::any;
}

Needs needs(Combiner c) {
  switch (c) {
    case Combiner::sum:
    case Combiner::prod:
    case Combiner::min:
    case Combiner::max:
    case Combiner::min_num:
    case Combiner::max_num:
      return Needs::number;
    case Combiner::and_:
    case Combiner::or_:
    case Combiner::xor_:
      return Needs::bits;
    case Combiner::custom:
      return Needs::any;
  }
  return Needs::any;
}

void check_needs(Needs n, const char* what, const Type& t, SourceLoc at) {
  const DType d = t.dtype;
  if (n != Needs::any && only_stores(d))
    throw UserError(at, fmt::format("'{}' on {}: {} only stores data", what, to_string(t), name(d)),
                    is_int(d) ? "cast it to i8 or i32 first" : "cast it to f32 or f16 first");
  switch (n) {
    case Needs::any:
      return;
    case Needs::number:
      if (d == b1)
        throw UserError(at, fmt::format("'{}' on {}: a mask is no number", what, to_string(t)),
                        "use & | ^ ~ and where(), or cast it");
      return;
    case Needs::floating:
      if (!is_float(d))
        throw UserError(at, fmt::format("'{}' needs a float tile, got {}", what, to_string(t)),
                        "cast it to f32");
      return;
    case Needs::integer:
      if (!is_int(d))
        throw UserError(at, fmt::format("'{}' needs an integer tile, got {}", what, to_string(t)));
      return;
    case Needs::bits:
      if (is_float(d))
        throw UserError(at,
                        fmt::format("'{}' needs an integer or b1 tile, got {}", what, to_string(t)),
                        "bitcast it to look at its bits");
      return;
  }
}

void check_axis(int axis, const Type& t, const char* what, SourceLoc at) {
  if (axis < 0 || static_cast<size_t>(axis) >= t.shape.size())
    throw UserError(at, fmt::format("'{}' along axis {} of {}, which has {} axes", what, axis,
                                    to_string(t), t.shape.size()));
}

bool gives_mask(Opcode code) {
  return code == Opcode::eq || code == Opcode::ne || code == Opcode::lt || code == Opcode::le;
}

// The element types that dot multiplies into an accumulator of type acc.
bool dot_accepts(DType a, DType b, DType acc) {
  if (acc == f64) return is_float(a) && (a == b || (is_fp8(a) && is_fp8(b)));
  if (acc == f32) return is_float(a) && a != f64 && (a == b || (is_fp8(a) && is_fp8(b)));
  if (acc == i32) return (a == i8 || a == u8) && (b == i8 || b == u8);
  return false;
}

}  // namespace

bool is_elementwise(Opcode code) {
  switch (code) {
    case Opcode::iota:
    case Opcode::load:
    case Opcode::store:
    case Opcode::gather:
    case Opcode::scatter:
    case Opcode::atomic:
    case Opcode::assert_:
    case Opcode::print:
    case Opcode::reshape:
    case Opcode::transpose:
    case Opcode::broadcast:
    case Opcode::slice:
    case Opcode::reduce:
    case Opcode::scan:
    case Opcode::top_k:
    case Opcode::dot:
    case Opcode::for_:
    case Opcode::while_:
    case Opcode::if_:
    case Opcode::par:
    case Opcode::keep:
    case Opcode::contract:
      return false;
    case Opcode::full:
    case Opcode::index:
    case Opcode::cast:
    case Opcode::bitcast:
    case Opcode::lookup:
    case Opcode::philox:
    case Opcode::neg:
    case Opcode::abs:
    case Opcode::not_:
    case Opcode::sqrt:
    case Opcode::rsqrt:
    case Opcode::exp:
    case Opcode::exp2:
    case Opcode::log:
    case Opcode::sin:
    case Opcode::cos:
    case Opcode::tanh:
    case Opcode::erf:
    case Opcode::tanh_fast:
    case Opcode::erf_fast:
    case Opcode::floor:
    case Opcode::ceil:
    case Opcode::round:
    case Opcode::add:
    case Opcode::sub:
    case Opcode::mul:
    case Opcode::div:
    case Opcode::rem:
    case Opcode::min:
    case Opcode::max:
    case Opcode::min_num:
    case Opcode::max_num:
    case Opcode::and_:
    case Opcode::or_:
    case Opcode::xor_:
    case Opcode::shl:
    case Opcode::shr:
    case Opcode::eq:
    case Opcode::ne:
    case Opcode::lt:
    case Opcode::le:
    case Opcode::where:
      return true;
  }
  return false;
}

void check_type(const Type& t, SourceLoc at) {
  if (t.shape.size() > kMaxRank)
    throw UserError(at, fmt::format("a tile of {} axes, more than {}", t.shape.size(), kMaxRank));
  int64_t n = 1;
  for (int64_t e : t.shape) {
    if (e < 1)
      throw UserError(
          at, fmt::format("tile extents {} must be at least 1, got {}", to_string(t.shape), e));
    if (e > kMaxTileElements / n)
      throw UserError(
          at, fmt::format("tile {} has more than {} elements", to_string(t), kMaxTileElements),
          "let the grid or a loop walk over smaller tiles");
    n *= e;
  }
}

Extents broadcast_extents(const Extents& a, const Extents& b, const char* what, SourceLoc at) {
  if (a.size() != b.size())
    throw UserError(
        at, fmt::format("'{}' on shapes {} and {}: ranks differ", what, to_string(a), to_string(b)),
        "say which axis with as_row() or as_col()");
  Extents r;
  for (size_t i = 0; i < a.size(); ++i) {
    if (a[i] != b[i] && a[i] != 1 && b[i] != 1)
      throw UserError(at,
                      fmt::format("'{}' on shapes {} and {}: axis {} does not match", what,
                                  to_string(a), to_string(b), i),
                      "extents must be equal, or 1");
    r.push_back(std::max(a[i], b[i]));
  }
  return r;
}

Type infer_unary(Opcode code, const Type& a, SourceLoc at) {
  check_needs(needs(code), info(code).name, a, at);
  return a;
}

Type infer_binary(Opcode code, const Type& a, const Type& b, SourceLoc at) {
  const char* what = info(code).name;
  if (a.dtype != b.dtype)
    throw UserError(at, fmt::format("'{}' mixes {} and {}", what, to_string(a), to_string(b)),
                    "cast one of them");
  check_needs(needs(code), what, a, at);
  Type r{gives_mask(code) ? b1 : a.dtype, broadcast_extents(a.shape, b.shape, what, at)};
  check_type(r, at);
  return r;
}

Type infer_where(const Type& mask, const Type& a, const Type& b, SourceLoc at) {
  if (mask.dtype != b1)
    throw UserError(at, fmt::format("'where' needs a b1 mask, got {}", to_string(mask)),
                    "compare with ne(x, 0)");
  if (a.dtype != b.dtype)
    throw UserError(at, fmt::format("'where' mixes {} and {}", to_string(a), to_string(b)),
                    "cast one of them");
  Type r{a.dtype, broadcast_extents(mask.shape, broadcast_extents(a.shape, b.shape, "where", at),
                                    "where", at)};
  check_type(r, at);
  return r;
}

Type infer_cast(const Type& a, DType to, SourceLoc) { return {to, a.shape}; }

void check_cast(DType from, DType to, const CastAttr& how, SourceLoc at) {
  if (how.rounding == Rounding::RN && !how.saturate) return;
  if (is_float(from) && is_float(to)) return;
  const char* word = how.saturate ? "saturation" : name(how.rounding);
  throw UserError(at,
                  fmt::format("cast of {} to {} with {}: only casts between floats take rounding "
                              "and saturation",
                              name(from), name(to), word),
                  "apply floor(), ceil() or round(), min() and max() first");
}

Type infer_bitcast(const Type& a, DType to, SourceLoc at) {
  if (a.dtype == b1 || to == b1)
    throw UserError(
        at,
        fmt::format("bitcast of {} to {}: b1 has no bits to reinterpret", to_string(a), name(to)),
        "cast it, or compare with ne(x, 0)");
  if (bits(a.dtype) != bits(to))
    throw UserError(at, fmt::format("bitcast of {} to {}: sizes differ ({} and {} bits)",
                                    to_string(a), name(to), bits(a.dtype), bits(to)));
  return {to, a.shape};
}

Type infer_lookup(const Type& index, DType to, size_t entries, SourceLoc at) {
  check_needs(Needs::integer, "lookup", index, at);
  if (entries < kLeastTable || entries > kLargestTable)
    throw UserError(at, fmt::format("'lookup' in a table of {} entries, wanted {} to {}", entries,
                                    kLeastTable, kLargestTable));
  return {to, index.shape};
}

Type infer_philox(const Type& counter, const Type& seed, const Type& stream, SourceLoc at) {
  for (const Type& t : {counter, seed, stream})
    if (t.dtype != i64)
      throw UserError(at, fmt::format("'philox' of {}: counter and key are i64", to_string(t)),
                      "cast it");
  const Extents key = broadcast_extents(seed.shape, stream.shape, "philox", at);
  const Type r{u32, broadcast_extents(counter.shape, key, "philox", at)};
  check_type(r, at);
  return r;
}

Type infer_reshape(const Type& a, const Extents& shape, SourceLoc at) {
  const Type r{a.dtype, shape};
  check_type(r, at);
  if (count(shape) != count(a.shape))
    throw UserError(at, fmt::format("reshape of {} to {}: {} elements become {}", to_string(a),
                                    to_string(shape), count(a.shape), count(shape)));
  return r;
}

Type infer_transpose(const Type& a, const std::vector<int>& perm, SourceLoc at) {
  std::vector<int> sorted = perm;
  std::sort(sorted.begin(), sorted.end());
  bool permutes = sorted.size() == a.shape.size();
  for (size_t i = 0; permutes && i < sorted.size(); ++i)
    permutes = sorted[i] == static_cast<int>(i);
  if (!permutes)
    throw UserError(at, fmt::format("transpose of {} by ({}), which does not name each of its {} "
                                    "axes once",
                                    to_string(a), fmt::join(perm, ", "), a.shape.size()));
  Type r{a.dtype, {}};
  for (int axis : perm) r.shape.push_back(a.shape[static_cast<size_t>(axis)]);
  return r;
}

Type infer_broadcast(const Type& a, const Extents& shape, SourceLoc at) {
  const Type r{a.dtype, shape};
  check_type(r, at);
  if (broadcast_extents(a.shape, shape, "broadcast", at) != shape)
    throw UserError(at, fmt::format("broadcast of {} to {}: only extents of 1 stretch",
                                    to_string(a), to_string(shape)));
  return r;
}

Type infer_slice(const Type& a, const Extents& start, const Extents& shape, SourceLoc at) {
  const Type r{a.dtype, shape};
  check_type(r, at);
  bool inside = start.size() == a.shape.size() && shape.size() == a.shape.size();
  for (size_t k = 0; inside && k < shape.size(); ++k)
    inside = start[k] >= 0 && start[k] <= a.shape[k] - shape[k];
  if (!inside)
    throw UserError(at, fmt::format("slice of {} at {} in {}: it must lie inside, in as many axes",
                                    to_string(shape), to_string(start), to_string(a)));
  return r;
}

static void check_fold(const char* verb, const Type& a, int axis, Combiner combiner, SourceLoc at) {
  const std::string what = fmt::format("{} {}", verb, name(combiner));
  check_axis(axis, a, what.c_str(), at);
  check_needs(needs(combiner), what.c_str(), a, at);
}

Type infer_reduce(const Type& a, int axis, Combiner combiner, SourceLoc at) {
  check_fold("reduce", a, axis, combiner, at);
  Type r = a;
  r.shape[static_cast<size_t>(axis)] = 1;
  return r;
}

Type infer_scan(const Type& a, int axis, Combiner combiner, SourceLoc at) {
  check_fold("scan", a, axis, combiner, at);
  return a;
}

std::vector<Type> infer_top_k(const std::vector<Type>& in, int64_t k, SourceLoc at) {
  if (in.size() != 2 && in.size() != 4)
    throw UserError(at, fmt::format("'top_k' of {} tiles, not values and indices", in.size()));
  int64_t count = 0;
  for (size_t n = 0; n < in.size(); n += 2) {
    const Type &values = in[n], &indices = in[n + 1];
    check_needs(Needs::number, "top_k", values, at);
    if (indices.dtype != i64 || values.shape != indices.shape || values.shape.empty())
      throw UserError(at,
                      fmt::format("'top_k' of values {} and indices {}: indices are i64, of the "
                                  "values' extents, at least one axis",
                                  to_string(values), to_string(indices)));
    Extents rows = values.shape, first = in[0].shape;
    count += rows.back();
    rows.pop_back();
    first.pop_back();
    if (rows != first || values.dtype != in[0].dtype)
      throw UserError(at, fmt::format("'top_k' of parts {} and {}, which differ in more than the "
                                      "last axis",
                                      to_string(in[0]), to_string(values)));
  }
  if (k < 1 || k > count)
    throw UserError(at, fmt::format("'top_k' of {} among {} elements", k, count));
  Extents shape = in[0].shape;
  shape.back() = k;
  return {{in[0].dtype, shape}, {i64, shape}};
}

Type infer_fold(const Op& op, const Type& a) {
  const ReduceAttr& how = fold_of(op);
  return op.code == Opcode::scan ? infer_scan(a, how.axis, how.combiner, op.at)
                                 : infer_reduce(a, how.axis, how.combiner, op.at);
}

Type infer_dot(const Type& a, const Type& b, const Type& acc, Precision precision, SourceLoc at) {
  if (a.shape.size() != 2 || b.shape.size() != 2)
    throw UserError(
        at, fmt::format("dot of {} and {}: both need two axes", to_string(a), to_string(b)));
  if (a.shape[1] != b.shape[0])
    throw UserError(
        at, fmt::format("dot of {} and {}: inner extents differ", to_string(a), to_string(b)));
  const Extents want{a.shape[0], b.shape[1]};
  if (acc.shape != want)
    throw UserError(at, fmt::format("dot accumulates {} into {}", to_string(want), to_string(acc)));
  for (const Type& t : {a, b})
    if (!is_fp8(t.dtype) && only_stores(t.dtype)) check_needs(Needs::number, "dot", t, at);
  if (!dot_accepts(a.dtype, b.dtype, acc.dtype))
    throw UserError(
        at, fmt::format("dot of {} and {} into {}", to_string(a), to_string(b), to_string(acc)),
        "operands of one float type accumulate in f32 or f64 (f64 in f64), i8 and u8 in i32");
  if (precision != Precision::ieee && (a.dtype != f32 || acc.dtype != f32))
    throw UserError(at,
                    fmt::format("dot of {} and {} into {} with precision {}", to_string(a),
                                to_string(b), to_string(acc), name(precision)),
                    "it is one of f32 operands that accumulate in f32; others are ieee");
  return acc;
}

}  // namespace tw
