#include "tw/emit/cuda/panel.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>

#include "tw/base/round.h"
#include "tw/emit/cpu/op_table.h"
#include "tw/emit/cuda/statements.h"

namespace tw::cuda {

using layout::ThreadValue;

namespace {

constexpr int64_t kPiece = 16;  ///< bytes of one access

std::string panel_word(State& s, DType t) {
  return s.c.prelude.type(register_type(t) == t ? t : cpu::unsigned_of_bytes(bytes(t)));
}

const Op* load_of(const State& s, ValueId v) {
  const Op* op = s.c.def[v];
  return op != nullptr && op->code == Opcode::load ? op : nullptr;
}

/// The axis of the tile along which memory, or a thread's registers, have neighbours.
size_t neighbour_axis(const State& s, ValueId base, size_t otherwise) {
  if (s.placement.in_panel_only(base)) {
    const View& view = load_of(s, base)->as<ViewAttr>().view;
    const int unit = s.c.specialisation.params[view.param].unit_axis;
    const auto it = std::ranges::find(view.axes, unit);
    return it == view.axes.end() ? otherwise : static_cast<size_t>(it - view.axes.begin());
  }
  const ThreadValue& l = s.placement.layout_of(s.program().type(base).shape);
  const bool run = !l.values.empty() && l.values[0].axis >= 0 && l.values[0].stride == 1;
  return run ? static_cast<size_t>(l.values[0].axis) : otherwise;
}

void widen_for(const State& s, const Op& dot, size_t which, Panel& p) {
  const Operand o = operand_of(s.c, dot, which);
  const Extents& sums = s.program().type(dot.out[0]).shape;
  const size_t k = o.axis(1 - which), other = o.axis(which);
  const auto widen = [&p](size_t axis, int64_t extent) {
    p.padded[axis] = std::max(p.padded[axis], extent);
  };
  if (s.placement.unit(dot) == DotUnit::matrix) {
    const MatrixGrid g = s.placement.grid(sums);
    // Two instructions share one read of B: the last of an odd number reads beside the tile.
    const int64_t beside = which == 1 && g.tiles[1] % 2 != 0 ? 8 : 0;
    widen(k, round_up(p.padded[k], matrix_depth(p.dtype)));
    widen(other, g.reach(which) + beside);
  } else {
    widen(other, round_up(s.placement.layout_of(sums).reach(which) + 1, 4));
  }
}

}  // namespace

Panel panel_of(const State& s, ValueId base) {
  const Type& type = s.program().type(base);
  Panel p;
  p.dtype = panel_type(type.dtype);
  p.padded = type.shape;
  bool first = true, words_across = false;
  walk(s.program(), [&](const Op& op) {
    if (op.code != Opcode::dot || s.placement.unit(op) == DotUnit::plain) return;
    for (size_t which = 0; which < 2; ++which) {
      const Operand o = operand_of(s.c, op, which);
      if (o.base != base) continue;
      const size_t k = o.axis(1 - which);
      // Bytes are put together along k only.
      if (first) p.unit = bytes(p.dtype) == 1 ? k : neighbour_axis(s, base, k);
      first = false;
      words_across = words_across ||
                     (p.dtype == f32 && p.unit != k && s.placement.unit(op) == DotUnit::matrix);
      widen_for(s, op, which, p);
    }
  });
  p.padded[p.unit] = round_up(p.padded[p.unit], kPiece / bytes(p.dtype));
  p.pitch = pitch_of(p.dtype, p.padded[p.unit], words_across);
  return p;
}

PanelMemory reserve_panel(State& s, ValueId base, int64_t copies, Writer& out) {
  PanelMemory m{panel_of(s, base), "", {}};
  const int64_t size = m.form.bytes() * copies;
  if (s.shared + size > s.gpu.shared_per_block) throw NoRoomForPanels();
  m.name = s.reserve_bytes(
      panel_word(s, m.form.dtype), s.c.name_of(base) + "_panel", size,
      fmt::format("{}, lines of {}{}", to_string(s.program().type(base)), m.form.pitch,
                  copies > 1 ? fmt::format(", {} stages", copies) : ""),
      out, m.where);
  return m;
}

namespace {

/// A nest over the panel's elements, or over its pieces of 16 bytes.
class PanelNest {
 public:
  PanelNest(State& s, const PanelMemory& to, const Extents& tile, int64_t neighbours)
      : s_(s),
        to_(to),
        tile_(tile),
        layout_(layout::blocked(to.form.padded, s.placement.threads(), to.form.unit, neighbours)),
        nest(s, layout_, {}, neighbours > 1 ? std::vector<size_t>{0} : std::vector<size_t>{}) {
    nest.guard();
    nest.require(0, s.first_copy(layout_));
  }

