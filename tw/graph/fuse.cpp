#include "tw/graph/fuse.h"

#include <algorithm>
#include <map>
#include <set>

#include "tw/graph/loops.h"
#include "tw/math/facts.h"

namespace tw::graph {

namespace {

/// Nodes of a term that may be computed for each of its uses.
constexpr int64_t kCheap = 8;
/// Nodes of a term that a fused node has at most.
constexpr int64_t kMostTerms = 400;

constexpr Opcode kSlow[] = {Opcode::exp,   Opcode::exp2, Opcode::log, Opcode::sin,
                            Opcode::cos,   Opcode::tanh, Opcode::erf, Opcode::sqrt,
                            Opcode::rsqrt, Opcode::div,  Opcode::rem};

bool slow(Opcode c) { return std::find(std::begin(kSlow), std::end(kSlow), c) != std::end(kSlow); }

bool cheap(const Term& t) {
  bool quick = true;
  for_each(t, [&](const TermNode& n) { quick &= n.kind != TermKind::op || !slow(n.code); });
  return quick && size(t) <= kCheap;
}

bool moves(const Compute& c) { return c.fold == Fold::none && c.body->kind == TermKind::load; }

/// Loads of one operand, each form of coordinates once.
std::vector<Term> loads_of(const Compute& c, int operand) {
  std::vector<Term> found;
  std::set<const TermNode*> seen;
  const Change look = [&](const Term& t) -> Term {
    if (t->kind == TermKind::load && t->operand == operand && seen.insert(t.get()).second)
      found.push_back(t);
    return nullptr;
  };
  rewrite(c.body, look);
  if (c.finish) rewrite(c.finish, look);
  return found;
}

bool same_coordinates(const Term& a, const Term& b) {
  if (a->pad.has_value() != b->pad.has_value()) return false;
  for (size_t k = 0; k < a->in.size(); ++k) {
    const TermNode &x = *a->in[k], &y = *b->in[k];
    if (x.kind != TermKind::index || y.kind != TermKind::index || !(x.index == y.index))
      return false;
  }
  return true;
}

class Fuser {
 public:
  explicit Fuser(Graph& g) : g_(g), nodes_(g.nodes()) {}

  void run() {
    bool changed = true;
    while (changed) {
      changed = false;
      drop_unused();
      for (size_t i = nodes_.size(); i-- > 0;) changed |= pull_producers(i);
      drop_unused();
      for (size_t i = 0; i < nodes_.size(); ++i) changed |= finish_producer(i);
    }
    g_.replace_nodes(std::move(nodes_));
  }

 private:
  Node* producer(TensorId t) {
    for (Node& n : nodes_)
      if (n.out == t) return &n;
    return nullptr;
  }

  void count_uses() {
    uses_.clear();
    for (const Node& n : nodes_)
      for (TensorId t : n.compute.operands) ++uses_[t];
    for (const auto& [name, t] : g_.outputs()) uses_[t] += 2;  // stays a tensor of its own
  }

  void drop_unused() {
    for (size_t before = nodes_.size() + 1; before != nodes_.size();) {
      before = nodes_.size();
      count_uses();
      std::erase_if(nodes_, [&](const Node& n) { return uses_[n.out] == 0; });
    }
  }

  bool is_output(TensorId t) const {
    return std::any_of(g_.outputs().begin(), g_.outputs().end(),
                       [&](const auto& o) { return o.second == t; });
  }

  /// Whether the memory of the producer's operand serves as it is.
  bool is_alias(const Compute& c) {
    const std::optional<Expr> from = moved_from(g_, c);
    if (!from) return false;
    Expr flat = 0;
    for (size_t k = 0; k < c.axes.size(); ++k)
      flat = flat * c.axes[k] + Expr::symbol(axis_symbol(static_cast<int>(k)));
    return simplify(flat - *from, {}) == Expr(0);
  }

  bool pull_producers(size_t i) {
    bool changed = false;
    for (size_t j = 0; j < nodes_[i].compute.operands.size(); ++j) {
      Node* p = producer(nodes_[i].compute.operands[j]);
      if (p == nullptr || p->compute.fold != Fold::none) continue;
      if (!may_pull(nodes_[i].compute, static_cast<int>(j), *p)) continue;
      pull(nodes_[i].compute, static_cast<int>(j), p->compute);
      count_uses();
      changed = true;
      j = static_cast<size_t>(-1);  // operands changed
    }
    return changed;
  }

