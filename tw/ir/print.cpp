#include "tw/ir/print.h"

#include <cmath>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "tw/ir/infer.h"

namespace tw {
namespace {

// In double quotes. What is not printable ASCII, quotes, \\ and / (of which two begin a comment)
// are \\xNN.
std::string quoted(const std::string& text) {
  std::string s = "\"";
  for (const char c : text) {
    const bool plain = c >= ' ' && c <= '~' && c != '"' && c != '\\' && c != '/';
    s += plain ? std::string(1, c) : fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
  }
  return s + "\"";
}

constexpr uint32_t kUnnumbered = ~uint32_t{0};

// Prints broken programs too (the verifier shows them), so it trusts no id and no attribute.
class Printer {
 public:
  Printer(const Program& p, PrintOptions o)
      : p_(p),
        o_(o),
        numbers_(p.values.size(), kUnnumbered),
        name_of_([this](Symbol s) { return symbol_name(p_, s); }) {
    number(p.body);
  }

  std::string program() const {
    std::string s = fmt::format("program {}\n", p_.name);
    for (const Dim& d : p_.dims) {
      s += "dim " + d.name;
      if (d.multiple_of != 1) s += fmt::format(" multiple_of {}", d.multiple_of);
      if (d.chosen()) s += fmt::format(" at_most {}", d.at_most);
      s += "\n";
    }
    for (const Param& a : p_.params)
      s += fmt::format("{} {}: {}[{}]\n", kind(a.kind), a.name, name(a.dtype), exprs(a.dims));
    s += fmt::format("grid ({})", exprs(p_.grid));
    if (p_.ticket) s += " ticket " + param(*p_.ticket);
    return s + "\n\n" + region(p_.body, "");
  }

  std::string op(const Op& o, const std::string& pad) const {
    std::string s = pad;
    if (!o.out.empty()) s += values(o.out) + " = ";
    s += head(o);
    if (!o.out.empty()) s += " : " + types(o.out);
    if (is_fold(o.code) && !o.regions.empty()) s += fmt::format(" ({})", values(o.regions[0].args));
    if (!o.regions.empty()) s += " {";
    if (o_.lines && o.at.known()) s += fmt::format("  // {}:{}", o.at.file, o.at.line);
    s += "\n";
    for (size_t r = 0; r < o.regions.size(); ++r) {
      if (r > 0) s += pad + separator(o, r) + "\n";
      s += region(o.regions[r], pad + "  ");
    }
    if (!o.regions.empty()) s += pad + "}\n";
    return s;
  }

 private:
  static const char* separator(const Op& o, size_t region) {
    if (o.code != Opcode::contract) return "} else {";
    return region == 1 ? "} by {" : "} then {";
  }

  std::string param(int k) const {
    const auto at = static_cast<size_t>(k);
    return at < p_.params.size() ? p_.params[at].name : "?";
  }

  static const char* kind(ParamKind k) {
    switch (k) {
      case ParamKind::in:
        return "in";
      case ParamKind::out:
        return "out";
      case ParamKind::inout:
        return "inout";
      case ParamKind::workspace:
        return "workspace";
      case ParamKind::scratch:
        return "scratch";
    }
    return "?";
  }

  void number(const Region& r) {
    for (ValueId v : r.args) number(v);
    for (const Op& o : r.ops) {
      for (const Region& inner : o.regions) number(inner);
      for (ValueId v : o.out) number(v);
    }
  }
  void number(ValueId v) {
    if (v < numbers_.size() && numbers_[v] == kUnnumbered) numbers_[v] = next_++;
  }

  std::string value(ValueId v) const {
    if (v >= numbers_.size()) return fmt::format("%?{}", v);
    const std::string& name = p_.values[v].name;
    const std::string prefix = o_.names && !name.empty() ? name + "." : "";
    if (numbers_[v] == kUnnumbered) return fmt::format("%{}?{}", prefix, v);
    return fmt::format("%{}{}", prefix, numbers_[v]);
  }
  std::string values(const std::vector<ValueId>& vs) const {
    return join(vs, [&](ValueId v) { return value(v); });
  }
  std::string types(const std::vector<ValueId>& vs) const {
    return join(vs, [&](ValueId v) { return v < p_.values.size() ? to_string(p_.type(v)) : "?"; });
  }
  std::string expr(const Expr& e) const { return to_string(e, name_of_); }
  std::string exprs(const std::vector<Expr>& es) const {
    return join(es, [&](const Expr& e) { return expr(e); });
  }
  template <class T, class F>
  static std::string join(const std::vector<T>& items, const F& text) {
    std::string s;
    for (const T& item : items) s += (s.empty() ? "" : ", ") + text(item);
    return s;
  }

