#include <fmt/format.h>

#include "tw/emit/cpu/combine.h"
#include "tw/emit/cpu/nest.h"

namespace tw::cpu {
namespace {

/// A running fold, done in place on copies of its operands: `n` elements along the axis, for each
/// of `before` blocks and of `after` neighbours. Lanes run along the neighbours, or, where there
/// are none, along the axis: log2(lanes) steps make each vector a scan of its own.
class ScanNest {
 public:
  ScanNest(Context& c, const Op& op) : c_(c), op_(op), how_(op.as<ScanAttr>()) {
    const Extents& shape = c.program.type(op.in[0]).shape;
    for (size_t k = 0; k < shape.size(); ++k) {
      const auto axis = static_cast<size_t>(how_.fold.axis);
      (k < axis ? before_ : k > axis ? after_ : n_) *= shape[k];
    }
  }

  void emit(Writer& out) {
    for (size_t k = 0; k < op_.in.size(); ++k) {
      const Storage copy = c_.reserve(op_.out[k], out);
      c_.storage.erase(op_.out[k]);
      emit_elements(c_, op_.in[k], {nullptr, &copy}, out);
      c_.storage[op_.out[k]] = copy;
    }
    if (n_ == 1) return;
    block_ = c_.fresh("block"), at_ = c_.fresh("k"), acc_ = c_.fresh("acc");
    out.open(fmt::format("for (i64 {0} = 0; {0} < {1}; ++{0}) {{", block_, before_));
    if (after_ > 1) {
      neighbours(out);
    } else {
      along(out);
    }
    out.close();
  }

 private:
  bool custom() const { return how_.fold.combiner == Combiner::custom; }
  bool reverse() const { return how_.reverse; }
  DType held(size_t k) const {
    const DType t = c_.program.type(op_.in[k]).dtype;
    return custom() ? t : register_type(t);
  }

  /// Lanes of the widest operand; masks are folded one by one.
  int lanes(int64_t room) const {
    int64_t fit = c_.machine.vector_bytes;
    for (const ValueId v : op_.in) {
      const DType t = c_.program.type(v).dtype;
      if (t == b1) return 1;
      fit = std::min(fit, c_.machine.vector_bytes / bytes(register_type(t)));
    }
    return fit > 1 && room >= fit ? static_cast<int>(fit) : 1;
  }

  std::string type(size_t k, int lanes) { return c_.prelude.type(register_type(held(k)), lanes); }

  /// C++ text of the address of the element at `k` of the axis and neighbour `j`.
  std::string place(size_t operand, const std::string& k, const std::string& j) const {
    const std::string row = fmt::format("{} * {} + {}", block_, n_, k);
    return after_ == 1 ? fmt::format("{} + ({})", c_.storage.at(op_.out[operand]).name, row)
                       : fmt::format("{} + ({}) * {} + {}", c_.storage.at(op_.out[operand]).name,
                                     row, after_, j);
  }

  Reg reg(const std::string& text, size_t k, int lanes) const {
    return Reg{text, held(k), lanes, 1, 0};
  }

  std::string read(size_t k, const std::string& place, int lanes) {
    const DType t = c_.program.type(op_.in[k]).dtype;
    return fmt::format("{}({})", c_.prelude.use("load", t == b1 ? b1 : register_type(t), lanes),
                       place);
  }

  Expression make(int lanes) {
    Expression e(c_);
    e.add_loop(c_.new_loop(at_, n_));
    e.set_lanes(0, lanes);
    return e;
  }
  static void flush(Expression& e, Writer& out) {
    for (const Writer& text : e.take_from(0)) out.append(text);
  }

  /// The fold of the elements so far with those that come next, in the order of the axis.
  Regs fold(Expression& e, const Regs& so_far, const Regs& next) {
    const Regs& left = reverse() ? next : so_far;
    const Regs& right = reverse() ? so_far : next;
    if (custom()) return combine_tuples(e, op_.regions[0], left, right);
    return {combine_pair(e, opcode_of(how_.fold.combiner), left[0], right[0])};
  }

  void write(Expression& e, size_t k, Reg r, const std::string& place, int lanes) {
    const DType t = c_.program.type(op_.in[k]).dtype;
    r.dtype = t;
    if (!custom()) r = e.rounded(r);
    const std::string f = c_.prelude.use("store", t == b1 ? b1 : register_type(t), lanes);
    e.body(1).line(fmt::format("{}({}, {});", f, place, e.widen(r).text));
  }

