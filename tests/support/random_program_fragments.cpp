#include <algorithm>
#include <array>
#include <limits>

#include "tests/support/random_program_writer.h"

namespace tw::test {

namespace {

bool computes(DType t) { return t != b1 && !is_fp8(t); }

}  // namespace

void Writer::source() {
  const Extents shape = some_shape();
  if (r.percent(60)) return remember(load_shape(shape));
  static const std::vector<DType> ints{i32, i64, i32, i8, u8, i16, u16, u32, u64};
  const DType t = r.of(ints);
  if (shape.empty() || r.percent(50))
    return remember(index(t, Extents(shape.size(), 1), some_index()));
  if (r.percent(65)) return remember(iota(t, shape));
  const Known counter = iota(i64, shape), seed = index(i64, Extents(shape.size(), 1), some_index());
  remember(philox(counter, seed, r.percent(50) ? seed : counter));
}

void Writer::shape_op() {
  Known a = any();
  const size_t rank = a.type.shape.size();
  switch (r.below(5)) {
    case 0: {
      std::vector<int> perm;
      for (size_t k = 0; k < rank; ++k) perm.push_back(static_cast<int>(k));
      for (size_t k = rank; k > 1; --k) std::swap(perm[k - 1], perm[r.below(k)]);
      return remember(transpose(a, perm));
    }
    case 1: {
      // Any factoring of the count into up to three extents.
      Extents shape{count(a.type.shape)};
      while (shape.size() < 3 && r.percent(70)) {
        const size_t at = r.below(shape.size());
        std::vector<int64_t> divisors;
        for (int64_t d = 1; d <= shape[at]; ++d)
          if (shape[at] % d == 0) divisors.push_back(d);
        const int64_t d = r.of(divisors);
        shape[at] /= d;
        shape.insert(shape.begin() + static_cast<int64_t>(at), d);
      }
      return remember(reshape(a, shape));
    }
    case 2: {
      Extents shape = a.type.shape;
      for (int64_t& e : shape)
        if (e == 1 && r.percent(60)) e = r.between(1, 9);
      if (count(shape) > 3000) return;
      return remember(broadcast(a, shape));
    }
    case 3:
      return r.percent(60) ? slice_fragment() : top_k_fragment();
    default: {
      // A column or a row of a tile, ready to stretch again.
      if (rank == 0 || !computes(a.type.dtype)) return;
      return remember(reduce(a, static_cast<int>(r.below(rank)), Combiner::max));
    }
  }
}

void Writer::convert() {
  const Known a = any();
  std::vector<DType> same_size;
  for (int i = 0; i < kDTypeCount; ++i) {
    const auto t = static_cast<DType>(i);
    if (t != b1 && t != e8m0 && bits(t) == bits(a.type.dtype)) same_size.push_back(t);
  }
  const bool bits = a.type.dtype != b1 && !a.loose && r.percent(40);
  // Bits read as a float may be NaN or huge: only where the data is anyway.
  const DType to = bits ? r.of(same_size) : some_dtype();
  if (bits && (!special_free || !is_float(to) || is_float(a.type.dtype)))
    return remember(bitcast(a, to));
  remember(cast(a, to));
}

void Writer::dot_fragment() {
  static const std::vector<std::array<DType, 3>> types{
      {f32, f32, f32},   {f32, f32, f32},   {f32, f32, f32},   {f16, f16, f32}, {bf16, bf16, f32},
      {bf16, bf16, f32}, {e4m3, e4m3, f32}, {e5m2, e4m3, f32}, {f64, f64, f64}, {f32, f32, f64},
      {i8, i8, i32},     {u8, i8, i32},     {i8, u8, i32}};
  const std::array<DType, 3> t = r.of(types);
  Extents shape = some_shape();
  if (shape.size() != 2) shape = {r.between(1, 17), r.between(1, 33)};
  static const std::vector<int64_t> inner{1, 2, 3, 5, 7, 8, 12, 16, 17};
  const int64_t k = r.of(inner);
  const auto operand = [&](DType dtype, const Extents& want) {
    const bool turned = r.percent(35);
    const Extents from = turned ? Extents{want[1], want[0]} : want;
    Known x = r.percent(75) ? load_shape(from) : any();
    if (is_float(dtype) && x.magnitude > 12 && computes(x.type.dtype)) x = clamped(x, -9, 9);
    x = coerced(x, {dtype, from});
    return turned ? transpose(x, {1, 0}) : x;
  };
  const Known a = operand(t[0], {shape[0], k}), b = operand(t[1], {k, shape[1]});
  const Type acc{t[2], shape};
  Known start;
  if (r.percent(50))
    start = constant(acc, 0);
  else
    start = coerced(any(), acc);
  static const std::vector<Precision> precisions{Precision::ieee, Precision::ieee, Precision::tf32,
                                                 Precision::tf32x3};
  const bool choose = t[0] == f32 && t[2] == f32;
  remember(dot(a, b, start, choose ? r.of(precisions) : Precision::ieee));
}

void Writer::reduce_fragment() {
  Known a = any();
  if (is_fp8(a.type.dtype)) a = cast(a, f32);
  if (a.type.shape.empty()) return;
  std::vector<Combiner> c{Combiner::and_, Combiner::or_, Combiner::xor_};
  if (a.type.dtype != b1) {
    const std::vector<Combiner> numbers{Combiner::sum,     Combiner::sum, Combiner::prod,
                                        Combiner::min,     Combiner::max, Combiner::min_num,
                                        Combiner::max_num, Combiner::max};
    if (is_float(a.type.dtype)) c.clear();
    c.insert(c.end(), numbers.begin(), numbers.end());
  }
  const Combiner chosen = r.of(c);
  if (chosen == Combiner::prod && is_float(a.type.dtype)) a = clamped(a, -1.5, 1.5);
  const auto axis = static_cast<int>(r.below(a.type.shape.size()));
  if (r.percent(25)) {
    remember(scan(a, {{axis, chosen}, r.percent(40)}));
  } else {
    remember(reduce(a, axis, chosen));
  }
}

void Writer::top_k_fragment() {
  Known a = any();
  if (!computes(a.type.dtype)) a = cast(a, f32);
  if (a.type.shape.empty() || a.loose) return;  // which of two loose values is larger is open
  const Known at = iota(i64, a.type.shape);
  used(a);
  used(at);
  const auto k = 1 + static_cast<int64_t>(r.below(static_cast<uint64_t>(a.type.shape.back())));
  Op op{Opcode::top_k, {}, {a.id, at.id}, {}, TopKAttr{k}, {}};
  for (const Type& t : infer_top_k({a.type, at.type}, k, {})) {
    Known out{p.new_value(t, {}), t, t.dtype == i64 ? 16 : a.magnitude, false, 0};
    op.out.push_back(out.id);
    remember(out);
  }
  regions_.back().ops.push_back(std::move(op));
}

void Writer::slice_fragment() {
  const Known a = any();
  Extents start, extents;
  for (const int64_t n : a.type.shape) {
    extents.push_back(1 + static_cast<int64_t>(r.below(static_cast<uint64_t>(n))));
    start.push_back(static_cast<int64_t>(r.below(static_cast<uint64_t>(n - extents.back() + 1))));
  }
  remember(slice(a, start, extents));
}

/// (value, index) -> the larger or smaller, of equal ones the lower index; NaN wins over numbers.
Region Writer::combiner_pairwise_extremum(DType value, DType index, bool largest) {
  const auto argument = [&](DType t) { return Known{p.new_value({t, {}}, {}), {t, {}}}; };
  const Known lv = argument(value), li = argument(index), rv = argument(value),
              ri = argument(index);
  Region region;
  open({lv, li, rv, ri}, region);
  Known left = largest ? binary(Opcode::lt, rv, lv) : binary(Opcode::lt, lv, rv);
  Known tie = binary(Opcode::eq, lv, rv);
  if (is_float(value)) {
    const Known lnan = binary(Opcode::ne, lv, lv), rnan = binary(Opcode::ne, rv, rv);
    const Known rok = unary(Opcode::not_, rnan);
    const Known left_only = binary(Opcode::and_, lnan, rok);
    const Known both = binary(Opcode::and_, lnan, rnan);
    left = binary(Opcode::or_, left, left_only);
    tie = binary(Opcode::or_, tie, both);
  }
  const Known lower = binary(Opcode::lt, li, ri);
  const Known tie_left = binary(Opcode::and_, tie, lower);
  const Known take = binary(Opcode::or_, left, tie_left);
  const Known v = where(take, lv, rv), i = where(take, li, ri);
  return close({v, i});
}

Region Writer::combiner_sums(DType a, DType b) {
  const auto argument = [&](DType t) { return Known{p.new_value({t, {}}, {}), {t, {}}}; };
  const Known l0 = argument(a), l1 = argument(b), r0 = argument(a), r1 = argument(b);
  Region region;
  open({l0, l1, r0, r1}, region);
  const Known s = binary(Opcode::add, l0, r0);
  const Known m = binary(is_float(b) ? Opcode::max : Opcode::xor_, l1, r1);
  return close({s, m});
}

/// (m, l) of online softmax: m the maximum, l the sum of exp2(x - m).
Region Writer::combiner_logsumexp(DType t) {
  const auto argument = [&] { return Known{p.new_value({t, {}}, {}), {t, {}}}; };
  const Known lm = argument(), ll = argument(), rm = argument(), rl = argument();
  Region region;
  open({lm, ll, rm, rl}, region);
  const Known m = binary(Opcode::max, lm, rm);
  const Known low = constant({t, {}}, -std::numeric_limits<double>::infinity());
  const Known empty = binary(Opcode::eq, m, low);
  const Known zero = constant({t, {}}, 0);
  const Known base = where(empty, zero, m);
  const auto scaled = [&](const Known& part, const Known& sum) {
    const Known d = binary(Opcode::sub, part, base);
    const Known e = unary(Opcode::exp2, d);
    return binary(Opcode::mul, sum, e);
  };
  const Known left = scaled(lm, ll), right = scaled(rm, rl);
  const Known l = binary(Opcode::add, left, right);
  return close({m, l});
}

void Writer::custom_reduce_fragment() {
  Known a = any();
  if (!computes(a.type.dtype)) a = cast(a, f32);
  if (a.type.shape.empty()) return;
  const auto axis = static_cast<int>(r.below(a.type.shape.size()));
  Known b;
  Region combiner;
  uint64_t kind = r.below(is_float(a.type.dtype) ? 4 : 2);
  // Which of two loose values is larger may be undecided.
  if (a.loose && kind < 2 && r.percent(90)) kind += 2;
  if (kind < 2) {
    b = iota(kind == 0 ? i32 : i64, a.type.shape);
    combiner = combiner_pairwise_extremum(a.type.dtype, b.type.dtype, r.percent(60));
  } else if (kind == 2) {
    const DType second = r.percent(50) ? f32 : i32;
    b = coerced(any(), {second, a.type.shape});
    combiner = combiner_sums(a.type.dtype, second);
  } else {
    b = constant(a.type, 1);
    combiner = combiner_logsumexp(a.type.dtype);
  }
  used(a);
  used(b);
  const ReduceAttr how{axis, Combiner::custom};
  Op op{Opcode::reduce, {}, {a.id, b.id}, {}, how, {}};
  if (r.percent(25)) op = {Opcode::scan, {}, op.in, {}, ScanAttr{how, r.percent(40)}, {}};
  op.regions.push_back(std::move(combiner));
  for (const Known& k : {a, b}) {
    const Type t = infer_fold(op, k.type);
    Known out{p.new_value(t, {}), t, k.magnitude + 4, is_float(t.dtype), 0};
    op.out.push_back(out.id);
    remember(out);
  }
  regions_.back().ops.push_back(std::move(op));
}

/// A value of a known's type, another one where there is one.
Known Writer::like(const Known& k) {
  for (int draw = 0; draw < 6; ++draw) {
    const Known other = any();
    if (other.type == k.type && other.id != k.id) return other;
  }
  return coerced(any(), k.type);
}

Known Writer::next_carried(const Known& old, const Type& type) {
  const DType t = type.dtype;
  if (!computes(t)) return coerced(any(), type);
  Known fresh = coerced(any(), type);
  if (is_float(t) && fresh.magnitude > 12) fresh = clamped(fresh, -30, 30);
  switch (r.below(5)) {
    case 0:
      return binary(Opcode::add, old, fresh);
    case 1:
      return binary(r.percent(50) ? Opcode::max : Opcode::min, old, fresh);
    case 2: {
      const Known source = any();
      return where(coerced(source, {b1, type.shape}), old, fresh);
    }
    case 3:
      return fresh;
    default: {
      const Known half = constant({t, Extents(type.shape.size(), 1)}, is_float(t) ? 0.5 : 3);
      const Known scaled = binary(Opcode::mul, old, half);
      return binary(Opcode::add, scaled, fresh);
    }
  }
}

void Writer::loop_fragment(int depth) {
  LoopAttr loop{p.loops++, 0, 3, 1};
  Walk walk{-1, Expr::symbol(SymbolKind::loop, loop.loop), {}};
  walk.position = walk.counter;
  std::vector<int> free_dims;
  for (const auto& axes : cuts)
    for (const Cut& c : axes)
      if (c.dim >= 0 && c.grid_axis < 0) free_dims.push_back(c.dim);
  if (!free_dims.empty() && r.percent(75)) {
    walk.dim = r.of(free_dims);
    int64_t block = 1;
    for (const auto& axes : cuts)
      for (const Cut& c : axes)
        if (c.dim == walk.dim) block = c.block;
    const Expr extent = Expr::symbol(SymbolKind::dim, walk.dim);
    const bool strided = r.percent(35);
    loop.hi = strided ? extent : cdiv(extent, block);
    loop.step = strided ? block : 1;
    walk.position = strided ? walk.counter : walk.counter * block;
  } else {
    static const std::vector<std::array<int64_t, 3>> ranges{
        {0, 3, 1}, {1, 9, 3}, {5, 3, 1}, {-2, 2, 2}, {0, 1, 1}};
    const auto range = r.of(ranges);
    loop.lo = range[0];
    loop.hi = range[1];
    loop.step = range[2];
    if (!p.grid.empty() && r.percent(25)) loop.lo = Expr::symbol(SymbolKind::pid, 0);
  }

  std::vector<Known> first, args;
  // Some loops hand the old value of one carried value on to the next one.
  const bool delays = r.percent(25);
  for (int64_t n = r.between(delays ? 2 : 1, 3); n > 0; --n) {
    const Known k = delays && first.size() == 1 ? like(first[0]) : any();
    Known a = k;
    a.id = p.new_value(k.type, {});
    a.loose = is_float(k.type.dtype);
    a.uses = 0;
    if (computes(k.type.dtype)) a.magnitude = std::max(a.magnitude, 6.0) + 3;
    first.push_back(k);
    args.push_back(a);
  }
  walks.push_back(walk);
  Region region;
  open(args, region);
  if (walk.dim >= 0 && r.percent(60)) remember(load_shape(some_shape()));
  for (int64_t n = r.between(1, 4); n > 0; --n) fragment(depth + 1);
  if (r.percent(30)) store_fragment();
  std::vector<Known> yields;
  for (const Known& a : args) yields.push_back(next_carried(a, a.type));
  if (delays) yields[1] = args[0];
  Op op{Opcode::for_, {}, {}, {}, loop, {}};
  op.regions.push_back(close(yields));
  walks.pop_back();
  append_loop(std::move(op), first, args);
}

void Writer::append_loop(Op op, const std::vector<Known>& first, const std::vector<Known>& args) {
  for (size_t k = 0; k < first.size(); ++k) {
    used(first[k]);
    op.in.push_back(first[k].id);
    Known out = args[k];
    out.id = p.new_value(out.type, {});
    out.uses = 0;
    op.out.push_back(out.id);
    remember(out);
  }
  regions_.back().ops.push_back(std::move(op));
}

void Writer::if_fragment(int depth) {
  CondAttr c{static_cast<CompareKind>(r.below(4)), some_index(), Expr(r.between(0, 3))};
  if (r.percent(30)) c.b = some_index();
  std::vector<Known> like;
  for (int64_t n = r.between(1, 2); n > 0; --n) like.push_back(any());
  Op op{Opcode::if_, {}, {}, {}, c, {}};
  for (int side = 0; side < 2; ++side) {
    Region region;
    open({}, region);
    for (int64_t n = r.between(0, 3); n > 0; --n) fragment(depth + 1);
    if (r.percent(30)) store_fragment();
    std::vector<Known> yields;
    for (const Known& k : like) {
      const Known source = any();
      yields.push_back(coerced(source, k.type));
    }
    op.regions.push_back(close(yields));
  }
  for (const Known& k : like) {
    Known out = k;
    out.id = p.new_value(k.type, {});
    out.loose = is_float(k.type.dtype);
    out.magnitude = std::max(k.magnitude, 16.0);
    out.uses = 0;
    op.out.push_back(out.id);
    remember(out);
  }
  regions_.back().ops.push_back(std::move(op));
}

void Writer::fragment(int depth) {
  const uint64_t pick = r.below(100);
  if (pick < 48) return elementwise();
  if (pick < 57) return shape_op();
  if (pick < 66) return convert();
  if (pick < 74) return source();
  if (pick < 78) return gather_fragment();
  if (pick < 83) return dot_fragment();
  if (pick < 89) return reduce_fragment();
  if (pick < 92) return custom_reduce_fragment();
  if (depth >= 2) return elementwise();
  if (pick < 95) return loop_fragment(depth);
  if (pick < 97) return while_fragment(depth);
  if_fragment(depth);
}

View Writer::own_view(int param, Extents& shape) {
  View v{param, {}, {}};
  for (size_t k = 0; k < cuts[static_cast<size_t>(param)].size(); ++k) {
    const Cut& c = cuts[static_cast<size_t>(param)][k];
    const bool spread = c.grid_axis >= 0;
    Expr origin = spread ? Expr::symbol(SymbolKind::pid, c.grid_axis) * c.block : r.of(origins(c));
    if (!spread && r.percent(25)) origin = origin + Expr(r.between(-3, 4));
    v.origin.push_back(origin);
    if (c.block == 1 && r.percent(50)) continue;
    v.axes.push_back(static_cast<int>(k));
    shape.push_back(c.block);
  }
  return v;
}

std::vector<Expr> Writer::other_pids(int param) const {
  std::vector<Expr> others;
  if (p.params[static_cast<size_t>(param)].kind == ParamKind::scratch) return others;
  for (size_t g = 0; g < p.grid.size(); ++g) {
    const auto& axes = cuts[static_cast<size_t>(param)];
    const bool has = std::any_of(axes.begin(), axes.end(),
                                 [&](const Cut& c) { return c.grid_axis == static_cast<int>(g); });
    if (!has) others.push_back(Expr::symbol(SymbolKind::pid, static_cast<int>(g)));
  }
  return others;
}

void Writer::store_own(int param) {
  const Param& a = p.params[static_cast<size_t>(param)];
  // Axes of the grid that the tensor does not have: only their first instance may touch it.
  std::vector<Op> guards;
  for (const Expr& pid : other_pids(param)) {
    guards.push_back(Op{Opcode::if_, {}, {}, {}, CondAttr{CompareKind::eq, pid, 0}, {}});
    Region region;
    open({}, region);
  }
  Extents shape;
  const View v = own_view(param, shape);
  const Known source = any();
  Known value = coerced(source, {a.dtype, shape});
  // Inout tensors and scratch are read before, an out tensor only where it was stored.
  if (a.kind != ParamKind::out && computes(a.dtype) && r.percent(60)) {
    const Known before = load(param, v, shape, 0);
    value = binary(r.percent(50) ? Opcode::add : Opcode::max, before, value);
  }
  store(v, value);
  if (r.percent(35)) place_own(v, shape);
  const bool again = computes(a.dtype) && r.percent(30);
  if (again) {
    const Known back = load(param, v, shape, is_float(a.dtype) ? 0.5 : 2);
    const Known extra = partner(back);
    store(v, coerced(binary(Opcode::add, back, extra), {a.dtype, shape}));
    if (guards.empty()) remember(back);
  }
  while (!guards.empty()) {
    Op op = std::move(guards.back());
    guards.pop_back();
    op.regions.push_back(close({}));
    op.regions.emplace_back();
    regions_.back().ops.push_back(std::move(op));
  }
}

void Writer::store_fragment() {
  std::vector<int> outs;
  for (size_t i = 0; i < p.params.size(); ++i)
    if (p.params[i].kind != ParamKind::in) outs.push_back(static_cast<int>(i));
  store_own(r.of(outs));
}

}  // namespace tw::test
