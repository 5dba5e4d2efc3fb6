#include <algorithm>
#include <fmt/format.h>

#include "tw/emit/cpu/nest.h"

namespace tw::cpu {
namespace {

/// Insertion into a sorted list, which most elements of a long row do not enter.
const char* const kInsert =
    R"(// Whether (a, i) stands before (b, j): larger, NaN largest, or equal and of lower index.
TW_INLINE bool tw_before_$D($D a, i64 i, $D b, i64 j) {
  if (a != a || b != b) return a != a && (b == b || i < j);
  return a > b || (a == b && i < j);
}
// Puts (x, i) into a sorted list of `held` pairs, at most k; returns how many it holds then.
TW_INLINE i64 tw_insert_$D($D* values, i64* indices, i64 held, i64 k, $D x, i64 i) {
  if (held == k && !tw_before_$D(x, i, values[k - 1], indices[k - 1])) return held;
  i64 at = held < k ? held : k - 1;
  for (; at > 0 && tw_before_$D(x, i, values[at - 1], indices[at - 1]); --at) {
    values[at] = values[at - 1];
    indices[at] = indices[at - 1];
  }
  values[at] = x;
  indices[at] = i;
  return held < k ? held + 1 : k;
})";

/// One part of the operands: its elements, one by one, into the list of their row. Lists hold what
/// the parts before it brought, `before` elements a row and k at most.
void emit_part(Context& c, const Op& op, size_t part, int64_t before, Writer& out) {
  const Extents& shape = c.program.type(op.in[part]).shape;
  Coords at;
  std::vector<Axis> axes = axes_of(c, shape, at);
  Expression e(c);
  for (const Axis& a : axes) e.add_loop(a.counter);
  const Reg value = e.value(op.in[part], at);
  const Reg index = e.value(op.in[part + 1], at);
  Expr row = 0;
  for (size_t k = 0; k + 1 < shape.size(); ++k) row = row * shape[k] + at[k];
  const int64_t k = op.as<TopKAttr>().k;
  const auto list = [&](ValueId v) {
    const Storage& s = c.storage.at(v);
    return fmt::format("{}{} + ({}) * {}", s.variable() ? "&" : "", s.name,
                       c.text(simplify(row, c.facts)), k);
  };
  const std::string held = c.fresh("held");
  const int depth_of_row = e.depth() - (shape.back() > 1 ? 1 : 0);
  e.body(depth_of_row).line(fmt::format("i64 {} = {};", held, std::min(before, k)));
  e.body(e.depth()).line(fmt::format("{0} = tw_insert_{1}({2}, {3}, {0}, {4}, {5}, {6});", held,
                                     name(register_type(c.program.type(op.out[0]).dtype)),
                                     list(op.out[0]), list(op.out[1]), k, value.text, index.text));
  std::vector<Range> ranges;
  for (const Axis& a : axes) ranges.push_back({"0", std::to_string(a.extent), true});
  out.open("{");
  open_loops(e, axes, ranges, static_cast<int>(axes.size()), out);
  for (size_t a = 0; a < axes.size(); ++a) out.close();
  out.close();
}

}  // namespace

std::string use_insert(Prelude& prelude, DType t) {
  prelude.type(t, 1);
  prelude.add(fmt::format("top_k {}", name(t)), fill(kInsert, {{"D", name(t)}}));
  return fmt::format("tw_insert_{}", name(t));
}

void emit_top_k(Context& c, const Op& op, Writer& out) {
  use_insert(c.prelude, register_type(c.program.type(op.out[0]).dtype));
  for (const ValueId v : op.out) c.reserve(v, out);
  int64_t before = 0;
  for (size_t part = 0; part < op.in.size(); part += 2) {
    emit_part(c, op, part, before, out);
    before += c.program.type(op.in[part]).shape.back();
  }
}

}  // namespace tw::cpu