  static std::string number(const Number& n, DType t) {
    if (n.integral)
      return t == u64 ? fmt::format("{}", static_cast<uint64_t>(n.i)) : fmt::format("{}", n.i);
    return std::isnan(n.f) ? "nan" : fmt::format("{}", n.f);
  }
  DType dtype_of_result(const Op& o) const {
    return !o.out.empty() && o.out[0] < p_.values.size() ? p_.type(o.out[0]).dtype : f32;
  }

  // Leading fixed axes stand in [..]; a fixed axis after the first tile axis stands in the braces,
  // in brackets of its own. `at`: coordinates of the other axes, instead of their origins.
  std::string view(const View& v, const std::vector<ValueId>* at = nullptr) const {
    const auto param = static_cast<size_t>(v.param);
    std::string s = param < p_.params.size() ? p_.params[param].name : "?";
    const size_t lead =
        v.axes.empty() ? v.origin.size()
                       : std::min(static_cast<size_t>(std::max(v.axes[0], 0)), v.origin.size());
    if (lead > 0) s += fmt::format("[{}]", exprs({v.origin.begin(), v.origin.begin() + lead}));
    std::string inner;
    size_t next = 0;
    for (size_t a = lead; a < v.origin.size(); ++a) {
      const bool runs =
          std::find(v.axes.begin(), v.axes.end(), static_cast<int>(a)) != v.axes.end();
      const std::string e = expr(v.origin[a]);
      const bool given = runs && at != nullptr && next < at->size();
      const std::string running = given ? value((*at)[next++]) : e;
      inner += (inner.empty() ? "" : ", ") + (runs ? running : "[" + e + "]");
    }
    return s + "{" + inner + "}";
  }

  // Of a gather, scatter or atomic.
  std::string place(const Op& o) const {
    const auto* atomic = std::get_if<AtomicAttr>(&o.attr);
    const bool masked = atomic ? atomic->masked : o.as<PlaceAttr>().masked;
    const bool expects = atomic && atomic->op == AtomicOp::cas;
    const size_t values = o.code == Opcode::gather ? 0 : expects ? 2 : 1;
    if (o.in.size() != view_of(o)->axes.size() + values + (masked ? 1 : 0))
      return fmt::format("{}?", info(o.code).name);
    const PlaceOperands in = place_operands(o);
    std::string s = info(o.code).name;
    if (atomic)
      s += fmt::format(" {} {} {}", name(atomic->op), name(atomic->order), name(atomic->scope));
    if (in.value) s += fmt::format(" {}", value(*in.value));
    if (in.expected) s += fmt::format(" if {}", value(*in.expected));
    if (in.value) s += " to";
    s += " " + view(*view_of(o), &in.at);
    if (in.mask) s += " mask " + value(*in.mask);
    if (o.code == Opcode::gather) s += pad(o.as<PlaceAttr>().pad, dtype_of_result(o));
    return s;
  }

  static std::string pad(const Number& pad, DType t) {
    const bool zero = pad.integral ? pad.i == 0 : pad == Number{false, 0, 0.0};
    return zero ? "" : " pad " + number(pad, t);
  }

  std::string load(const Op& o) const {
    const auto& a = o.as<ViewAttr>();
    return "load " + view(a.view) + pad(a.pad, dtype_of_result(o));
  }

  // Messages are of no meaning; where names are left out they are too.
  std::string message(const Op& o) const {
    const std::string& text = o.as<MessageAttr>().text;
    std::string s = fmt::format("{} {}", info(o.code).name, values(o.in));
    return o_.names && !text.empty() ? fmt::format("{} {}", s, quoted(text)) : s;
  }

  std::string cast(const Op& o) const {
    const auto& a = o.as<CastAttr>();
    std::string s = "cast " + values(o.in);
    if (a.rounding != Rounding::RN) s += fmt::format(" {}", name(a.rounding));
    if (a.saturate) s += " saturate";
    if (a.rounding == Rounding::SR) s += fmt::format(" seed {}", expr(a.seed));
    return s;
  }

  std::string for_loop(const Op& o) const {
    const auto& a = o.as<LoopAttr>();
    std::string s =
        fmt::format("for i{} in {}..{} step {}", a.loop, expr(a.lo), expr(a.hi), expr(a.step));
    return s + carried(o);
  }

  std::string carried(const Op& o) const {
    if (o.in.empty() || o.regions.empty()) return "";
    std::string carry;
    for (size_t k = 0; k < o.in.size(); ++k) {
      const auto& args = o.regions[0].args;
      carry += (carry.empty() ? "" : ", ") + (k < args.size() ? value(args[k]) : "?") + " = " +
               value(o.in[k]);
    }
    return fmt::format(" carry ({})", carry);
  }

