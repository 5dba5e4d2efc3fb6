#include <fmt/format.h>

#include "tw/base/error.h"
#include "tw/ir/impl/cursor.h"
#include "tw/ir/impl/names.h"
#include "tw/ir/impl/rules.h"
#include "tw/ir/infer.h"
#include "tw/ir/print.h"

namespace tw {
namespace {

constexpr int kMaxDepth = 64;  // of regions in regions
constexpr int64_t kMaxLoopId = 1 << 20;

constexpr Combiner kCombiners[] = {
    Combiner::sum,     Combiner::prod, Combiner::min, Combiner::max,  Combiner::min_num,
    Combiner::max_num, Combiner::and_, Combiner::or_, Combiner::xor_, Combiner::custom};
constexpr Rounding kRoundings[] = {Rounding::RN, Rounding::RZ, Rounding::RU, Rounding::SR};
constexpr AtomicOp kAtomics[] = {AtomicOp::add, AtomicOp::min,  AtomicOp::max,  AtomicOp::and_,
                                 AtomicOp::or_, AtomicOp::xor_, AtomicOp::exch, AtomicOp::cas};
constexpr MemoryOrder kOrders[] = {MemoryOrder::relaxed, MemoryOrder::acquire, MemoryOrder::release,
                                   MemoryOrder::acq_rel};
constexpr MemoryScope kScopes[] = {MemoryScope::block, MemoryScope::device, MemoryScope::system};
constexpr Precision kPrecisions[] = {Precision::ieee, Precision::tf32, Precision::tf32x3};
// "<=" before "<": the first that fits is taken.
constexpr CompareKind kCompares[] = {CompareKind::le, CompareKind::lt, CompareKind::eq,
                                     CompareKind::ne};

template <class E, size_t N>
E one_of(Cursor& c, const E (&all)[N], const char* what) {
  for (E e : all)
    if (c.take_word(name(e))) return e;
  c.wanted(what);
}

bool has_regions(const Op& o) {
  if (is_fold(o.code)) return fold_of(o).combiner == Combiner::custom;
  return info(o.code).effect == Effect::control;
}

class Parser : private Names {
 public:
  Parser(const std::string& text, const std::string& file)
      : file_(intern_file(file)), lines_(split_lines(text, file_)) {}

  Program parse() {
    header();
    region(p_.body, 0, {});
    if (!at_end()) line().fail("'}' closes nothing");
    if (auto broken = first_violation(p_))
      throw UserError(broken->at.known() ? broken->at : SourceLoc{file_, 1}, broken->what);
    return std::move(p_);
  }

 private:
  bool at_end() const { return next_ == lines_.size(); }
  SourceLoc end() const { return {file_, lines_.empty() ? 1 : lines_.back().at.line}; }
  Cursor line() const {
    return at_end() ? Cursor("", end()) : Cursor(lines_[next_].text, lines_[next_].at);
  }
  void end_line(Cursor& c) {
    c.expect_end();
    ++next_;
  }

  // ---- header

  void header() {
    Cursor c = line();
    if (!c.take_word("program")) c.wanted("'program <name>'");
    p_.name = c.identifier("the program's name");
    end_line(c);
    while (p_.grid.empty()) {
      if (at_end()) throw UserError(end(), "the text ends, wanted 'grid (...)'");
      header_line();
    }
  }

  void header_line() {
    Cursor c = line();
    if (c.take_word("dim"))
      dim(c);
    else if (c.take_word("in"))
      param(c, ParamKind::in);
    else if (c.take_word("out"))
      param(c, ParamKind::out);
    else if (c.take_word("inout"))
      param(c, ParamKind::inout);
    else if (c.take_word("workspace"))
      param(c, ParamKind::workspace);
    else if (c.take_word("scratch"))
      param(c, ParamKind::scratch);
    else if (c.take_word("grid"))
      grid(c);
    else
      c.wanted("dim, in, out, inout, workspace, scratch or grid");
    end_line(c);
  }

  void dim(Cursor& c) {
    Dim d;
    d.name = c.identifier("the dim's name");
    if (c.take_word("multiple_of")) d.multiple_of = c.integer("the multiple");
    if (c.take_word("at_most")) d.at_most = c.integer("the largest choice");
    if (!dims_.emplace(d.name, static_cast<int>(p_.dims.size())).second)
      c.fail(fmt::format("two dims are named '{}'", d.name));
    p_.dims.push_back(d);
  }

  void param(Cursor& c, ParamKind kind) {
    Param a;
    a.kind = kind;
    a.at = lines_[next_].written;
    a.name = c.identifier("the parameter's name");
    if (!params_.emplace(a.name, static_cast<int>(p_.params.size())).second)
      c.fail(fmt::format("two parameters are named '{}'", a.name));
    c.expect(":");
    a.dtype = c.dtype();
    c.expect("[");
    a.dims = exprs(c, "]");
    p_.params.push_back(std::move(a));
  }

