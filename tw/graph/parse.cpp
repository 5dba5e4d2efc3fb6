#include <cctype>
#include <charconv>
#include <cstdlib>
#include <fmt/format.h>
#include <map>

#include "tw/base/error.h"
#include "tw/graph/graph.h"

namespace tw::graph {

namespace {

std::optional<Fold> fold_named(const std::string& word) {
  for (int f = 1; f <= static_cast<int>(Fold::last_argmin); ++f)
    if (word == name(static_cast<Fold>(f))) return static_cast<Fold>(f);
  return std::nullopt;
}

std::optional<Opcode> op_named(const std::string& word) {
  for (int c = 0; c < kOpcodeCount; ++c)
    if (word == info(static_cast<Opcode>(c)).name) return static_cast<Opcode>(c);
  return std::nullopt;
}

/// Reads lines of to_string(), one tensor or word of the graph each.
class GraphParser {
 public:
  GraphParser(const std::string& text, const ConstantOf& constant)
      : text_(text), constant_(constant) {}

  Graph run() {
    expect_word("graph");
    Graph g(string());
    g_ = &g;
    end_line();
    while (at_ < text_.size()) {
      line();
      end_line();
    }
    return g;
  }

 private:
  // ---- characters

  [[noreturn]] void fail(const std::string& what) const {
    const auto lines = std::count(text_.begin(), text_.begin() + static_cast<ptrdiff_t>(at_), '\n');
    throw UserError(fmt::format("line {} of a graph: {}", lines + 1, what));
  }
  void spaces() {
    while (at_ < text_.size() && text_[at_] == ' ') ++at_;
  }
  bool skip(const std::string& s) {
    spaces();
    if (text_.compare(at_, s.size(), s) != 0) return false;
    at_ += s.size();
    return true;
  }
  void expect(const std::string& s) {
    if (!skip(s)) fail(fmt::format("got '{}', wanted '{}'", text_.substr(at_, 12), s));
  }
  void end_line() {
    spaces();
    if (at_ < text_.size() && text_[at_] != '\n')
      fail(fmt::format("got '{}', wanted the end of the line", text_.substr(at_, 12)));
    if (at_ < text_.size()) ++at_;
  }
  std::string word() {
    spaces();
    const size_t from = at_;
    while (at_ < text_.size() &&
           (std::isalnum(static_cast<unsigned char>(text_[at_])) || text_[at_] == '_'))
      ++at_;
    if (from == at_) fail(fmt::format("got '{}', wanted a word", text_.substr(at_, 12)));
    return text_.substr(from, at_ - from);
  }
  void expect_word(const std::string& s) {
    if (const std::string got = word(); got != s)
      fail(fmt::format("got '{}', wanted '{}'", got, s));
  }
  std::string string() {
    expect("\"");
    std::string s;
    while (at_ < text_.size() && text_[at_] != '"' && text_[at_] != '\n') {
      if (text_[at_] == '\\' && text_.compare(at_, 2, "\\x") == 0 && at_ + 4 <= text_.size()) {
        s += static_cast<char>(std::strtol(text_.substr(at_ + 2, 2).c_str(), nullptr, 16));
        at_ += 4;
        continue;
      }
      if (text_[at_] == '\\') ++at_;
      s += text_[at_++];
    }
    expect("\"");
    return s;
  }
  template <class T>
  T number() {
    spaces();
    T value{};
    const auto [end, code] =
        std::from_chars(text_.data() + at_, text_.data() + text_.size(), value);
    if (code != std::errc()) fail(fmt::format("got '{}', wanted a number", text_.substr(at_, 12)));
    at_ = static_cast<size_t>(end - text_.data());
    return value;
  }
  DType dtype() {
    const std::string got = word();
    const std::optional<DType> t = dtype_named(got);
    if (!t) fail(fmt::format("got '{}', wanted a dtype", got));
    return *t;
  }

  // ---- parts

  /// Up to one of the ends that is in no parenthesis.
  Expr expr(const std::string& ends) {
    spaces();
    const size_t from = at_;
    int depth = 0;
    for (; at_ < text_.size() && text_[at_] != '\n'; ++at_) {
      if (text_[at_] == '(') ++depth;
      if (text_[at_] == ')' && depth-- == 0) break;
      if (depth == 0 && ends.find(text_[at_]) != std::string::npos) break;
      if (depth == 0 && text_.compare(at_, 6, " else ") == 0) break;
    }
    const std::string text = text_.substr(from, at_ - from);
    return parse_expr(text, [&](const std::string& name) -> std::optional<Symbol> {
      if (const auto d = dims_.find(name); d != dims_.end())
        return Symbol{SymbolKind::dim, d->second};
      int axis = 0;
      const char* const last = name.data() + name.size();
      if (name.size() < 2 || name[0] != 'i') return std::nullopt;
      if (std::from_chars(name.data() + 1, last, axis).ptr != last) return std::nullopt;
      return axis_symbol(axis);
    });
  }

  std::vector<Expr> exprs(const char* open, const char* close) {
    std::vector<Expr> all;
    expect(open);
    if (skip(close)) return all;
    do all.push_back(expr(std::string(",") + close));
    while (skip(","));
    expect(close);
    return all;
  }

