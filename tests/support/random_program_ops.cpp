#include <algorithm>
#include <cmath>

#include "tests/support/random_program_writer.h"

namespace tw::test {

namespace {

bool wide_float(DType t) { return t == f32 || t == f64; }

double magnitude_of(Opcode code, const std::vector<Known>& in) {
  const double a = in.empty() ? 0 : in[0].magnitude, b = in.size() > 1 ? in[1].magnitude : 0;
  if (code == Opcode::sin || code == Opcode::cos || code == Opcode::tanh || code == Opcode::erf ||
      code == Opcode::tanh_fast || code == Opcode::erf_fast)
    return 0;
  if (code == Opcode::exp || code == Opcode::exp2) return a > 4 ? 60 : 12;
  if (code == Opcode::log) return 6;
  if (code == Opcode::sqrt) return std::max(a / 2, 1.0);
  if (code == Opcode::rsqrt) return 6;
  if (code == Opcode::add || code == Opcode::sub) return std::max(a, b) + 1;
  if (code == Opcode::mul) return a + b;
  if (code == Opcode::div) return a + 4;
  return std::max(a, b);
}

bool loose_of(Opcode code, const std::vector<Known>& in, const Type& out) {
  if (!is_float(out.dtype)) return false;
  if (stated_ulps(code, out.dtype) > 0 || code == Opcode::dot) return true;
  if (code == Opcode::mul && wide_float(out.dtype)) return true;
  return std::any_of(in.begin(), in.end(), [](const Known& k) { return k.loose; });
}

}  // namespace

void Writer::used(const Known& k) {
  for (Known& x : pool_)
    if (x.id == k.id) ++x.uses;
}

Known Writer::emit(Opcode code, std::vector<Known> in, Type type, Attr attr) {
  Op op{code, {}, {}, {}, std::move(attr), {}};
  for (const Known& k : in) {
    op.in.push_back(k.id);
    used(k);
  }
  Known out{p.new_value(type, {}), type, magnitude_of(code, in), loose_of(code, in, type), 0};
  op.out.push_back(out.id);
  regions_.back().ops.push_back(std::move(op));
  return out;
}

Known Writer::unary(Opcode code, Known a) { return emit(code, {a}, infer_unary(code, a.type, {})); }

Known Writer::binary(Opcode code, Known a, Known b) {
  return emit(code, {a, b}, infer_binary(code, a.type, b.type, {}));
}

Known Writer::where(const Known& mask, const Known& a, const Known& b) {
  Known k = emit(Opcode::where, {mask, a, b}, infer_where(mask.type, a.type, b.type, {}));
  k.magnitude = std::max(a.magnitude, b.magnitude);
  return k;
}

Known Writer::constant(const Type& type, double value) {
  Number n;
  n.integral = !is_float(type.dtype);
  if (n.integral)
    n.i = type.dtype == b1 ? value != 0 : static_cast<int64_t>(value);
  else
    n.f = value;
  Known k = emit(Opcode::full, {}, type, FullAttr{n});
  k.magnitude = std::log2(std::fabs(value) + 1);
  return k;
}

Known Writer::index(DType t, const Extents& ones, const Expr& e) {
  Known k = emit(Opcode::index, {}, {t, ones}, IndexAttr{e});
  k.magnitude = 7;
  return k;
}

Known Writer::iota(DType t, const Extents& shape) {
  const int axis = static_cast<int>(r.below(shape.size()));
  Known k = emit(Opcode::iota, {}, {t, shape}, AxisAttr{axis});
  k.magnitude = 7;
  return k;
}

Known Writer::cast(const Known& a, DType to) {
  CastAttr how;
  if (is_float(a.type.dtype) && is_float(to)) {
    if (r.percent(30)) how.rounding = static_cast<Rounding>(r.below(4));
    if (how.rounding == Rounding::SR) how.seed = some_index();
    how.saturate = r.percent(25);
  }
  const Known source = is_float(to) ? a : off_steps(a);
  Known k = emit(Opcode::cast, {source}, infer_cast(source.type, to, {}), how);
  if (!is_float(to))
    k.magnitude = std::min<double>(k.magnitude, 8.0 * static_cast<double>(bytes(to)));
  // Rounding to few digits nearly always swallows what is loose.
  if (bytes(to) <= 2) k.loose = k.loose && k.magnitude > 8;
  return k;
}

Known Writer::bitcast(const Known& a, DType to) {
  Known k = emit(Opcode::bitcast, {a}, infer_bitcast(a.type, to, {}));
  k.magnitude = is_float(to) ? 120 : 8.0 * static_cast<double>(bytes(to));
  return k;
}

Known Writer::reshape(const Known& a, const Extents& shape) {
  return emit(Opcode::reshape, {a}, infer_reshape(a.type, shape, {}));
}

Known Writer::transpose(const Known& a, const std::vector<int>& perm) {
  return emit(Opcode::transpose, {a}, infer_transpose(a.type, perm, {}), PermAttr{perm});
}

Known Writer::broadcast(const Known& a, const Extents& shape) {
  return emit(Opcode::broadcast, {a}, infer_broadcast(a.type, shape, {}));
}

Known Writer::reduce(const Known& a, int axis, Combiner c) {
  Known k = emit(Opcode::reduce, {a}, infer_reduce(a.type, axis, c, {}), ReduceAttr{axis, c});
  const double n = std::log2(static_cast<double>(a.type.shape[static_cast<size_t>(axis)]));
  if (c == Combiner::sum) k.magnitude = a.magnitude + n;
  if (c == Combiner::prod) k.magnitude = a.magnitude * std::exp2(n);
  if (c == Combiner::sum || c == Combiner::prod) k.loose = is_float(a.type.dtype);
  return k;
}

Known Writer::philox(const Known& counter, const Known& seed, const Known& stream) {
  Known k = emit(Opcode::philox, {counter, seed, stream},
                 infer_philox(counter.type, seed.type, stream.type, {}));
  k.magnitude = 32;
  return k;
}

Known Writer::lookup(const Known& index, DType t, int entries) {
  TableAttr table;
  for (int i = 0; i < entries; ++i) {
    const auto n = static_cast<int64_t>(r.below(t == b1 ? 2 : 100));
    table.entries.push_back(is_float(t) ? Number{false, 0, static_cast<double>(n - 50) / 8}
                                        : Number{true, n, 0});
  }
  const auto size = static_cast<size_t>(entries);
  Known k = emit(Opcode::lookup, {index}, infer_lookup(index.type, t, size, {}), table);
  k.magnitude = is_float(t) ? 3 : 7;
  return k;
}

Known Writer::slice(const Known& a, const Extents& start, const Extents& extents) {
  return emit(Opcode::slice, {a}, infer_slice(a.type, start, extents, {}), SliceAttr{start});
}

Known Writer::scan(const Known& a, const ScanAttr& how) {
  const auto [axis, c] = how.fold;
  Known k = emit(Opcode::scan, {a}, infer_scan(a.type, axis, c, {}), how);
  const double n = std::log2(static_cast<double>(a.type.shape[static_cast<size_t>(axis)]));
  if (c == Combiner::sum) k.magnitude = a.magnitude + n;
  if (c == Combiner::prod) k.magnitude = a.magnitude * std::exp2(n);
  if (c == Combiner::sum || c == Combiner::prod) k.loose = is_float(a.type.dtype);
  return k;
}

Known Writer::dot(const Known& a, const Known& b, const Known& acc, Precision p) {
  Known k = emit(Opcode::dot, {a, b, acc}, infer_dot(a.type, b.type, acc.type, p, {}), DotAttr{p});
  k.magnitude = std::max(a.magnitude + b.magnitude + 4, acc.magnitude + 1);
  return k;
}

Known Writer::load(int param, const View& v, const Extents& shape, double pad) {
  const DType t = p.params[static_cast<size_t>(param)].dtype;
  Number n;
  n.integral = !is_float(t);
  (n.integral ? void(n.i = t == b1 ? pad != 0 : static_cast<int64_t>(pad)) : void(n.f = pad));
  Known k = emit(Opcode::load, {}, {t, shape}, ViewAttr{v, n});
  k.magnitude = is_float(t) ? 3 : 4;
  k.loose = p.params[static_cast<size_t>(param)].kind != ParamKind::in && is_float(t);
  return k;
}

void Writer::store(const View& v, const Known& a) {
  used(a);
  regions_.back().ops.push_back(Op{Opcode::store, {}, {a.id}, {}, ViewAttr{v, Number{}}, {}});
}

Known Writer::gather(const View& v, const std::vector<Known>& at, const Known* mask,
                     const Extents& shape) {
  const Param& param = p.params[static_cast<size_t>(v.param)];
  const DType t = param.dtype;
  const double pad = t == b1 ? r.below(2) : r.between(0, 2);
  std::vector<Known> in = at;
  if (mask) in.push_back(*mask);
  const Number n = is_float(t) ? Number{false, 0, pad} : Number{true, static_cast<int64_t>(pad), 0};
  Known k = emit(Opcode::gather, in, {t, shape}, PlaceAttr{v, mask != nullptr, n});
  k.magnitude = is_float(t) ? 3 : 4;
  k.loose = param.kind != ParamKind::in && is_float(t);
  return k;
}

void Writer::place(const View& v, const std::vector<Known>& at, const Known& value,
                   const Known* mask) {
  Op op{Opcode::scatter, {}, {}, {}, PlaceAttr{v, mask != nullptr, {}}, {}};
  std::vector<Known> in = at;
  in.push_back(value);
  if (mask) in.push_back(*mask);
  for (const Known& k : in) {
    used(k);
    op.in.push_back(k.id);
  }
  regions_.back().ops.push_back(std::move(op));
}

void Writer::atomic(const View& v, const std::vector<Known>& at, const Known& value,
                    const Known* mask, const Extents& shape) {
  const Param& param = p.params[static_cast<size_t>(v.param)];
  std::vector<AtomicOp> ops{AtomicOp::add, AtomicOp::add, AtomicOp::min, AtomicOp::max};
  const std::vector<AtomicOp> bits{AtomicOp::and_, AtomicOp::or_, AtomicOp::xor_};
  if (!is_float(param.dtype)) ops.insert(ops.end(), bits.begin(), bits.end());
  const auto order = static_cast<MemoryOrder>(r.below(4));
  AtomicAttr how{v, mask != nullptr, r.of(ops), order, static_cast<MemoryScope>(r.below(3))};
  // Of tensors it is open which instance exchanges first.
  const bool exchanges =
      param.kind == ParamKind::scratch && !is_float(param.dtype) && r.percent(30);
  Known expected;
  if (exchanges) {
    how.op = AtomicOp::cas;
    expected = coerced(any(), {param.dtype, shape});
  }
  place(v, at, value, mask);
  Op& op = regions_.back().ops.back();
  if (exchanges) {
    used(expected);
    op.in.insert(op.in.begin() + static_cast<int64_t>(at.size()) + 1, expected.id);
  }
  op.code = Opcode::atomic;
  op.attr = how;
  // What an element was before depends on the order of elements where several are at one place.
  if (is_float(param.dtype) || r.percent(85)) return;
  Known old{p.new_value({param.dtype, shape}, {}), {param.dtype, shape}, 12, false, 0};
  op.out.push_back(old.id);
  remember(old);
}

void Writer::open(std::vector<Known> args, Region& region) {
  marks_.push_back(pool_.size());
  for (const Known& a : args) {
    region.args.push_back(a.id);
    pool_.push_back(a);
  }
  regions_.push_back(std::move(region));
}

Region Writer::close(const std::vector<Known>& yields) {
  Region region = std::move(regions_.back());
  regions_.pop_back();
  for (const Known& y : yields) {
    used(y);
    region.yields.push_back(y.id);
  }
  pool_.resize(marks_.back());
  marks_.pop_back();
  return region;
}

Known Writer::clamped(const Known& a, double lo, double hi) {
  if (a.type.dtype == e4m3 || a.type.dtype == e5m2) return a;
  lo = std::max(lo, lowest(a.type.dtype));
  hi = std::min(hi, largest(a.type.dtype));
  const Extents ones(a.type.shape.size(), 1);
  const Type c{a.type.dtype, ones};
  Known k = binary(r.percent(50) ? Opcode::min : Opcode::min_num, a, constant(c, hi));
  k = binary(r.percent(50) ? Opcode::max : Opcode::max_num, k, constant(c, lo));
  k.magnitude = std::log2(std::max(std::fabs(lo), std::fabs(hi)) + 1);
  return k;
}

Known Writer::tamed(const Known& a) {
  if (!is_float(a.type.dtype)) return a;
  const double limit = a.type.dtype == f16 ? 13 : 40;
  if (a.magnitude <= limit) return a;
  return clamped(a, -std::exp2(limit - 3), std::exp2(limit - 3));
}

/// A loose value at a step (an integer for casts and floor, an equal one for compares) is
/// undecided: keep such values few by moving them away from integers.
Known Writer::off_steps(Known a) {
  if (!a.loose || !is_float(a.type.dtype) || a.type.dtype == e4m3 || a.type.dtype == e5m2) return a;
  if (a.magnitude > 10) a = clamped(a, -100.25, 99.75);
  if (r.percent(5)) return a;
  const Known nudge = constant({a.type.dtype, Extents(a.type.shape.size(), 1)}, 0.3125);
  return binary(Opcode::add, a, nudge);
}

Known Writer::guarded(Opcode code, Known a) {
  const Type c{a.type.dtype, Extents(a.type.shape.size(), 1)};
  if ((code == Opcode::exp || code == Opcode::exp2) && a.magnitude > 3 && r.percent(85))
    return clamped(a, -9, 6);
  if ((code == Opcode::sin || code == Opcode::cos) && a.loose && a.magnitude > 3)
    a = clamped(a, -9, 9);
  if ((code == Opcode::sqrt || code == Opcode::log) && r.percent(80)) a = unary(Opcode::abs, a);
  if (code == Opcode::log && r.percent(80)) return binary(Opcode::max, a, constant(c, 0.07));
  if (code == Opcode::rsqrt && r.percent(80)) {
    a = unary(Opcode::abs, a);
    return binary(Opcode::max, a, constant(c, 0.07));
  }
  const bool steps = code == Opcode::floor || code == Opcode::ceil || code == Opcode::round;
  return steps ? off_steps(a) : a;
}

Known Writer::guarded_divisor(const Known& b) {
  if (!is_float(b.type.dtype) || r.percent(15)) return b;
  const Type c{b.type.dtype, Extents(b.type.shape.size(), 1)};
  const Known magnitude = unary(Opcode::abs, b);
  return binary(Opcode::max, magnitude, constant(c, 0.25));
}

void Writer::lookup_of_any() {
  static const std::vector<DType> types{f32, f32, f32, f16, f64, i8, u8, i32, u64, b1};
  static const std::vector<double> masks{7, 15, 15, 31};
  Known index = of_class(false);
  const int64_t entries = r.percent(75) ? r.between(2, 16) : r.between(17, 256);
  if (r.percent(70)) {
    const Type c{index.type.dtype, Extents(index.type.shape.size(), 1)};
    index = binary(Opcode::and_, index, constant(c, r.of(masks)));
  }
  remember(lookup(index, r.of(types), static_cast<int>(entries)));
}

void Writer::elementwise_of(Opcode code) {
  const OpInfo& i = info(code);
  if (code == Opcode::where) {
    const Known a = any(), b = partner(a);
    const Known source = any();
    const Known mask = coerced(source, {b1, r.percent(70) ? a.type.shape : b.type.shape});
    return remember(where(mask, a, b));
  }
  if (i.operands == 1) {
    const bool bits = code == Opcode::not_, either = code == Opcode::neg || code == Opcode::abs;
    Known a = of_class(either ? r.percent(70) : !bits);
    if (bits && r.percent(30)) a = coerced(a, {b1, a.type.shape});
    return remember(tamed(unary(code, guarded(code, a))));
  }
  const bool integers = code == Opcode::rem || code == Opcode::shl || code == Opcode::shr;
  const bool bits = code == Opcode::and_ || code == Opcode::or_ || code == Opcode::xor_;
  Known a = of_class(!integers && !bits && r.percent(75));
  if (bits && r.percent(30)) a = coerced(a, {b1, a.type.shape});
  Known b = partner(a);
  const bool compares =
      code == Opcode::eq || code == Opcode::ne || code == Opcode::lt || code == Opcode::le;
  if (compares) a = off_steps(a);
  if (code == Opcode::div) b = guarded_divisor(b);
  if (integers && code != Opcode::rem && r.percent(70)) {
    const Type c{b.type.dtype, Extents(b.type.shape.size(), 1)};
    b = binary(Opcode::and_, b, constant(c, static_cast<double>(8 * bytes(b.type.dtype) - 1)));
  }
  if (r.percent(50) && b.type.shape == a.type.shape) std::swap(a, b);
  const Known result = tamed(binary(code, a, b));
  if (compares && p.values.size() % 4 == 0) assert_always(result);
  remember(result);
}

void Writer::assert_always(const Known& mask) {
  const Known negated = unary(Opcode::not_, mask);
  const Known either = binary(Opcode::or_, mask, negated);
  used(either);
  regions_.back().ops.push_back(
      Op{Opcode::assert_, {}, {either.id}, {}, MessageAttr{"m or not m"}, {}});
}

void Writer::elementwise() {
  static const std::vector<Opcode> codes{
      Opcode::neg,   Opcode::abs,   Opcode::not_,    Opcode::sqrt,    Opcode::rsqrt, Opcode::exp,
      Opcode::exp2,  Opcode::log,   Opcode::tanh,    Opcode::erf,     Opcode::floor, Opcode::ceil,
      Opcode::round, Opcode::add,   Opcode::sub,     Opcode::mul,     Opcode::div,   Opcode::rem,
      Opcode::min,   Opcode::max,   Opcode::min_num, Opcode::max_num, Opcode::and_,  Opcode::or_,
      Opcode::xor_,  Opcode::shl,   Opcode::shr,     Opcode::eq,      Opcode::ne,    Opcode::lt,
      Opcode::le,    Opcode::where, Opcode::add,     Opcode::mul,     Opcode::max};
  static constexpr Opcode kLikeTanh[] = {Opcode::tanh, Opcode::tanh_fast, Opcode::sin};
  static constexpr Opcode kLikeErf[] = {Opcode::erf, Opcode::erf_fast, Opcode::cos};
  const Opcode code = r.of(codes);
  // All bounded by 1, and in all as often as each of the others.
  const size_t variant = p.values.size() % 3;
  if (code == Opcode::rem && variant == 0) return lookup_of_any();
  elementwise_of(code == Opcode::tanh  ? kLikeTanh[variant]
                 : code == Opcode::erf ? kLikeErf[variant]
                                       : code);
}

}  // namespace tw::test