  void grid(Cursor& c) {
    c.expect("(");
    p_.grid = exprs(c, ")");
    if (p_.grid.empty()) c.fail("the grid has no axes, wanted 1 to 3");
    if (!c.take_word("ticket")) return;
    const auto at = params_.find(c.identifier("the parameter that counts"));
    if (at == params_.end()) c.fail("no parameter of that name");
    p_.ticket = at->second;
  }

  // ---- ops

  // What the head of an op names before the types that give it meaning are known.
  struct Head {
    std::vector<std::string> results, args;
    std::optional<Cursor> constant;
    std::string sum;  // of a contract
    std::optional<Type> sum_type;
  };

  // Ops up to a line that starts with '}' or the end. `labels`: of the region's arguments.
  void region(Region& r, int depth, std::vector<std::string> labels) {
    if (depth > kMaxDepth) line().fail("regions nest too deeply");
    while (!at_end() && !line().next_is("}")) {
      Cursor c = line();
      if (c.take_word("yield")) {
        r.yields = uses(c);
        end_line(c);
        if (!at_end() && !line().next_is("}")) line().wanted("'}' after yield");
        break;
      }
      Head head;
      r.ops.push_back(op(c, depth, head));
      labels.insert(labels.end(), head.results.begin(), head.results.end());
    }
    for (const std::string& l : labels) visible_.erase(l);
  }

  Op op(Cursor& c, int depth, Head& head) {
    const Cursor start = c;
    Op o;
    o.at = lines_[next_].written;
    if (c.next_is("%")) {
      do {
        head.results.push_back(c.label());
      } while (c.take(","));
      c.expect("=");
    }
    o.code = c.opcode();
    attribute(o, c, head);
    const std::vector<Type> types = result_types(o, c, head.results.size());
    if (head.constant) constants(o, *head.constant, types[0].dtype);
    if (has_regions(o))
      regions(o, c, head, depth);
    else
      end_line(c);
    for (size_t k = 0; k < types.size(); ++k)
      o.out.push_back(define(head.results[k], types[k], o.at, start));
    return o;
  }

  std::vector<Type> result_types(const Op& o, Cursor& c, size_t n) {
    const OpInfo& i = info(o.code);
    if (i.results != kMany && static_cast<size_t>(i.results) != n)
      c.fail(fmt::format("'{}' has {} results, not {}", i.name, i.results, n));
    std::vector<Type> types;
    if (n == 0) return types;
    c.expect(":");
    do {
      types.push_back(c.type());
      check_type(types.back(), c.at());
    } while (c.take(","));
    if (types.size() != n) c.fail(fmt::format("{} types for {} results", types.size(), n));
    return types;
  }

  void regions(Op& o, Cursor& c, const Head& head, int depth) {
    std::vector<std::string> labels = head.args;
    if (is_fold(o.code)) {
      c.expect("(");
      do {
        labels.push_back(c.label());
      } while (c.take(","));
      c.expect(")");
    }
    c.expect("{");
    const Cursor at_head = c;
    end_line(c);
    Region& first = o.regions.emplace_back();
    for (size_t k = 0; k < labels.size(); ++k) {
      Type t = p_.type(o.in[k % o.in.size()]);
      if (is_fold(o.code)) t.shape.clear();
      first.args.push_back(define(labels[k], t, o.at, at_head));
    }
    const int loop = o.code == Opcode::for_ ? o.as<LoopAttr>().loop : -1;
    if (loop >= 0) enclosing_.insert(loop);
    region(first, depth + 1, labels);
    enclosing_.erase(loop);
    if (o.code == Opcode::if_) next_region(o, "} else {", depth, {});
    if (o.code == Opcode::contract) {
      next_region(o, "} by {", depth, {});
      next_region(o, "} then {", depth, {{head.sum, *head.sum_type}});
    }
    Cursor close = line();
    close.expect("}");
    end_line(close);
  }

  void next_region(Op& o, std::string_view begin, int depth,
                   const std::vector<std::pair<std::string, Type>>& args) {
    Cursor c = line();
    c.expect(begin);
    const Cursor at_head = c;
    end_line(c);
    Region& r = o.regions.emplace_back();
    std::vector<std::string> labels;
    for (const auto& [label, type] : args) {
      labels.push_back(label);
      r.args.push_back(define(label, type, o.at, at_head));
    }
    region(r, depth + 1, labels);
  }

