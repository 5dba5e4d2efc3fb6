#include <algorithm>
#include <fmt/format.h>
#include <utility>

#include "tw/emit/cpu/op_table.h"
#include "tw/emit/cpu/reduce_nest.h"

namespace tw::cpu {
namespace {

/// The op that computes v where it is used; null where v lies in memory or is an argument.
const Op* computed(const Expression& e, ValueId v) {
  const Context& c = e.context();
  if (c.storage.contains(v) || e.bindings().contains(v)) return nullptr;
  return c.def[v];
}

/// Where an element of v comes from, looking through reshapes.
struct Origin {
  ValueId v;
  Coords at;
  const Op* op;
};

Origin origin_of(const Expression& e, ValueId v, Coords at) {
  const Op* op = computed(e, v);
  while (op && op->code == Opcode::reshape) {
    at = source_of(e.context(), *op, at);
    v = op->in[0];
    op = computed(e, v);
  }
  return {v, std::move(at), op};
}

/// Bytes whose products are added four at a time: element n of the four stands at `at` plus n
/// along the axis.
struct Bytes {
  ValueId v;
  Coords at;
  int axis;
};

/// v, an i32 tile, as bytes converted; `n` counts the four elements.
std::optional<Bytes> bytes_of(const Expression& e, ValueId v, const Coords& at, Symbol n) {
  const Context& c = e.context();
  Origin o = origin_of(e, v, at);
  if (!o.op || o.op->code != Opcode::cast) return std::nullopt;
  const ValueId narrow = o.op->in[0];
  const Type& type = c.program.type(narrow);
  if (type.dtype != i8 && type.dtype != u8) return std::nullopt;
  Bytes b{narrow, std::move(o.at), -1};
  for (size_t k = 0; k < b.at.size(); ++k) {
    if (type.shape[k] == 1) b.at[k] = 0;
    const std::optional<int64_t> step = slope(b.at[k], n, c.facts);
    if (!step || *step > 1 || *step < 0 || (*step == 1 && b.axis >= 0)) return std::nullopt;
    if (*step == 1) b.axis = static_cast<int>(k);
    b.at[k] = simplify(without(b.at[k], n), c.facts);
  }
  return b.axis < 0 ? std::nullopt : std::optional(b);
}

/// Whether the four of a lane follow on the four of the lane before.
bool follow(const Expression& e, const Bytes& b) {
  const Symbol lane = e.counter(e.lane_loop());
  for (size_t k = 0; k < b.at.size(); ++k) {
    const int wanted = static_cast<int>(k) == b.axis ? Expression::kBytes : 0;
    if (slope(b.at[k], lane, e.context().facts) != wanted) return false;
  }
  return true;
}

/// Whether every element of a u8 tile is at most 127.
bool below_128(const Expression& e, ValueId v) {
  const Op* op = e.context().def[v];
  if (!op) return false;
  const auto constant = [&](ValueId x) {
    const std::optional<Number> n = constant_of(e.context(), x);
    return n ? n->as_double() : -1;
  };
  static constexpr Opcode kSame[] = {Opcode::reshape, Opcode::broadcast, Opcode::transpose,
                                     Opcode::keep};
  const auto small = [&](int k) { return below_128(e, op->in[k]); };
  if (std::ranges::find(kSame, op->code) != std::end(kSame)) return small(0);
  if (op->code == Opcode::full) return constant(v) >= 0 && constant(v) < 128;
  if (op->code == Opcode::and_) return small(0) || small(1);
  if (op->code == Opcode::shr) return constant(op->in[1]) >= 1 || small(0);
  return op->code == Opcode::where && small(1) && small(2);
}

/// A reduction over four products of bytes (or over four bytes).
class ByteDot {
 public:
  static std::optional<ByteDot> of(Expression& e, ValueId v, const Coords& at) {
    const Origin o = origin_of(e, v, at);
    Context& c = e.context();
    if (!o.op || !is_short_reduction(c.program, *o.op)) return std::nullopt;
    const ReduceAttr& how = o.op->as<ReduceAttr>();
    const Type& type = c.program.type(o.op->in[0]);
    if (how.combiner != Combiner::sum || type.dtype != i32) return std::nullopt;
    if (type.shape[how.axis] != Expression::kBytes) return std::nullopt;
    const Symbol n = c.new_loop("n", Expression::kBytes);
    Coords four = o.at;
    four[how.axis] = Expr::symbol(n);
    const Origin product = origin_of(e, o.op->in[0], four);
    std::vector<ValueId> factors{product.v};
    if (product.op && product.op->code == Opcode::mul) factors = product.op->in;
    ByteDot dot;
    for (const ValueId f : factors) {
      const std::optional<Bytes> b = bytes_of(e, f, product.at, n);
      if (!b || (e.lane_loop() >= 0 && !follow(e, *b))) return std::nullopt;
      dot.factors_.push_back(*b);
    }
    return dot;
  }

