#include "tw/passes/fuse_contraction.h"

#include <algorithm>
#include <set>

#include "tw/passes/impl/pointwise.h"

namespace tw {
namespace {

/// A sum of products of tiles: a loop around a dot, or a dot alone.
struct Sum {
  const Op* dot = nullptr;
  std::optional<LoopAttr> loop;
  ValueId init = 0, result = 0;
  int64_t rows = 0, cols = 0, k = 0;  ///< tile extents
};

std::optional<Sum> sum_of(const Program& p, const Op& op) {
  Sum s;
  if (op.code == Opcode::dot) {
    s.dot = &op;
    s.init = op.in[2];
    s.result = op.out[0];
  } else if (op.code == Opcode::for_ && op.in.size() == 1) {
    const Region& body = op.regions[0];
    for (const Op& inner : body.ops) {
      const bool last = inner.code == Opcode::dot && inner.out[0] == body.yields[0];
      if (last && inner.in[2] == body.args[0]) s.dot = &inner;
      if (!last && !is_pointwise(p, inner)) return std::nullopt;
    }
    s.loop = op.as<LoopAttr>();
    s.init = op.in[0];
    s.result = op.out[0];
  }
  if (!s.dot) return std::nullopt;
  s.rows = p.type(s.dot->in[0]).shape[0];
  s.k = p.type(s.dot->in[0]).shape[1];
  s.cols = p.type(s.dot->in[1]).shape[1];
  return s;
}

bool is_fused_type(DType operand, DType sum) {
  return (sum == f32 && is_float(operand) && operand != f64) || (sum == f64 && is_float(operand));
}

/// An operand of the dot as a region of its own.
struct Operand {
  Region region;
  std::vector<Span> kept, summed;  ///< spans along its free axis and along k
  bool zero = false;               ///< it is zero outside `summed`
};

/// Matches one sum of a region, and rewrites it.
class Fusion {
 public:
  Fusion(Program& p, Region& region, size_t at)
      : p_(p), region_(region), at_(at), definitions_(p), facts_(facts_of(p)) {}

  bool run() {
    const std::optional<Sum> sum = sum_of(p_, region_.ops[at_]);
    if (!sum || !is_fused_type(p_.type(sum->dot->in[0]).dtype, p_.type(sum->result).dtype))
      return false;
    sum_ = *sum;
    std::optional<Operand> a = operand(sum_.dot->in[0], 0, 1);
    std::optional<Operand> b = operand(sum_.dot->in[1], 1, 0);
    if (!a || !b) return false;
    const std::optional<Expr> depth = find_depth(*a, *b);
    if (!depth || !find_stores()) return false;
    const std::optional<Expr> rows = find_extent(0, sum_.rows, a->kept);
    const std::optional<Expr> cols = find_extent(1, sum_.cols, b->kept);
    if (!rows || !cols) return false;
    std::optional<Region> epilogue = make_epilogue();
    if (!epilogue) return false;
    replace({*rows, *cols, *depth, sum_.dot->as<DotAttr>().precision}, std::move(a->region),
            std::move(b->region), std::move(*epilogue));
    return true;
  }

 private:
  Expr simple(const Expr& e) const { return simplify(e, facts_); }
  bool same(const Expr& a, const Expr& b) const { return a == b || simple(a - b) == Expr(0); }
  bool same(const Span& a, const Span& b) const {
    return same(a.origin, b.origin) && same(a.dim, b.dim);
  }
  bool inside(const Expr& lo, const Expr& end, const Expr& dim) const {
    return prove_le(0, lo, facts_) && prove_le(end, dim, facts_);
  }

  Expr at_iteration(const Expr& e, const Expr& counter) const {
    return substitute(e, [&](Symbol s) -> std::optional<Expr> {
      if (s == Symbol{SymbolKind::loop, sum_.loop->loop}) return counter;
      return std::nullopt;
    });
  }
  bool mentions_loop(const Expr& e) const {
    return sum_.loop && mentions(e, {SymbolKind::loop, sum_.loop->loop});
  }

  std::optional<Operand> operand(ValueId v, int kept, int summed);
  bool walks_k(const Op& op, const std::vector<Span>& summed) const;
  std::optional<Expr> find_depth(const Operand& a, const Operand& b) const;
  std::optional<Expr> find_extent(int axis, int64_t tile, const std::vector<Span>& operand) const;
  bool find_stores();
  std::optional<Region> make_epilogue();
  void replace(ContractAttr attr, Region a, Region b, Region epilogue);

