#include "tw/graph/graph.h"

#include <algorithm>
#include <fmt/format.h>

#include "tw/base/error.h"
#include "tw/graph/contents.h"
#include "tw/graph/loops.h"
#include "tw/math/facts.h"

namespace tw::graph {

const char* name(Fold f) {
  switch (f) {
    case Fold::none:
      return "none";
    case Fold::sum:
      return "sum";
    case Fold::prod:
      return "prod";
    case Fold::min:
      return "min";
    case Fold::max:
      return "max";
    case Fold::argmax:
      return "argmax";
    case Fold::argmin:
      return "argmin";
    case Fold::last_argmax:
      return "last_argmax";
    case Fold::last_argmin:
      return "last_argmin";
  }
  throw InternalError("a fold of no kind");
}

bool finds_place(Fold f) {
  return f == Fold::argmax || f == Fold::argmin || f == Fold::last_argmax || f == Fold::last_argmin;
}

DType Compute::folded_dtype() const { return finds_place(fold) ? i64 : body->dtype; }

DType Compute::dtype() const { return finish ? finish->dtype : folded_dtype(); }

int Compute::operand(TensorId t) {
  const auto at = std::find(operands.begin(), operands.end(), t);
  const auto j = static_cast<int>(at - operands.begin());
  if (at == operands.end()) operands.push_back(t);
  return j;
}

void Compute::rewrite_terms(const Change& change) {
  body = rewrite(body, change);
  if (finish) finish = rewrite(finish, change);
}

void Compute::substitute_axes(const std::vector<Term>& now) {
  body = substitute(body, now);
  if (finish) finish = substitute(finish, now);
}

void Compute::for_each_term(const std::function<void(const TermNode&)>& visit) const {
  for_each(body, visit);
  if (finish) for_each(finish, visit);
}

TensorId Graph::add(TensorInfo t) {
  tensors_.push_back(std::move(t));
  return static_cast<TensorId>(tensors_.size()) - 1;
}

Expr Graph::dim(const std::string& name) {
  auto at = std::find(dim_names_.begin(), dim_names_.end(), name);
  if (at == dim_names_.end()) at = dim_names_.insert(dim_names_.end(), name);
  return Expr::symbol(SymbolKind::dim, static_cast<int>(at - dim_names_.begin()));
}

TensorId Graph::input(const std::string& name, DType t, std::vector<Expr> dims) {
  inputs_.push_back(add({.name = name, .dtype = t, .dims = std::move(dims)}));
  return inputs_.back();
}

TensorId Graph::constant(const std::string& name, Tensor value) {
  TensorInfo t{.name = name, .dtype = value.dtype()};
  for (int64_t d : value.dims()) t.dims.push_back(d);
  t.contents = contents_of(value);
  t.constant = std::move(value);
  return add(std::move(t));
}

TensorId Graph::shape_value(const std::string& name, DType t, std::vector<Expr> elements,
                            std::optional<std::vector<Expr>> dims) {
  TensorInfo info{.name = name, .dtype = t};
  info.dims = dims ? std::move(*dims) : std::vector<Expr>{static_cast<int64_t>(elements.size())};
  info.contents = std::move(elements);
  return add(std::move(info));
}

TensorId Graph::compute(Compute c, const std::string& name) {
  Facts known = facts();
  for (size_t k = 0; k < c.axes.size(); ++k) {
    c.axes[k] = simplify(c.axes[k], known);
    if (bounds(c.axes[k], known).hi < 0)
      throw UserError(fmt::format("tensor '{}' has extent {} of axis {}, wanted 0 or more", name,
                                  text(c.axes[k]), k));
  }
  known.merge(facts_of(c.axes));
  const Change simpler = [&](const Term& n) -> Term {
    return n->kind == TermKind::index ? index(simplify(n->index, known)) : nullptr;
  };
  c.rewrite_terms(simpler);
  TensorInfo t{.name = name, .dtype = c.dtype()};
  t.dims.assign(c.axes.begin(), c.axes.begin() + c.rank);
  t.contents = contents_of(*this, c);
  if (t.contents) return add(std::move(t));
  t.producer = static_cast<int>(nodes_.size());
  const TensorId out = add(std::move(t));
  nodes_.push_back({std::move(c), out, name});
  return out;
}

void Graph::output(const std::string& name, TensorId t) { outputs_.emplace_back(name, t); }

void Graph::replace_nodes(std::vector<Node> nodes) {
  for (TensorInfo& t : tensors_) t.producer = -1;
  nodes_ = std::move(nodes);
  for (size_t i = 0; i < nodes_.size(); ++i)
    tensors_[static_cast<size_t>(nodes_[i].out)].producer = static_cast<int>(i);
}

Expr Graph::simple(const Expr& e) const { return simplify(e, facts()); }

Facts Graph::facts() const {
  Facts facts;
  for (size_t d = 0; d < dim_names_.size(); ++d)
    facts[{SymbolKind::dim, static_cast<int>(d)}] = {.range = {0, kLargestDim}};
  return facts;
}

bool Graph::same(const Expr& a, const Expr& b, const std::string& what) {
  const Expr difference = simple(a - b);
  if (difference.is_constant()) return difference.constant() == 0;
  const Interval range = bounds(difference, facts());
  if (range.lo > 0 || range.hi < 0) return false;
  requirements_.push_back({a, b, what});
  return true;
}

int64_t Graph::value(const Expr& e, const std::vector<int64_t>& sizes) {
  return evaluate(e, [&](Symbol s) { return sizes.at(static_cast<size_t>(s.id)); });
}

int64_t Graph::number(const Expr& e, const std::string& what) const {
  const Expr s = simple(e);
  if (!s.is_constant())
    throw NeedsSizes(fmt::format("{} is {}, which the sizes of inputs decide", what, text(s)));
  return s.constant();
}

std::string Graph::text(const Expr& e) const {
  return tw::to_string(e, [&](Symbol s) {
    if (s.kind == SymbolKind::dim) return dim_names_.at(static_cast<size_t>(s.id));
    return fmt::format("i{}", s.id);
  });
}

}  // namespace tw::graph
