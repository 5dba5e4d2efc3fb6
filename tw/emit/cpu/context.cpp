#include "tw/emit/cpu/context.h"

#include <algorithm>
#include <fmt/format.h>
#include <numeric>
#include <set>

#include "tw/base/round.h"

namespace tw::cpu {
namespace {

void record(const Region& r, std::vector<const Op*>& def) {
  for (const Op& op : r.ops) {
    for (const ValueId v : op.out) def[v] = &op;
    for (const Region& inner : op.regions) record(inner, def);
  }
}

/// Facts with every range bounded, as calls are checked to be, and of the dims that are whole runs
/// of 16 bytes of a tensor.
Facts known_facts(const Program& p, const Specialisation& of) {
  Facts facts = facts_of(p);
  const auto bound = [&](Symbol s, int64_t least) {
    Interval& range = facts[s].range;
    range = {std::max(range.lo, least), std::min(range.hi, kMaxIndex)};
  };
  for (size_t k = 0; k < p.dims.size(); ++k) bound({SymbolKind::dim, static_cast<int>(k)}, 0);
  for (size_t k = 0; k < p.grid.size(); ++k) bound({SymbolKind::pid, static_cast<int>(k)}, 0);
  for (int k = 0; k < p.loops; ++k) bound({SymbolKind::loop, k}, -kMaxIndex);
  for (size_t k = 0; k < of.params.size(); ++k) {
    if (!of.params[k].whole) continue;
    const Expr& extent = p.params[k].dims[of.params[k].unit_axis];
    if (extent.kind() != Expr::Kind::symbol) continue;
    int64_t& unit = facts[extent.symbol()].multiple_of;
    unit = std::lcm(unit, int64_t{128} / bits(p.params[k].dtype));
  }
  return facts;
}

/// Whether an op on the way to v, which the nest of v computes, is costly.
bool takes_long(const Context& c, ValueId v, std::set<ValueId>& seen) {
  const Op* op = c.def[v];
  if (op == nullptr || op->code == Opcode::keep || !seen.insert(v).second) return false;
  return is_costly(op->code) ||
         std::ranges::any_of(op->in, [&](ValueId x) { return takes_long(c, x, seen); });
}

/// The last store of the region, and what stands before it.
void find_prefetch(const Context& c, const Region& r, Context::Prefetch& found) {
  const Op* longest = nullptr;
  for (const Op& op : r.ops) {
    for (const Region& inner : op.regions) find_prefetch(c, inner, found);
    std::set<ValueId> seen;
    if (op.code == Opcode::keep && takes_long(c, op.in[0], seen)) longest = &op;
    if (op.code != Opcode::store) continue;
    found = {&op.as<ViewAttr>().view, op.in[0], false};
    const Extents& shape = c.program.type(op.in[0]).shape;
    if (longest != nullptr && c.program.type(longest->in[0]).shape == shape) {
      found.value = longest->in[0];
      found.kept = true;
    }
  }
}

/// Scratch is contiguous.
Specialisation with_scratch(const Program& p, Specialisation s) {
  for (const Param& a : std::span(p.params).subspan(s.params.size())) {
    const int rank = static_cast<int>(a.dims.size());
    s.params.push_back({.dtype = a.dtype, .rank = rank, .unit_axis = rank - 1});
  }
  return s;
}

const char* const kReserved[] = {"args", "ctx",  "lo",  "hi",  "scratch", "min",  "max",
                                 "mod",  "cdiv", "int", "for", "if",      "data", "dims"};

}  // namespace

Context::Context(const Program& p, const Specialisation& s, const CpuMachine& m, const Mapping& map)
    : program(p),
      specialisation(with_scratch(p, s)),
      machine(m),
      mapping(map),
      facts(known_facts(p, specialisation)),
      prelude(m) {
  def.resize(p.values.size());
  record(p.body, def);
  find_prefetch(*this, p.body, prefetch);
  for (const char* word : kReserved) names[word] = 1;
  for (const Dim& d : p.dims) names[d.name] = 1;
  for (const Param& a : p.params) {
    names[a.name] = 1;
    for (size_t axis = 0; axis < a.dims.size(); ++axis)
      names[fmt::format("{}_s{}", a.name, axis)] = 1;
  }
  for (size_t axis = 0; axis < p.grid.size(); ++axis) names[fmt::format("pid{}", axis)] = 1;
  for (size_t k = arguments(p).size(); k < p.params.size(); ++k) {
    scratch_at[static_cast<int>(k)] = scratch;
    scratch += round_up(scratch_bytes(p.params[k]) + machine.vector_bytes, kAlign);
  }
  scratch_most = scratch;
  for (int i = 0; i < p.loops; ++i) loop_names[i] = fresh(fmt::format("i{}", i));
}

std::string Context::fresh(const std::string& wish) {
  const int n = ++names[wish];
  return n == 1 ? wish : fresh(fmt::format("{}_{}", wish, n));
}

std::string Context::name_of(ValueId v) {
  std::string wish = program.values[v].name;
  std::replace_if(
      wish.begin(), wish.end(), [](unsigned char c) { return !std::isalnum(c); }, '_');
  if (wish.empty() || std::isdigit(static_cast<unsigned char>(wish[0]))) {
    wish = def[v] ? info(def[v]->code).name : "carried";
  }
  if (def[v] && def[v]->code == Opcode::keep && program.values[v].name.empty()) {
    return name_of(def[v]->in[0]);
  }
  return fresh("v_" + wish);
}

Symbol Context::new_loop(const std::string& name, int64_t extent) {
  return new_symbol(fresh(name), SymbolFact{{0, extent - 1}, 1});
}

Symbol Context::new_symbol(const std::string& text, const SymbolFact& fact) {
  const int id = program.loops + static_cast<int>(loop_names.size());
  loop_names[id] = text;
  const Symbol s{SymbolKind::loop, id};
  facts[s] = fact;
  return s;
}

std::string Context::symbol_text(Symbol s) const {
  if (s.kind == SymbolKind::loop) return loop_names.at(s.id);
  return symbol_name(program, s);
}

std::string Context::text(const Expr& e) const {
  return to_string(e, [this](Symbol s) { return symbol_text(s); });
}

const Storage& Context::reserve(ValueId v, Writer& out) {
  const Type& type = program.type(v);
  Storage& s = storage[v];
  s = {name_of(v), type};
  const DType reg = type.dtype == b1 ? u8 : register_type(type.dtype);
  if (s.variable()) {
    out.line(fmt::format("{} {};", prelude.type(register_type(type.dtype)), s.name));
    return s;
  }
  // One vector of slack: whole vectors may be read past the last element.
  const int64_t size = round_up(count(type.shape) * bytes(reg) + machine.vector_bytes, kAlign);
  const std::string element = prelude.type(reg);
  out.line(fmt::format("{0}* const {1} = ({0}*)((char*)scratch + {2});  // {3}", element, s.name,
                       scratch, to_string(type)));
  scratch += size;
  scratch_most = std::max(scratch_most, scratch);
  return s;
}

bool Context::streams(int param) const {
  const Param& p = program.params[param];
  if (!specialisation.streaming || p.kind != ParamKind::out || is_packed(p.dtype)) return false;
  bool read = false;
  walk(program, [&](const Op& op) {
    const View* view = view_of(op);
    read = read || (view && op.code != Opcode::store && view->param == param);
  });
  return !read && prelude.has_stream();
}

Expr without(const Expr& e, Symbol s) {
  return substitute(e, [&](Symbol other) -> std::optional<Expr> {
    return other == s ? std::optional<Expr>(0) : std::nullopt;
  });
}

std::optional<int64_t> slope(const Expr& e, Symbol s, const Facts& facts) {
  if (!mentions(e, s)) return 0;
  const Expr next = substitute(e, [&](Symbol other) -> std::optional<Expr> {
    if (other == s) return Expr::symbol(s.kind, s.id) + 1;
    return std::nullopt;
  });
  const Expr step = simplify(next - e, facts);
  if (!step.is_constant()) return std::nullopt;
  return step.constant();
}

}  // namespace tw::cpu