  bool may_pull(const Compute& c, int operand, const Node& p) {
    if (is_output(p.out) || is_alias(p.compute)) return false;
    const Term& body = p.compute.body;
    if (size(body) + size(c.body) + (c.finish ? size(c.finish) : 0) > kMostTerms) return false;
    const bool light = cheap(body);
    if (uses_[p.out] > 1 && !moves(p.compute)) return false;
    const std::vector<Term> loads = loads_of(c, operand);
    for (const Term& l : loads) {
      for (const Term& at : l->in)
        if (at->kind != TermKind::index) return false;
      if (!light && !same_coordinates(l, loads[0])) return false;
      if (!light && c.fold != Fold::none && read_often(c, l)) return false;
    }
    return true;
  }

  /// Whether elements are read for several values of the axes.
  static bool read_often(const Compute& c, const Term& load) {
    uint64_t plain = 0;
    for (const Term& at : load->in) plain |= axes_of(at);
    for (size_t k = 0; k < c.axes.size(); ++k)
      if (!(plain >> k & 1) && !(c.axes[k] == Expr(1))) return true;
    return false;
  }

  void pull(Compute& c, int operand, const Compute& p) {
    std::vector<int> where;  // of p's operands in c
    for (TensorId t : p.operands) {
      const auto at = std::find(c.operands.begin(), c.operands.end(), t);
      where.push_back(static_cast<int>(at - c.operands.begin()));
      if (at == c.operands.end()) c.operands.push_back(t);
    }
    const Term body = moved_operands(p.body, where);
    std::map<std::vector<std::string>, Term> made;  // one term for equal coordinates
    const Change put = [&](const Term& t) -> Term {
      if (t->kind != TermKind::load || t->operand != operand) return nullptr;
      std::vector<std::string> key;
      for (const Term& at : t->in) key.push_back(g_.text(at->index));
      key.push_back(t->pad ? "pad" : "");
      Term& term = made[key];
      if (!term) term = padded(c, t, substitute(body, t->in), p);
      return term;
    };
    c.body = rewrite(c.body, put);
    if (c.finish) c.finish = rewrite(c.finish, put);
    forget_operand(c, operand);
  }

  /// What a load of c with a pad reads: the producer's element only where there is one.
  Term padded(const Compute& c, const Term& load, const Term& inside, const Compute& p) const {
    if (!load->pad) return inside;
    Facts facts;
    for (size_t k = 0; k < c.axes.size(); ++k)
      facts[axis_symbol(static_cast<int>(k))] = {.range = {0, Interval::kMax}, .below = c.axes[k]};
    Term all;
    const auto also = [&](const Term& m) { all = all ? op(Opcode::and_, all, m) : m; };
    for (size_t k = 0; k < load->in.size(); ++k) {
      const Expr& at = load->in[k]->index;
      if (bounds(at, facts).lo < 0) also(op(Opcode::le, constant_int(i64, 0), load->in[k]));
      if (!is_below(c, at, p.axes[k])) also(op(Opcode::lt, load->in[k], index(p.axes[k])));
    }
    return all ? where(all, inside, constant(load->dtype, *load->pad)) : inside;
  }

  /// Whether the coordinate is an axis that is no longer than the extent.
  static bool is_below(const Compute& c, const Expr& at, const Expr& extent) {
    if (at.is_constant() && at.constant() == 0 && bounds(extent, {}).lo > 0) return true;
    if (at.kind() != Expr::Kind::symbol || at.symbol().kind != SymbolKind::loop) return false;
    const Expr& axis = c.axes[static_cast<size_t>(at.symbol().id)];
    return bounds(simplify(extent - axis, {}), {}).lo >= 0;
  }

  static Term moved_operands(const Term& t, const std::vector<int>& where) {
    return rewrite(t, [&](const Term& n) -> Term {
      if (n->kind != TermKind::load) return nullptr;
      return load(where[static_cast<size_t>(n->operand)], n->dtype, n->in, n->pad);
    });
  }

