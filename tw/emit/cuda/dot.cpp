#include <fmt/format.h>

#include "tw/emit/cpu/nest.h"
#include "tw/emit/cpu/op_table.h"
#include "tw/emit/cuda/panel_dot.h"
#include "tw/emit/cuda/statements.h"

namespace tw::cuda {
namespace {

/// acc + a @ b by multiplications and additions of elements: each thread sums its elements over k.
class PlainDot {
 public:
  PlainDot(State& s, const Op& op)
      : s_(s),
        op_(op),
        shape_(s.program().type(op.out[0]).shape),
        depth_(s.program().type(op.in[0]).shape.back()),
        type_(s.program().type(op.out[0]).dtype) {}

  void emit(Writer& out) {
    Footprint f;
    for (const ValueId v : op_.in) f.add(s_.reads_of(v));
    const ValueId v = op_.out[0];
    if (s_.in_registers(v)) {
      in_registers(f, out);
    } else {
      in_memory(f, out);
    }
  }

 private:
  DType sum_type() const { return register_type(type_); }

  /// The element of an operand at (row, column) of the result and step `k`.
  Reg factor(Expression& e, Coords at, size_t operand, const Expr& k) {
    at[operand == 0 ? 1 : 0] = k;
    return widened(e, e.value(op_.in[operand], at));
  }

  Reg product(Expression& e, const Coords& at, const Reg& sum, const Expr& k) {
    const Reg a = factor(e, at, 0, k), b = factor(e, at, 1, k);
    return cpu::combine_pair(e, Opcode::add, sum, cpu::combine_pair(e, Opcode::mul, a, b));
  }

  Reg widened(Expression& e, const Reg& r) {
    if (register_type(r.dtype) == sum_type()) {
      Reg w = r;
      w.dtype = sum_type();
      return w;
    }
    const std::string type = s_.c.prelude.type(sum_type());
    return e.define(sum_type(), 1, r.loops, fmt::format("({}){}", type, r.text));
  }

  /// Sums in registers; k is the outermost loop.
  void in_registers(const Footprint& f, Writer& out) {
    const ValueId v = op_.out[0];
    const layout::ThreadValue& l = s_.placement.layout_of(shape_);
    const Tile sums{s_.c.fresh("sum"), {sum_type(), shape_}, l};
    s_.declare_registers(sums, out);
    Writer text;
    {
      Nest n(s_, l);
      Reg first = n.value(op_.in[2]);
      write_register(n, first, sums);
      n.guard();
      n.emit(text);
    }
    const std::string k = s_.c.fresh("k");
    const Symbol step = s_.c.new_symbol(k, SymbolFact{{0, depth_ - 1}, 1});
    text.line("#pragma unroll 4");
    text.open(fmt::format("for (int {0} = 0; {0} < {1}; ++{0}) {{", k, depth_));
    Nest n(s_, l);
    n.guard();
    Expression& e = n.expression();
    const Reg sum{n.place(sums), sum_type(), 1, all_loops(e), 0};
    write_register(n, product(e, n.at(), sum, Expr::symbol(step)), sums);
    n.emit(text);
    text.close();
    s_.append(f, text, out);
    keep_elements(
        s_, v,
        [&](Nest& to) {
          Expression& x = to.expression();
          return x.rounded(Reg{to.place(sums), type_, 1, all_loops(x), 0});
        },
        {}, out);
  }

  /// A tile too large for registers: each element is summed on its own.
  void in_memory(const Footprint& f, Writer& out) {
    keep_elements(
        s_, op_.out[0],
        [&](Nest& n) {
          Expression& e = n.expression();
          const Reg first = n.value(op_.in[2]);
          const std::string sum = s_.c.fresh("sum"), k = s_.c.fresh("k");
          const Symbol step = s_.c.new_symbol(k, SymbolFact{{0, depth_ - 1}, 1});
          Expression inner(s_.c);
          bind_memory(s_, inner);
          const Reg next =
              product(inner, n.at(), Reg{sum, sum_type(), 1, 0, 0}, Expr::symbol(step));
          Writer& body = e.body(e.depth());
          body.line(fmt::format("{} {} = {};", s_.c.prelude.type(sum_type()), sum, first.text));
          body.open(fmt::format("for (int {0} = 0; {0} < {1}; ++{0}) {{", k, depth_));
          body.append(inner.body(0));
          body.line(fmt::format("{} = {};", sum, next.text));
          body.close();
          return Reg{sum, type_, 1, all_loops(e), 0};
        },
        f, out);
  }

  State& s_;
  const Op& op_;
  const Extents shape_;
  const int64_t depth_;
  const DType type_;
};

}  // namespace

void emit_dot(State& s, const Op& op, Writer& out) {
  switch (s.placement.unit(op)) {
    case DotUnit::plain:
      return PlainDot(s, op).emit(out);
    case DotUnit::multiply_add:
      return emit_multiply_add(s, op, out);
    case DotUnit::matrix:
      return emit_matrix_dot(s, op, out);
  }
}

}  // namespace tw::cuda
