#include <algorithm>
#include <bit>
#include <fmt/format.h>
#include <optional>

#include "tw/emit/cpu/contract_tile.h"
#include "tw/emit/cpu/nest.h"
#include "tw/emit/cpu/op_table.h"

namespace tw::cpu {
namespace {

/// Rows of the result that are accumulated together: each vector of b serves all of them.
constexpr int kRows = 4;

/// Rows and columns of a dot's result.
struct Part {
  int64_t row, row_end, col, col_end;
  bool empty() const { return row >= row_end || col >= col_end; }
};

/// Loops for a part of the result: any type, any extents. Adds to operand 2, or to the target when
/// that holds operand 2 already.
class DotNest {
 public:
  DotNest(Context& c, const Op& op, const Storage& target, bool adds_to_target)
      : c_(c),
        op_(op),
        target_(target),
        adds_to_target_(adds_to_target),
        type_(c.program.type(op.out[0])) {
    const Type& a = c.program.type(op.in[0]);
    i_ = c.new_loop("i", type_.shape[0]);
    j_ = c.new_loop("j", type_.shape[1]);
    k_ = c.new_loop("k", a.shape[1]);
    depth_ = a.shape[1];
    const int64_t fit =
        std::max<int64_t>(c.machine.vector_bytes / bytes(register_type(type_.dtype)), 1);
    lanes_ = static_cast<int>(
        std::min<int64_t>(fit, std::bit_floor(static_cast<uint64_t>(type_.shape[1]))));
  }

