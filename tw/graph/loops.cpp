#include "tw/graph/loops.h"

#include <algorithm>
#include <map>

#include "tw/graph/views.h"
#include "tw/math/facts.h"

namespace tw::graph {

namespace {

bool mentions_axis(const Term& t, int axis) { return axes_of(t) >> axis & 1; }

class Collapser {
 public:
  Collapser(const Graph& g, Loops& l) : g_(g), l_(l) {}

  void run() {
    give_axes();
    drop_ones();
    view_operands(g_, l_);
    for (int k = static_cast<int>(l_.compute.axes.size()) - 2; k >= 0; --k)
      if (k + 1 != l_.compute.rank && mergeable(k)) merge(k);
  }

 private:
  bool is_one(const Expr& e) const { return e.is_constant() && e.constant() == 1; }

  /// Scalars become tensors of one element.
  void give_axes() {
    Compute& c = l_.compute;
    if (c.rank == 0) {
      std::vector<Term> moved;
      for (int k = 0; k < static_cast<int>(c.axes.size()); ++k) moved.push_back(axis(k + 1));
      c.substitute_axes(moved);
      c.axes.insert(c.axes.begin(), 1);
      c.rank = 1;
    }
    for (std::vector<Expr>& dims : l_.operand_dims)
      if (dims.empty()) dims = {1};
    c.rewrite_terms([&](const Term& t) -> Term {
      if (t->kind != TermKind::load || !t->in.empty()) return nullptr;
      return load(t->operand, t->dtype, {index(0)}, t->pad);
    });
  }

  void drop_ones() {
    Compute& c = l_.compute;
    for (int k = static_cast<int>(c.axes.size()) - 1; k >= 0; --k) {
      const int left = k < c.rank ? c.rank : c.reduced();
      const bool rows = k == c.rank - 1 && is_packed(c.dtype());
      if (left > 1 && !rows && is_one(c.axes[static_cast<size_t>(k)])) drop_axis(c, k, 0);
    }
    for (size_t j = 0; j < l_.operand_dims.size(); ++j)
      for (size_t k = l_.operand_dims[j].size(); k-- > 0;)
        if (l_.operand_dims[j].size() > 1 && is_one(l_.operand_dims[j][k]) && always_zero(j, k) &&
            !has_padded_rows(l_.operand_types[j], l_.operand_dims[j], k))
          drop_coordinate(j, k);
  }

  bool always_zero(size_t operand, size_t k) const {
    bool all = true;
    l_.compute.for_each_term([&](const TermNode& n) {
      if (n.kind != TermKind::load || n.operand != static_cast<int>(operand)) return;
      const TermNode& at = *n.in[k];
      all &= at.kind == TermKind::index && at.index == Expr(0);
    });
    return all;
  }

  void drop_coordinate(size_t operand, size_t k) {
    l_.operand_dims[operand].erase(l_.operand_dims[operand].begin() + static_cast<ptrdiff_t>(k));
    l_.compute.rewrite_terms([&](const Term& t) -> Term {
      if (t->kind != TermKind::load || t->operand != static_cast<int>(operand)) return nullptr;
      std::vector<Term> at = t->in;
      at.erase(at.begin() + static_cast<ptrdiff_t>(k));
      return load(t->operand, t->dtype, std::move(at), t->pad);
    });
  }

  bool equal(const Expr& a, const Expr& b) const { return g_.simple(a - b) == Expr(0); }

  /// Whether axis k is the last of a packed type and its rows do not fill their bytes.
  static bool has_padded_rows(DType t, const std::vector<Expr>& dims, size_t k) {
    return is_packed(t) && k + 1 == dims.size() && divisor(dims[k], {}) % elements_of_bytes(t) != 0;
  }

  /// Where axes k and k + 1 are coordinates of a load, side by side and whole.
  std::optional<size_t> side_by_side(const TermNode& n, int k) const {
    const std::vector<Expr>& dims = l_.operand_dims[static_cast<size_t>(n.operand)];
    const std::vector<Expr>& axes = l_.compute.axes;
    for (size_t j = 0; j + 1 < n.in.size(); ++j)
      if (axis_at(n.in[j]) == k && axis_at(n.in[j + 1]) == k + 1 &&
          equal(dims[j], axes[static_cast<size_t>(k)]) &&
          equal(dims[j + 1], axes[static_cast<size_t>(k) + 1]) && adjoin(n.operand, j) &&
          !has_padded_rows(l_.operand_types[static_cast<size_t>(n.operand)], dims, j + 1))
        return j;
    return std::nullopt;
  }

  /// Whether a step along coordinate j leads to where the next one ends.
  bool adjoin(int operand, size_t j) const {
    const std::vector<Expr>& strides = l_.operand_strides[static_cast<size_t>(operand)];
    const std::vector<Expr>& dims = l_.operand_dims[static_cast<size_t>(operand)];
    return strides.empty() || equal(strides[j], strides[j + 1] * dims[j + 1]);
  }