  TensorId tensor() {
    expect("%");
    const int id = number<int>();
    const auto at = tensors_.find(id);
    if (at == tensors_.end()) fail(fmt::format("%{} is not there yet", id));
    return at->second;
  }

  Number value(DType t) {
    if (skip("~")) return {false, 0, number<double>()};
    const auto v = number<int64_t>();
    return is_float(t) ? Number{false, 0, static_cast<double>(v)}
                       : Number{true, v, static_cast<double>(v)};
  }

  std::vector<Term> terms() {
    std::vector<Term> all;
    expect("(");
    do all.push_back(term());
    while (skip(","));
    expect(")");
    return all;
  }

  Term load_of() {
    const TensorId t = tensor();
    const int operand = c_.operand(t);
    std::vector<Term> coordinates;
    std::optional<Number> pad;
    expect("[");
    while (!skip("]")) {
      if (skip("else ")) {
        const DType type = dtype();
        pad = value(type);
        expect("]");
        break;
      }
      coordinates.push_back(skip("@") ? term() : index(expr(",]")));
      skip(",");
    }
    return load(operand, g_->tensor(t).dtype, std::move(coordinates), pad);
  }

  Term term() {
    spaces();
    if (at_ < text_.size() && text_[at_] == '%') return load_of();
    if (skip("{")) {
      const Term t = index(expr("}"));
      expect("}");
      return t;
    }
    if (skip("$")) return result(c_.folded_dtype());
    const std::string head = word();
    if (const std::optional<DType> t = dtype_named(head)) {
      spaces();
      if (text_[at_] == '(') return cast(terms().at(0), *t);
      return constant(*t, value(*t));
    }
    const std::optional<Opcode> code = op_named(head);
    if (!code) fail(fmt::format("'{}' is no operation", head));
    const std::vector<Term> in = terms();
    if (*code == Opcode::where && in.size() == 3) return where(in[0], in[1], in[2]);
    if (static_cast<int>(in.size()) != info(*code).operands || in.size() > 2)
      fail(fmt::format("{} of {} operands", head, in.size()));
    return in.size() == 1 ? op(*code, in[0]) : op(*code, in[0], in[1]);
  }

  void axes() {
    expect("[");
    while (!skip("]")) {
      word();
      expect("<");
      c_.axes.push_back(expr(",]"));
      skip(",");
    }
  }

  // ---- lines

  void line() {
    spaces();
    if (text_[at_] == '%') return tensor_line();
    const std::string head = word();
    if (head == "dim") {
      const std::string name = word();
      const Expr d = g_->dim(string());
      dims_[name] = d.symbol().id;
    } else if (head == "require") {
      const Expr a = expr("=");
      expect("=");
      const Expr b = expr("\"");
      g_->same(a, b, string());
    } else if (head == "output") {
      const std::string name = string();
      expect("=");
      g_->output(name, tensor());
    } else {
      fail(fmt::format("got '{}', wanted a tensor, dim, require or output", head));
    }
  }

  void tensor_line() {
    expect("%");
    const int id = number<int>();
    expect("=");
    spaces();
    if (tensors_.contains(id)) fail(fmt::format("%{} is there already", id));
    tensors_[id] = text_[at_] == '[' ? compute() : given();
  }

  TensorId given() {
    const std::string kind = word();
    const DType t = dtype();
    const std::vector<Expr> dims = exprs("[", "]");
    if (kind == "input") return g_->input(string(), t, dims);
    if (kind == "sizes") {
      const std::vector<Expr> elements = exprs("{", "}");
      const std::string name = string();
      return g_->shape_value(name, t, elements, dims);
    }
    if (kind != "constant") fail(fmt::format("got '{}', wanted input, sizes or constant", kind));
    const std::string name = string();
    std::vector<int64_t> extents;
    for (const Expr& e : dims) extents.push_back(g_->number(e, "an extent of a constant"));
    if (constant_) return g_->constant(name, constant_(name, t, extents));
    Tensor zeros = host_tensor(t, extents);
    for (int64_t i = 0; i < zeros.count(); ++i) set(zeros, i, 0);
    return g_->constant(name, zeros);
  }

  TensorId compute() {
    c_ = Compute{};
    axes();
    c_.rank = static_cast<int>(c_.axes.size());
    const size_t before = at_;
    if (const std::optional<Fold> f = fold_ahead()) {
      c_.fold = *f;
      axes();
    } else {
      at_ = before;
    }
    c_.body = term();
    if (skip("then ")) c_.finish = term();
    return g_->compute(std::move(c_), string());
  }

  /// A fold is a word before axes.
  std::optional<Fold> fold_ahead() {
    spaces();
    if (!std::isalpha(static_cast<unsigned char>(text_[at_]))) return std::nullopt;
    const std::optional<Fold> f = fold_named(word());
    spaces();
    return f && text_[at_] == '[' ? f : std::nullopt;
  }

  const std::string& text_;
  const ConstantOf& constant_;
  size_t at_ = 0;
  Graph* g_ = nullptr;
  std::map<std::string, int> dims_;
  std::map<int, TensorId> tensors_;
  Compute c_;
};

}  // namespace

Graph parse_graph(const std::string& text, const ConstantOf& constant) {
  return GraphParser(text, constant).run();
}

}  // namespace tw::graph
