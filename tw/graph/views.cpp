#include "tw/graph/views.h"

#include <algorithm>
#include <limits>
#include <map>
#include <numeric>

namespace tw::graph {

namespace {

/// offset + the sum of step times axis, in elements.
struct Linear {
  std::map<int, Expr> steps;
  Expr offset;
};

class Viewer {
 public:
  Viewer(const Graph& g, Loops& l) : g_(g), l_(l) {}

  void run() {
    order_folded_axes();
    Loops now{l_.compute, {}, {}, {}, {}};
    now.compute.operands.clear();
    const Change view = [&](const Term& t) -> Term {
      return t->kind == TermKind::load ? viewed(t, now) : nullptr;
    };
    now.compute.rewrite_terms(view);
    l_ = std::move(now);
  }

 private:
  std::optional<Linear> linear(const TermNode& load) const {
    const auto j = static_cast<size_t>(load.operand);
    if (load.pad || is_packed(load.dtype)) return std::nullopt;
    const std::optional<Expr> place = flat_index(load, l_.operand_dims[j]);
    if (!place) return std::nullopt;
    const Expr flat = simplify(*place, facts_of(l_.compute.axes));
    Linear found;
    for_each_symbol(flat, [&](Symbol s) {
      if (s.kind == SymbolKind::loop) found.steps[s.id] = 0;
    });
    const auto with = [&](const std::function<std::optional<Expr>(int)>& value) {
      return tw::substitute(flat, [&](Symbol s) -> std::optional<Expr> {
        return s.kind == SymbolKind::loop ? value(s.id) : std::nullopt;
      });
    };
    found.offset = simplify(with([](int) { return Expr(0); }), {});
    Expr rest = flat - found.offset;
    for (auto& [axis, step] : found.steps) {
      const int a = axis;
      const Expr next = with([&](int b) -> std::optional<Expr> {
        if (b != a) return std::nullopt;
        return Expr::symbol(axis_symbol(a)) + 1;
      });
      step = g_.simple(next - flat);
      if (mentions_axes(step)) return std::nullopt;
      rest = rest - step * Expr::symbol(axis_symbol(a));
    }
    return g_.simple(rest) == Expr(0) ? std::optional(found) : std::nullopt;
  }

  /// Far steps first, so that what lies side by side is last.
  void order_folded_axes() {
    Compute& c = l_.compute;
    if (c.reduced() < 2) return;
    std::vector<int64_t> far(c.axes.size(), 0);
    for_each(c.body, [&](const TermNode& n) {
      if (n.kind != TermKind::load) return;
      if (const std::optional<Linear> at = linear(n))
        for (const auto& [axis, step] : at->steps) {
          const int64_t most = std::numeric_limits<int64_t>::max();
          int64_t& f = far[static_cast<size_t>(axis)];
          f = std::max(f, step.is_constant() ? std::abs(step.constant()) : most);
        }
    });
    std::vector<int> order(c.axes.size());
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin() + c.rank, order.end(), [&](int a, int b) {
      return far[static_cast<size_t>(a)] > far[static_cast<size_t>(b)];
    });
    std::vector<Term> axes(c.axes.size());
    std::vector<Expr> extents;
    for (size_t k = 0; k < order.size(); ++k) {
      axes[static_cast<size_t>(order[k])] = axis(static_cast<int>(k));
      extents.push_back(c.axes[static_cast<size_t>(order[k])]);
    }
    c.axes = std::move(extents);
    c.body = substitute(c.body, axes);
  }

  Term viewed(const Term& t, Loops& now) {
    const auto j = static_cast<size_t>(t->operand);
    const std::optional<Linear> at = linear(*t);
    std::string key = std::to_string(t->operand);
    if (at) {
      key += " at " + g_.text(at->offset);
      for (const auto& [axis, step] : at->steps)
        key += " + " + std::to_string(axis) + " * " + g_.text(step);
    }
    const auto [made, fresh] = views_.emplace(key, static_cast<int>(views_.size()));
    std::vector<Expr> dims, strides;
    std::vector<Term> in;
    if (at)
      for (const auto& [axis_of, step] : at->steps) {
        dims.push_back(l_.compute.axes[static_cast<size_t>(axis_of)]);
        strides.push_back(step);
        in.push_back(axis(axis_of));
      }
    if (at && dims.empty()) {
      dims = {1};
      strides = {1};
      in = {index(0)};
    }
    if (fresh) {
      now.compute.operands.push_back(l_.compute.operands[j]);
      now.operand_types.push_back(l_.operand_types[j]);
      now.operand_dims.push_back(at ? dims : l_.operand_dims[j]);
      now.operand_strides.push_back(strides);
      now.operand_offsets.push_back(at ? at->offset : Expr(0));
    }
    return load(made->second, t->dtype, at ? in : t->in, t->pad);
  }

  const Graph& g_;
  Loops& l_;
  std::map<std::string, int> views_;
};

}  // namespace

void view_operands(const Graph& g, Loops& l) { Viewer(g, l).run(); }

}  // namespace tw::graph