  /// The place of the element in the panel.
  std::string place() const {
    const size_t unit = to_.form.unit;
    const Expr at = nest.at()[1 - unit] * to_.form.pitch + nest.at()[unit];
    return fmt::format("{} + {}", to_.name, s_.c.text(simplify(at, s_.c.facts)));
  }
  /// What says that the element lies in the tile; along `but` it need not.
  std::string in_tile(size_t but = 2) const {
    std::string text;
    for (size_t a = 0; a < 2; ++a) {
      if (a == but || to_.form.padded[a] == tile_[a]) continue;
      text +=
          fmt::format("{}{} < {}", text.empty() ? "" : " && ", s_.c.text(nest.at()[a]), tile_[a]);
    }
    return text;
  }
  Coords coords(const View& view) const { return tensor_place(s_, view, nest.at()); }

 private:
  State& s_;
  const PanelMemory& to_;
  const Extents& tile_;
  const ThreadValue layout_;

 public:
  Nest nest;
};

/// How many bytes of a piece lie in the tensor and in the tile.
std::string bytes_inside(State& s, const PanelNest& n, const View& view, const Panel& panel,
                         int64_t extent) {
  const Param& p = s.program().params[view.param];
  const int64_t each = bytes(panel.dtype), pieces = kPiece / each;
  const Coords coords = n.coords(view);
  const size_t unit = view.axes[panel.unit];
  std::string condition = n.in_tile(panel.unit);
  const auto require = [&condition](const std::string& text) {
    condition += (condition.empty() ? "" : " && ") + text;
  };
  for (size_t axis = 0; axis < coords.size(); ++axis) {
    const Expr& at = coords[axis];
    if (!prove_le(0, at, s.c.facts)) require(fmt::format("{} >= 0", s.c.text(at)));
    if (axis != unit && !prove_le(at + 1, p.dims[axis], s.c.facts))
      require(fmt::format("{} < {}", s.c.text(at), s.c.text(p.dims[axis])));
  }
  std::string left;
  const auto limit = [&](const std::string& text) {
    left = left.empty() ? text : fmt::format("min({}, {})", left, text);
  };
  if (!prove_le(simplify(coords[unit] + pieces, s.c.facts), p.dims[unit], s.c.facts))
    limit(s.c.text(simplify(p.dims[unit] - coords[unit], s.c.facts)));
  if (panel.padded[panel.unit] != extent)
    limit(fmt::format("(i64)({} - ({}))", extent, s.c.text(n.nest.at()[panel.unit])));
  std::string some = std::to_string(kPiece);
  if (!left.empty())
    some = fmt::format("(int)min(max({}, (i64)0), (i64){}) * {}", left, pieces, each);
  return condition.empty() ? some : fmt::format("{} ? {} : 0", condition, some);
}

}  // namespace

bool copies_async(State& s, const Op& load, const Panel& panel) {
  const ViewAttr& a = load.as<ViewAttr>();
  const ParamFacts& facts = s.c.specialisation.params[a.view.param];
  const DType t = s.program().params[a.view.param].dtype;
  if (!facts.aligned || t != panel.dtype || is_packed(t) || a.view.axes.size() != 2) return false;
  const double pad = a.pad.as_double();
  if (facts.unit_axis != a.view.axes[panel.unit] || pad != 0 || std::signbit(pad)) return false;
  const int64_t pieces = kPiece / bytes(t);
  const ThreadValue l = layout::blocked(panel.padded, s.placement.threads(), panel.unit, pieces);
  if (l.values.empty() || l.values[0].axis != static_cast<int>(panel.unit) ||
      l.values[0].extent != pieces)
    return false;
  const int64_t step = divisor(a.view.origin[facts.unit_axis], s.c.facts);
  return step % pieces == 0;
}

void copy_panel(State& s, const Op& load, const View& view, const PanelMemory& to, Writer& out) {
  const Extents& tile = s.program().type(load.out[0]).shape;
  PanelNest n(s, to, tile, kPiece / bytes(to.form.dtype));
  Expression& e = n.nest.expression();
  const std::string inside = bytes_inside(s, n, view, to.form, tile[to.form.unit]);
  const std::string from = e.address(view.param, n.coords(view)).pointer;
  e.body(e.depth()).line(
      fmt::format("{}({}, {}, {});", s.call("copy_async_16"), n.place(), from, inside));
  n.nest.emit(out);
}

namespace {

/// A load by elements: addresses are not known to allow more.
void load_elements(State& s, const Op& load, const PanelMemory& to, Writer& out) {
  const ViewAttr& a = load.as<ViewAttr>();
  PanelNest n(s, to, s.program().type(load.out[0]).shape, 1);
  Expression& e = n.nest.expression();
  const Reg r = e.load(a.view.param, n.coords(a.view), a.pad);
  const std::string inside = n.in_tile();
  const std::string value = inside.empty() ? r.text : fmt::format("{} ? {} : 0", inside, r.text);
  e.body(e.depth()).line(
      fmt::format("{}({}, {});", s.c.prelude.use("store", to.form.dtype, 1), n.place(), value));
  n.nest.emit(out);
}

/// Zeros where the panel is larger than the tile.
void clear_rest(State& s, const PanelMemory& to, const Extents& tile, Writer& out) {
  if (to.form.padded == tile) return;
  PanelNest n(s, to, tile, 1);
  Expression& e = n.nest.expression();
  n.nest.require(e.depth(), fmt::format("!({})", n.in_tile()));
  e.body(e.depth()).line(fmt::format("*({}) = 0;", n.place()));
  n.nest.emit(out);
}

/// A tile in registers, or one whose elements are computed here, to its panel.
class Spreading {
 public:
  Spreading(State& s, ValueId v, const PanelMemory& to)
      : s_(s), v_(v), to_(to), layout_(s.placement.layout_of(s.program().type(v).shape)) {
    const int unit = static_cast<int>(to.form.unit);
    if (!s.in_registers(v) || layout_.values.empty() || layout_.values[0].axis != unit ||
        layout_.values[0].stride != 1)
      return;
    const int64_t extent = s.program().type(v).shape[to.form.unit];
    const int64_t at = divisor(Nest(s, layout_, {}, {0}).at()[to.form.unit], s.c.facts);
    const auto fits = [&](int64_t n) {
      return layout_.values[0].extent % n == 0 && extent % n == 0 && at % n == 0;
    };
    while (count_ * 2 <= kPiece / bytes(to.form.dtype) && fits(count_ * 2)) count_ *= 2;
  }

