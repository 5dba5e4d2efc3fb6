#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "tw/base/source_loc.h"
#include "tw/ir/type.h"
#include "tw/math/facts.h"
#include "tw/num/codec.h"

namespace tw {

enum class Opcode : uint8_t {
#define TW_OP(name, operands, results, effect, attribute, sentence) name,
#include "tw/ir/ops.def"
#undef TW_OP
};

enum class Effect : uint8_t { pure, read, write, host, control };

/// A constant of any dtype: integers (and b1) exactly, floats as the double they round from.
struct Number {
  bool integral = true;
  int64_t i = 0;  ///< u64 values are kept modulo 2^64
  double f = 0;
  bool operator==(const Number& o) const;  ///< NaN equals NaN, -0 differs from 0
  double as_double() const { return integral ? static_cast<double>(i) : f; }
};

/// A block of a parameter's memory. The tensor has one origin per axis (element coordinates, may
/// lie outside); the tile runs along the tensor axes listed in `axes` (ascending), one tile axis
/// each; the other axes are fixed at their origin. Tile element t has tensor coordinate
/// origin[axes[k]] + t[k]. An element is inside when every coordinate, those of fixed axes too,
/// lies in [0, dim).
struct View {
  int param = 0;
  std::vector<Expr> origin;
  std::vector<int> axes;
  bool operator==(const View&) const = default;
};

/// How many constants the table of a lookup may have.
inline constexpr size_t kLeastTable = 2, kLargestTable = 256;

/// What an atomic makes of the old element and the new value.
/// cas: the value where the element is as expected, else the element.
enum class AtomicOp : uint8_t { add, min, max, and_, or_, xor_, exch, cas };
enum class MemoryOrder : uint8_t { relaxed, acquire, release, acq_rel };
/// Among whom an atomic is indivisible and ordered.
enum class MemoryScope : uint8_t { block, device, system };

enum class Combiner : uint8_t { sum, prod, min, max, min_num, max_num, and_, or_, xor_, custom };
/// How `dot` multiplies f32 operands (docs/language.md); others have ieee only. tf32: each may be
/// rounded to 11 bits. tf32x3: to two parts of 11 bits, whose small parts' product is left out.
enum class Precision : uint8_t { ieee, tf32, tf32x3 };
enum class CompareKind : uint8_t { lt, le, eq, ne };

struct NoneAttr {
  bool operator==(const NoneAttr&) const = default;
};
struct FullAttr {
  Number value;
  bool operator==(const FullAttr&) const = default;
};
struct AxisAttr {
  int axis = 0;
  bool operator==(const AxisAttr&) const = default;
};
struct IndexAttr {
  Expr value;
  bool operator==(const IndexAttr&) const = default;
};
struct ViewAttr {
  View view;
  Number pad;
  bool operator==(const ViewAttr&) const = default;
};
/// Elements of a parameter at coordinates that are computed: along each of `view.axes` (whose
/// origin is 0) those of one operand, along the others the origin. Operands are the coordinates,
/// then the value of what writes, of a cas the
/// expected one, then the mask.
struct PlaceAttr {
  View view;
  bool masked = false;
  Number pad;  ///< of gather
  bool operator==(const PlaceAttr&) const = default;
};
struct AtomicAttr {
  View view;
  bool masked = false;
  AtomicOp op = AtomicOp::add;
  MemoryOrder order = MemoryOrder::relaxed;
  MemoryScope scope = MemoryScope::device;
  bool operator==(const AtomicAttr&) const = default;
};
/// What an assert or print says. `id` numbers those of a canonical program: what text tells its
/// host.
struct MessageAttr {
  std::string text;
  int id = 0;
  bool operator==(const MessageAttr&) const = default;
};
struct CastAttr {
  Rounding rounding = Rounding::RN;
  bool saturate = false;
  Expr seed;
  bool operator==(const CastAttr&) const = default;
};
/// Lowered, an assert's operand is not its mask but the number of the mask's first false element,
/// an i64 of one element: this when all hold.
inline constexpr int64_t kAllTrue = INT64_MAX;
/// Constants of the result's dtype, kLeastTable to kLargestTable of them.
struct TableAttr {
  std::vector<Number> entries;
  bool operator==(const TableAttr&) const = default;
};
struct PermAttr {
  std::vector<int> perm;
  bool operator==(const PermAttr&) const = default;
};
/// combiner custom: the op has one region; its arguments are the n left then the n right elements
/// as rank-0 values, it yields n. It must be associative and commutative up to rounding: the order
/// of combining is not defined.
struct ReduceAttr {
  int axis = 0;
  Combiner combiner = Combiner::sum;
  bool operator==(const ReduceAttr&) const = default;
};
/// A running fold, inclusive; `reverse`: of each element with all after it. Along the axis the
/// order of the elements is kept, and which neighbours are combined first is not defined.
struct ScanAttr {
  ReduceAttr fold;
  bool reverse = false;
  bool operator==(const ScanAttr&) const = default;
};
/// Pairs come in order: larger values first, NaN counts as largest, of equal values the lower
/// index.
struct TopKAttr {
  int64_t k = 1;
  bool operator==(const TopKAttr&) const = default;
};
/// Where a block starts in each axis.
struct SliceAttr {
  Extents start;
  bool operator==(const SliceAttr&) const = default;
};
struct DotAttr {
  Precision precision = Precision::ieee;
  bool operator==(const DotAttr&) const = default;
};
/// The counter runs lo, lo+step, ... < hi; step >= 1. `loop` is the id of its Symbol{loop, id}.
struct LoopAttr {
  int loop = 0;
  Expr lo, hi, step = 1;
  bool operator==(const LoopAttr&) const = default;
};
/// Extents of a contraction, known when the instance runs (negative ones count as 0). The regions
/// of A and B give tiles of the first k; they continue along k as their loads do.
struct ContractAttr {
  Expr rows, cols, depth;
  Precision precision = Precision::ieee;
  bool operator==(const ContractAttr&) const = default;
};
struct CondAttr {
  CompareKind kind = CompareKind::lt;
  Expr a, b;
  bool operator==(const CondAttr&) const = default;
};
using Attr = std::variant<NoneAttr, FullAttr, AxisAttr, IndexAttr, ViewAttr, PlaceAttr, AtomicAttr,
                          MessageAttr, CastAttr, TableAttr, PermAttr, ReduceAttr, ScanAttr,
                          TopKAttr, SliceAttr, DotAttr, LoopAttr, CondAttr, ContractAttr>;

/// Index into Program::values.
using ValueId = uint32_t;
struct Op;

/// A list of ops with arguments, whose values the owning op defines, and the values it hands back.
///   for_    args = carried values; yields = their next values; op.in = first values, op.out = last
///           ones
///   while_  the same; the first carried value, a scalar b1, says before each iteration whether it
///   is
///           made
///   if_     two regions without args; yields = op.out
///   reduce, scan   custom combiner (see ReduceAttr)
///   contract  A and B: no args, yield a tile [rows, k] and [k, cols]; the third: args = the sum
struct Region {
  std::vector<ValueId> args;
  std::vector<Op> ops;
  std::vector<ValueId> yields;
};

struct Op {
  Opcode code = Opcode::full;
  SourceLoc at;
  std::vector<ValueId> in, out;
  Attr attr;
  std::vector<Region> regions;

