#include "tw/ir/impl/rules.h"

#include <algorithm>
#include <fmt/format.h>
#include <set>

#include "tw/base/error.h"
#include "tw/ir/infer.h"
#include "tw/ir/print.h"

namespace tw {
namespace {

[[noreturn]] void fail(SourceLoc at, std::string what) { throw Violation{at, std::move(what)}; }

bool in_range(int id, size_t size) { return id >= 0 && static_cast<size_t>(id) < size; }

// ---- rules about the whole program; each trusts those before it

void names(const Program& p) {
  auto check = [](SourceLoc at, const char* what, const std::string& name) {
    if (!is_identifier(name)) fail(at, fmt::format("{} '{}' is no identifier", what, name));
  };
  check({}, "program name", p.name);
  std::set<std::string> dims, params;
  for (const Dim& d : p.dims) {
    check({}, "dim", d.name);
    if (is_symbol_word(d.name))
      fail(SourceLoc{}, fmt::format("dim '{}' has a reserved name", d.name));
    if (!dims.insert(d.name).second)
      fail(SourceLoc{}, fmt::format("two dims are named '{}'", d.name));
    if (d.multiple_of < 1)
      fail(SourceLoc{}, fmt::format("dim '{}' is a multiple of {}", d.name, d.multiple_of));
    if (d.at_most < 0) fail(SourceLoc{}, fmt::format("dim '{}' is at most {}", d.name, d.at_most));
  }
  for (const Param& a : p.params) {
    check(a.at, "parameter", a.name);
    if (!params.insert(a.name).second)
      fail(a.at, fmt::format("two parameters are named '{}'", a.name));
  }
  for (const Value& v : p.values)
    if (!v.name.empty()) check(v.at, "value name", v.name);
}

void check_host_expr(const Program& p, const Expr& e, SourceLoc at, const std::string& what) {
  for_each_symbol(e, [&](Symbol s) {
    if (s.kind != SymbolKind::dim)
      fail(at, fmt::format("{} is not known at launch: it uses {}", what, symbol_name(p, s)));
    if (!in_range(s.id, p.dims.size())) fail(at, fmt::format("{} uses unknown dim {}", what, s.id));
  });
}

void chosen_dims(const Program& p) {
  if (!std::ranges::is_partitioned(p.dims, [](const Dim& d) { return !d.chosen(); }))
    fail(SourceLoc{}, "dims that are chosen stand before dims that a call gives");
}

void parameters_in_order(const Program& p) {
  for (const ParamKind kind : {ParamKind::workspace, ParamKind::scratch})
    if (!std::ranges::is_partitioned(p.params, [&](const Param& a) { return a.kind < kind; }))
      fail(SourceLoc{}, "parameters that a call gives come first, then workspace, then scratch");
}

void workspace_parameters(const Program& p) {
  for (const Param& a : p.params)
    if (a.kind == ParamKind::workspace && is_packed(a.dtype))
      fail(a.at, fmt::format("workspace '{}' holds elements of less than a byte", a.name));
}

void check_ticket(const Program& p) {
  if (!p.ticket) return;
  if (!in_range(*p.ticket, p.params.size()))
    fail(SourceLoc{}, fmt::format("parameter {} of the ticket is out of range", *p.ticket));
  const Param& a = p.params[static_cast<size_t>(*p.ticket)];
  if (a.kind != ParamKind::workspace || a.dtype != u64 || a.dims.size() != 1 ||
      !a.dims[0].is_constant() || a.dims[0].constant() != 1)
    fail(a.at, fmt::format("'{}' counts instances: wanted workspace u64[1]", a.name));
  walk(p, [&](const Op& op) {
    const View* view = view_of(op);
    if (view && view->param == *p.ticket)
      fail(op.at,
           fmt::format("'{}' touches '{}', which counts instances", info(op.code).name, a.name));
  });
}

void scratch_parameters(const Program& p) {
  int64_t bytes = 0;
  for (const Param& a : p.params) {
    if (a.kind != ParamKind::scratch) continue;
    Type t{a.dtype, {}};
    for (const Expr& e : a.dims) {
      if (!e.is_constant()) fail(a.at, fmt::format("an extent of scratch '{}' is a dim", a.name));
      t.shape.push_back(e.constant());
    }
    bytes += check_scratch(t, bytes, a.at);
  }
}

void parameters(const Program& p) {
  for (const Param& a : p.params) {
    if (static_cast<int>(a.dtype) >= kDTypeCount)
      fail(a.at, fmt::format("parameter '{}' has an unknown dtype", a.name));
    if (a.dims.size() > kMaxRank)
      fail(a.at, fmt::format("parameter '{}' has {} axes, more than {}", a.name, a.dims.size(),
                             kMaxRank));
    for (const Expr& e : a.dims) {
      if (!is_extent(e))
        fail(a.at, fmt::format("extents of parameter '{}' must be dims or constants >= 0, or dims "
                               "divided by a constant with cdiv",
                               a.name));
      check_host_expr(p, e, a.at, fmt::format("parameter '{}'", a.name));
      for_each_symbol(e, [&](Symbol s) {
        if (p.dims[s.id].chosen())
          fail(a.at, fmt::format("an extent of parameter '{}' is chosen", a.name));
      });
    }
  }
  parameters_in_order(p);
  workspace_parameters(p);
  scratch_parameters(p);
}

void grid(const Program& p) {
  if (p.grid.empty() || p.grid.size() > 3)
    fail(SourceLoc{}, fmt::format("the grid has {} axes, not 1 to 3", p.grid.size()));
  for (const Expr& e : p.grid) check_host_expr(p, e, {}, "the grid");
  check_ticket(p);
}

void check_ids(const Program& p, const std::vector<ValueId>& ids, SourceLoc at) {
  for (ValueId v : ids)
    if (v >= p.values.size()) fail(at, fmt::format("value id {} is out of range", v));
}

bool attribute_fits(const Op& op) {
  switch (op.code) {
#define TW_OP(name, operands, results, effect, attribute, sentence) \
  case Opcode::name:                                                \
    return std::holds_alternative<attribute##Attr>(op.attr);
#include "tw/ir/ops.def"
#undef TW_OP
  }
  return false;
}

size_t regions_of(const Op& op) {
  if (is_loop(op.code) || op.code == Opcode::par) return 1;
  if (op.code == Opcode::if_) return 2;
  if (op.code == Opcode::contract) return 3;
  return is_fold(op.code) && fold_of(op).combiner == Combiner::custom ? 1 : 0;
}

void check_shape_of(const Program& p, const Op& op) {
  if (static_cast<int>(op.code) >= kOpcodeCount)
    fail(op.at, fmt::format("unknown opcode {}", static_cast<int>(op.code)));
  const OpInfo& i = info(op.code);
  if (!attribute_fits(op)) fail(op.at, fmt::format("'{}' needs {}Attr", i.name, i.attribute));
  if (i.operands != kMany && op.in.size() != static_cast<size_t>(i.operands))
    fail(op.at, fmt::format("'{}' has {} operands, not {}", i.name, op.in.size(), i.operands));
  if (i.results != kMany && op.out.size() != static_cast<size_t>(i.results))
    fail(op.at, fmt::format("'{}' has {} results, not {}", i.name, op.out.size(), i.results));
  if (op.regions.size() != regions_of(op))
    fail(op.at,
         fmt::format("'{}' has {} regions, not {}", i.name, op.regions.size(), regions_of(op)));
  check_ids(p, op.in, op.at);
  check_ids(p, op.out, op.at);
  for (const Region& r : op.regions) {
    check_ids(p, r.args, op.at);
    check_ids(p, r.yields, op.at);
  }
}

void structure(const Program& p) {
  if (!p.body.args.empty() || !p.body.yields.empty())
    fail(SourceLoc{}, "the body of a program has no arguments and yields nothing");
  walk(p, [&](const Op& op) { check_shape_of(p, op); });
}

// One definition per value; uses dominated; a combiner region sees only its own values.
class Definitions {
 public:
  explicit Definitions(const Program& p)
      : defined_(p.values.size(), false), visible_(p.values.size(), false) {}

