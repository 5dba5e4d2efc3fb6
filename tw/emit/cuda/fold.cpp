#include <algorithm>
#include <bit>
#include <fmt/format.h>

#include "tw/emit/cpu/combine.h"
#include "tw/emit/cpu/nest.h"
#include "tw/emit/cpu/op_table.h"
#include "tw/emit/cuda/statements.h"

namespace tw::cuda {

using cpu::Regs;
using layout::ThreadValue;

namespace {

/// A reduction along one axis: each thread folds its own registers, then the threads of a warp
/// along the axis by shuffles, then the warps along it through shared memory. Sums are made in the
/// same order in every run.
class Reduction {
 public:
  Reduction(State& s, const Op& op)
      : s_(s),
        op_(op),
        how_(op.as<ReduceAttr>()),
        axis_(static_cast<size_t>(how_.axis)),
        whole_(layout_for(s.program().type(op.in[0]).shape)),
        folded_(layout::slice(whole_, axis_)) {}

  void emit(Writer& out) {
    for (const ValueId v : op_.in) reads_.add(s_.reads_of(v));
    declare(out);
    Writer text;
    own(text);
    s_.append(reads_, text, out);
    within_warps(out);
    across_warps(out);
    finish(out);
  }

 private:
  bool custom() const { return how_.combiner == Combiner::custom; }

  /// Tuples have no neutral element: every register must hold one.
  ThreadValue layout_for(const Extents& shape) const {
    const ThreadValue& usual = s_.placement.layout_of(shape);
    const auto axis = static_cast<size_t>(how_.axis);
    if (!custom() || !usual.has_holes(axis)) return usual;
    Extents others = shape;
    others[axis] = 1;
    ThreadValue l = layout::blocked(others, s_.placement.threads(), shape.size() - 1, 1);
    l.tile = shape;
    l.values.insert(l.values.begin(), {shape[axis], how_.axis, 1});
    return l;
  }

  DType held(size_t k) const {
    const DType t = s_.program().type(op_.in[k]).dtype;
    return custom() ? t : register_type(t);
  }

  /// Accumulators: registers of the folded layout, by operand.
  void declare(Writer& out) {
    for (size_t k = 0; k < op_.in.size(); ++k) {
      Type type{held(k), s_.program().type(op_.out[k]).shape};
      Tile t{s_.c.fresh("acc"), type, folded_};
      s_.declare_registers(t, out);
      acc_.push_back(t);
    }
  }

  std::vector<size_t> modes_along() const {
    std::vector<size_t> along;
    for (size_t m = whole_.values.size(); m-- > 0;) {
      if (whole_.values[m].axis == static_cast<int>(axis_)) along.push_back(m);
    }
    return along;
  }

  /// What uses an accumulator stands in the innermost loop.
  Regs accumulators(Nest& n) const {
    Regs r;
    for (const Tile& t : acc_)
      r.push_back({n.place(t), t.type.dtype, 1, innermost(n.expression()), 0});
    return r;
  }

  Regs combine(Expression& e, const Regs& a, const Regs& b) {
    if (custom()) return cpu::combine_tuples(e, op_.regions[0], a, b);
    return {cpu::combine_pair(e, opcode_of(how_.combiner), a[0], b[0])};
  }

  void own(Writer& out) {
    // The accumulator begins neutral, or with the first element where there is no such thing.
    Nest first(s_, whole_, {}, modes_along());
    write(first, custom() ? elements(first) : Regs{neutral()});
    if (s_.guards(reads_)) guard_other_axes(first);
    first.emit(out);
    const std::vector<size_t> along = modes_along();
    Nest n(s_, whole_, along);
    Expression& e = n.expression();
    if (custom() && along.empty()) return;
    if (custom()) skip_first(n);
    Regs x = elements(n);
    if (whole_.has_holes(axis_)) guard_axis(n, axis_);
    if (s_.guards(reads_)) guard_other_axes(n);
    for (Reg& r : x) r.loops |= innermost(e);
    write(n, combine(e, accumulators(n), x));
    n.emit(out);
  }