  void emit(const Part& p, Writer& out) {
    if (p.empty()) return;
    const int64_t whole = p.row + (p.row_end - p.row) / kRows * kRows;
    if (whole > p.row) block(kRows, {p.row, whole, p.col, p.col_end}, out);
    if (whole < p.row_end) block(1, {whole, p.row_end, p.col, p.col_end}, out);
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

  void block(int rows, const Part& part, Writer& out) {
    const bool ragged = lanes_ > 1 && (part.col_end - part.col) % lanes_ != 0;
    const std::string i = c_.symbol_text(i_), j = c_.symbol_text(j_), k = c_.symbol_text(k_);
    const Expr row = Expr::symbol(i_), column = Expr::symbol(j_);
    const DType held = register_type(type_.dtype);
    const std::string active = ragged ? fmt::format("{} - {}", part.col_end, j) : std::string();
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
      const Coords at{row + r, column};
      Reg start = adds_to_target_ ? before.load_stored(target_, at) : before.value(op_.in[2], at);
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
    out.open(fmt::format("for (i64 {0} = {1}; {0} < {2}; {0} += {3}) {{", i, part.row, part.row_end,
                         rows));
    for (Expression* e : {&before, &step, &after}) out.append(e->body(1));
    out.open(fmt::format("for (i64 {0} = {1}; {0} < {2}; {0} += {3}) {{", j, part.col, part.col_end,
                         lanes_));
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
  const bool adds_to_target_;
  const Type& type_;
  Symbol i_, j_, k_;
  int64_t depth_ = 1;
  int lanes_ = 1;
};

/// An operand in memory whose elements have the type of the sum.
struct Array {
  std::string name;
  int64_t row = 0, col = 0;  ///< steps from row to row, and from column to column
};

std::optional<Array> array_of(const Context& c, ValueId v, DType sum) {
  const Op* op = c.def[v];
  const bool turned = op != nullptr && op->code == Opcode::transpose &&
                      op->as<PermAttr>().perm == std::vector<int>{1, 0} && !c.storage.contains(v);
  const auto s = c.storage.find(turned ? op->in[0] : v);
  if (s == c.storage.end() || s->second.variable()) return std::nullopt;
  const Type& t = s->second.type;
  if (register_type(t.dtype) != sum || t.dtype == b1) return std::nullopt;
  return turned ? Array{s->second.name, 1, t.shape[1]} : Array{s->second.name, t.shape[1], 1};
}

/// The register tiles of contractions on operands that lie in memory, as far as they cover the
/// result; loops for the rest of it.
class DotOfTiles {
 public:
  DotOfTiles(Context& c, const Op& op, const Storage& target)
      : c_(c),
        op_(op),
        target_(target),
        type_(c.program.type(op.out[0])),
        s_(choose_contract_shape(c.machine, c.mapping, type_.dtype)),
        a_(array_of(c, op.in[0], type_.dtype)),
        b_(array_of(c, op.in[1], type_.dtype)),
        depth_(c.program.type(op.in[0]).shape[1]),
        cols_(type_.shape[1] / s_.cols() * s_.cols()) {}

  bool fits() const {
    return (type_.dtype == f32 || type_.dtype == f64) && a_ && b_ && b_->col == 1 && cols_ > 0 &&
           type_.shape[0] >= s_.heights().back();
  }

  void emit(Writer& out) {
    const auto acc = c_.storage.find(op_.in[2]);
    const bool there = acc != c_.storage.end() && acc->second.name == target_.name;
    const Op* made = c_.def[op_.in[2]];
    from_zero_ = made != nullptr && made->code == Opcode::full &&
                 made->as<FullAttr>().value == Number{false, 0, 0.0};
    if (!there && !from_zero_) emit_elements(c_, op_.in[2], {nullptr, &target_}, out);
    int64_t row = type_.shape[0] / s_.rows * s_.rows;
    if (row > 0) tiles(0, row, s_.rows, out);
    for (const int height : s_.heights()) {
      if (type_.shape[0] - row < height) continue;
      tiles(row, row + height, height, out);
      row += height;
    }
    DotNest rest(c_, op_, target_, !from_zero_);
    rest.emit({row, type_.shape[0], 0, cols_}, out);
    rest.emit({0, type_.shape[0], cols_, type_.shape[1]}, out);
  }

 private:
  void tiles(int64_t from, int64_t to, int height, Writer& out) {
    const bool rows = a_->col == 1;  // of A run along k
    const TileKind kind = rows ? TileKind::in_place : TileKind::strided;
    const Fill values{{"tile", use_tile(c_.prelude, s_, kind)},
                      {"a", a_->name},
                      {"arow", std::to_string(a_->row)},
                      {"acol", rows ? "" : fmt::format("{}, ", a_->col)},
                      {"b", b_->name},
                      {"c", target_.name},
                      {"from", std::to_string(from)},
                      {"to", std::to_string(to)},
                      {"height", std::to_string(height)},
                      {"cols", std::to_string(cols_)},
                      {"step", std::to_string(s_.cols())},
                      {"row", std::to_string(type_.shape[1])},
                      {"depth", std::to_string(depth_)}};
    out.open(fill("for (i64 j = 0; j < $cols; j += $step) {", values));
    out.open(fill("for (i64 i = $from; i < $to; i += $height) {", values));
    out.line("$tile($height, $depth, $a + i * $arow, $arow, $acol$b + j, $row,", values);
    const char* sums = from_zero_ ? "    0, $row, $c + i * $row + j, $row);"
                                  : "    $c + i * $row + j, $row, $c + i * $row + j, $row);";
    out.line(sums, values);
    out.close();
    out.close();
  }

  Context& c_;
  const Op& op_;
  const Storage& target_;
  const Type& type_;
  const ContractShape s_;
  const std::optional<Array> a_, b_;
  const int64_t depth_, cols_;
  bool from_zero_ = false;  ///< operand 2 is
};

}  // namespace

void emit_dot(Context& c, const Op& op, const Storage& target, Writer& out) {
  DotOfTiles tiles(c, op, target);
  if (tiles.fits()) return tiles.emit(out);
  const Extents& shape = c.program.type(op.out[0]).shape;
  DotNest(c, op, target, false).emit({0, shape[0], 0, shape[1]}, out);
}

}  // namespace tw::cpu
