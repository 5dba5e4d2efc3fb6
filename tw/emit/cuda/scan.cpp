#include "tw/emit/cuda/scan.h"

#include <fmt/format.h>

#include "tw/emit/cpu/combine.h"
#include "tw/emit/cpu/op_table.h"
#include "tw/emit/cuda/blocks.h"

namespace tw::cuda {

using cpu::Regs;
using layout::ThreadValue;

namespace {

constexpr int64_t kLanes = 32;

/// C++ text of a number in mixed radix, the slowest digit first.
std::string number_of(const std::vector<std::pair<std::string, int64_t>>& digits) {
  std::string text;
  for (const auto& [digit, extent] : digits) {
    if (!text.empty() && extent > 1) {
      if (text.find('+') != std::string::npos) text = "(" + text + ")";
      text += fmt::format(" * {}", extent);
    }
    if (digit != "0") text += text.empty() ? digit : " + " + digit;
  }
  return text.empty() ? "0" : text;
}

/// Each thread scans neighbours in its own registers, then threads of a warp add up by shuffles
/// what comes before them, then warps through shared memory. All is counted from the end where the
/// scan runs from there.
class RegisterScan {
 public:
  RegisterScan(State& s, const Op& op)
      : s_(s),
        op_(op),
        how_(op.as<ScanAttr>()),
        axis_(static_cast<size_t>(how_.fold.axis)),
        l_(s.placement.layout_of(s.program().type(op.in[0]).shape)),
        cut_(*scan_cut(l_, how_.fold.axis)),
        low_(extent(cut_.low)),
        middle_(extent(cut_.middle)),
        high_(extent(cut_.high)),
        other_(extent(cut_.other)) {}

  void emit(Writer& out) {
    for (const ValueId v : op_.in) reads_.add(s_.reads_of(v));
    x_ = declare("scan", l_.registers(), out);
    Writer text;
    fill_elements(text);
    if (low_ > 1) own(text);
    if (lanes() * middle_ * warps() * high_ == 1) {
      s_.append(reads_, text, out);
      return finish(out);
    }
    before_ = declare("before", groups(), text);
    within_warp(text);
    if (warps() * high_ == 1) {
      apply(text);
      s_.append(reads_, text, out);
    } else {
      across_warps(text, out);
    }
    finish(out);
  }

 private:
  using Names = std::vector<std::string>;  ///< by operand

  bool custom() const { return how_.fold.combiner == Combiner::custom; }
  int64_t lanes() const { return cut_.lanes.extent; }
  int64_t warps() const { return cut_.warps.extent; }
  /// Registers that differ in other digits than the lowest: a thread has one place before each.
  int64_t groups() const { return other_ * high_ * middle_; }

  int64_t extent(const std::vector<size_t>& modes) const {
    int64_t n = 1;
    for (const size_t m : modes) n *= l_.values[m].extent;
    return n;
  }

  DType held(size_t k) const {
    const DType t = s_.program().type(op_.in[k]).dtype;
    return custom() ? t : register_type(t);
  }
  std::string type(size_t k) { return s_.c.prelude.type(register_type(held(k))); }

  Names declare(const std::string& wish, int64_t count, Writer& out) {
    Names all;
    for (size_t k = 0; k < op_.in.size(); ++k) {
      all.push_back(s_.c.fresh(wish));
      out.line(count == 0 ? fmt::format("{} {};", type(k), all[k])
                          : fmt::format("{} {}[{}];", type(k), all[k], count));
    }
    return all;
  }

  static Names element(const Names& arrays, const std::string& index) {
    Names all;
    for (const std::string& a : arrays) all.push_back(fmt::format("{}[{}]", a, index));
    return all;
  }

  std::string in_order(const std::string& k, int64_t count) const {
    return !how_.reverse ? k : fmt::format("({} - {})", count - 1, k);
  }

  /// The part of a register's index that the digits of some modes make.
  std::string offset(const std::vector<size_t>& modes, const std::string& number) const {
    std::string text;
    int64_t below = 1;
    for (const size_t m : modes) {
      int64_t step = 1;
      for (size_t b = 0; b < m; ++b) step *= l_.values[b].extent;
      std::string digit = below == 1 ? number : fmt::format("{} / {}", number, below);
      if (modes.size() > 1) digit = fmt::format("({} % {})", digit, l_.values[m].extent);
      if (step > 1) digit += fmt::format(" * {}", step);
      text += text.empty() ? digit : " + " + digit;
      below *= l_.values[m].extent;
    }
    return text;
  }