  static uint32_t innermost(const Expression& e) {
    return e.depth() == 0 ? 0 : 1u << (e.depth() - 1);
  }

  void skip_first(Nest& n) {
    const Expr here = simplify(n.at()[axis_] - s_.base(whole_, axis_), s_.c.facts);
    n.require(n.expression().depth(), fmt::format("{} != 0", s_.c.text(here)));
  }

  void guard_other_axes(Nest& n) {
    for (size_t a = 0; a < whole_.tile.size(); ++a) {
      if (a != axis_ && whole_.has_holes(a)) guard_axis(n, a);
    }
  }

  void guard_axis(Nest& n, size_t a) {
    n.require(n.depth_of(n.at()[a]), fmt::format("{} < {}", s_.c.text(n.at()[a]), whole_.tile[a]));
  }

  Reg neutral() const {
    Expression e(s_.c);
    return e.literal(acc_[0].type.dtype, tw::neutral(how_.combiner, acc_[0].type.dtype));
  }

  Regs elements(Nest& n) {
    Regs r;
    for (size_t k = 0; k < op_.in.size(); ++k) {
      Reg x = n.value(op_.in[k]);
      x.dtype = acc_[k].type.dtype;
      r.push_back(x);
    }
    return r;
  }

  void write(Nest& n, const Regs& r) {
    Expression& e = n.expression();
    Writer& body = e.body(e.depth());
    for (size_t k = 0; k < r.size(); ++k) {
      body.line(fmt::format("{} = {};", n.place(acc_[k]), r[k].text));
    }
  }

  /// Threads whose numbers differ in one bit exchange what they have.
  void within_warps(Writer& out) {
    int64_t below = 1;
    for (const ThreadValue::Mode& m : whole_.threads) {
      for (int64_t d = 1; d < m.extent && below * d < 32; d *= 2) {
        if (m.axis != static_cast<int>(axis_)) break;
        exchange(below * d, out);
      }
      below *= m.extent;
    }
  }

  void exchange(int64_t bit, Writer& out) {
    Nest n(s_, folded_);
    Expression& e = n.expression();
    const Regs mine = accumulators(n);
    Regs other;
    for (size_t k = 0; k < acc_.size(); ++k) {
      other.push_back(
          e.define(acc_[k].type.dtype, 1, innermost(e),
                   fmt::format("{}({}, {})", s_.call("shuffle_xor"), mine[k].text, bit)));
    }
    write(n, custom() ? combine_in_order(e, mine, other, bit) : combine(e, mine, other));
    n.emit(out);
  }

  /// The elements of the thread with the lower number come first on both sides, so that both get
  /// the same bits.
  Regs combine_in_order(Expression& e, const Regs& mine, const Regs& other, int64_t bit) {
    const Reg upper{fmt::format("({} & {}) != 0", s_.thread(), bit), b1, 1, 0, 0};
    const Reg swap = e.define(b1, 1, 0, upper.text);
    Regs low, high;
    for (size_t k = 0; k < mine.size(); ++k) {
      low.push_back(e.combine("$0 ? $1 : $2", mine[k].dtype, {swap, other[k], mine[k]}));
      high.push_back(e.combine("$0 ? $1 : $2", mine[k].dtype, {swap, mine[k], other[k]}));
    }
    return combine(e, low, high);
  }

  /// Digits of the warp's number that run along the axis.
  struct Warps {
    int64_t count = 1;
    std::string number;  ///< among them
  };
  Warps warps_along() {
    Warps w;
    int terms = 0;
    int64_t below = 1;
    for (const ThreadValue::Mode& m : whole_.threads) {
      if (m.axis == static_cast<int>(axis_) && below * m.extent > 32) {
        const int64_t inside = std::max<int64_t>(1, 32 / below);
        const int64_t outside = m.extent / std::min(inside, m.extent);
        const std::string d = s_.digit(below * (m.extent / outside), outside);
        w.number +=
            w.number.empty() ? fmt::format("({})", d) : fmt::format(" + ({}) * {}", d, w.count);
        ++terms;
        w.count *= outside;
      }
      below *= m.extent;
    }
    if (terms > 1) w.number = "(" + w.number + ")";
    return w;
  }