  template <class A>
  const A& as() const {
    return std::get<A>(attr);
  }
  template <class A>
  A& as() {
    return std::get<A>(attr);
  }
};

struct OpInfo {
  const char* name;  ///< as in text: without the trailing underscore that C++ keywords need
  int operands;      ///< kMany: any number
  int results;
  Effect effect;
  const char* attribute;
  const char* sentence;
};
inline constexpr int kMany = -1;
inline constexpr int kOpcodeCount = 0
#define TW_OP(name, operands, results, effect, attribute, sentence) +1
#include "tw/ir/ops.def"
#undef TW_OP
    ;
const OpInfo& info(Opcode code);

struct Value {
  Type type;
  SourceLoc at;
  std::string
      name;  ///< what the user called it, or empty; decorates printouts, nothing may depend on it
};

/// A named integer known at launch: a tensor extent or a plain integer argument; or, in lowered
/// programs, a number that no call gives: whoever runs the program chooses one in [1, at_most], and
/// results do not depend on it. Chosen dims come after the others.
struct Dim {
  std::string name;
  int64_t multiple_of = 1;  ///< a checked promise
  int64_t at_most = 0;      ///< 0: a call gives it
  bool chosen() const { return at_most > 0; }
};

/// What no call gives comes after what a call gives, scratch last.
/// workspace: memory of the launch, zero when it begins, that all instances share.
/// scratch: memory of one instance, zero when it begins. Its extents are constants >= 1.
enum class ParamKind : uint8_t { in, out, inout, workspace, scratch };
struct Param {
  std::string name;
  ParamKind kind = ParamKind::in;
  DType dtype = f32;
  std::vector<Expr> dims;  ///< of dim symbols and constants
  SourceLoc at;
};

/// One traced kernel. Every value is defined once; a use is dominated by its definition. A load or
/// gather of an `in` parameter is pure; those of other parameters keep their order with what
/// writes.
/// Instances (points of the grid) are unordered, or with a ticket begin in row-major order: then
/// one may wait for those before it.
struct Program {
  std::string name;
  std::vector<Dim> dims;
  std::vector<Param> params;
  std::vector<Expr> grid;  ///< extents, of dim symbols; instance coordinates are Symbol{pid, axis}
  /// The parameter, workspace u64[1], that counts the instances that have begun; no op touches it.
  std::optional<int> ticket;
  Region body;
  std::vector<Value> values;
  int loops = 0;  ///< loop ids are below this