  void region(const Region& r, SourceLoc at) {
    std::vector<ValueId> here;
    for (ValueId v : r.args) define(v, at, here);
    for (const Op& op : r.ops) {
      for (ValueId v : op.in) use(v, op.at);
      for (const Region& inner : op.regions) {
        if (is_fold(op.code))
          closed_region(inner, op.at);
        else
          region(inner, op.at);
      }
      for (ValueId v : op.out) define(v, op.at, here);
    }
    for (ValueId v : r.yields) use(v, at);
    for (ValueId v : here) visible_[v] = false;
  }

 private:
  void closed_region(const Region& r, SourceLoc at) {
    std::vector<bool> outside(visible_.size(), false);
    std::swap(outside, visible_);
    region(r, at);
    std::swap(outside, visible_);
  }
  void define(ValueId v, SourceLoc at, std::vector<ValueId>& here) {
    if (defined_[v]) fail(at, fmt::format("value id {} is defined twice", v));
    defined_[v] = visible_[v] = true;
    here.push_back(v);
  }
  void use(ValueId v, SourceLoc at) {
    if (!visible_[v])
      fail(at, fmt::format("value id {} is used where its definition does not reach", v));
  }

  std::vector<bool> defined_, visible_;
};

void definitions(const Program& p) { Definitions(p).region(p.body, {}); }

void value_types(const Program& p) {
  for (const Value& v : p.values) {
    if (static_cast<int>(v.type.dtype) >= kDTypeCount)
      fail(v.at, fmt::format("unknown dtype {}", static_cast<int>(v.type.dtype)));
    check_type(v.type, v.at);
  }
}

// Expressions use symbols that exist and loops that enclose them; loop ids are unique.
class Scopes {
 public:
  explicit Scopes(const Program& p) : p_(p) {}

