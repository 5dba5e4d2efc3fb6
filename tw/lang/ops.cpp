#include "tw/lang/ops.h"

#include <cmath>
#include <fmt/format.h>
#include <numbers>

#include "tw/ir/infer.h"
#include "tw/lang/impl/state.h"

namespace tw {

namespace {

Tile unary(Opcode code, const Tile& x, SourceLoc at) { return elementwise(code, Arg(x, at)); }

// The op on x whose type `infer` gives, or a UserError with the open scopes.
template <class F>
Tile shaped(Opcode code, const Tile& x, Attr attr, SourceLoc at, const F& infer) {
  TraceState& t = *x.trace();
  const ValueId v = x.read(at);
  const Type r = t.checked([&] { return infer(t.type(v)); });
  return Tile(x.trace(), t.emit(code, {v}, std::move(attr), r, at));
}

ValueId same_trace(TraceState& t, const Tile& x, SourceLoc at) {
  if (x.trace().get() != &t) t.fail(at, "the operands belong to two programs");
  return x.read(at);
}

Tile rows_or_columns(const char* name, const Tile& x, int axis, Combiner c, SourceLoc at) {
  const Type t = x.type(at);
  if (t.shape.size() != 2)
    x.trace()->fail(at, fmt::format("{} of {}, which has not two axes", name, to_string(t)),
                    "say reduce(x, axis, Combiner::...)");
  return reduce(x, axis, c, at);
}

}  // namespace

// ---- memory

Tile load(const TileView& v, const LoadOptions& o, SourceLoc at) {
  TraceState& t = *v.trace;
  const auto pad = o.pad.as(v.type.dtype);
  if (!pad) t.fail(at, fmt::format("pad {} does not fit {}", o.pad.text(), name(v.type.dtype)));
  return Tile(v.trace, t.emit(Opcode::load, {}, ViewAttr{v.view, *pad}, v.type, at));
}

void store(const TileView& v, const Tile& x, SourceLoc at) {
  TraceState& t = *v.trace;
  const ValueId value = same_trace(t, x, at);
  t.check_open(at);
  const Param& p = t.program.params[static_cast<size_t>(v.view.param)];
  if (p.kind == ParamKind::in)
    t.fail(at, fmt::format("store into input '{}'", p.name), "declare it with k.output or k.inout");
  if (const Type got = t.type(value); !(got == v.type))
    t.fail(at,
           fmt::format("store of {} into '{}', which takes {}", to_string(got), p.name,
                       to_string(v.type)),
           got.dtype != v.type.dtype ? "cast it" : "reshape or broadcast it");
  if (is_packed(p.dtype)) t.checked([&] { check_packed_store(t.program, v.view, t.facts(), at); });
  t.append({Opcode::store, at, {value}, {}, ViewAttr{v.view, {}}, {}});
}

// ---- types and shapes

Tile cast(const Tile& x, DType to, const CastOptions& o, SourceLoc at) {
  TraceState& t = *x.trace();
  const CastAttr how{o.rounding, o.saturate, t.expr(o.seed, at)};
  if (o.rounding != Rounding::SR && !(how.seed == Expr(0)))
    t.fail(at, "a cast has a seed but does not round stochastically",
           "say .rounding = Rounding::SR");
  const Type from = x.type(at);
  t.checked([&] { check_cast(from.dtype, to, how, at); });
  if (from.dtype == to) return Tile(x, at);
  return shaped(Opcode::cast, x, how, at, [&](const Type& a) { return infer_cast(a, to, at); });
}

Tile bitcast(const Tile& x, DType to, SourceLoc at) {
  return shaped(Opcode::bitcast, x, NoneAttr{}, at,
                [&](const Type& a) { return infer_bitcast(a, to, at); });
}

Tile lookup(const Table& table, const Tile& index, SourceLoc at) {
  TraceState& t = *index.trace();
  TableAttr a;
  for (const Constant& c : table.entries) {
    const auto number = c.as(table.dtype);
    if (!number)
      t.fail(at, fmt::format("entry {} of a table, {}, does not fit {}", a.entries.size(), c.text(),
                             name(table.dtype)));
    a.entries.push_back(*number);
  }
  const size_t entries = a.entries.size();
  return shaped(Opcode::lookup, index, std::move(a), at,
                [&](const Type& i) { return infer_lookup(i, table.dtype, entries, at); });
}

Tile philox(const Tile& counter, const Arg& seed, const Arg& stream, SourceLoc at) {
  TraceState& t = *counter.trace();
  const ValueId c = counter.read(at);
  const Type like{i64, t.type(c).shape};
  const ValueId s = operand(t, seed, like), n = operand(t, stream, like);
  const Type r = t.checked([&] { return infer_philox(t.type(c), t.type(s), t.type(n), at); });
  return Tile(counter.trace(), t.emit(Opcode::philox, {c, s, n}, NoneAttr{}, r, at));
}

Tile uniform(const Tile& counter, const Arg& seed, const Arg& stream, SourceLoc at) {
  const AtLine line(*counter.trace(), at);
  return cast(philox(counter, seed, stream, at) >> 8, f32) * 0x1p-24;
}

Tile reshape(const Tile& x, const Extents& shape, SourceLoc at) {
  return shaped(Opcode::reshape, x, NoneAttr{}, at,
                [&](const Type& a) { return infer_reshape(a, shape, at); });
}

static Tile as_matrix(const char* name, const Tile& x, bool row, SourceLoc at) {
  const Type t = x.type(at);
  if (t.shape.size() != 1)
    x.trace()->fail(at, fmt::format("{} of {}, which has not one axis", name, to_string(t)),
                    "use reshape()");
  return reshape(x, row ? Extents{1, t.shape[0]} : Extents{t.shape[0], 1}, at);
}

Tile as_row(const Tile& x, SourceLoc at) { return as_matrix("as_row", x, true, at); }
Tile as_col(const Tile& x, SourceLoc at) { return as_matrix("as_col", x, false, at); }

Tile transpose(const Tile& x, SourceLoc at) {
  const Type t = x.type(at);
  if (t.shape.size() != 2)
    x.trace()->fail(at, fmt::format("transpose of {}, which has not two axes", to_string(t)),
                    "give the order of axes: transpose(x, {2, 0, 1})");
  return transpose(x, {1, 0}, at);
}

Tile transpose(const Tile& x, const std::vector<int>& perm, SourceLoc at) {
  return shaped(Opcode::transpose, x, PermAttr{perm}, at,
                [&](const Type& a) { return infer_transpose(a, perm, at); });
}

Tile slice(const Tile& x, const Extents& start, const Extents& extents, SourceLoc at) {
  return shaped(Opcode::slice, x, SliceAttr{start}, at,
                [&](const Type& a) { return infer_slice(a, start, extents, at); });
}

Tile broadcast(const Tile& x, const Extents& shape, SourceLoc at) {
  return shaped(Opcode::broadcast, x, NoneAttr{}, at,
                [&](const Type& a) { return infer_broadcast(a, shape, at); });
}

// ---- elementwise

Tile abs(const Tile& x, SourceLoc at) { return unary(Opcode::abs, x, at); }
Tile sqrt(const Tile& x, SourceLoc at) { return unary(Opcode::sqrt, x, at); }
Tile rsqrt(const Tile& x, SourceLoc at) { return unary(Opcode::rsqrt, x, at); }
Tile exp(const Tile& x, SourceLoc at) { return unary(Opcode::exp, x, at); }
Tile exp2(const Tile& x, SourceLoc at) { return unary(Opcode::exp2, x, at); }
Tile log(const Tile& x, SourceLoc at) { return unary(Opcode::log, x, at); }
Tile sin(const Tile& x, SourceLoc at) { return unary(Opcode::sin, x, at); }
Tile cos(const Tile& x, SourceLoc at) { return unary(Opcode::cos, x, at); }
Tile tanh(const Tile& x, SourceLoc at) { return unary(Opcode::tanh, x, at); }
Tile erf(const Tile& x, SourceLoc at) { return unary(Opcode::erf, x, at); }
Tile tanh_fast(const Tile& x, SourceLoc at) { return unary(Opcode::tanh_fast, x, at); }
Tile erf_fast(const Tile& x, SourceLoc at) { return unary(Opcode::erf_fast, x, at); }
Tile floor(const Tile& x, SourceLoc at) { return unary(Opcode::floor, x, at); }
Tile ceil(const Tile& x, SourceLoc at) { return unary(Opcode::ceil, x, at); }
Tile round(const Tile& x, SourceLoc at) { return unary(Opcode::round, x, at); }

Tile where(const Tile& mask, const Arg& a, const Arg& b, SourceLoc at) {
  TraceState& t = *mask.trace();
  const ValueId m = mask.read(at);
  const Arg::Value* tile = a.value() != nullptr ? a.value() : b.value();
  if (tile == nullptr)
    t.fail(at, "where() chooses between two numbers of unknown dtype",
           "make one of them a tile with k.full()");
  if (tile->trace.get() != &t) t.fail(at, "the operands belong to two programs");
  const Type like = t.type(tile->id);
  const ValueId left = operand(t, a, like), right = operand(t, b, like);
  const Type r = t.checked([&] { return infer_where(t.type(m), t.type(left), t.type(right), at); });
  return Tile(mask.trace(), t.emit(Opcode::where, {m, left, right}, NoneAttr{}, r, at));
}

// ---- made of the above

Tile is_nan(const Tile& x, SourceLoc at) { return ne(Arg(x, at), Arg(x, at)); }

Tile relu(const Tile& x, SourceLoc at) { return max(Arg(x, at), Arg(0, at)); }

Tile sigmoid(const Tile& x, SourceLoc at) {
  const AtLine line(*x.trace(), at);
  return 1 / (1 + exp(-x));
}

Tile silu(const Tile& x, SourceLoc at) {
  const AtLine line(*x.trace(), at);
  return x / (1 + exp(-x));
}

Tile gelu_tanh(const Tile& x, SourceLoc at) {
  const AtLine line(*x.trace(), at);
  const double scale = std::sqrt(2 / std::numbers::pi);
  return 0.5 * x * (1 + tanh_fast(scale * (x + 0.044715 * (x * x * x))));
}

Tile gelu_erf(const Tile& x, SourceLoc at) {
  const AtLine line(*x.trace(), at);
  return 0.5 * x * (1 + erf_fast(x * (1 / std::numbers::sqrt2)));
}

// ---- contraction

Tile dot(const Tile& a, const Tile& b, const Tile& acc, const DotOptions& o, SourceLoc at) {
  TraceState& t = *acc.trace();
  const std::vector<ValueId> in{same_trace(t, a, at), same_trace(t, b, at), acc.read(at)};
  const Type r = t.checked(
      [&] { return infer_dot(t.type(in[0]), t.type(in[1]), t.type(in[2]), o.precision, at); });
  return Tile(acc.trace(), t.emit(Opcode::dot, in, DotAttr{o.precision}, r, at));
}

// ---- reductions

Tile reduce(const Tile& x, int axis, Combiner c, SourceLoc at) {
  if (c == Combiner::custom)
    x.trace()->fail(at, "reduce with Combiner::custom", "give the function: reduce({x}, axis, f)");
  return shaped(Opcode::reduce, x, ReduceAttr{axis, c}, at,
                [&](const Type& a) { return infer_reduce(a, axis, c, at); });
}

static Tile fold_mask(const char* what, const Tile& x, Combiner c, SourceLoc at) {
  TraceState& t = *x.trace();
  const AtLine line(t, at);
  const Type type = x.type(at);
  if (type.dtype != b1)
    t.fail(at, fmt::format("{}() of {}, wanted b1", what, to_string(type)),
           "compare with ne(x, 0)");
  std::vector<Tile> folded{Tile(x, at)};
  for (size_t axis = type.shape.size(); axis-- > 0;)
    folded.push_back(reduce(folded.back(), static_cast<int>(axis), c, at));
  return reshape(folded.back(), {}, at);
}

Tile any(const Tile& x, SourceLoc at) { return fold_mask("any", x, Combiner::or_, at); }
Tile all(const Tile& x, SourceLoc at) { return fold_mask("all", x, Combiner::and_, at); }

Tile row_sum(const Tile& x, SourceLoc at) {
  return rows_or_columns("row_sum", x, 1, Combiner::sum, at);
}
Tile row_max(const Tile& x, SourceLoc at) {
  return rows_or_columns("row_max", x, 1, Combiner::max, at);
}
Tile row_min(const Tile& x, SourceLoc at) {
  return rows_or_columns("row_min", x, 1, Combiner::min, at);
}
Tile col_sum(const Tile& x, SourceLoc at) {
  return rows_or_columns("col_sum", x, 0, Combiner::sum, at);
}
Tile col_max(const Tile& x, SourceLoc at) {
  return rows_or_columns("col_max", x, 0, Combiner::max, at);
}
Tile col_min(const Tile& x, SourceLoc at) {
  return rows_or_columns("col_min", x, 0, Combiner::min, at);
}

static std::vector<Tile> fold_tiles(Opcode code, const Attr& attr, const std::vector<Tile>& xs,
                                    const CombinerFunction& f, SourceLoc at) {
  const std::shared_ptr<TraceState> trace = xs.at(0).trace();
  TraceState& t = *trace;
  std::vector<ValueId> in;
  for (const Tile& x : xs) in.push_back(same_trace(t, x, at));
  for (ValueId v : in)
    if (t.type(v).shape != t.type(in[0]).shape)
      t.fail(at, fmt::format("{} of {} and {}: shapes differ", info(code).name,
                             to_string(t.type(in[0])), to_string(t.type(v))));
  const auto tiles = [&](auto begin, auto end) {
    std::vector<Tile> r;
    for (auto v = begin; v != end; ++v) r.emplace_back(trace, *v);
    return r;
  };
  const auto body = [&](const std::vector<ValueId>& args) {
    const auto middle = args.begin() + static_cast<std::ptrdiff_t>(in.size());
    std::vector<ValueId> yields;
    for (const Tile& y : f(tiles(args.begin(), middle), tiles(middle, args.end())))
      yields.push_back(same_trace(t, y, at));
    return yields;
  };
  const std::vector<ValueId> out = t.fold(code, in, attr, at, body);
  return tiles(out.begin(), out.end());
}

std::vector<Tile> reduce_tiles(const std::vector<Tile>& xs, int axis, const CombinerFunction& f,
                               SourceLoc at) {
  return fold_tiles(Opcode::reduce, ReduceAttr{axis, Combiner::custom}, xs, f, at);
}

// ---- scans

Tile scan(const Tile& x, int axis, Combiner c, const ScanOptions& o, SourceLoc at) {
  if (c == Combiner::custom)
    x.trace()->fail(at, "scan with Combiner::custom", "give the function: scan({x}, axis, f)");
  return shaped(Opcode::scan, x, ScanAttr{{axis, c}, o.reverse}, at,
                [&](const Type& a) { return infer_scan(a, axis, c, at); });
}

std::vector<Tile> scan_tiles(const std::vector<Tile>& xs, int axis, const CombinerFunction& f,
                             const ScanOptions& o, SourceLoc at) {
  return fold_tiles(Opcode::scan, ScanAttr{{axis, Combiner::custom}, o.reverse}, xs, f, at);
}

static Tiles<2> best_pair(const Tiles<2>& a, const Tiles<2>& b, bool larger, SourceLoc at) {
  const AtLine line(*a[0].trace(), at);
  const Tile nan_a = is_nan(a[0]), nan_b = is_nan(b[0]);
  const Tile wins = larger ? a[0] > b[0] : a[0] < b[0];
  const Tile same = eq(a[0], b[0]) | (nan_a & nan_b);
  const Tile left = wins | (nan_a & ~nan_b) | (same & (a[1] < b[1]));
  return {where(left, a[0], b[0]), where(left, a[1], b[1])};
}

Tiles<2> argmax_pair(const Tiles<2>& a, const Tiles<2>& b, SourceLoc at) {
  return best_pair(a, b, true, at);
}

Tiles<2> argmin_pair(const Tiles<2>& a, const Tiles<2>& b, SourceLoc at) {
  return best_pair(a, b, false, at);
}

static Tile arg_best(const Tile& x, int axis, bool larger, SourceLoc at) {
  TraceState& t = *x.trace();
  const AtLine line(t, at);
  const Type type = x.type(at);
  t.checked([&] { infer_reduce(type, axis, Combiner::max, at); });
  const Tile index(x.trace(), t.emit(Opcode::iota, {}, AxisAttr{axis}, {i64, type.shape}, at));
  return reduce({x, index}, axis, larger ? argmax_pair : argmin_pair, at)[1];
}

static Tiles<2> first_of(const std::vector<Tile>& parts, int64_t k, SourceLoc at) {
  const std::shared_ptr<TraceState> trace = parts[0].trace();
  TraceState& t = *trace;
  Op op{Opcode::top_k, at, {}, {}, TopKAttr{k}, {}};
  std::vector<Type> types;
  for (const Tile& x : parts) {
    op.in.push_back(same_trace(t, x, at));
    types.push_back(t.type(op.in.back()));
  }
  for (const Type& r : t.checked([&] { return infer_top_k(types, k, at); }))
    op.out.push_back(t.program.new_value(r, at));
  const std::vector<ValueId> out = op.out;
  t.append(std::move(op));
  return {Tile(trace, out[0]), Tile(trace, out[1])};
}

Tiles<2> top_k(const Tile& x, int64_t k, SourceLoc at) {
  TraceState& t = *x.trace();
  const AtLine line(t, at);
  const Type type = x.type(at);
  const int axis = std::max(static_cast<int>(type.shape.size()) - 1, 0);
  t.checked([&] { infer_top_k({type, {i64, type.shape}}, k, at); });
  const Tile index(x.trace(), t.emit(Opcode::iota, {}, AxisAttr{axis}, {i64, type.shape}, at));
  return first_of({x, index}, k, at);
}

Tiles<2> top_k(const Tiles<2>& a, const Tiles<2>& b, int64_t k, SourceLoc at) {
  return first_of({a[0], a[1], b[0], b[1]}, k, at);
}

Tile argmax(const Tile& x, int axis, SourceLoc at) { return arg_best(x, axis, true, at); }
Tile argmin(const Tile& x, int axis, SourceLoc at) { return arg_best(x, axis, false, at); }

}  // namespace tw