  const Type& type(ValueId v) const { return values[v].type; }
  ValueId new_value(Type type, SourceLoc at, std::string name = "");
};

/// The op's effect in this program: `load` and `gather` of an `in` parameter are pure.
Effect effect(const Program& p, const Op& op);

/// What memory the op reads or writes; null for other ops.
const View* view_of(const Op& op);
View* view_of(Op& op);

/// The operands of a gather, scatter or atomic by their role.
struct PlaceOperands {
  std::vector<ValueId> at;  ///< a coordinate for each of the view's axes
  std::optional<ValueId> value, expected, mask;
};
PlaceOperands place_operands(const Op& op);

/// How far a function of floats of type t may be off, in units of the last place of t around the
/// exact result; 0: it is correctly rounded. The only place that knows: docs/ops.md has it.
double stated_ulps(Opcode code, DType t);

/// What a product of `dot` may be off by: relative * max(|a|, least) * max(|b|, least), nothing
/// where a factor is 0 or both have no more than 11 bits.
struct ProductError {
  double relative = 0;
  double least = 0;  ///< below it factors have fewer bits
};
ProductError product_error(Precision p);

/// Whether an element takes ten instructions or more: functions that are not correctly rounded,
/// div, rem, sqrt, philox.
bool is_costly(Opcode code);

/// Whether the op is a loop that carries values: for_ or while_.
bool is_loop(Opcode code);

/// Whether the op folds an axis: reduce or scan. Its region, if it has one, is a combiner.
bool is_fold(Opcode code);
/// How such an op folds.
const ReduceAttr& fold_of(const Op& op);

/// The op of two elements that a combiner without a region applies.
Opcode opcode_of(Combiner c);
/// What leaves every element as it is when combined with it. A custom combiner has none.
Number neutral(Combiner c, DType t);

/// Whether the op folds so few elements (kShortReduction at most, by a combiner without a region)
/// that doing it where the result is used costs less than keeping the result.
bool is_short_reduction(const Program& p, const Op& op);
inline constexpr int64_t kShortReduction = 4;

/// Visits ops depth first, an op before those of its regions.
void walk(const Program& p, const std::function<void(const Op&)>& visit);
void walk(Program& p, const std::function<void(Op&)>& visit);
void walk(Region& r, const std::function<void(Op&)>& visit);
void walk(const Region& r, const std::function<void(const Op&)>& visit);

/// Visits (replaces) the integer expressions of the op's attribute; those of its regions' ops are
/// not among them.
void for_each_expr(const Op& op, const std::function<void(const Expr&)>& visit);
void map_exprs(Op& op, const std::function<Expr(const Expr&)>& f);

/// Puts an assert before every integer division whose divisor may be 0, but for those of combiners.
/// After it a checked program means what docs/language.md says.
///   %2 = div %0, %1   =>   %3 = full 0; %4 = ne %1, %3; assert %4 "division by zero"; ...
void check_divisions(Program& p);

/// Removes asserts, and prints where `prints`.
void drop_messages(Program& p, bool prints);

/// The asserts and prints of a canonical program, by MessageAttr::id.
std::vector<const Op*> messages_of(const Program& p);

/// What an extent of a parameter may be: a constant >= 0, a dim, or cdiv(dim, constant >= 1).
bool is_extent(const Expr& e);
/// How many dims a call gives.
size_t given_dims(const Program& p);
/// The parameters that have an address in the text ABI: all but scratch.
std::span<const Param> arguments(const Program& p);
/// Those that a call gives.
std::span<const Param> given(const Program& p);

/// Of a scratch parameter.
int64_t scratch_bytes(const Param& p);

/// The name of a symbol in text: the dim's name, "pid0", "i3".
std::string symbol_name(const Program& p, Symbol s);

/// What is known of every symbol: multiple_of of dims, ranges of pids from the grid and of loop
/// counters. `dims` narrows the dims, in their order.
Facts facts_of(const Program& p, std::span<const Interval> dims = {});
/// Of the counter of one loop.
SymbolFact fact_of_loop(const LoopAttr& loop, const Facts& facts);

/// Extents, coordinates and loop bounds stay within +-2^48, so that int64 holds sums of a few, and
/// dims that no program multiplies may be as large as 2^40.
constexpr int64_t kMaxIndex = int64_t{1} << 48, kMaxDim = int64_t{1} << 40;

/// Throws UserError at the op when, with dims of these values, an extent of the grid, a coordinate
/// or a loop bound may leave +-kMaxIndex, or another index expression, or a part of one, int64.
void check_indices(const Program& p, std::span<const int64_t> dims);

/// The largest limit found, at most kMaxDim, for which check_indices passes when all dims lie in
/// [0, limit]. Throws what it throws when even dims of 1 are too large.
int64_t dim_limit(const Program& p);

}  // namespace tw