  std::string contract(const Op& o) const {
    const auto& a = o.as<ContractAttr>();
    std::vector<ValueId> sum;
    if (o.regions.size() == 3) sum = o.regions[2].args;
    return fmt::format("contract {} rows {}, cols {}, depth {} to {} : {}", name(a.precision),
                       expr(a.rows), expr(a.cols), expr(a.depth), values(sum), types(sum));
  }

  std::string fold(const Op& o) const {
    const bool backward = o.code == Opcode::scan && o.as<ScanAttr>().reverse;
    const ReduceAttr& a = fold_of(o);
    return fmt::format("{} {}{} {} axis {}", info(o.code).name, backward ? "reverse " : "",
                       name(a.combiner), values(o.in), a.axis);
  }

  // budget: table, one case an op
  std::string head(const Op& o) const {
    const std::string word = info(o.code).name;
    switch (o.code) {
      case Opcode::full:
        return "full " + number(o.as<FullAttr>().value, dtype_of_result(o));
      case Opcode::iota:
        return fmt::format("iota axis {}", o.as<AxisAttr>().axis);
      case Opcode::index:
        return "index " + expr(o.as<IndexAttr>().value);
      case Opcode::load:
        return load(o);
      case Opcode::store:
        return fmt::format("store {} to {}", values(o.in), view(o.as<ViewAttr>().view));
      case Opcode::gather:
      case Opcode::scatter:
      case Opcode::atomic:
        return place(o);
      case Opcode::assert_:
      case Opcode::print:
        return message(o);
      case Opcode::cast:
        return cast(o);
      case Opcode::lookup:
        return fmt::format("lookup {} in ({})", values(o.in),
                           join(o.as<TableAttr>().entries,
                                [&](const Number& n) { return number(n, dtype_of_result(o)); }));
      case Opcode::transpose:
        return fmt::format("transpose {} perm ({})", values(o.in),
                           fmt::join(o.as<PermAttr>().perm, ", "));
      case Opcode::slice:
        return fmt::format("slice {} at ({})", values(o.in),
                           fmt::join(o.as<SliceAttr>().start, ", "));
      case Opcode::reduce:
      case Opcode::scan:
        return fold(o);
      case Opcode::top_k:
        return fmt::format("top_k {} of {}", o.as<TopKAttr>().k, values(o.in));
      case Opcode::dot:
        return fmt::format("dot {} {}", name(o.as<DotAttr>().precision), values(o.in));
      case Opcode::for_:
        return for_loop(o);
      case Opcode::while_:
        return word + carried(o);
      case Opcode::if_: {
        const auto& c = o.as<CondAttr>();
        return fmt::format("if {} {} {}", expr(c.a), name(c.kind), expr(c.b));
      }
      case Opcode::contract:
        return contract(o);
      case Opcode::par:
        return fmt::format("par axis {}", o.as<AxisAttr>().axis);
      case Opcode::bitcast:
      case Opcode::philox:
      case Opcode::neg:
      case Opcode::abs:
      case Opcode::not_:
      case Opcode::sqrt:
      case Opcode::rsqrt:
      case Opcode::exp:
      case Opcode::exp2:
      case Opcode::log:
      case Opcode::sin:
      case Opcode::cos:
      case Opcode::tanh:
      case Opcode::erf:
      case Opcode::tanh_fast:
      case Opcode::erf_fast:
      case Opcode::floor:
      case Opcode::ceil:
      case Opcode::round:
      case Opcode::add:
      case Opcode::sub:
      case Opcode::mul:
      case Opcode::div:
      case Opcode::rem:
      case Opcode::min:
      case Opcode::max:
      case Opcode::min_num:
      case Opcode::max_num:
      case Opcode::and_:
      case Opcode::or_:
      case Opcode::xor_:
      case Opcode::shl:
      case Opcode::shr:
      case Opcode::eq:
      case Opcode::ne:
      case Opcode::lt:
      case Opcode::le:
      case Opcode::where:
      case Opcode::reshape:
      case Opcode::broadcast:
      case Opcode::keep:
        return word + " " + values(o.in);
    }
    return word;
  }

  std::string region(const Region& r, const std::string& pad) const {
    std::string s;
    for (const Op& o : r.ops) s += op(o, pad);
    if (!r.yields.empty()) s += pad + "yield " + values(r.yields) + "\n";
    return s;
  }

  const Program& p_;
  const PrintOptions o_;
  std::vector<uint32_t> numbers_;
  uint32_t next_ = 0;
  const SymbolName name_of_;
};

}  // namespace

std::string print(const Program& p, PrintOptions o) { return Printer(p, o).program(); }
std::string print(const Program& p, const Op& op) { return Printer(p, {}).op(op, ""); }

}  // namespace tw