  Program& p_;
  Region& region_;
  size_t at_;
  Definitions definitions_;
  Facts facts_;
  Sum sum_;
  std::set<size_t> dependent_;     ///< ops of the region that use the sum
  std::vector<const Op*> stores_;  ///< those of them that store
};

/// The operand's ops at the first iteration. Later iterations must read what follows along k.
std::optional<Operand> Fusion::operand(ValueId v, int kept, int summed) {
  Slice slice(p_, definitions_);
  const std::optional<ValueId> copy = slice.add(v);
  if (!copy) return std::nullopt;
  const auto kept_spans = spans_along(p_, slice, *copy, kept);
  const auto summed_spans = spans_along(p_, slice, *copy, summed);
  if (!kept_spans || !summed_spans || summed_spans->empty()) return std::nullopt;
  Operand o{{}, *kept_spans, *summed_spans, zero_outside(p_, slice, *copy, summed)};
  o.region.ops = slice.take();
  o.region.yields = {*copy};
  if (!sum_.loop) return o;
  if (sum_.k == 1) return std::nullopt;  // an extent of 1 has no next element

  for (const Span& s : o.kept)
    if (mentions_loop(s.origin)) return std::nullopt;
  for (Op& op : o.region.ops) {
    if (!walks_k(op, o.summed)) return std::nullopt;
    if (op.code != Opcode::load) continue;
    for (Expr& e : op.as<ViewAttr>().view.origin) e = simple(at_iteration(e, sum_.loop->lo));
  }
  for (Span& s : o.summed) s.origin = simple(at_iteration(s.origin, sum_.loop->lo));
  return o;
}

/// True when the op depends on the loop only by the origin of a load along k, and each iteration
/// starts where the one before ended.
bool Fusion::walks_k(const Op& op, const std::vector<Span>& summed) const {
  const Symbol counter{SymbolKind::loop, sum_.loop->loop};
  if (op.code == Opcode::reshape) return false;  // counts elements of the first tile
  if (op.code == Opcode::index) return !mentions_loop(op.as<IndexAttr>().value);
  if (op.code == Opcode::cast) return !mentions_loop(op.as<CastAttr>().seed);
  if (op.code != Opcode::load) return true;
  const View& view = op.as<ViewAttr>().view;
  bool along_k = false;
  for (size_t axis = 0; axis < view.origin.size(); ++axis) {
    const Expr& origin = view.origin[axis];
    const Span span{origin, p_.params[view.param].dims[axis]};
    const bool in_tile =
        std::find(view.axes.begin(), view.axes.end(), static_cast<int>(axis)) != view.axes.end();
    const bool is_k = in_tile && std::find(summed.begin(), summed.end(), span) != summed.end();
    if (!is_k && mentions_loop(origin)) return false;
    if (!is_k) continue;
    const Expr next =
        at_iteration(origin, Expr::symbol(counter.kind, counter.id) + sum_.loop->step);
    if (simple(next - origin) != Expr(sum_.k)) return false;
    along_k = true;
  }
  return along_k || summed.empty() ||
         std::none_of(view.origin.begin(), view.origin.end(),
                      [&](const Expr& e) { return mentions_loop(e); });
}

/// How many terms a sum has: those of the loop, but for the ones past the end of A and B, which
/// must be zero in both.
std::optional<Expr> Fusion::find_depth(const Operand& a, const Operand& b) const {
  Expr all = sum_.k;
  if (sum_.loop)
    all = simple(cdiv(max(sum_.loop->hi - sum_.loop->lo, 0), sum_.loop->step) * sum_.k);
  std::vector<Span> spans = a.summed;
  spans.insert(spans.end(), b.summed.begin(), b.summed.end());
  const auto open = std::find_if_not(spans.begin(), spans.end(), [&](const Span& s) {
    return inside(s.origin, s.origin + all, s.dim);
  });
  if (open == spans.end()) return all;
  const bool equal =
      std::all_of(spans.begin(), spans.end(), [&](const Span& s) { return same(s, *open); });
  if (!equal || !a.zero || !b.zero || !prove_le(0, open->origin, facts_)) return std::nullopt;
  const Expr there = simple(open->dim - open->origin);
  return prove_le(there, all, facts_) ? there : simple(min(all, there));
}

/// The extent of what is stored along an axis of the sum, when the operand is there too.
std::optional<Expr> Fusion::find_extent(int axis, int64_t tile,
                                        const std::vector<Span>& operand) const {
  std::optional<Span> stored;
  for (const Op* op : stores_) {
    const View& view = op->as<ViewAttr>().view;
    const int at = view.axes[axis];
    const Span span{view.origin[at], p_.params[view.param].dims[at]};
    if (stored && !same(*stored, span)) return std::nullopt;
    stored = span;
  }
  if (!prove_le(0, stored->origin, facts_)) return std::nullopt;
  for (const Span& s : operand)
    if (!same(s, *stored) && !inside(s.origin, s.origin + tile, s.dim)) return std::nullopt;
  const Expr there = simple(stored->dim - stored->origin);
  return prove_le(tile, there, facts_) ? Expr(tile) : simple(min(tile, there));
}

/// Follows the sum through pointwise ops of its region to stores, with no other use and no other
/// effect between.
bool Fusion::find_stores() {
  std::set<ValueId> values{sum_.result};
  size_t last = at_;
  for (size_t k = at_ + 1; k < region_.ops.size(); ++k) {
    const Op& op = region_.ops[k];
    bool uses = false;
    const auto look = [&](const Op& o) {
      for (const ValueId v : o.in) uses = uses || values.count(v) > 0;
    };
    look(op);
    for (const Region& inner : op.regions) {
      walk(inner, look);
      for (const ValueId v : inner.yields) uses = uses || values.count(v) > 0;
    }
    if (!uses) continue;
    dependent_.insert(k);
    if (op.code == Opcode::store) {
      stores_.push_back(&op);
      last = k;
    } else if (!is_pointwise(p_, op) || !keeps_coordinates(op) ||
               p_.type(op.out[0]).shape != p_.type(sum_.result).shape) {
      return false;
    } else {
      values.insert(op.out[0]);
    }
  }
  for (const ValueId v : region_.yields)
    if (values.count(v) > 0) return false;
  for (size_t k = at_ + 1; k < last; ++k)
    if (dependent_.count(k) == 0 && effect(p_, region_.ops[k]) != Effect::pure) return false;
  return !stores_.empty() && std::all_of(stores_.begin(), stores_.end(), [&](const Op* op) {
    return p_.type(op->in[0]).shape == p_.type(sum_.result).shape;
  });
}

/// init + sum, then what is done with it. Nothing when that needs more than pointwise ops.
std::optional<Region> Fusion::make_epilogue() {
  Slice slice(p_, definitions_);
  Region r;
  const Value sum = p_.values[sum_.result];
  r.args = {p_.new_value(sum.type, sum.at, sum.name)};
  ValueId total = r.args[0];
  const Op* init = definitions_.of(sum_.init);
  const bool zero =
      init && init->code == Opcode::full && init->as<FullAttr>().value == Number{false, 0, 0.0};
  if (!zero) {
    const std::optional<ValueId> first = slice.add(sum_.init);
    if (!first) return std::nullopt;
    total = p_.new_value(sum.type, sum.at);
    slice.push({Opcode::add, sum.at, {*first, r.args[0]}, {total}, NoneAttr{}, {}});
  }
  slice.know(sum_.result, total);
  for (const Op* store : stores_) {
    const std::optional<ValueId> v = slice.add(store->in[0]);
    if (!v) return std::nullopt;
    slice.push({Opcode::store, store->at, {*v}, {}, store->attr, {}});
  }
  r.ops = slice.take();
  return r;
}

void Fusion::replace(ContractAttr attr, Region a, Region b, Region epilogue) {
  Op contract;
  contract.code = Opcode::contract;
  contract.at = sum_.dot->at;
  contract.attr = std::move(attr);
  contract.regions = {std::move(a), std::move(b), std::move(epilogue)};
  const size_t last = *dependent_.rbegin();
  std::vector<Op> ops;
  for (size_t k = 0; k < region_.ops.size(); ++k) {
    if (k == last) ops.push_back(contract);
    if (k != at_ && dependent_.count(k) == 0) ops.push_back(std::move(region_.ops[k]));
  }
  region_.ops = std::move(ops);
}

bool fuse_one(Program& p, Region& region) {
  for (size_t k = 0; k < region.ops.size(); ++k) {
    const Opcode code = region.ops[k].code;
    const bool may_sum = code == Opcode::dot || code == Opcode::for_;
    if (may_sum && Fusion(p, region, k).run()) return true;
    if (code == Opcode::contract) continue;
    for (Region& inner : region.ops[k].regions)
      if (fuse_one(p, inner)) return true;
  }
  return false;
}

/// Pure ops whose results nothing uses any more.
bool drop_unused(const std::set<ValueId>& used, Region& region) {
  bool dropped = false;
  const auto dead = [&](const Op& op) {
    const Effect effect = info(op.code).effect;
    return effect == Effect::pure || effect == Effect::read
               ? std::none_of(op.out.begin(), op.out.end(),
                              [&](ValueId v) { return used.count(v) > 0; })
               : false;
  };
  const size_t before = region.ops.size();
  std::erase_if(region.ops, dead);
  dropped = region.ops.size() != before;
  for (Op& op : region.ops)
    for (Region& inner : op.regions) dropped = drop_unused(used, inner) || dropped;
  return dropped;
}

std::set<ValueId> used_values(const Program& p) {
  std::set<ValueId> used;
  walk(p, [&](const Op& op) {
    used.insert(op.in.begin(), op.in.end());
    for (const Region& inner : op.regions) used.insert(inner.yields.begin(), inner.yields.end());
  });
  return used;
}

}  // namespace

void fuse_contraction(Program& p, const PassContext&) {
  bool fused = false;
  while (fuse_one(p, p.body)) fused = true;
  while (fused && drop_unused(used_values(p), p.body)) {
  }
}

}  // namespace tw