  /// The index of a register: `l`, `j`, `h` in the order of the scan.
  std::string place(const std::string& l, const std::string& j, const std::string& h,
                    const std::string& q) const {
    std::string text;
    const auto add = [&](const std::vector<size_t>& modes, const std::string& number) {
      if (!modes.empty()) text += (text.empty() ? "" : " + ") + offset(modes, number);
    };
    add(cut_.low, in_order(l, low_));
    add(cut_.middle, in_order(j, middle_));
    add(cut_.high, in_order(h, high_));
    add(cut_.other, q);
    return text.empty() ? "0" : text;
  }
  std::string group(const std::string& j, const std::string& h, const std::string& q) const {
    return number_of({{q, other_}, {h, high_}, {j, middle_}});
  }
  Names totals(const std::string& h, const std::string& q) const {
    return element(total_, number_of({{q, other_}, {h, high_}}));
  }

  Regs registers(const Names& names) const {
    Regs r;
    for (size_t k = 0; k < names.size(); ++k) r.push_back({names[k], held(k), 1, 0, 0});
    return r;
  }

  /// target = first with second, which comes later in the order of the scan.
  void combine(const Names& first, const Names& second, const Names& target, Writer& out) {
    const Regs a = registers(how_.reverse ? second : first);
    const Regs b = registers(how_.reverse ? first : second);
    Expression e(s_.c);
    const Regs made = custom()
                          ? cpu::combine_tuples(e, op_.regions[0], a, b)
                          : Regs{cpu::combine_pair(e, opcode_of(how_.fold.combiner), a[0], b[0])};
    Names next;
    for (size_t k = 0; k < made.size(); ++k)
      next.push_back(e.define(held(k), 1, 0, made[k].text, 0, "next").text);
    out.append(e.body(0));
    set(target, next, out);
  }
  static void set(const Names& target, const Names& from, Writer& out) {
    for (size_t k = 0; k < target.size(); ++k)
      out.line(fmt::format("{} = {};", target[k], from[k]));
  }

  /// Holes change nothing: those at the end come last, from the end on they are neutral.
  void fill_elements(Writer& out) {
    Nest n(s_, l_);
    Expression& e = n.expression();
    Writer& body = e.body(e.depth());
    for (size_t k = 0; k < op_.in.size(); ++k)
      body.line(fmt::format("{} = {};", register_at(n, x_[k]), n.value(op_.in[k]).text));
    const bool holes = l_.has_holes(axis_);
    if (s_.guards(reads_) || (holes && how_.reverse)) {
      n.guard();
      Blocks b(out);
      const std::string r = b.loop(s_.c.fresh("r"), 0, l_.registers());
      for (size_t k = 0; k < op_.in.size(); ++k)
        out.line(fmt::format("{}[{}] = {};", x_[k], r, nothing(k)));
    }
    n.emit(out);
  }
  std::string nothing(size_t k) const {
    Expression e(s_.c);
    return e.literal(held(k), custom() ? Number{} : tw::neutral(how_.fold.combiner, held(k))).text;
  }
  /// An array has an element even where a tile of one register is a variable.
  std::string register_at(const Nest& n, const std::string& name) const {
    const Tile t{name, {f32, l_.tile}, l_};
    return t.variable() ? name + "[0]" : n.place(t);
  }

  void own(Writer& out) {
    Blocks b(out);
    const std::string q = b.loop(s_.c.fresh("q"), 0, other_), h = b.loop(s_.c.fresh("h"), 0, high_);
    const std::string j = b.loop(s_.c.fresh("j"), 0, middle_), l = b.loop(s_.c.fresh("l"), 1, low_);
    const Names here = element(x_, place(l, j, h, q));
    combine(element(x_, place("(" + l + " - 1)", j, h, q)), here, here, out);
  }

  /// The number of the thread's lane (or warp) along the axis, in the order of the scan.
  std::string number_along(const std::string& wish, const ScanCut::Across& a, Writer& out) {
    if (a.extent == 1) return "0";
    const std::string name = s_.c.fresh(wish);
    const std::string digit = s_.digit(a.below, a.extent);
    out.line(how_.reverse ? fmt::format("const int {} = {} - {};", name, a.extent - 1, digit)
                          : fmt::format("const int {} = {};", name, digit));
    return name;
  }

  /// What the lane `by` places earlier has.
  std::string earlier(const std::string& mine, int64_t by) {
    const int64_t threads = by * cut_.lanes.below;
    if (!how_.reverse) return fmt::format("{}({}, {})", s_.call("shuffle_up"), mine, threads);
    return fmt::format("{}({}, ({}() + {}) % {})", s_.call("shuffle"), mine, s_.call("thread"),
                       threads, kLanes);
  }
  /// What the last lane of the warp along the axis has.
  std::string of_last(const std::string& mine) {
    const int64_t bits = (lanes() - 1) * cut_.lanes.below;
    const std::string lane =
        how_.reverse ? fmt::format("{}() & {}", s_.call("thread"), kLanes - 1 - bits)
                     : fmt::format("({}() | {}) & {}", s_.call("thread"), bits, kLanes - 1);
    return fmt::format("{}({}, {})", s_.call("shuffle"), mine, lane);
  }

