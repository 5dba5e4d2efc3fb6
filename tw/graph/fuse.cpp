#include "tw/graph/fuse.h"

#include <algorithm>
#include <map>

#include "tw/graph/loops.h"
#include "tw/graph/one_hot.h"
#include "tw/math/facts.h"

namespace tw::graph {

namespace {

/// Operations of a term that may be computed again: for each of several loads, and for each of many
/// elements that read it.
constexpr int64_t kCheap = 4, kCheaper = 2;
/// Nodes of a term that a fused node has at most.
constexpr int64_t kMostTerms = 400;

constexpr Opcode kSlow[] = {Opcode::exp,   Opcode::exp2, Opcode::log, Opcode::sin,
                            Opcode::cos,   Opcode::tanh, Opcode::erf, Opcode::sqrt,
                            Opcode::rsqrt, Opcode::div,  Opcode::rem};

bool slow(Opcode c) { return std::find(std::begin(kSlow), std::end(kSlow), c) != std::end(kSlow); }

bool cheap(const Term& t, int64_t most) {
  bool quick = true;
  int64_t work = 0;
  for_each(t, [&](const TermNode& n) {
    quick &= n.kind != TermKind::op || !slow(n.code);
    work += n.kind == TermKind::op || n.kind == TermKind::cast;
  });
  return quick && work <= most;
}

/// Whether a term converts or compares what it reads, and no more.
bool converts(const Term& t) {
  bool plain = true;
  for_each(t, [&](const TermNode& n) { plain &= n.kind != TermKind::op || n.code == Opcode::eq; });
  return plain;
}

bool moves(const Compute& c) { return c.fold == Fold::none && c.body->kind == TermKind::load; }

/// Loads of one operand.
std::vector<Term> loads_of(const Compute& c, int operand) {
  std::vector<Term> found;
  const auto look = [&](const Term& t) -> Term {
    if (t->kind == TermKind::load && t->operand == operand) found.push_back(t);
    return nullptr;
  };
  rewrite(c.body, look);
  if (c.finish) rewrite(c.finish, look);
  return found;
}

/// Whether two loads of one operand read the same element.
bool read_alike(const Term& a, const Term& b) {
  if (a->pad != b->pad) return false;
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
      for (Node& n : nodes_) changed |= look_up_one_hot(g_, n.compute);
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

  bool pull_producers(size_t i) {
    bool changed = false;
    if (keeps_order(g_, nodes_[i].compute)) return false;
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
    if (is_output(p.out) || (uses_[p.out] > 1 && !moves(p.compute))) return false;
    const Term& body = p.compute.body;
    if (size(body) + size(c.body) + (c.finish ? size(c.finish) : 0) > kMostTerms) return false;
    if (keeps_order(g_, p.compute)) return false;
    const bool light = cheap(body, kCheap);
    const std::vector<Term> loads = loads_of(c, operand);
    for (const Term& l : loads) {
      for (const Term& at : l->in)
        if (at->kind != TermKind::index) return false;
      if (!light && !read_alike(l, loads[0])) return false;
      if (!read_often(c, l)) continue;
      if (c.fold == Fold::none ? !cheap(body, kCheaper) : !converts(body)) return false;
    }
    return true;
  }

  /// Whether elements are read for several values of the axes.
  static bool read_often(const Compute& c, const Term& load) {
    uint64_t plain = 0;
    bool folded = false;
    for (const Term& at : load->in) plain |= axes_of(at);
    for_each(c.body, [&](const TermNode& n) { folded |= &n == load.get(); });
    for (size_t k = 0; k < (folded ? c.axes.size() : static_cast<size_t>(c.rank)); ++k)
      if (!(plain >> k & 1) && !(c.axes[k] == Expr(1))) return true;
    return false;
  }

  void pull(Compute& c, int operand, const Compute& p) {
    std::vector<int> where;  // of p's operands in c
    for (TensorId t : p.operands) where.push_back(c.operand(t));
    const Term body = rewrite(p.body, to_places(where));
    const Facts facts = facts_of(c.axes);
    std::vector<std::pair<Term, Term>> made;  // loads, and one term for those that read alike
    const Change put = [&](const Term& t) -> Term {
      if (t->kind != TermKind::load || t->operand != operand) return nullptr;
      const auto known = std::find_if(made.begin(), made.end(),
                                      [&](const auto& m) { return read_alike(m.first, t); });
      if (known != made.end()) return known->second;
      return made.emplace_back(t, padded(t, substitute(body, t->in), p, facts)).second;
    };
    c.rewrite_terms(put);
    forget_operand(c, operand);
  }

  /// What a load with a pad reads: the producer's element only where there is one.
  static Term padded(const Term& load, const Term& inside, const Compute& p, const Facts& facts) {
    if (!load->pad) return inside;
    Term all;
    const auto also = [&](const Term& m) { all = all ? op(Opcode::and_, all, m) : m; };
    for (size_t k = 0; k < load->in.size(); ++k) {
      const Term& at = load->in[k];
      const bool known = at->kind == TermKind::index;
      if (!known || !prove_le(0, at->index, facts)) also(op(Opcode::le, constant_int(i64, 0), at));
      if (!known || !prove_le(at->index + 1, p.axes[k], facts))
        also(op(Opcode::lt, at, index(p.axes[k])));
    }
    return all ? where(all, inside, constant(load->dtype, *load->pad)) : inside;
  }

  /// A load's operand moved to another place.
  static Change to_places(const std::vector<int>& where) {
    return [&](const Term& n) -> Term {
      if (n->kind != TermKind::load) return nullptr;
      return load(where[static_cast<size_t>(n->operand)], n->dtype, n->in, n->pad);
    };
  }

  /// The operand is read no more: those after it move down.
  static void forget_operand(Compute& c, int operand) {
    std::vector<int> where;
    for (int j = 0; j < static_cast<int>(c.operands.size()); ++j)
      where.push_back(j < operand ? j : j - 1);
    c.operands.erase(c.operands.begin() + operand);
    c.rewrite_terms(to_places(where));
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
      if (l->pad || !read_alike(l, loads[0])) return std::nullopt;
    std::vector<int> axes;
    uint64_t taken = 0;
    for (int k = 0; k < p.rank; ++k) {
      const TermNode& at = *loads[0]->in[static_cast<size_t>(k)];
      if (at.kind != TermKind::index) return std::nullopt;
      int axis = axis_at(loads[0]->in[static_cast<size_t>(k)]).value_or(-1);
      if (at.index == Expr(0) && p.axes[static_cast<size_t>(k)] == Expr(1))
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
    for (TensorId t : p.operands) where.push_back(c.operand(t));
    std::vector<Term> now;  // p's axes as c has them
    for (int a : axes) now.push_back(axis(a));
    for (int k = p.rank; k < static_cast<int>(p.axes.size()); ++k) now.push_back(axis(k));
    const Term folded =
        p.finish ? substitute(rewrite(p.finish, to_places(where)), now) : result(p.folded_dtype());
    const Change put = [&](const Term& t) -> Term {
      return t->kind == TermKind::load && t->operand == operand ? folded : nullptr;
    };
    c.finish = rewrite(c.body, put);
    c.body = substitute(rewrite(p.body, to_places(where)), now);
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