  void region(const Region& r) {
    for (const Op& op : r.ops) {
      for_each_expr(op, [&](const Expr& e) { expr(e, op.at); });
      const bool loops = op.code == Opcode::for_;
      if (loops) open(op.as<LoopAttr>().loop, op.at);
      for (const Region& inner : op.regions) region(inner);
      if (loops) enclosing_.erase(op.as<LoopAttr>().loop);
    }
  }

 private:
  void expr(const Expr& e, SourceLoc at) {
    for_each_symbol(e, [&](Symbol s) {
      if (!exists(s)) fail(at, fmt::format("{} is not in scope", symbol_name(p_, s)));
    });
  }
  bool exists(Symbol s) const {
    switch (s.kind) {
      case SymbolKind::dim:
        return in_range(s.id, p_.dims.size());
      case SymbolKind::pid:
        return in_range(s.id, p_.grid.size());
      case SymbolKind::loop:
        return enclosing_.count(s.id) > 0;
    }
    return false;
  }
  void open(int loop, SourceLoc at) {
    if (!in_range(loop, static_cast<size_t>(std::max(p_.loops, 0))))
      fail(at, fmt::format("loop id {} is not below {}", loop, p_.loops));
    if (!seen_.insert(loop).second) fail(at, fmt::format("two loops have id {}", loop));
    enclosing_.insert(loop);
  }

  const Program& p_;
  std::set<int> enclosing_, seen_;
};

void symbols(const Program& p) { Scopes(p).region(p.body); }

constexpr void (*kProgramRules[])(const Program&) = {names,     chosen_dims, parameters,  grid,
                                                     structure, definitions, value_types, symbols};

}  // namespace

bool is_identifier(const std::string& s) {
  auto letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; };
  auto digit = [](char c) { return c >= '0' && c <= '9'; };
  return !s.empty() && letter(s[0]) &&
         std::all_of(s.begin(), s.end(), [&](char c) { return letter(c) || digit(c); });
}

bool is_symbol_word(const std::string& s) {
  const size_t prefix = s.rfind("pid", 0) == 0 ? 3 : s.rfind("i", 0) == 0 ? 1 : 0;
  return prefix > 0 && s.size() > prefix &&
         s.find_first_not_of("0123456789", prefix) == std::string::npos;
}

std::optional<Violation> first_violation(const Program& p) {
  try {
    for (auto* rule : kProgramRules) rule(p);
    const Facts facts = facts_of(p);
    bool lowered = false;
    walk(p, [&](const Op& op) { lowered = lowered || op.code == Opcode::contract; });
    walk(p, [&](const Op& op) {
      check_op(p, facts, op);
      // A contraction stores parts of a view, one after the other.
      if (op.code == Opcode::store && !lowered)
        check_packed_store(p, op.as<ViewAttr>().view, facts, op.at);
    });
  } catch (const Violation& v) {
    return v;
  } catch (const UserError& e) {
    return Violation{e.at(), e.hint().empty() ? e.message() : e.message() + "; " + e.hint()};
  }
  return std::nullopt;
}

}  // namespace tw