  /// Makes `before` what a warp has before the thread's places, and `total_` what all of it has.
  void within_warp(Writer& out) {
    lane_ = number_along("lane", cut_.lanes, out);
    warp_ = number_along("warp", cut_.warps, out);
    total_ = declare("total", other_ * high_, out);
    Blocks b(out);
    const std::string q = b.loop(s_.c.fresh("q"), 0, other_), h = b.loop(s_.c.fresh("h"), 0, high_);
    const Names total = totals(h, q);
    const std::string j = b.loop(s_.c.fresh("j"), 0, middle_);
    const Names before = element(before_, group(j, h, q));
    const Names sum = declare("sum", 0, out);
    set(sum, element(x_, place(std::to_string(low_ - 1), j, h, q)), out);
    if (lanes() > 1) along_lanes(sum, before, out);
    if (middle_ > 1) along_middle(j, sum, before, total, out);
    if (middle_ == 1) set(total, sum, out);
  }

  void along_lanes(const Names& sum, const Names& before, Writer& out) {
    for (int64_t by = 1; by < lanes(); by *= 2) {
      const Names got = shuffled(
          sum, [&](const std::string& v) { return earlier(v, by); }, out);
      Blocks b(out);
      b.when(fmt::format("{} >= {}", lane_, by));
      combine(got, sum, sum, out);
    }
    set(before,
        shuffled(
            sum, [&](const std::string& v) { return earlier(v, 1); }, out),
        out);
    if (middle_ > 1)
      set(sum,
          shuffled(
              sum, [&](const std::string& v) { return of_last(v); }, out),
          out);
  }

  Names shuffled(const Names& from, const std::function<std::string(const std::string&)>& how,
                 Writer& out) {
    Names got;
    for (size_t k = 0; k < from.size(); ++k) {
      got.push_back(s_.c.fresh("got"));
      out.line(fmt::format("const {} {} = {};", type(k), got[k], how(from[k])));
    }
    return got;
  }

  /// `sum` is that of all lanes: it comes after those with smaller j.
  void along_middle(const std::string& j, const Names& sum, const Names& before, const Names& total,
                    Writer& out) {
    Blocks b(out);
    b.when(j + " == 0");
    set(total, sum, out);
    b.otherwise();
    after(total, before, {lane_}, out);
    combine(total, sum, total, out);
  }

  /// before = earlier with before where some number is not 0, else earlier.
  void after(const Names& earlier, const Names& before, const Names& numbers, Writer& out) {
    Blocks b(out);
    if (b.when_any(numbers)) {
      combine(earlier, before, before, out);
      b.otherwise();
    }
    set(before, earlier, out);
  }

  /// Each element with what comes before its thread's places.
  void apply(Writer& out) {
    Blocks b(out);
    const std::string q = b.loop(s_.c.fresh("q"), 0, other_), h = b.loop(s_.c.fresh("h"), 0, high_);
    const std::string j = b.loop(s_.c.fresh("j"), 0, middle_);
    b.when_any({lane_, j, warp_, h});
    const std::string l = b.loop(s_.c.fresh("l"), 0, low_);
    const Names here = element(x_, place(l, j, h, q));
    combine(element(before_, group(j, h, q)), here, here, out);
  }

  /// Threads whose digits along the axis are alike: as many as hold different lines, and copies.
  int64_t columns() const { return s_.placement.threads() / lanes() / warps(); }
  std::string column(Writer& out) {
    std::string text;
    int64_t below = 1, count = 1;
    for (const ThreadValue::Mode& m : l_.threads) {
      if (m.axis != static_cast<int>(axis_)) {
        text += fmt::format("{}{} * {}", text.empty() ? "" : " + ",
                            "(" + s_.digit(below, m.extent) + ")", count);
        count *= m.extent;
      }
      below *= m.extent;
    }
    if (text.empty()) return "0";
    const std::string name = s_.c.fresh("column");
    out.line(fmt::format("const int {} = {};", name, text));
    return name;
  }

  void across_warps(Writer& text, Writer& out) {
    if (warps() == 1) {
      along_high(text);
      apply(text);
      return s_.append(reads_, text, out);
    }
    const MemoryScope scope(s_);
    Footprint f = reads_, g;
    Names parts;
    for (size_t k = 0; k < op_.in.size(); ++k) {
      const DType reg = held(k) == b1 ? u8 : register_type(held(k));
      Touched where;
      parts.push_back(s_.reserve_bytes(
          s_.c.prelude.type(reg), "part",
          s_.placement.threads() / lanes() * other_ * high_ * bytes(reg), "", out, where));
      f.writes.push_back(where);
      g.reads.push_back(where);
    }
    column_ = column(text);
    write_parts(parts, text);
    s_.append(f, text, out);
    Writer last;
    along_warps(parts, last);
    apply(last);
    s_.append(g, last, out);
  }

