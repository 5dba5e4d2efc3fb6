#include <algorithm>
#include <bit>
#include <fmt/format.h>

#include "tw/emit/cpu/nest.h"
#include "tw/emit/cpu/op_table.h"

namespace tw::cpu {
namespace {

/// Rows of the result that are accumulated together: each vector of b serves all of them.
constexpr int kRows = 4;

/// The general dot: whatever its operands are made of, any type, any extents.
class DotNest {
 public:
  DotNest(Context& c, const Op& op, const Storage& target)
      : c_(c), op_(op), target_(target), type_(c.program.type(op.out[0])) {
    const Type& a = c.program.type(op.in[0]);
    i_ = c.new_loop("i", type_.shape[0]);
    j_ = c.new_loop("j", type_.shape[1]);
    k_ = c.new_loop("k", a.shape[1]);
    depth_ = a.shape[1];
    const int64_t fit = c.machine.vector_bytes / bytes(register_type(type_.dtype));
    lanes_ = static_cast<int>(
        std::min<int64_t>(fit, std::bit_floor(static_cast<uint64_t>(type_.shape[1]))));
  }

  void emit(Writer& out) {
    const int64_t rows = type_.shape[0], whole = rows / kRows * kRows;
    const std::string i = c_.symbol_text(i_), j = c_.symbol_text(j_);
    const bool ragged = lanes_ > 1 && type_.shape[1] % lanes_ != 0;
    if (whole > 0) block(kRows, 0, whole, ragged, out);
    if (whole < rows) block(1, whole, rows, ragged, out);
  }

 private:
  Reg converted(Expression& e, Reg r) {
    const DType to = register_type(type_.dtype);
    if (register_type(r.dtype) == to) {
      r.dtype = to;
      return r;
    }
    const std::string type = c_.prelude.type(to, r.lanes);
    return e.define(to, r.lanes, r.loops,
                    r.lanes > 1 ? fmt::format("__builtin_convertvector({}, {})", r.text, type)
                                : fmt::format("({}){}", type, r.text));
  }

  void block(int rows, int64_t from, int64_t to, bool ragged, Writer& out) {
    const std::string i = c_.symbol_text(i_), j = c_.symbol_text(j_), k = c_.symbol_text(k_);
    const Expr row = Expr::symbol(i_), column = Expr::symbol(j_);
    const DType held = register_type(type_.dtype);
    const std::string active = ragged ? fmt::format("{} - {}", type_.shape[1], j) : std::string();
    Expression before(c_), step(c_), after(c_);
    std::vector<Reg> sums;
    for (Expression* e : {&before, &step, &after}) {
      e->add_loop(i_);
      e->add_loop(j_);
      if (e == &step) e->add_loop(k_);
      e->set_lanes(1, lanes_);
      e->set_active(active);
    }
    for (int r = 0; r < rows; ++r) {
      Reg start = before.value(op_.in[2], {row + r, column});
      start.dtype = held;
      const std::string name = c_.fresh("sum");
      before.body(2).line(fmt::format("{} {} = {};", c_.prelude.type(held, lanes_), name,
                                      before.widen(start).text));
      sums.push_back(Reg{name, held, lanes_, 3, 0});
    }
    for (int r = 0; r < rows; ++r) {
      const Expr depth = Expr::symbol(k_);
      const Reg b = converted(step, step.value(op_.in[1], {depth, column}));
      const Reg a = converted(step, step.value(op_.in[0], {row + r, depth}));
      const Reg product = combine_pair(step, Opcode::mul, a, b);
      const Reg sum = combine_pair(step, Opcode::add, sums[r], product);
      step.body(3).line(fmt::format("{} = {};", sums[r].text, step.widen(sum).text));
    }
    for (int r = 0; r < rows; ++r) {
      Reg result = sums[r];
      result.dtype = type_.dtype;
      write_element(after, after.rounded(result), {nullptr, &target_}, {row + r, column}, active);
    }
    out.append(before.body(0));
    out.append(step.body(0));
    out.append(after.body(0));
    out.open(fmt::format("for (i64 {0} = {1}; {0} < {2}; {0} += {3}) {{", i, from, to, rows));
    for (Expression* e : {&before, &step, &after}) out.append(e->body(1));
    out.open(fmt::format("for (i64 {0} = 0; {0} < {1}; {0} += {2}) {{", j, type_.shape[1], lanes_));
    out.append(before.body(2));
    out.append(step.body(2));
    out.open(fmt::format("for (i64 {0} = 0; {0} < {1}; ++{0}) {{", k, depth_));
    out.append(step.body(3));
    out.close();
    out.append(after.body(2));
    out.close();
    out.close();
  }

  Context& c_;
  const Op& op_;
  const Storage& target_;
  const Type& type_;
  Symbol i_, j_, k_;
  int64_t depth_ = 1;
  int lanes_ = 1;
};

}  // namespace

void emit_dot(Context& c, const Op& op, const Storage& target, Writer& out) {
  DotNest(c, op, target).emit(out);
}

}  // namespace tw::cpu
