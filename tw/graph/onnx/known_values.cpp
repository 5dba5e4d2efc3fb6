#include "tw/graph/onnx/known_values.h"

#include <algorithm>
#include <map>

#include "tw/graph/contents.h"
#include "tw/graph/evaluate.h"

namespace tw::graph::onnx {

namespace {

/// Elements of any tensor on the way; each is computed in plain loops.
constexpr int64_t kMostElements = 4096;

bool all_numbers(const std::vector<Expr>& elements) {
  return std::ranges::all_of(elements, [](const Expr& e) { return e.is_constant(); });
}

/// The tensor and all that it is computed from, each once, operands first.
std::vector<TensorId> ancestry(const Graph& g, TensorId t) {
  std::vector<char> seen(g.tensors().size());
  std::vector<TensorId> todo = {t}, all;
  seen[static_cast<size_t>(t)] = 1;
  while (!todo.empty()) {
    all.push_back(todo.back());
    todo.pop_back();
    const TensorInfo& info = g.tensor(all.back());
    if (info.producer < 0 || info.contents) continue;
    for (TensorId from : g.nodes()[static_cast<size_t>(info.producer)].compute.operands)
      if (!std::exchange(seen[static_cast<size_t>(from)], 1)) todo.push_back(from);
  }
  std::ranges::sort(all);  // operands come first in the graph
  return all;
}

bool is_small(const std::vector<Expr>& extents) {
  int64_t count = 1;
  for (const Expr& e : extents) {
    if (!e.is_constant() || e.constant() < 0 || e.constant() > kMostElements) return false;
    count *= e.constant();
    if (count > kMostElements) return false;
  }
  return true;
}

bool names_dims(const Term& t) {
  bool found = false;
  if (t)
    for_each(t, [&](const TermNode& n) {
      if (n.kind != TermKind::index) return;
      for_each_symbol(n.index, [&](Symbol s) { found |= s.kind == SymbolKind::dim; });
    });
  return found;
}

/// Whether sizes have no part in what it computes, but through its operands.
bool is_fixed(const Compute& c) {
  return std::ranges::all_of(c.axes, [](const Expr& e) { return e.is_constant(); }) &&
         !names_dims(c.body) && !names_dims(c.finish);
}

}  // namespace

DecidedBy decided_by(const Graph& g, TensorId t) {
  DecidedBy by = DecidedBy::constants;
  for (TensorId from : ancestry(g, t)) {
    const TensorInfo& info = g.tensor(from);
    if (info.constant) continue;
    if (info.contents) {
      if (!all_numbers(*info.contents)) by = DecidedBy::sizes;
    } else if (info.producer < 0) {
      return DecidedBy::data;
    } else if (!is_fixed(g.nodes()[static_cast<size_t>(info.producer)].compute)) {
      by = DecidedBy::sizes;
    }
  }
  return by;
}

std::optional<Tensor> known_value(const Graph& g, TensorId t) {
  if (decided_by(g, t) != DecidedBy::constants) return std::nullopt;
  Graph part("constant");
  std::map<TensorId, TensorId> in_part;
  for (TensorId from : ancestry(g, t)) {
    const TensorInfo& info = g.tensor(from);
    if (!is_small(info.dims)) return std::nullopt;
    if (info.constant) {
      in_part[from] = part.constant(info.name, *info.constant);
    } else if (info.contents) {
      in_part[from] = part.shape_value(info.name, info.dtype, *info.contents, info.dims);
    } else {
      Compute c = g.nodes()[static_cast<size_t>(info.producer)].compute;
      if (!is_small(c.axes)) return std::nullopt;
      for (TensorId& operand : c.operands) operand = in_part.at(operand);
      in_part[from] = part.compute(std::move(c), info.name);
    }
  }
  part.output("value", in_part.at(t));
  return evaluate(part, {}).at(0);
}

}  // namespace tw::graph::onnx
