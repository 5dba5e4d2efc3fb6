#include <algorithm>
#include <cmath>
#include <limits>

#include "tests/support/random_program_writer.h"

namespace tw::test {

namespace {

bool stretches(const Extents& a, const Extents& b) {
  if (a.size() != b.size()) return false;
  for (size_t k = 0; k < a.size(); ++k)
    if (a[k] != b[k] && a[k] != 1 && b[k] != 1) return false;
  return true;
}

/// a stretches to b.
bool stretches_to(const Extents& a, const Extents& b) {
  if (a.size() != b.size()) return false;
  for (size_t k = 0; k < a.size(); ++k)
    if (a[k] != b[k] && a[k] != 1) return false;
  return true;
}

int64_t stretched_count(const Extents& a, const Extents& b) {
  int64_t n = 1;
  for (size_t k = 0; k < a.size(); ++k) n *= std::max(a[k], b[k]);
  return n;
}

constexpr int64_t kMostElements = 3000;

}  // namespace

Known Writer::any() {
  // The freshest of a few draws, unused ones first: little is left dead.
  const Known* best = nullptr;
  for (int draw = 0; draw < 3; ++draw) {
    const Known& k = pool_[r.below(pool_.size())];
    if (!best || k.uses < best->uses) best = &k;
  }
  return *best;
}

Known Writer::of_class(bool floats) {
  for (int draw = 0; draw < 4; ++draw) {
    const Known k = any();
    const DType t = k.type.dtype;
    if (floats ? is_float(t) && !is_fp8(t) : is_int(t)) return k;
  }
  static const std::vector<DType> fl{f32, f32, f32, f16, bf16, f64};
  static const std::vector<DType> in{i32, i32, i64, i8, u8, i16, u16, u32, u64};
  const Known k = any();
  return cast(k, r.of(floats ? fl : in));
}

Known Writer::partner(const Known& a) {
  std::vector<const Known*> fits;
  for (const Known& k : pool_)
    if (k.type.dtype == a.type.dtype && stretches(k.type.shape, a.type.shape) &&
        stretched_count(k.type.shape, a.type.shape) <= kMostElements)
      fits.push_back(&k);
  if (!fits.empty() && r.percent(65)) return *r.of(fits);
  Extents shape = a.type.shape;
  for (int64_t& e : shape)
    if (r.percent(40)) e = 1;
  const DType t = a.type.dtype;
  if (r.percent(35)) {
    static const std::vector<double> constants{0, 1, 2, 3, 0.5, 5, 0.125, 7};
    const double v = r.of(constants);
    const bool negative = r.percent(30) && !is_unsigned_int(t) && t != b1;
    return constant({t, shape}, negative ? -v : v);
  }
  return coerced(any(), {t, shape});
}

Known Writer::reduced_to_ones(Known a) {
  if (is_fp8(a.type.dtype)) a = cast(a, f32);
  for (size_t k = 0; k < a.type.shape.size(); ++k) {
    if (a.type.shape[k] == 1) continue;
    static const std::vector<Combiner> numbers{Combiner::max, Combiner::min, Combiner::sum};
    static const std::vector<Combiner> bits{Combiner::and_, Combiner::or_, Combiner::xor_};
    const Combiner c = a.type.dtype == b1 ? r.of(bits) : r.of(numbers);
    a = reduce(a, static_cast<int>(k), c);
  }
  return a;
}

Known Writer::shaped(const Known& a, const Extents& shape) {
  if (a.type.shape == shape) return a;
  if (stretches_to(a.type.shape, shape)) return broadcast(a, shape);
  const size_t rank = shape.size();
  if (rank == 2 && a.type.shape.size() == 2 && a.type.shape[0] == shape[1] &&
      a.type.shape[1] == shape[0])
    return transpose(a, {1, 0});
  if (count(a.type.shape) == count(shape)) return reshape(a, shape);
  if (rank == 2 && a.type.shape.size() == 1 && a.type.shape[0] == shape[0])
    return broadcast(reshape(a, {shape[0], 1}), shape);
  if (rank == 2 && a.type.shape.size() == 1 && a.type.shape[0] == shape[1])
    return broadcast(reshape(a, {1, shape[1]}), shape);
  const Extents ones(rank, 1);
  return broadcast(reshape(reduced_to_ones(a), ones), shape);
}

Known Writer::coerced(Known a, Type to) {
  if (!is_fp8(a.type.dtype) && r.percent(50)) a = shaped(a, to.shape);
  if (a.type.dtype != to.dtype) a = cast(a, to.dtype);
  const Known s = shaped(a, to.shape);
  return s.type == to ? s : cast(s, to.dtype);
}

DType Writer::some_dtype() {
  static const std::vector<DType> types{f32,  f32,  f32, f32, f32, f32,  f16, f16,
                                        bf16, bf16, f64, i32, i32, i8,   u8,  i16,
                                        u16,  u32,  i64, u64, b1,  e4m3, e5m2};
  return r.of(types);
}

Extents Writer::some_shape() { return any().type.shape; }

Expr Writer::some_index() {
  std::vector<Expr> e{Expr(r.between(-3, 9))};
  for (size_t k = 0; k < p.grid.size(); ++k)
    e.push_back(Expr::symbol(SymbolKind::pid, static_cast<int>(k)));
  for (const Walk& w : walks) {
    e.push_back(w.counter);
    e.push_back(w.position);
  }
  for (size_t k = 0; k < p.dims.size(); ++k)
    e.push_back(Expr::symbol(SymbolKind::dim, static_cast<int>(k)));
  const Expr a = r.of(e), b = r.of(e);
  switch (r.below(9)) {
    case 0:
      return a + b;
    case 1:
      return a - b;
    case 2:
      return a * Expr(r.between(-2, 5));
    case 3:
      return floordiv(a, Expr(r.between(1, 5)));
    case 4:
      return mod(a, Expr(r.between(1, 5)));
    case 5:
      return min(a, b);
    case 6:
      return max(a, b);
    case 7:
      return cdiv(a, Expr(r.between(1, 7)));
    default:
      return a;
  }
}

std::vector<Expr> Writer::origins(const Cut& c) {
  std::vector<Expr> list;
  if (c.grid_axis >= 0)
    for (int twice = 0; twice < 3; ++twice)
      list.push_back(Expr::symbol(SymbolKind::pid, c.grid_axis) * c.block);
  for (const Walk& w : walks)
    if (w.dim == c.dim && c.dim >= 0)
      for (int twice = 0; twice < 3; ++twice) list.push_back(w.position);
  if (list.empty() && !walks.empty() && r.percent(30)) list.push_back(walks.back().counter);
  list.push_back(Expr(0));
  return list;
}

Known Writer::load_shape(const Extents& shape) {
  std::vector<int> fits;
  for (size_t i = 0; i < p.params.size(); ++i)
    if (p.params[i].kind == ParamKind::in && p.params[i].dims.size() >= shape.size())
      fits.push_back(static_cast<int>(i));
  if (fits.empty()) return constant({f32, shape}, 2);
  const int param = r.of(fits);
  const auto& axes = cuts[static_cast<size_t>(param)];
  View v{param, {}, {}};
  size_t left = shape.size();
  for (size_t k = 0; k < axes.size(); ++k) {
    const bool must = axes.size() - k == left;
    const bool tile = left > 0 && (must || r.percent(60));
    Expr origin = r.of(origins(axes[k]));
    if (r.percent(tile ? 25 : 10)) origin = origin + Expr(r.between(-3, 4));
    v.origin.push_back(origin);
    if (!tile) continue;
    v.axes.push_back(static_cast<int>(k));
    --left;
  }
  static const std::vector<double> pads{0,
                                        0,
                                        0,
                                        0,
                                        1,
                                        -2,
                                        -std::numeric_limits<double>::infinity(),
                                        std::numeric_limits<double>::quiet_NaN()};
  const DType t = p.params[static_cast<size_t>(param)].dtype;
  double pad = is_float(t) ? pads[r.below(special_free ? 6 : pads.size())]
                           : static_cast<double>(r.between(0, 3));
  if (t == e4m3 && std::isinf(pad)) pad = 0;
  return load(param, v, shape, pad);
}

}  // namespace tw::test