  /// The operand is read no more: those after it move down.
  static void forget_operand(Compute& c, int operand) {
    std::vector<int> where;
    for (int j = 0; j < static_cast<int>(c.operands.size()); ++j)
      where.push_back(j < operand ? j : j - 1);
    c.operands.erase(c.operands.begin() + operand);
    c.body = moved_operands(c.body, where);
    if (c.finish) c.finish = moved_operands(c.finish, where);
  }

  /// Node i takes over the fold of an operand that it alone reads, each element once.
  bool finish_producer(size_t i) {
    Compute& c = nodes_[i].compute;
    if (c.fold != Fold::none) return false;
    for (int j = 0; j < static_cast<int>(c.operands.size()); ++j) {
      const TensorId t = c.operands[static_cast<size_t>(j)];
      Node* p = producer(t);
      if (p == nullptr || p->compute.fold == Fold::none || uses_[t] != 1) continue;
      const auto axes = one_to_one(c, j, p->compute);
      if (!axes) continue;
      take_over(c, j, p->compute, *axes);
      count_uses();
      return true;
    }
    return false;
  }

  /// For each axis of the producer's result the axis of c that it is, when each element is read
  /// once and all loads agree.
  std::optional<std::vector<int>> one_to_one(const Compute& c, int operand,
                                             const Compute& p) const {
    const std::vector<Term> loads = loads_of(c, operand);
    if (loads.empty() || c.rank != p.rank) return std::nullopt;
    for (const Term& l : loads)
      if (l->pad || !same_coordinates(l, loads[0])) return std::nullopt;
    std::vector<int> axes;
    uint64_t taken = 0;
    for (int k = 0; k < p.rank; ++k) {
      const TermNode& at = *loads[0]->in[static_cast<size_t>(k)];
      if (at.kind != TermKind::index) return std::nullopt;
      int axis = -1;
      if (at.index.kind() == Expr::Kind::symbol && at.index.symbol().kind == SymbolKind::loop)
        axis = at.index.symbol().id;
      else if (at.index == Expr(0) && p.axes[static_cast<size_t>(k)] == Expr(1))
        axis = free_one(c, loads[0], taken);
      if (axis < 0 || taken >> axis & 1) return std::nullopt;
      const Expr &a = p.axes[static_cast<size_t>(k)], &b = c.axes[static_cast<size_t>(axis)];
      if (!(simplify(a - b, {}) == Expr(0))) return std::nullopt;
      taken |= uint64_t{1} << axis;
      axes.push_back(axis);
    }
    return axes;
  }

  /// An axis of c with one element that the load does not mention.
  static int free_one(const Compute& c, const Term& load, uint64_t taken) {
    for (const Term& at : load->in) taken |= axes_of(at);
    for (int k = 0; k < c.rank; ++k)
      if (!(taken >> k & 1) && c.axes[static_cast<size_t>(k)] == Expr(1)) return k;
    return -1;
  }

  static void take_over(Compute& c, int operand, const Compute& p, const std::vector<int>& axes) {
    std::vector<int> where;
    for (TensorId t : p.operands) {
      const auto at = std::find(c.operands.begin(), c.operands.end(), t);
      where.push_back(static_cast<int>(at - c.operands.begin()));
      if (at == c.operands.end()) c.operands.push_back(t);
    }
    std::vector<Term> now;  // p's axes as c has them
    for (int a : axes) now.push_back(axis(a));
    for (int k = p.rank; k < static_cast<int>(p.axes.size()); ++k) now.push_back(axis(k));
    const Term folded =
        p.finish ? substitute(moved_operands(p.finish, where), now) : result(p.folded_dtype());
    const Change put = [&](const Term& t) -> Term {
      return t->kind == TermKind::load && t->operand == operand ? folded : nullptr;
    };
    c.finish = rewrite(c.body, put);
    c.body = substitute(moved_operands(p.body, where), now);
    c.fold = p.fold;
    c.axes.insert(c.axes.end(), p.axes.begin() + p.rank, p.axes.end());
    forget_operand(c, operand);
  }

  Graph& g_;
  std::vector<Node> nodes_;
  std::map<TensorId, int> uses_;
};

}  // namespace

void fuse(Graph& g) { Fuser(g).run(); }

}  // namespace tw::graph