  Names part(const Names& parts, const std::string& h, const std::string& q,
             const std::string& warp) const {
    return element(parts,
                   number_of({{q, other_}, {h, high_}, {warp, warps()}, {column_, columns()}}));
  }

  void write_parts(const Names& parts, Writer& out) {
    Blocks b(out);
    if (lanes() > 1) b.when(fmt::format("{} == {}", lane_, lanes() - 1));
    const std::string q = b.loop(s_.c.fresh("q"), 0, other_), h = b.loop(s_.c.fresh("h"), 0, high_);
    set(part(parts, h, q, warp_), totals(h, q), out);
  }

  /// Warps in the order of the scan.
  void along_warps(const Names& parts, Writer& out) {
    if (high_ > 1) return along_warps_and_registers(parts, out);
    Blocks b(out);
    const std::string q = b.loop(s_.c.fresh("q"), 0, other_);
    const Names base = declare("base", 0, out);
    set(base, part(parts, "0", q, "0"), out);
    {
      Blocks each(out);
      const std::string w = each.loop(s_.c.fresh("w"), 1, warps());
      each.when(fmt::format("{} < {}", w, warp_));
      combine(base, part(parts, "0", q, w), base, out);
    }
    prepend(base, "0", q, {warp_}, out);
  }

  /// The same for each of the registers that come after all warps.
  void along_warps_and_registers(const Names& parts, Writer& out) {
    Blocks b(out);
    const std::string q = b.loop(s_.c.fresh("q"), 0, other_);
    const Names run = declare("run", 0, out), base = declare("base", 0, out);
    for (size_t k = 0; k < run.size(); ++k) out.line(fmt::format("{} = {};", run[k], nothing(k)));
    const std::string h = b.loop(s_.c.fresh("h"), 0, high_);
    {
      Blocks each(out);
      const std::string w = each.loop(s_.c.fresh("w"), 0, warps());
      {
        Blocks own(out);
        own.when(fmt::format("{} == {}", w, warp_));
        set(base, run, out);
      }
      const Names here = part(parts, h, q, w);
      each.when_any({h, w});
      combine(run, here, run, out);
      each.otherwise();
      set(run, here, out);
    }
    prepend(base, h, q, {warp_, h}, out);
  }

  void along_high(Writer& out) {
    Blocks b(out);
    const std::string q = b.loop(s_.c.fresh("q"), 0, other_);
    const Names run = declare("run", 0, out);
    const std::string h = b.loop(s_.c.fresh("h"), 0, high_);
    prepend(run, h, q, {h}, out);
    const Names here = totals(h, q);
    b.when_any({h});
    combine(run, here, run, out);
    b.otherwise();
    set(run, here, out);
  }

  /// Puts what comes before the warp's places before those of its threads.
  void prepend(const Names& base, const std::string& h, const std::string& q, const Names& numbers,
               Writer& out) {
    Blocks b(out);
    b.when_any(numbers);
    const std::string j = b.loop(s_.c.fresh("j"), 0, middle_);
    after(base, element(before_, group(j, h, q)), {lane_, j}, out);
  }

  void finish(Writer& out) {
    for (size_t k = 0; k < op_.out.size(); ++k) {
      const ValueId v = op_.out[k];
      const auto result = [&](Nest& n) {
        Expression& e = n.expression();
        const Reg r{register_at(n, x_[k]), s_.program().type(v).dtype, 1,
                    e.depth() == 0 ? 0 : (1u << e.depth()) - 1, 0};
        return custom() ? r : e.rounded(r);
      };
      keep_elements(s_, v, result, {}, out);
    }
  }

  State& s_;
  const Op& op_;
  const ScanAttr& how_;
  const size_t axis_;
  const ThreadValue l_;
  const ScanCut cut_;
  const int64_t low_, middle_, high_, other_;
  Footprint reads_;
  Names x_, before_, total_;
  std::string lane_, warp_, column_;
};

}  // namespace

bool scans_in_registers(const State& s, const Op& op) {
  const ScanAttr& how = op.as<ScanAttr>();
  const Extents& shape = s.program().type(op.in[0]).shape;
  const ThreadValue& l = s.placement.layout_of(shape);
  const bool from_holes = how.reverse && l.has_holes(static_cast<size_t>(how.fold.axis));
  return s.placement.in_registers(shape) && scan_cut(l, how.fold.axis).has_value() &&
         !(from_holes && how.fold.combiner == Combiner::custom);
}

void emit_register_scan(State& s, const Op& op, Writer& out) { RegisterScan(s, op).emit(out); }

}  // namespace tw::cuda