  /// What a survey sees: neighbours, four of which are one.
  Reg surveyed(Expression& e) const {
    uint32_t loops = 0;
    for (const Bytes& b : factors_) {
      Coords at = b.at;
      for (const Expr& x : at) loops |= e.loops_of(x);
      for (int k = 0; k < e.loop_count(); ++k) {
        const Expr counter = Expr::symbol(e.counter(k));
        if (slope(at[b.axis], e.counter(k), e.context().facts) == Expression::kBytes)
          at[b.axis] = simplify(at[b.axis] - counter * (Expression::kBytes - 1), e.context().facts);
      }
      e.value(b.v, at);
    }
    return e.define(i32, 1, loops, "0");
  }

  /// acc plus the sum, in lanes; nothing when no factor changes from lane to lane.
  std::optional<Reg> in_lanes(Expression& e, const std::optional<Reg>& acc) const {
    Prelude& prelude = e.context().prelude;
    const int lanes = e.lanes(), bytes = lanes * Expression::kBytes;
    std::vector<Reg> r;
    for (const Bytes& b : factors_) r.push_back(e.bytes_in_lanes(b.v, b.at, b.axis));
    if (std::ranges::all_of(r, [](const Reg& x) { return x.lanes == 1; })) return std::nullopt;
    bool small = r.size() == 1 || below_128(e, factors_[r[0].dtype == i8 ? 1 : 0].v);
    if (r.size() == 1) r.push_back(Reg{"1", r[0].dtype == i8 ? u8 : i8, 1, 0, 0});
    for (Reg& x : r) {
      const std::string type = prelude.type(x.dtype, bytes);
      if (x.lanes == 1) x.text = fmt::format("(({0}){{}} + ({1}){2})", type, name(x.dtype), x.text);
    }
    // The unsigned one first. Of equal ones the second is that which changes less often: what
    // corrects for the sign is computed from it.
    const bool same = r[0].dtype == r[1].dtype;
    if (same ? r[0].loops < r[1].loops : r[0].dtype == i8) std::swap(r[0], r[1]);
    const char* function = r[0].dtype == i8   ? "dot4_ii"
                           : r[1].dtype == u8 ? "dot4_uu"
                           : small            ? "dot4_small"
                                              : "dot4_ui";
    const std::string zero = fmt::format("({}){{}}", prelude.type(i32, lanes));
    const std::string sum = acc ? e.widen(*acc).text : zero;
    return e.define(i32, lanes, r[0].loops | r[1].loops | (acc ? acc->loops : 0),
                    fmt::format("{}({}, {}, {})", prelude.use(function, i32, lanes), sum, r[0].text,
                                r[1].text));
  }

 private:
  std::vector<Bytes> factors_;
};

/// acc plus an element of v, where that is a sum of products of bytes.
std::optional<Reg> add_bytes(Expression& e, ValueId v, const Coords& at,
                             const std::optional<Reg>& acc) {
  if (e.lane_loop() < 0 && !e.surveying()) return std::nullopt;
  const std::optional<ByteDot> dot = ByteDot::of(e, v, at);
  if (!dot) return std::nullopt;
  return e.surveying() ? std::optional(dot->surveyed(e)) : dot->in_lanes(e, acc);
}

}  // namespace

Reg reduce_element(Expression& e, const Op& op, const Coords& at) {
  const ReduceAttr& how = op.as<ReduceAttr>();
  const Type& type = e.context().program.type(op.in[0]);
  const bool adds = type.dtype == i32 && how.combiner == Combiner::sum;
  std::optional<Reg> acc;
  if (adds) acc = add_bytes(e, op.out[0], at, {});
  if (acc) return *acc;
  for (int64_t n = 0; n < type.shape[how.axis]; ++n) {
    Coords element = at;
    element[how.axis] = n;
    const std::optional<Reg> sum = adds ? add_bytes(e, op.in[0], element, acc) : std::nullopt;
    if (sum) {
      acc = sum;
      continue;
    }
    Reg x = e.value(op.in[0], element);
    x.dtype = register_type(type.dtype);
    acc = acc ? combine_pair(e, opcode_of(how.combiner), *acc, x) : x;
  }
  acc->dtype = type.dtype;
  return is_float(type.dtype) ? e.rounded(*acc) : *acc;
}

}  // namespace tw::cpu
