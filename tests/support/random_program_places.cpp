#include <algorithm>

#include "tests/support/random_program_writer.h"

namespace tw::test {

Known Writer::decided() {
  for (int draw = 0; draw < 6; ++draw) {
    const Known k = any();
    if (!k.loose) return k;
  }
  return iota(i32, {r.between(1, 8)});
}

/// Coordinates along one axis of a tensor of a tile whose axis `axis` they follow: origin + t,
/// turned, stretched, or what data says. `inside`: all of them in [origin, origin + extent).
Known Writer::coordinate(const Extents& shape, int axis, const Expr& origin, int64_t extent,
                         bool inside) {
  const DType t = r.percent(60) ? i64 : i32;
  const Extents ones(shape.size(), 1);
  Extents along = ones;
  if (axis >= 0) along[static_cast<size_t>(axis)] = shape[static_cast<size_t>(axis)];
  if (r.percent(25)) along = shape;
  const auto number = [&](int64_t v) { return constant({t, ones}, static_cast<double>(v)); };
  Known c = number(0);
  if (axis >= 0) {
    c = emit(Opcode::iota, {}, {t, along}, AxisAttr{axis});
    if (r.percent(30)) {
      const Known last = number(extent - 1);
      c = binary(Opcode::sub, last, c);
    }
    if (!inside && r.percent(30)) {
      const Known step = number(r.between(-2, 3));
      c = binary(Opcode::mul, c, step);
    }
  }
  if (r.percent(40)) {  // data decides
    const Known source = r.percent(80) ? load_shape(along) : decided();
    Known data = coerced(source, {t, along});
    const Known modulus = number(inside ? extent : r.between(1, 40));
    data = binary(Opcode::rem, data, modulus);
    if (inside) data = binary(Opcode::max, data, number(0));
    c = data;
  }
  const Known first = index(t, ones, origin);
  c = binary(Opcode::add, c, first);
  return c;
}

/// Coordinates for the tile axes of a view, whose origins they take over.
std::vector<Known> Writer::coordinates(View& v, const Extents& shape, bool inside) {
  std::vector<Known> all;
  for (size_t k = 0; k < v.axes.size(); ++k) {
    Expr& origin = v.origin[static_cast<size_t>(v.axes[k])];
    all.push_back(coordinate(shape, static_cast<int>(k), origin, shape[k], inside));
    origin = 0;
  }
  return all;
}

void Writer::gather_fragment() {
  std::vector<int> inputs;
  for (size_t i = 0; i < p.params.size(); ++i)
    if (p.params[i].kind == ParamKind::in) inputs.push_back(static_cast<int>(i));
  const int param = r.of(inputs);
  Extents shape;
  View v = own_view(param, shape);
  if (count(shape) > 3000) return;
  const std::vector<Known> at = coordinates(v, shape, false);
  const bool masked = !shape.empty() && r.percent(30);
  Known mask;
  Extents got = shape;
  if (masked) {
    const Known source = r.percent(60) ? load_shape(shape) : decided();
    mask = coerced(source, {b1, shape});
  }
  // Axes that no coordinate runs along are not in the result.
  if (!masked) {
    std::fill(got.begin(), got.end(), 1);
    for (const Known& c : at)
      for (size_t k = 0; k < got.size(); ++k) got[k] = std::max(got[k], c.type.shape[k]);
  }
  remember(gather(v, at, masked ? &mask : nullptr, got));
}

/// Writes to the part of a parameter that `v` is, at coordinates within it.
void Writer::place_own(const View& whole, const Extents& shape) {
  View v = whole;
  const DType t = p.params[static_cast<size_t>(v.param)].dtype;
  const std::vector<Known> at = coordinates(v, shape, true);
  const Known value = coerced(any(), {t, shape});
  const bool masked = r.percent(30);
  Known mask;
  if (masked) {
    const Known source = r.percent(60) ? load_shape(shape) : decided();
    mask = coerced(source, {b1, shape});
  }
  const bool wide = t == i32 || t == i64 || t == u32 || t == u64 || t == f32 || t == f64;
  if (wide && r.percent(65)) return atomic(v, at, value, masked ? &mask : nullptr, shape);
  place(v, at, value, masked ? &mask : nullptr);
}

}  // namespace tw::test