  /// Of the threads of a warp along the axis the first.
  std::string first_lane() {
    std::string text;
    int64_t below = 1;
    for (const ThreadValue::Mode& m : whole_.threads) {
      const int64_t inside = std::min(m.extent, std::max<int64_t>(1, 32 / below));
      if (m.axis == static_cast<int>(axis_) && below < 32 && inside > 1) {
        text += fmt::format("{}{} == 0", text.empty() ? "" : " && ", s_.digit(below, inside));
      }
      below *= m.extent;
    }
    return text;
  }

  void across_warps(Writer& out) {
    const Warps w = warps_along();
    if (w.count == 1) return;
    if (s_.placement.cluster() > 1) return across_blocks(w, out);
    const int64_t elements = count(folded_.tile);
    const MemoryScope scope(s_);
    std::vector<std::string> parts;
    Footprint f;
    for (const Tile& t : acc_) {
      const DType reg = t.type.dtype == b1 ? u8 : register_type(t.type.dtype);
      Touched where;
      parts.push_back(s_.reserve_bytes(s_.c.prelude.type(reg), "part",
                                       w.count * elements * bytes(reg), "", out, where));
      f.writes.push_back(where);
    }
    write_parts(w, parts, f, out);
    read_parts(w, parts, f, out);
  }

  /// Every warp of a cluster sends its part to all blocks, whose warps fold them each for itself:
  /// lanes take parts side by side, then exchange as in a warp.
  void across_blocks(const Warps& w, Writer& out) {
    const int64_t lanes = std::min<int64_t>(w.count, 32), each = w.count / lanes;
    const bool alone = count(folded_.tile) == 1 && w.count * 32 == s_.placement.threads();
    if (!alone || !std::has_single_bit(static_cast<uint64_t>(w.count))) throw NoCluster{};
    const MemoryScope scope(s_);
    std::vector<std::string> parts;
    Footprint written, read;
    for (const Tile& t : acc_) {
      const DType reg = t.type.dtype == b1 ? u8 : register_type(t.type.dtype);
      Touched where;
      parts.push_back(s_.reserve_bytes(s_.c.prelude.type(reg), "part", w.count * bytes(reg), "",
                                       out, where, true));
      written.writes.push_back(where);
    }
    read.reads = written.writes;
    Writer send, take;
    send.open(fmt::format("if ({} < {}) {{", s_.digit(1, 32), s_.placement.cluster()));
    for (size_t k = 0; k < acc_.size(); ++k)
      send.line(fmt::format("*{}({} + {}, {}) = {};", s_.call("cluster_shared"), parts[k], w.number,
                            s_.digit(1, 32), acc_[k].name));
    send.close();
    s_.append(written, send, out);
    const std::string first = fmt::format("{} * {}", s_.digit(1, lanes), each);
    for (size_t k = 0; k < acc_.size(); ++k)
      take.line(fmt::format("{} = {}[{}];", acc_[k].name, parts[k], first));
    if (each > 1) {
      Nest n(s_, folded_);
      fold_more(n, each, take, [&](size_t k, const Expr& part) {
        return fmt::format("{}[{} + {}]", parts[k], first, s_.c.text(part));
      });
    }
    for (int64_t bit = 1; bit < lanes; bit *= 2) exchange(bit, take);
    s_.append(read, take, out);
  }

