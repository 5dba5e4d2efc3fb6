#include "tw/ir/program.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <numeric>

namespace tw {
namespace {

constexpr OpInfo kOps[] = {
#define TW_OP(name, operands, results, effect, attribute, sentence) \
  {#name, operands, results, Effect::effect, #attribute, sentence},
#include "tw/ir/ops.def"
#undef TW_OP
};

// The names of the table without the underscore that C++ keywords need: shared by all calls of
// info(), filled once.
struct OpTable {
  std::string names[kOpcodeCount];
  OpInfo infos[kOpcodeCount];
  OpTable() {
    for (int i = 0; i < kOpcodeCount; ++i) {
      names[i] = kOps[i].name;
      if (names[i].back() == '_') names[i].pop_back();
      infos[i] = kOps[i];
      infos[i].name = names[i].c_str();
    }
  }
};

SymbolFact fact_of_pid(const Expr& extent, const Facts& facts) {
  const Interval b = bounds(extent, facts);
  SymbolFact f;
  f.range = {0, b.hi == Interval::kMax ? b.hi : std::max<int64_t>(b.hi - 1, 0)};
  f.below = extent;
  return f;
}

// Calls visit(op) on the ops of r depth first; Op is const or not, as Region is.
template <class R, class Visit>
void walk_region(R& r, const Visit& visit) {
  for (auto& op : r.ops) {
    visit(op);
    for (auto& inner : op.regions) walk_region(inner, visit);
  }
}

// Calls f on each expression of an attribute; Attr is const or not, as f wants.
template <class Attr, class F>
void each_expr(Attr& attr, const F& f) {
  if (auto* view = std::get_if<ViewAttr>(&attr))
    for (auto& e : view->view.origin) f(e);
  if (auto* place = std::get_if<PlaceAttr>(&attr))
    for (auto& e : place->view.origin) f(e);
  if (auto* atomic = std::get_if<AtomicAttr>(&attr))
    for (auto& e : atomic->view.origin) f(e);
  if (auto* index = std::get_if<IndexAttr>(&attr)) f(index->value);
  if (auto* cast = std::get_if<CastAttr>(&attr)) f(cast->seed);
  if (auto* loop = std::get_if<LoopAttr>(&attr)) {
    f(loop->lo);
    f(loop->hi);
    f(loop->step);
  }
  if (auto* contract = std::get_if<ContractAttr>(&attr)) {
    f(contract->rows);
    f(contract->cols);
    f(contract->depth);
  }
  if (auto* cond = std::get_if<CondAttr>(&attr)) {
    f(cond->a);
    f(cond->b);
  }
}

}  // namespace

bool Number::operator==(const Number& o) const {
  if (integral != o.integral) return false;
  if (integral) return i == o.i;
  if (std::isnan(f) || std::isnan(o.f)) return std::isnan(f) && std::isnan(o.f);
  return f == o.f && std::signbit(f) == std::signbit(o.f);
}

const OpInfo& info(Opcode code) {
  static const OpTable table;
  return table.infos[static_cast<size_t>(code)];
}

ValueId Program::new_value(Type type, SourceLoc at, std::string name) {
  values.push_back({std::move(type), at, std::move(name)});
  return static_cast<ValueId>(values.size() - 1);
}

Effect effect(const Program& p, const Op& op) {
  const Effect effect = info(op.code).effect;
  if (effect != Effect::read) return effect;
  const auto param = static_cast<size_t>(view_of(op)->param);
  return p.params[param].kind == ParamKind::in ? Effect::pure : effect;
}

const View* view_of(const Op& op) {
  if (const auto* view = std::get_if<ViewAttr>(&op.attr)) return &view->view;
  if (const auto* place = std::get_if<PlaceAttr>(&op.attr)) return &place->view;
  if (const auto* atomic = std::get_if<AtomicAttr>(&op.attr)) return &atomic->view;
  return nullptr;
}

View* view_of(Op& op) { return const_cast<View*>(view_of(static_cast<const Op&>(op))); }

PlaceOperands place_operands(const Op& op) {
  const auto* atomic = std::get_if<AtomicAttr>(&op.attr);
  const bool masked = atomic ? atomic->masked : op.as<PlaceAttr>().masked;
  const auto axes = static_cast<std::ptrdiff_t>(view_of(op)->axes.size());
  PlaceOperands r;
  r.at.assign(op.in.begin(), op.in.begin() + axes);
  if (op.code != Opcode::gather) r.value = op.in[static_cast<size_t>(axes)];
  if (atomic && atomic->op == AtomicOp::cas) r.expected = op.in[static_cast<size_t>(axes) + 1];
  if (masked) r.mask = op.in.back();
  return r;
}

void walk(const Program& p, const std::function<void(const Op&)>& visit) {
  walk_region(p.body, visit);
}
void walk(Program& p, const std::function<void(Op&)>& visit) { walk_region(p.body, visit); }
void walk(Region& r, const std::function<void(Op&)>& visit) { walk_region(r, visit); }
void walk(const Region& r, const std::function<void(const Op&)>& visit) { walk_region(r, visit); }

void for_each_expr(const Op& op, const std::function<void(const Expr&)>& visit) {
  each_expr(op.attr, visit);
}
void map_exprs(Op& op, const std::function<Expr(const Expr&)>& f) {
  each_expr(op.attr, [&](Expr& e) { e = f(e); });
}

size_t given_dims(const Program& p) {
  return static_cast<size_t>(
      std::ranges::count_if(p.dims, [](const Dim& d) { return !d.chosen(); }));
}

/// Kinds are in the order in which parameters of them stand.
static std::span<const Param> parameters_before(const Program& p, ParamKind kind) {
  const auto n = std::ranges::count_if(p.params, [&](const Param& a) { return a.kind < kind; });
  return {p.params.data(), static_cast<size_t>(n)};
}

std::span<const Param> arguments(const Program& p) {
  return parameters_before(p, ParamKind::scratch);
}

std::span<const Param> given(const Program& p) {
  return parameters_before(p, ParamKind::workspace);
}

std::string symbol_name(const Program& p, Symbol s) {
  switch (s.kind) {
    case SymbolKind::dim:
      if (s.id >= 0 && static_cast<size_t>(s.id) < p.dims.size())
        return p.dims[static_cast<size_t>(s.id)].name;
      return fmt::format("dim{}?", s.id);
    case SymbolKind::pid:
      return fmt::format("pid{}", s.id);
    case SymbolKind::loop:
      return fmt::format("i{}", s.id);
  }
  return "?";
}

namespace {

/// Functions that are not correctly rounded, with their errors in units of the last place. Those of
/// f64 are the greater of the C library's and of CUDA's.
struct Stated {
  Opcode code;
  double ulps, ulps_of_f64;
};
constexpr Stated kStated[] = {
    {Opcode::rsqrt, 2, 2},     {Opcode::exp, 1, 1},      {Opcode::exp2, 1, 1}, {Opcode::log, 1, 1},
    {Opcode::sin, 2, 2},       {Opcode::cos, 2, 2},      {Opcode::tanh, 2, 3}, {Opcode::erf, 2, 2},
    {Opcode::tanh_fast, 6, 3}, {Opcode::erf_fast, 6, 2},
};

}  // namespace

double stated_ulps(Opcode code, DType t) {
  for (const Stated& s : kStated) {
    if (s.code == code) return t == f64 ? s.ulps_of_f64 : s.ulps;
  }
  return 0;
}

ProductError product_error(Precision p) {
  // Rounding to nearest leaves 2^-11 of a factor, rounding toward zero 2^-10. Multiples of 2^-136
  // are the least.
  switch (p) {
    case Precision::ieee:
      return {};
    case Precision::tf32:
      return {0x1p-10 + 0x1p-22, 0x1p-126};
    case Precision::tf32x3:  // small parts' product, and roundings of small parts
      return {0x1p-20 + 2 * 0x1p-21, 0x1p-116};
  }
  return {};
}

bool is_costly(Opcode code) {
  return code == Opcode::div || code == Opcode::rem || code == Opcode::sqrt ||
         code == Opcode::philox || stated_ulps(code, f32) > 0;
}

bool is_loop(Opcode code) { return code == Opcode::for_ || code == Opcode::while_; }

bool is_fold(Opcode code) { return code == Opcode::reduce || code == Opcode::scan; }

const ReduceAttr& fold_of(const Op& op) {
  return op.code == Opcode::scan ? op.as<ScanAttr>().fold : op.as<ReduceAttr>();
}

bool is_short_reduction(const Program& p, const Op& op) {
  if (op.code != Opcode::reduce || op.as<ReduceAttr>().combiner == Combiner::custom) return false;
  return p.type(op.in[0]).shape[op.as<ReduceAttr>().axis] <= kShortReduction;
}

SymbolFact fact_of_loop(const LoopAttr& loop, const Facts& facts) {
  const Interval lo = bounds(loop.lo, facts), hi = bounds(loop.hi, facts);
  SymbolFact f;
  f.range.lo = lo.lo;
  f.range.hi = hi.hi == Interval::kMax ? hi.hi : std::max(hi.hi - 1, lo.lo);
  f.multiple_of = std::gcd(divisor(loop.lo, facts), divisor(loop.step, facts));
  if (f.multiple_of == 0) f.multiple_of = 1;
  f.from = loop.lo;
  f.below = loop.hi;
  return f;
}

bool is_extent(const Expr& e) {
  if (e.is_constant()) return e.constant() >= 0;
  if (e.kind() == Expr::Kind::symbol) return true;
  if (e.kind() != Expr::Kind::floordiv || !e.rhs().is_constant() || e.rhs().constant() < 1)
    return false;
  const Expr& sum = e.lhs();
  return sum.kind() == Expr::Kind::add && sum.lhs().kind() == Expr::Kind::symbol &&
         sum.rhs() == Expr(e.rhs().constant() - 1);
}

Facts facts_of(const Program& p, std::span<const Interval> dims) {
  Facts facts;
  for (size_t d = 0; d < p.dims.size(); ++d) {
    const Dim& dim = p.dims[d];
    Interval range = dims.empty() ? Interval{0, Interval::kMax} : dims[d];
    if (dim.chosen()) range = {1, dim.at_most};
    facts[{SymbolKind::dim, static_cast<int>(d)}] = {range, dim.multiple_of};
  }
  for (size_t axis = 0; axis < p.grid.size(); ++axis)
    facts[{SymbolKind::pid, static_cast<int>(axis)}] = fact_of_pid(p.grid[axis], facts);
  walk(p, [&](const Op& op) {
    if (op.code != Opcode::for_) return;
    const auto& loop = op.as<LoopAttr>();
    facts[{SymbolKind::loop, loop.loop}] = fact_of_loop(loop, facts);
  });
  return facts;
}

}  // namespace tw