  void emit(Writer& out) {
    if (count_ == 1) return elements(out);
    const std::string word = panel_word(s_, to_.form.dtype);
    s_.c.prelude.outside("Pack");
    const std::string pack = fmt::format("Pack<{}, {}>", word, count_);
    const std::string raw = s_.c.fresh("raw");
    out.line(fmt::format("{} {}[{}];", pack, raw, layout_.registers() / count_));
    const Tile all{raw, s_.program().type(v_), layout_};
    Nest fill(s_, layout_);
    write(fill, "&" + in_packs(s_, raw, fill.index(all), count_));
    if (s_.guards(s_.reads_of(v_))) fill.guard();
    fill.emit(out);
    Nest n(s_, layout_, {}, {0});
    n.guard();
    n.require(0, s_.first_copy(layout_));
    Coords at = n.at();
    Expr first = n.index(all);
    const int64_t pieces = layout_.values[0].extent / count_;
    if (pieces > 1) {
      const Expr counter = n.add_loop("piece", pieces, true);
      Expr& along = at[to_.form.unit];
      along = simplify(along + counter * count_, s_.c.facts);
      first = first + counter * count_;
      if (layout_.has_holes(to_.form.unit)) {
        n.require(n.expression().depth(),
                  fmt::format("{} < {}", s_.c.text(along), layout_.tile[to_.form.unit]));
      }
    }
    Expression& e = n.expression();
    e.body(e.depth()).line(
        fmt::format("*({}*)({}) = {}[{}];", pack, target(at), raw, quotient(s_, first, count_)));
    n.emit(out);
  }