  /// Folds parts 1 to count - 1 into the accumulators; `part(k, number)` is the text of operand
  /// k's.
  template <class Part>
  void fold_more(Nest& n, int64_t count, Writer& out, const Part& part) {
    Expression& e = n.expression();
    const Expr number = n.add_loop("w", count - 1, true);
    const Regs mine = accumulators(n);
    Regs other;
    for (size_t k = 0; k < acc_.size(); ++k)
      other.push_back(e.define(acc_[k].type.dtype, 1, innermost(e), part(k, number + 1)));
    write(n, combine(e, mine, other));
    n.emit(out);
  }

  /// The nest's place among the elements of a warp.
  Expr flat(const Nest& n) const {
    Expr flat = 0;
    for (size_t a = 0; a < folded_.tile.size(); ++a) flat = flat * folded_.tile[a] + n.at()[a];
    return simplify(flat, s_.c.facts);
  }

  std::string own_part(const Warps& w, const Expr& flat) const {
    const int64_t elements = count(folded_.tile);
    if (elements == 1) return w.number;
    return fmt::format("{} * {} + {}", w.number, elements, s_.c.text(flat));
  }

  void write_parts(const Warps& w, const std::vector<std::string>& parts, const Footprint& f,
                   Writer& out) {
    Nest n(s_, folded_);
    Expression& e = n.expression();
    n.guard();
    n.require(0, first_lane());
    n.require(0, s_.first_copy(whole_));
    for (size_t k = 0; k < parts.size(); ++k) {
      e.body(e.depth()).line(
          fmt::format("{}[{}] = {};", parts[k], own_part(w, flat(n)), n.place(acc_[k])));
    }
    Writer text;
    n.emit(text);
    s_.append(f, text, out);
  }

  void read_parts(const Warps& w, const std::vector<std::string>& parts, const Footprint& written,
                  Writer& out) {
    Writer text;
    Nest begin(s_, folded_);
    begin.guard();
    const auto part = [&](const Nest& n, size_t k, const Expr& warp) {
      const Expr at = simplify(warp * count(folded_.tile) + flat(n), s_.c.facts);
      return fmt::format("{}[{}]", parts[k], s_.c.text(at));
    };
    Expression& b = begin.expression();
    for (size_t k = 0; k < parts.size(); ++k) {
      b.body(b.depth()).line(fmt::format("{} = {};", begin.place(acc_[k]), part(begin, k, 0)));
    }
    begin.emit(text);
    Nest n(s_, folded_);
    n.guard();
    fold_more(n, w.count, text, [&](size_t k, const Expr& warp) { return part(n, k, warp); });
    Footprint f;
    f.reads = written.writes;
    s_.append(f, text, out);
  }

  /// The accumulators become the results, rounded to their types.
  void finish(Writer& out) {
    for (size_t k = 0; k < acc_.size(); ++k) {
      const ValueId v = op_.out[k];
      const Tile acc = acc_[k];
      if (folded_ == s_.placement.layout_of(s_.program().type(v).shape)) {
        keep_elements(
            s_, v, [&](Nest& n) { return result(n, acc, v); }, {}, out);
        continue;
      }
      // Another layout keeps this shape's tiles: through memory.
      through_memory(v, acc, out);
    }
  }

  Reg result(Nest& n, const Tile& acc, ValueId v) {
    Expression& e = n.expression();
    const Reg r{n.place(acc), s_.program().type(v).dtype, 1, all_loops(e), 0};
    return custom() ? r : e.rounded(r);
  }

  void through_memory(ValueId v, const Tile& acc, Writer& out) {
    s_.reserve(v, out);
    const Storage storage = s_.c.storage.at(v);
    fill_memory(
        s_, folded_, storage, s_.memory_of.at(v), [&](Nest& n) { return result(n, acc, v); }, {},
        out);
  }

  State& s_;
  const Op& op_;
  const ReduceAttr& how_;
  const size_t axis_;
  const ThreadValue whole_, folded_;
  std::vector<Tile> acc_;
  Footprint reads_;
};

}  // namespace

void emit_reduce(State& s, const Op& op, Writer& out) { Reduction(s, op).emit(out); }

}  // namespace tw::cuda