  // What follows the name of an op; just operands where the table has no entry.
  void attribute(Op& o, Cursor& c, Head& head) {
    using Read = void (Parser::*)(Op&, Cursor&, Head&);
    static const std::map<Opcode, Read> kReads = {
        {Opcode::full, &Parser::constant},     {Opcode::iota, &Parser::axis},
        {Opcode::par, &Parser::axis},          {Opcode::index, &Parser::index},
        {Opcode::load, &Parser::load},         {Opcode::store, &Parser::store},
        {Opcode::gather, &Parser::place},      {Opcode::scatter, &Parser::place},
        {Opcode::atomic, &Parser::place},      {Opcode::assert_, &Parser::message},
        {Opcode::print, &Parser::message},     {Opcode::cast, &Parser::cast},
        {Opcode::lookup, &Parser::table},      {Opcode::transpose, &Parser::transpose},
        {Opcode::slice, &Parser::slice},       {Opcode::reduce, &Parser::fold},
        {Opcode::scan, &Parser::fold},         {Opcode::top_k, &Parser::top_k},
        {Opcode::dot, &Parser::dot},           {Opcode::for_, &Parser::for_loop},
        {Opcode::while_, &Parser::while_loop}, {Opcode::if_, &Parser::branch},
        {Opcode::contract, &Parser::contract}};
    if (const auto it = kReads.find(o.code); it != kReads.end())
      (this->*it->second)(o, c, head);
    else
      o.in = uses(c);
  }

  void constant(Op&, Cursor& c, Head& head) {
    head.constant = c;
    c.token();
  }
  void table(Op& o, Cursor& c, Head& head) {
    o.in = {use(c)};
    if (!c.take_word("in")) c.wanted("'in (<constants>)'");
    c.expect("(");
    head.constant = c;
    do {
      c.token();
    } while (c.take(","));
    c.expect(")");
  }
  /// What stood where the cursor is, now that the type is known.
  static void constants(Op& o, Cursor c, DType t) {
    if (o.code == Opcode::full) {
      o.attr = FullAttr{c.number(t)};
      return;
    }
    TableAttr a;
    do {
      a.entries.push_back(c.number(t));
    } while (c.take(","));
    o.attr = a;
  }
  void axis(Op& o, Cursor& c, Head&) { o.attr = AxisAttr{c.axis()}; }
  void index(Op& o, Cursor& c, Head&) { o.attr = IndexAttr{expr(c, {":"})}; }
  void dot(Op& o, Cursor& c, Head&) {
    o.attr = DotAttr{one_of(c, kPrecisions, "a precision")};
    o.in = uses(c);
  }
  void top_k(Op& o, Cursor& c, Head&) {
    o.attr = TopKAttr{c.integer("how many")};
    if (!c.take_word("of")) c.wanted("'of <values>, <indices>'");
    o.in = uses(c);
  }

  void contract(Op& o, Cursor& c, Head& head) {
    const auto extent = [&](const char* word, const char* stop) {
      if (!c.take_word(word)) c.wanted(fmt::format("'{} <expression>'", word));
      const Expr e = expr(c, {stop});
      c.take(",");
      return e;
    };
    const Precision precision = one_of(c, kPrecisions, "a precision");
    const Expr rows = extent("rows", ","), cols = extent("cols", ",");
    o.attr = ContractAttr{rows, cols, extent("depth", "to"), precision};
    if (!c.take_word("to")) c.wanted("'to <value>'");
    head.sum = c.label();
    c.expect(":");
    head.sum_type = c.type();
    check_type(*head.sum_type, c.at());
  }

  void load(Op& o, Cursor& c, Head&) {
    ViewAttr a{view(c), {}};
    const DType t = p_.params[static_cast<size_t>(a.view.param)].dtype;
    a.pad = c.take_word("pad") ? c.number(t) : Number{!is_float(t), 0, 0};
    o.attr = a;
  }

  void store(Op& o, Cursor& c, Head&) {
    o.in = {use(c)};
    if (!c.take_word("to")) c.wanted("'to <view>'");
    o.attr = ViewAttr{view(c), {}};
  }

  ValueId expected(Cursor& c) {
    if (!c.take_word("if")) c.wanted("'if <expected>'");
    return use(c);
  }

