#include <fmt/format.h>

#include "tw/base/error.h"
#include "tw/graph/graph.h"

namespace tw::graph {

namespace {

std::string quoted(const std::string& s) {
  std::string text = "\"";
  for (char c : s) {
    if (c == '"' || c == '\\') text += '\\';
    if (static_cast<unsigned char>(c) < ' ')
      text += fmt::format("\\x{:02x}", c);
    else
      text += c;
  }
  return text + "\"";
}

std::string number_text(DType t, const Number& n) {
  const std::string value = n.integral ? fmt::format("{}", n.i) : fmt::format("{}", n.f);
  return fmt::format("{} {}", name(t), value);
}

class Printer {
 public:
  explicit Printer(const Graph& g) : g_(g) {}

  std::string list(const std::vector<Expr>& dims) const {
    std::string text;
    for (const Expr& e : dims) text += (text.empty() ? "" : ", ") + g_.text(e);
    return text;
  }

  std::string type(const TensorInfo& t) const {
    return fmt::format("{}[{}]", tw::name(t.dtype), list(t.dims));
  }

  std::string node(const Node& n) const {
    const Compute& c = n.compute;
    const auto axes = [&](int from, int to) {
      std::string text;
      for (int k = from; k < to; ++k)
        text += fmt::format("{}i{} < {}", k == from ? "" : ", ", k,
                            g_.text(c.axes[static_cast<size_t>(k)]));
      return text;
    };
    std::string text = fmt::format("%{} = [{}] ", n.out, axes(0, c.rank));
    if (c.fold != Fold::none)
      text += fmt::format("{} [{}] ", tw::graph::name(c.fold),
                          axes(c.rank, static_cast<int>(c.axes.size())));
    text += term(c, c.body);
    if (c.finish) text += " then " + term(c, c.finish);
    return text + "  " + quoted(n.name);
  }

 private:
  std::string terms(const Compute& c, const std::vector<Term>& in) const {
    std::string text;
    for (const Term& t : in) text += (text.empty() ? "" : ", ") + term(c, t);
    return text;
  }

  std::string term(const Compute& c, const Term& t) const {
    switch (t->kind) {
      case TermKind::constant:
        return number_text(t->dtype, t->value);
      case TermKind::index:
        return g_.text(t->index);
      case TermKind::load: {
        const std::string pad = t->pad ? " else " + number_text(t->dtype, *t->pad) : std::string();
        return fmt::format("%{}[{}{}]", c.operands[static_cast<size_t>(t->operand)],
                           terms(c, t->in), pad);
      }
      case TermKind::op:
        return fmt::format("{}({})", info(t->code).name, terms(c, t->in));
      case TermKind::cast:
        return fmt::format("{}({})", tw::name(t->dtype), term(c, t->in[0]));
      case TermKind::result:
        return "$";
    }
    throw InternalError("a term of no kind");
  }

  const Graph& g_;
};

}  // namespace

std::string to_string(const Graph& g, const Node& n) { return Printer(g).node(n); }

std::string to_string(const Graph& g) {
  const Printer p(g);
  std::string text = fmt::format("graph {}\n", quoted(g.name()));
  for (const std::string& d : g.dim_names()) text += fmt::format("dim {}\n", quoted(d));
  for (TensorId t : g.inputs())
    text += fmt::format("%{} = input {}  {}\n", t, p.type(g.tensor(t)), quoted(g.tensor(t).name));
  for (size_t t = 0; t < g.tensors().size(); ++t) {
    const TensorInfo& info = g.tensors()[t];
    if (info.constant)
      text += fmt::format("%{} = constant {}  {}\n", t, p.type(info), quoted(info.name));
    else if (info.contents)
      text += fmt::format("%{} = sizes {} {{{}}}  {}\n", t, p.type(info), p.list(*info.contents),
                          quoted(info.name));
  }
  for (const Node& n : g.nodes()) text += p.node(n) + "\n";
  for (const auto& [name, t] : g.outputs())
    text += fmt::format("output {} = %{}\n", quoted(name), t);
  return text;
}

}  // namespace tw::graph
