#include <cctype>
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
      text += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
    else
      text += c;
  }
  return text + "\"";
}

std::string number_text(DType t, const Number& n) {
  const std::string value = n.integral ? fmt::format("{}", n.i) : fmt::format("{}", n.f);
  return fmt::format("{} {}{}", name(t), n.integral ? "" : "~", value);
}

/// Whether a dim's name can stand in expressions: no axis, function or other word looks like it.
bool plain(const std::string& name) {
  if (name.empty() || std::isdigit(static_cast<unsigned char>(name[0]))) return false;
  for (char c : name)
    if (!std::isalnum(static_cast<unsigned char>(c)) && c != '_') return false;
  const bool axis_like = name.size() > 1 && name[0] == 'i' &&
                         name.find_first_not_of("0123456789", 1) == std::string::npos;
  const bool dim_like = name.rfind("dim", 0) == 0;
  const bool function = name == "min" || name == "max" || name == "mod" || name == "floordiv" ||
                        name == "cdiv" || name == "else";
  return !axis_like && !dim_like && !function;
}

class Printer {
 public:
  explicit Printer(const Graph& g) : g_(g) {}

  std::string expr(const Expr& e) const {
    return tw::to_string(e, [&](Symbol s) {
      return s.kind == SymbolKind::dim ? dim(s.id) : fmt::format("i{}", s.id);
    });
  }

  std::string dim(int d) const {
    const std::string& name = g_.dim_names().at(static_cast<size_t>(d));
    return plain(name) ? name : fmt::format("dim{}", d);
  }

  std::string list(const std::vector<Expr>& dims) const {
    std::string text;
    for (const Expr& e : dims) text += (text.empty() ? "" : ", ") + expr(e);
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
                            expr(c.axes[static_cast<size_t>(k)]));
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

  /// Expressions stand for themselves, what depends on data follows an @.
  std::string coordinates(const Compute& c, const std::vector<Term>& in) const {
    std::string text;
    for (const Term& t : in) {
      if (!text.empty()) text += ", ";
      text += t->kind == TermKind::index ? expr(t->index) : "@" + term(c, t);
    }
    return text;
  }

  std::string term(const Compute& c, const Term& t) const {
    switch (t->kind) {
      case TermKind::constant:
        return number_text(t->dtype, t->value);
      case TermKind::index:
        return "{" + expr(t->index) + "}";
      case TermKind::load: {
        const std::string pad = t->pad ? " else " + number_text(t->dtype, *t->pad) : std::string();
        return fmt::format("%{}[{}{}]", c.operands[static_cast<size_t>(t->operand)],
                           coordinates(c, t->in), pad);
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
  for (size_t d = 0; d < g.dim_names().size(); ++d)
    text += fmt::format("dim {} {}\n", p.dim(static_cast<int>(d)), quoted(g.dim_names()[d]));
  for (TensorId t : g.inputs())
    text += fmt::format("%{} = input {}  {}\n", t, p.type(g.tensor(t)), quoted(g.tensor(t).name));
  for (size_t t = 0; t < g.tensors().size(); ++t) {
    const TensorInfo& info = g.tensors()[t];
    if (info.contents)
      text += fmt::format("%{} = sizes {} {{{}}}  {}\n", t, p.type(info), p.list(*info.contents),
                          quoted(info.name));
    else if (info.constant)
      text += fmt::format("%{} = constant {}  {}\n", t, p.type(info), quoted(info.name));
  }
  for (const Node& n : g.nodes()) text += p.node(n) + "\n";
  for (const Requirement& r : g.requirements())
    text += fmt::format("require {} = {}  {}\n", p.expr(r.a), p.expr(r.b), quoted(r.what));
  for (const auto& [name, t] : g.outputs())
    text += fmt::format("output {} = %{}\n", quoted(name), t);
  return text;
}

}  // namespace tw::graph
