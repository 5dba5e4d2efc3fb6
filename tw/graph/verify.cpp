#include <algorithm>
#include <fmt/format.h>

#include "tw/graph/graph.h"
#include "tw/graph/loops.h"

namespace tw::graph {

namespace {

/// The faults of one node.
class NodeVerifier {
 public:
  NodeVerifier(const Graph& g, size_t index, std::string& faults)
      : g_(g),
        node_(g.nodes()[index]),
        c_(node_.compute),
        index_(static_cast<int>(index)),
        faults_(faults) {}

  void run() {
    for (TensorId t : c_.operands) operand(t);
    if (c_.rank < 0 || c_.rank > static_cast<int>(c_.axes.size()))
      return fault(fmt::format("{} axes of the result among {}", c_.rank, c_.axes.size()));
    if (!c_.body) return fault("no body");
    if (c_.axes.size() > 64) return fault("more than 64 axes");
    folds();
    facts_ = facts_of(c_.axes);
    for_each(c_.body, [&](const TermNode& n) { term(n, static_cast<int>(c_.axes.size()), false); });
    if (c_.finish) for_each(c_.finish, [&](const TermNode& n) { term(n, c_.rank, true); });
    const TensorInfo& out = g_.tensor(node_.out);
    if (out.dtype != c_.dtype())
      fault(fmt::format("gives {}, its tensor is {}", name(c_.dtype()), name(out.dtype)));
    if (!std::equal(out.dims.begin(), out.dims.end(), c_.axes.begin(), c_.axes.begin() + c_.rank))
      fault("its tensor has other extents");
  }

 private:
  void fault(const std::string& what) {
    faults_ += fmt::format("%{} '{}': {}\n", node_.out, node_.name, what);
  }

  void operand(TensorId t) {
    if (t < 0 || t >= static_cast<TensorId>(g_.tensors().size()))
      return fault(fmt::format("operand %{} is no tensor", t));
    const TensorInfo& info = g_.tensor(t);
    const bool given = info.constant || info.contents ||
                       std::find(g_.inputs().begin(), g_.inputs().end(), t) != g_.inputs().end();
    if (!given && (info.producer < 0 || info.producer >= index_))
      fault(fmt::format("operand %{} is not there yet", t));
  }

  void folds() {
    if (c_.fold == Fold::none && c_.reduced() != 0) fault("reduced axes without a fold");
    if (c_.fold != Fold::none && c_.reduced() == 0) fault("a fold of no axes");
    if (finds_place(c_.fold) && c_.reduced() != 1) fault("a place along several axes");
    if (c_.fold == Fold::none && c_.finish) fault("finishes what is not folded");
  }

  void term(const TermNode& n, int axes, bool finishing) {
    if (n.kind == TermKind::index)
      for_each_symbol(n.index, [&](Symbol s) {
        const bool axis = s.kind == SymbolKind::loop && s.id < axes;
        const bool dim =
            s.kind == SymbolKind::dim && s.id < static_cast<int>(g_.dim_names().size());
        if (!axis && !dim) fault(fmt::format("mentions i{}, which is no axis here", s.id));
      });
    if (n.kind == TermKind::load) load(n);
    if (n.kind == TermKind::result && !finishing) fault("reads the fold's result inside it");
    if (n.kind == TermKind::result && n.dtype != c_.folded_dtype())
      fault(fmt::format("reads the fold's {} as {}", name(c_.folded_dtype()), name(n.dtype)));
    if (n.kind == TermKind::op) operation(n);
  }

  void operation(const TermNode& n) {
    const size_t first = n.code == Opcode::where ? 1 : 0;
    if (first == 1 && n.in[0]->dtype != b1) fault("a choice by what is no b1");
    for (size_t k = first; k < n.in.size(); ++k)
      if (n.in[k]->dtype != n.in[first]->dtype)
        fault(fmt::format("{} of {} and {}", info(n.code).name, name(n.in[first]->dtype),
                          name(n.in[k]->dtype)));
    const DType want = compares(n.code) ? b1 : n.in[first]->dtype;
    if (n.dtype != want)
      fault(fmt::format("{} gives {}, not {}", info(n.code).name, name(want), name(n.dtype)));
  }

  void load(const TermNode& n) {
    if (n.operand < 0 || n.operand >= static_cast<int>(c_.operands.size()))
      return fault(fmt::format("reads operand {} of {}", n.operand, c_.operands.size()));
    const TensorId t = c_.operands[static_cast<size_t>(n.operand)];
    const TensorInfo& info = g_.tensor(t);
    if (n.dtype != info.dtype)
      fault(fmt::format("reads %{} as {}, it is {}", t, name(n.dtype), name(info.dtype)));
    if (n.in.size() != info.dims.size())
      return fault(
          fmt::format("reads %{} at {} coordinates of {}", t, n.in.size(), info.dims.size()));
    for (size_t k = 0; k < n.in.size(); ++k) {
      if (n.in[k]->dtype != i64) fault(fmt::format("a coordinate is {}", name(n.in[k]->dtype)));
      if (n.pad || n.in[k]->kind != TermKind::index) continue;
      const Interval at = bounds(n.in[k]->index, facts_), extent = bounds(info.dims[k], {});
      const bool empty = std::any_of(c_.axes.begin(), c_.axes.end(),
                                     [](const Expr& e) { return bounds(e, {}).lo <= 0; });
      if (!empty && (at.hi < 0 || at.lo >= extent.hi))
        fault(fmt::format("reads %{} outside, at {}", t, g_.text(n.in[k]->index)));
    }
  }

  const Graph& g_;
  const Node& node_;
  const Compute& c_;
  int index_;
  std::string& faults_;
  Facts facts_;
};

}  // namespace

std::string verify(const Graph& g) {
  std::string faults;
  for (size_t i = 0; i < g.nodes().size(); ++i) NodeVerifier(g, i, faults).run();
  for (const auto& [name, t] : g.outputs()) {
    const TensorInfo& info = g.tensor(t);
    const bool input = std::find(g.inputs().begin(), g.inputs().end(), t) != g.inputs().end();
    if (info.producer < 0 && !info.constant && !info.contents && !input)
      faults += fmt::format("output '{}': nothing makes %{}\n", name, t);
  }
  return faults;
}

}  // namespace tw::graph
