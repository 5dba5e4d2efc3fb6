#include "tw/emit/cuda/nest.h"

#include <algorithm>
#include <fmt/format.h>

#include "tw/emit/cpu/op_table.h"
#include "tw/emit/cuda/statements.h"

namespace tw::cuda {

using layout::ThreadValue;

Nest::Nest(State& s, const ThreadValue& l, std::vector<size_t> inner, std::vector<size_t> skipped)
    : s_(s), layout_(l), e_(s.c) {
  const size_t modes = l.values.size();
  for (size_t a = 0; a < l.tile.size(); ++a) at_.push_back(s.base(l, a));
  digits_.assign(modes, 0);
  loop_of_.assign(modes, -1);
  std::vector<size_t> order;
  for (size_t m = modes; m-- > 0;) {
    const auto named = [m](const std::vector<size_t>& in) {
      return std::ranges::find(in, m) != in.end();
    };
    if (!named(inner) && !named(skipped)) order.push_back(m);
  }
  order.insert(order.end(), inner.begin(), inner.end());
  const bool unroll = l.registers() <= kMostRegisters;
  for (const size_t m : order) {
    const ThreadValue::Mode& mode = l.values[m];
    loop_of_[m] = e_.loop_count();
    const Expr counter = add_loop("r", mode.extent, unroll);
    digits_[m] = counter;
    at_[mode.axis] = at_[mode.axis] + counter * mode.stride;
  }
  for (Expr& e : at_) e = simplify(e, s.c.facts);
  conditions_.resize(loops_.size() + 1);
  for (const auto& [v, tile] : s.tiles) bind(v, tile);
  for (const ValueId v : s.late) {
    e_.bind(v, [this, v](const Coords& coords) { return read_late(v, coords); });
  }
}

Expr Nest::add_loop(const std::string& name, int64_t extent, bool unroll) {
  const Symbol counter = s_.c.new_loop(name, extent);
  e_.add_loop(counter);
  loops_.push_back({s_.c.symbol_text(counter), extent, unroll});
  conditions_.resize(loops_.size() + 1);
  return Expr::symbol(counter);
}

void Nest::bind(ValueId v, const Tile& t) {
  e_.bind(v, [this, v, &t](const Coords& coords) { return read(v, t, coords); });
}

std::optional<std::vector<int>> Nest::axes_of(const Extents& shape, const ThreadValue& l,
                                              const Coords& coords) const {
  std::vector<int> of;
  for (size_t a = 0; a < coords.size(); ++a) {
    of.push_back(-1);
    if (shape[a] == 1) continue;
    for (size_t b = 0; b < at_.size() && of[a] < 0; ++b) {
      if (at_[b] == coords[a] && layout_.tile[b] == shape[a]) of[a] = static_cast<int>(b);
    }
    if (of[a] < 0) return std::nullopt;
  }
  return layout::renamed(layout_, of, shape) == l ? std::optional(of) : std::nullopt;
}

/// Its runs lie along the innermost loop, or the value is wanted at once.
Reg Nest::read_late(ValueId v, const Coords& coords) {
  const Type& type = s_.program().type(v);
  const auto of = axes_of(type.shape, s_.placement.layout_of(type.shape), coords);
  const bool along = of && !layout_.values.empty() && loop_of_[0] == e_.loop_count() - 1 &&
                     std::ranges::find(*of, layout_.values[0].axis) != of->end();
  if (!along) {
    s_.scatter(v);
    return e_.literal(type.dtype, Number{});
  }
  if (!late_.contains(v)) {
    Coords first = coords;
    for (Expr& e : first) {
      e = simplify(substitute(e,
                              [&](Symbol x) {
                                return Expr::symbol(x) == digits_[0] ? std::optional(Expr(0))
                                                                     : std::nullopt;
                              }),
                   s_.c.facts);
    }
    late_[v] = cuda::read_late(s_, e_, *s_.c.def[v], first);
  }
  return late_.at(v)(digits_[0]);
}

Reg Nest::read(ValueId v, const Tile& t, const Coords& coords) {
  if (const auto of = axes_of(t.type.shape, t.layout, coords)) {
    uint32_t loops = 0;
    for (size_t m = 0; m < layout_.values.size(); ++m) {
      const bool used = std::ranges::find(*of, layout_.values[m].axis) != of->end();
      if (used && loop_of_[m] >= 0) loops |= 1u << loop_of_[m];
    }
    return Reg{place_of(t, *of), t.type.dtype, 1, loops, 0};
  }
  const auto memory = s_.c.storage.find(v);
  if (memory != s_.c.storage.end()) {
    s_.drafted.reads.push_back(s_.memory_of.at(v));
    return e_.load_stored(memory->second, coords);
  }
  s_.scatter(v);
  return e_.literal(t.type.dtype, Number{});
}

std::string Nest::place_of(const Tile& t, const std::vector<int>& of) const {
  return t.variable() ? t.name : fmt::format("{}[{}]", t.name, s_.c.text(index_of(of)));
}

Expr Nest::index_of(const std::vector<int>& of) const {
  Expr index = 0;
  int64_t step = 1;
  for (size_t m = 0; m < layout_.values.size(); ++m) {
    const ThreadValue::Mode& mode = layout_.values[m];
    if (std::ranges::find(of, mode.axis) == of.end()) continue;
    index = digits_[m] * step + index;
    step *= mode.extent;
  }
  return simplify(index, s_.c.facts);
}

static std::vector<int> own_axes(const Tile& t) {
  std::vector<int> of;
  for (size_t a = 0; a < t.type.shape.size(); ++a)
    of.push_back(t.type.shape[a] == 1 ? -1 : static_cast<int>(a));
  return of;
}

std::string Nest::place(const Tile& t) const { return place_of(t, own_axes(t)); }

Expr Nest::index(const Tile& t) const { return index_of(own_axes(t)); }

Reg Nest::computed(const Op& op) { return cpu::expression_of(op)(e_, op, at_); }

int Nest::depth_of(const Expr& e) const {
  const uint32_t loops = e_.loops_of(e);
  int depth = 0;
  for (int k = 0; k < e_.loop_count(); ++k) {
    if (loops >> k & 1) depth = k + 1;
  }
  return depth;
}

void Nest::require(int depth, const std::string& condition) {
  std::string& all = conditions_[depth];
  if (condition.empty()) return;
  all += (all.empty() ? "" : " && ") + condition;
}

void Nest::guard() {
  for (size_t a = 0; a < at_.size(); ++a) {
    if (!layout_.has_holes(a)) continue;
    require(depth_of(at_[a]), fmt::format("{} < {}", s_.c.text(at_[a]), layout_.tile[a]));
  }
}

void Nest::emit(Writer& out) {
  int opened = 0;
  for (size_t depth = 0; depth <= loops_.size(); ++depth) {
    if (depth > 0) {
      const Loop& l = loops_[depth - 1];
      if (l.unroll) out.line("#pragma unroll");
      out.open(fmt::format("for (int {0} = 0; {0} < {1}; ++{0}) {{", l.counter, l.extent));
      ++opened;
    }
    if (!conditions_[depth].empty()) {
      out.open(fmt::format("if ({}) {{", conditions_[depth]));
      ++opened;
    }
    out.append(e_.body(static_cast<int>(depth)));
  }
  for (; opened > 0; --opened) out.close();
}

void bind_memory(State& s, Expression& e) {
  for (const auto& [v, tile] : s.tiles) {
    const ValueId value = v;
    e.bind(value, [&s, &e, value](const Coords& coords) {
      const Tile& t = s.tiles.at(value);
      if (count(t.type.shape) == 1) return Reg{t.name, t.type.dtype, 1, 0, 0};
      const auto memory = s.c.storage.find(value);
      if (memory != s.c.storage.end()) {
        s.drafted.reads.push_back(s.memory_of.at(value));
        return e.load_stored(memory->second, coords);
      }
      s.scatter(value);
      return e.literal(t.type.dtype, Number{});
    });
  }
}

/// e where the simplifier got rid of all divisions, else "(index) OPERATION n".
static std::string divided(const State& s, const Expr& e, const Expr& index, char operation,
                           int64_t n) {
  const std::string text = s.c.text(e);
  if (text.find("floordiv") == std::string::npos && text.find("mod") == std::string::npos)
    return text;
  return fmt::format("({}) {} {}", s.c.text(index), operation, n);
}

std::string quotient(const State& s, const Expr& index, int64_t n) {
  return divided(s, simplify(floordiv(index, n), s.c.facts), index, '/', n);
}

std::string remainder(const State& s, const Expr& index, int64_t n) {
  return divided(s, simplify(mod(index, n), s.c.facts), index, '%', n);
}

std::string in_packs(const State& s, const std::string& name, const Expr& index, int64_t n) {
  return fmt::format("{}[{}].v[{}]", name, quotient(s, index, n), remainder(s, index, n));
}

void write_register(Nest& n, const Reg& r, const Tile& target) {
  Expression& e = n.expression();
  e.body(e.depth()).line(fmt::format("{} = {};", n.place(target), r.text));
}

}  // namespace tw::cuda
