#include <set>

#include "tw/graph/plan.h"

namespace tw::graph {

namespace {

/// Ops on floats: those of indices come for free with addressing.
double float_ops(const Term& t) {
  double ops = 0;
  if (t)
    for_each(t, [&](const TermNode& n) { ops += n.kind == TermKind::op && is_float(n.dtype); });
  return ops;
}

StepWork work_of(const Graph& g, const Node& n, const std::vector<int64_t>& sizes) {
  const auto value = [&](const Expr& e) { return Graph::value(e, sizes); };
  StepWork w;
  const auto add_bytes = [&](TensorId t) {
    std::vector<int64_t> dims;
    for (const Expr& e : g.tensor(t).dims) dims.push_back(value(e));
    w.bytes += byte_count(g.tensor(t).dtype, dims);
  };
  const Compute& c = n.compute;
  for (const TensorId t : std::set<TensorId>(c.operands.begin(), c.operands.end())) add_bytes(t);
  add_bytes(n.out);
  double results = 1, points = 1;
  for (int k = 0; k < static_cast<int>(c.axes.size()); ++k) {
    const auto extent = static_cast<double>(value(c.axes[static_cast<size_t>(k)]));
    points *= extent;
    if (k < c.rank) results *= extent;
  }
  w.flops =
      points * (float_ops(c.body) + (c.fold == Fold::none ? 0 : 1)) + results * float_ops(c.finish);
  return w;
}

}  // namespace

std::vector<StepWork> Plan::work(const std::vector<int64_t>& sizes) const {
  std::vector<StepWork> all;
  for (const StepInfo& s : steps()) all.push_back(work_of(graph(), *s.node, sizes));
  return all;
}

}  // namespace tw::graph