  bool mergeable(int k) const {
    const Compute& c = l_.compute;
    const auto next = static_cast<size_t>(k) + 1;
    if (k + 1 < c.rank && has_padded_rows(c.dtype(), l_.result_dims(), next)) return false;
    // Index terms outside loads may not mention the axes; each operand is merged at one place.
    std::map<int, std::optional<size_t>> places;
    bool possible = true;
    const auto visit = [&](const TermNode& n) {
      if (n.kind != TermKind::load) return;
      std::optional<size_t> place = side_by_side(n, k);
      for (size_t j = 0; j < n.in.size(); ++j)
        if (!place || (j != *place && j != *place + 1))
          possible &= !mentions_axis(n.in[j], k) && !mentions_axis(n.in[j], k + 1);
      const auto [at, fresh] = places.emplace(n.operand, place);
      possible &= fresh || at->second == place;
    };
    l_.compute.for_each_term(visit);
    return possible && !loose_index(k);
  }

  /// Whether an index term that is no coordinate mentions axis k or k + 1.
  bool loose_index(int k) const {
    bool loose = false;
    const auto look = [&](const Term& root) {
      const Change hide = [&](const Term& t) -> Term {
        return t->kind == TermKind::load ? constant(t->dtype, 0.0) : nullptr;
      };
      // Coordinates are inside loads; what is left mentions axes by itself.
      const Term rest = rewrite(root, hide);
      loose |= mentions_axis(rest, k) || mentions_axis(rest, k + 1);
    };
    look(l_.compute.body);
    if (l_.compute.finish) look(l_.compute.finish);
    return loose;
  }

  void merge(int k) {
    Compute& c = l_.compute;
    const auto at = static_cast<size_t>(k);
    std::map<int, size_t> merged;  // operands, and where
    c.rewrite_terms([&](const Term& t) -> Term {
      if (t->kind != TermKind::load) return nullptr;
      const std::optional<size_t> place = side_by_side(*t, k);
      if (!place) return nullptr;
      std::vector<Term> in = t->in;
      in.erase(in.begin() + static_cast<ptrdiff_t>(*place) + 1);
      merged[t->operand] = *place;
      return load(t->operand, t->dtype, std::move(in), t->pad);
    });
    for (const auto& [operand, place] : merged) {
      std::vector<Expr>& dims = l_.operand_dims[static_cast<size_t>(operand)];
      dims[place] = g_.simple(dims[place] * dims[place + 1]);
      dims.erase(dims.begin() + static_cast<ptrdiff_t>(place) + 1);
      std::vector<Expr>& strides = l_.operand_strides[static_cast<size_t>(operand)];
      if (!strides.empty()) strides.erase(strides.begin() + static_cast<ptrdiff_t>(place));
    }
    c.axes[at] = g_.simple(c.axes[at] * c.axes[at + 1]);
    drop_axis(c, k + 1, 0);
  }

  const Graph& g_;
  Loops& l_;
};

}  // namespace

Facts facts_of(const std::vector<Expr>& axes) {
  Facts facts;
  for (size_t k = 0; k < axes.size(); ++k) {
    const int64_t last = axes[k].is_constant() ? axes[k].constant() - 1 : Interval::kMax;
    // An axis without elements has no values that a fact could be wrong for.
    facts[axis_symbol(static_cast<int>(k))] = {.range = {0, std::max<int64_t>(last, 0)},
                                               .below = axes[k]};
  }
  return facts;
}

void drop_axis(Compute& c, int gone, const Expr& instead) {
  std::vector<Term> axes(c.axes.size());
  for (int k = 0; k < static_cast<int>(c.axes.size()); ++k)
    axes[static_cast<size_t>(k)] = k == gone ? index(instead) : axis(k < gone ? k : k - 1);
  c.substitute_axes(axes);
  c.axes.erase(c.axes.begin() + gone);
  if (gone < c.rank) --c.rank;
}

Loops loops_of(const Graph& g, const Compute& c) {
  Loops l{c, {}, {}, {}, {}};
  for (TensorId t : c.operands) {
    l.operand_dims.push_back(g.tensor(t).dims);
    l.operand_types.push_back(g.tensor(t).dtype);
    l.operand_strides.emplace_back();
    l.operand_offsets.emplace_back(0);
  }
  return l;
}

Loops collapse(const Graph& g, Loops l) {
  Collapser(g, l).run();
  return l;
}

std::optional<Expr> flat_index(const TermNode& load, const std::vector<Expr>& dims) {
  Expr flat = 0;
  for (size_t k = 0; k < dims.size(); ++k) {
    if (load.in[k]->kind != TermKind::index) return std::nullopt;
    flat = flat * dims[k] + load.in[k]->index;
  }
  return flat;
}

bool keeps_order(const Graph& g, const Compute& c) {
  if (c.fold != Fold::none || c.body->kind != TermKind::load || c.body->pad) return false;
  const std::vector<Expr>& dims = g.tensor(c.operands[0]).dims;
  const std::optional<Expr> from = flat_index(*c.body, dims);
  if (!from) return false;
  Expr to = 0;
  for (size_t k = 0; k < c.axes.size(); ++k)
    to = to * c.axes[k] + Expr::symbol(axis_symbol(static_cast<int>(k)));
  const Expr surplus = product_of_dims(c.axes) - product_of_dims(dims);
  return simplify(to - *from, facts_of(c.axes)) == Expr(0) && g.simple(surplus) == Expr(0);
}

}  // namespace tw::graph