 private:
  std::string target(const Coords& at) const {
    const Expr flat = at[1 - to_.form.unit] * to_.form.pitch + at[to_.form.unit];
    return fmt::format("{} + {}", to_.name, s_.c.text(simplify(flat, s_.c.facts)));
  }
  void write(Nest& n, const std::string& to) {
    Expression& e = n.expression();
    const Reg r = n.value(v_);
    e.body(e.depth()).line(
        fmt::format("{}({}, {});", s_.c.prelude.use("store", to_.form.dtype, 1), to, r.text));
  }
  void elements(Writer& out) {
    Nest n(s_, layout_);
    n.guard();
    n.require(0, s_.first_copy(layout_));
    write(n, target(n.at()));
    n.emit(out);
  }

  State& s_;
  const ValueId v_;
  const PanelMemory& to_;
  const ThreadValue layout_;
  int64_t count_ = 1;
};

}  // namespace

void emit_panel(State& s, ValueId base, const PanelMemory& to, Writer& out) {
  Footprint f = s.reads_of(base);
  f.writes.push_back(to.where);
  Writer text;
  const bool loads = s.placement.in_panel_only(base);
  const Op* load = load_of(s, base);
  if (loads && copies_async(s, *load, to.form)) {
    copy_panel(s, *load, load->as<ViewAttr>().view, to, text);
    text.line(s.call("copy_async_commit") + "();");
    text.line(s.call("copy_async_wait") + "<0>();");
  } else if (loads) {
    load_elements(s, *load, to, text);
  } else {
    Spreading(s, base, to).emit(text);
    clear_rest(s, to, s.program().type(base).shape, text);
  }
  s.append(f, text, out);
}

bool left_in_registers(const State& s, const Op& dot) {
  if (s.placement.unit(dot) != DotUnit::matrix) return false;
  const Type& left = s.program().type(dot.in[0]);
  const Op* op = s.c.def[dot.in[0]];
  if (bytes(left.dtype) != 2 || !s.in_registers(dot.in[0]) || op == nullptr) return false;
  if (op->code == Opcode::load || op->code == Opcode::transpose) return false;
  const MatrixGrid sums = s.placement.grid(s.program().type(dot.out[0]).shape);
  const MatrixGrid own = s.placement.grid(left.shape);
  const bool alike =
      own.warps[0] == sums.warps[0] && own.tiles[0] == sums.tiles[0] && sums.warps[1] == 1;
  const ThreadValue& l = s.placement.layout_of(left.shape);
  return alike && own.warps[1] == 1 && left.shape[1] % 16 == 0 && !l.has_holes(1) &&
         l == matrix_layout(left.shape, s.placement.threads() / 32, true);
}

void keep_panel(State& s, ValueId v, Writer& out) {
  if (!s.placement.operands().bases().contains(v)) return;
  bool wanted = false;
  walk(s.program(), [&](const Op& op) {
    if (op.code != Opcode::dot || s.placement.unit(op) == DotUnit::plain) return;
    for (size_t which = 0; which < 2; ++which) {
      const bool reads = operand_of(s.c, op, which).base == v;
      wanted = wanted || (reads && (which == 1 || !left_in_registers(s, op)));
    }
  });
  if (!wanted || (!s.placement.in_panel_only(v) && !s.placement.used_deeper(v))) return;
  const PanelMemory m = reserve_panel(s, v, 1, out);
  emit_panel(s, v, m, out);
  s.panels[v] = m;
}

}  // namespace tw::cuda
