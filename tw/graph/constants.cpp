#include "tw/graph/constants.h"

#include <algorithm>

#include "tw/graph/products.h"

namespace tw::graph {

namespace {

/// The axes that the coordinates of a load are, when each is one of its own or 0 (then -1).
std::optional<std::vector<int>> plain_axes(const Term& load) {
  std::vector<int> axes;
  for (const Term& at : load->in) {
    if (at->kind == TermKind::index && at->index == Expr(0)) {
      axes.push_back(-1);
      continue;
    }
    const std::optional<int> axis = axis_at(at);
    if (!axis || std::find(axes.begin(), axes.end(), *axis) != axes.end()) return std::nullopt;
    axes.push_back(*axis);
  }
  return axes;
}

Tensor permuted(const Tensor& t, const std::vector<int>& perm) {
  TensorView v = t.view();
  for (size_t k = 0; k < perm.size(); ++k) {
    v.dims[k] = t.view().dims[static_cast<size_t>(perm[k])];
    v.strides[k] = t.view().strides[static_cast<size_t>(perm[k])];
  }
  return copy(v);
}

/// Gives the computation a copy of a constant operand in which `last` is the last axis.
void turn(Graph& g, Compute& c, const Term& load, const std::vector<int>& axes, int last) {
  std::vector<int> perm;
  for (int k = 0; k < static_cast<int>(axes.size()); ++k)
    if (axes[static_cast<size_t>(k)] != last) perm.push_back(k);
  perm.push_back(static_cast<int>(std::find(axes.begin(), axes.end(), last) - axes.begin()));
  TensorId& operand = c.operands[static_cast<size_t>(load->operand)];
  const std::string name = g.tensor(operand).name;
  operand = g.constant(name, permuted(*g.tensor(operand).constant, perm));
  const auto term = [&](const Term& n) -> Term {
    if (n != load) return nullptr;
    std::vector<Term> at;
    for (int k : perm) at.push_back(n->in[static_cast<size_t>(k)]);
    return graph::load(n->operand, n->dtype, std::move(at), n->pad);
  };
  c.body = rewrite(c.body, term);
}

bool reads_once(const Compute& c, const Term& load) {
  bool once = true;
  const auto look = [&](const TermNode& n) {
    once &= n.kind != TermKind::load || n.operand != load->operand || &n == load.get();
  };
  c.for_each_term(look);
  return once;
}

}  // namespace

void lay_out_constants(Graph& g) {
  std::vector<Node> nodes = g.nodes();
  for (Node& n : nodes) {
    const std::optional<Product> p = product_of(n.compute);
    if (!p) continue;
    for (const Term& factor : {p->a, p->b}) {
      const Term load = factor->kind == TermKind::cast ? factor->in[0] : factor;
      if (load->kind != TermKind::load || load->pad) continue;
      const TensorInfo& t = g.tensor(n.compute.operands[static_cast<size_t>(load->operand)]);
      const auto axes = plain_axes(load);
      if (!t.constant || t.contents || !axes || is_packed(t.dtype)) continue;
      if (!reads_once(n.compute, load)) continue;
      const int along = walked_axis(n.compute, *p).value_or(p->summed.back());
      const std::vector<int>& kept = factor == p->a ? p->rows : p->columns;
      const auto last =
          std::find_if(axes->rbegin(), axes->rend(), [](int axis) { return axis >= 0; });
      if (last == axes->rend() || *last == along || *last == kept.back()) continue;
      turn(g, n.compute, load, *axes, along);
    }
  }
  g.replace_nodes(std::move(nodes));
}

}  // namespace tw::graph