  /// acc = fold(acc, elements at `k`), which go to where they were.
  void step(const std::string& k, const std::string& j, int lanes, Writer& out) {
    Expression e = make(lanes);
    Regs acc, next;
    for (size_t n = 0; n < op_.in.size(); ++n) {
      acc.push_back(reg(fmt::format("{}{}", acc_, n), n, lanes));
      next.push_back(e.define(held(n), lanes, 1, read(n, place(n, k, j), lanes)));
    }
    Regs folded = fold(e, acc, next);
    for (size_t n = 0; n < folded.size(); ++n) {
      folded[n] = e.define(held(n), lanes, 1, e.widen(folded[n]).text, 0, "next");
    }
    for (size_t n = 0; n < folded.size(); ++n) {
      e.body(1).line(fmt::format("{}{} = {};", acc_, n, folded[n].text));
      write(e, n, folded[n], place(n, k, j), lanes);
    }
    flush(e, out);
  }

  /// `acc` starts from the first element, or the last.
  void start(const std::string& j, int lanes, Writer& out) {
    const std::string first = reverse() ? std::to_string(n_ - 1) : "0";
    for (size_t n = 0; n < op_.in.size(); ++n) {
      out.line(fmt::format("{} {}{} = {};", type(n, lanes), acc_, n,
                           read(n, place(n, first, j), lanes)));
    }
  }

  /// The rest of the axis, one element after the other, from `done` elements on.
  void walk(const std::string& done, const std::string& j, int lanes, Writer& out) {
    out.open(fmt::format("for (i64 {0} = {1}; {0} < {2}; ++{0}) {{", at_, done, n_));
    step(reverse() ? fmt::format("{} - {}", n_ - 1, at_) : at_, j, lanes, out);
    out.close();
  }

  void neighbours(Writer& out) {
    const int wide = lanes(after_);
    const std::string j = c_.fresh("j");
    out.line(fmt::format("i64 {} = 0;", j));
    for (int l = wide;; l = 1) {
      out.open(fmt::format("for (; {0} + {1} <= {2}; {0} += {1}) {{", j, l, after_));
      start(j, l, out);
      walk("1", j, l, out);
      out.close();
      if (l == 1 || after_ % l == 0) break;
    }
  }

  void along(Writer& out) {
    const int wide = custom() ? 1 : lanes(n_);
    if (wide == 1) {
      start("", 1, out);
      return walk("1", "", 1, out);
    }
    Expression e = make(1);
    const Reg none = e.literal(held(0), neutral(how_.fold.combiner, held(0)));
    const std::string vector = type(0, wide), rest = c_.fresh("none");
    out.line(fmt::format("const {0} {1} = {2} - ({0}){{}};", vector, rest, none.text));
    out.line(fmt::format("{} {}0 = {};", type(0, 1), acc_, none.text));
    out.open(fmt::format("for (i64 {0} = 0; {0} + {1} <= {2}; {0} += {1}) {{", at_, wide, n_));
    vector_step(wide, rest, out);
    out.close();
    if (n_ % wide != 0) walk(std::to_string(n_ / wide * wide), "", 1, out);
  }

  /// Scans one vector by doubling distances, then folds what came before into all of it.
  void vector_step(int wide, const std::string& none, Writer& out) {
    Expression e = make(wide);
    const std::string k = reverse() ? fmt::format("{} - {}", n_ - wide, at_) : at_;
    Reg x = e.define(held(0), wide, 1, read(0, place(0, k, ""), wide));
    for (int distance = 1; distance < wide; distance *= 2) {
      const Reg moved = e.define(held(0), wide, 1, shifted(x.text, none, distance, wide));
      x = fold(e, {moved}, {x})[0];
    }
    Reg before = reg(fmt::format("{}0", acc_), 0, 1);
    x = fold(e, {e.widen(before)}, {x})[0];
    x = e.define(held(0), wide, 1, x.text);
    e.body(1).line(fmt::format("{}0 = {}[{}];", acc_, x.text, reverse() ? 0 : wide - 1));
    write(e, 0, x, place(0, k, ""), wide);
    flush(e, out);
  }

  /// Lanes of x moved away from where the scan starts; none comes in.
  std::string shifted(const std::string& x, const std::string& none, int distance, int wide) const {
    std::string list;
    for (int l = 0; l < wide; ++l) {
      const int from = reverse() ? l + distance : l - distance;
      list += fmt::format(", {}", from >= 0 && from < wide ? from : wide);
    }
    return fmt::format("__builtin_shufflevector({}, {}{})", x, none, list);
  }

  Context& c_;
  const Op& op_;
  const ScanAttr& how_;
  int64_t before_ = 1, n_ = 1, after_ = 1;
  std::string block_, at_, acc_;
};

}  // namespace

void emit_scan(Context& c, const Op& op, Writer& out) { ScanNest(c, op).emit(out); }

}  // namespace tw::cpu