  // A gather, scatter or atomic.
  void place(Op& o, Cursor& c, Head&) {
    AtomicAttr atomic;
    PlaceAttr a;
    if (o.code == Opcode::atomic)
      atomic = {{},
                false,
                one_of(c, kAtomics, "an atomic operation"),
                one_of(c, kOrders, "a memory order"),
                one_of(c, kScopes, "a scope")};
    std::vector<ValueId> last;
    if (o.code != Opcode::gather) {
      last.push_back(use(c));
      if (atomic.op == AtomicOp::cas) last.push_back(expected(c));
      if (!c.take_word("to")) c.wanted("'to <places>'");
    }
    a.view = view(c, &o.in);
    a.masked = c.take_word("mask");
    if (a.masked) last.push_back(use(c));
    o.in.insert(o.in.end(), last.begin(), last.end());
    const DType t = p_.params[static_cast<size_t>(a.view.param)].dtype;
    if (o.code == Opcode::gather)
      a.pad = c.take_word("pad") ? c.number(t) : Number{!is_float(t), 0, 0};
    atomic.view = a.view;
    atomic.masked = a.masked;
    if (o.code == Opcode::atomic)
      o.attr = atomic;
    else
      o.attr = a;
  }

  void message(Op& o, Cursor& c, Head&) {
    o.in = {use(c)};
    MessageAttr a{"", messages_++};
    if (c.next_is("\"")) a.text = c.quoted();
    o.attr = a;
  }

  void cast(Op& o, Cursor& c, Head&) {
    o.in = {use(c)};
    CastAttr a;
    if (!c.next_is(":") && !c.next_is("saturate"))
      a.rounding = one_of(c, kRoundings, "a rounding, saturate or ':'");
    a.saturate = c.take_word("saturate");
    if (c.take_word("seed")) a.seed = expr(c, {":"});
    o.attr = a;
  }

  // "(1, 0)" after a word.
  static std::vector<int64_t> integers(Cursor& c, const char* word, const char* what) {
    if (!c.take_word(word)) c.wanted(fmt::format("'{} (...)'", word));
    c.expect("(");
    std::vector<int64_t> list;
    if (c.take(")")) return list;
    do {
      list.push_back(c.integer(what));
    } while (c.take(","));
    c.expect(")");
    return list;
  }

  void transpose(Op& o, Cursor& c, Head&) {
    o.in = {use(c)};
    PermAttr a;
    for (const int64_t axis : integers(c, "perm", "an axis"))
      a.perm.push_back(axis < 0 || axis > 100 ? -1 : static_cast<int>(axis));
    o.attr = a;
  }

  void slice(Op& o, Cursor& c, Head&) {
    o.in = {use(c)};
    o.attr = SliceAttr{integers(c, "at", "where the block starts")};
  }

  void fold(Op& o, Cursor& c, Head&) {
    const bool backward = o.code == Opcode::scan && c.take_word("reverse");
    ReduceAttr a;
    a.combiner = one_of(c, kCombiners, "a combiner");
    o.in = uses(c);
    a.axis = c.axis();
    if (o.code == Opcode::scan)
      o.attr = ScanAttr{a, backward};
    else
      o.attr = a;
  }

  void for_loop(Op& o, Cursor& c, Head& head) {
    LoopAttr a;
    const std::string counter = c.word();
    const bool counts = is_symbol_word(counter) && counter[0] == 'i';
    const std::string digits = counts ? counter.substr(1) : "";
    if (digits.empty() || digits.size() > 7 || std::stoi(digits) > kMaxLoopId)
      c.fail(fmt::format("got '{}', wanted a loop counter such as i0", counter));
    a.loop = std::stoi(digits);
    p_.loops = std::max(p_.loops, a.loop + 1);
    if (!c.take_word("in")) c.wanted("'in <first>..<end>'");
    a.lo = expr(c, {".."});
    c.expect("..");
    a.hi = expr(c, {"step"});
    c.expect("step");
    a.step = expr(c, {"carry", ":", "{"});
    o.attr = a;
    carried(o, c, head);
  }

  void while_loop(Op& o, Cursor& c, Head& head) {
    if (!c.next_is("carry")) c.wanted("'carry (<condition>, ...)'");
    carried(o, c, head);
  }

  void carried(Op& o, Cursor& c, Head& head) {
    if (!c.take_word("carry")) return;
    c.expect("(");
    do {
      head.args.push_back(c.label());
      c.expect("=");
      o.in.push_back(use(c));
    } while (c.take(","));
    c.expect(")");
  }

  void branch(Op& o, Cursor& c, Head&) {
    CondAttr a;
    a.a = expr(c, {"<", "=", "!"});
    bool found = false;
    for (CompareKind k : kCompares) {
      if (found || !c.take(name(k))) continue;
      a.kind = k;
      found = true;
    }
    if (!found) c.wanted("one of < <= == !=");
    a.b = expr(c, {":", "{"});
    o.attr = a;
  }

  const char* file_;
  std::vector<TextLine> lines_;
  size_t next_ = 0;
  int messages_ = 0;
};

}  // namespace

Program parse(const std::string& text, const std::string& file) {
  return Parser(text, file).parse();
}

}  // namespace tw
