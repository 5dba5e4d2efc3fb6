// Dots whose operands lie in panels: see docs/decisions/009-matrix-dots.md.
#include "tw/emit/cuda/panel_dot.h"

#include <fmt/format.h>
#include <functional>

#include "tw/base/round.h"
#include "tw/emit/cuda/nest.h"
#include "tw/emit/cuda/statements.h"

namespace tw::cuda {

using layout::ThreadValue;

PanelDot::PanelDot(State& s, const Op& op)
    : s_(s),
      op_(op),
      depth_(s.program().type(op.in[0]).shape[1]),
      operands_{operand_of(s.c, op, 0), operand_of(s.c, op, 1)},
      scope_(std::in_place, s) {
  const Type& type = s.program().type(op.out[0]);
  sums_ = {s.c.fresh("sum"), type, s.placement.layout_of(type.shape)};
  sums_.layout.tile = type.shape;
}

PanelDot::~PanelDot() { free_panels(); }

void PanelDot::free_panels() {
  for (const ValueId v : filled_) s_.panels.erase(v);
  filled_.clear();
  scope_.reset();
}

void PanelDot::take_panels(bool left, Writer& out) {
  for (size_t which = left ? 0 : 1; which < 2; ++which) {
    const ValueId base = operands_[which].base;
    if (!s_.panels.contains(base)) {
      const PanelMemory m = reserve_panel(s_, base, 1, out);
      emit_panel(s_, base, m, out);
      s_.panels[base] = m;
      filled_.push_back(base);
    }
    panels_[which] = s_.panels.at(base);
    reads_.reads.push_back(panels_[which].where);
  }
}

void PanelDot::begin(Writer& text) {
  text.line(fmt::format("{} {}[{}];", s_.c.prelude.type(sums_.type.dtype), sums_.name,
                        sums_.layout.registers()));
  Nest n(s_, sums_.layout);
  const Reg first = n.value(op_.in[2]);
  const Footprint reads = s_.reads_of(op_.in[2]);
  reads_.add(reads);
  const std::string place = n.place(sums_);
  Expression& e = n.expression();
  e.body(e.depth()).line(
      fmt::format("{} = {};", sums_.variable() ? place + "[0]" : place, first.text));
  if (s_.guards(reads)) n.guard();
  n.emit(text);
}

void PanelDot::finish(const Writer& text, Writer& out) {
  s_.append(reads_, text, out);
  free_panels();  // before the result takes memory that lives on
  keep_elements(
      s_, op_.out[0],
      [&](Nest& to) {
        const std::string place = to.place(sums_);
        return Reg{sums_.variable() ? place + "[0]" : place, sums_.type.dtype, 1,
                   all_loops(to.expression()), 0};
      },
      {}, out);
}

std::string PanelDot::place(size_t which, const std::string& along, const std::string& k) const {
  const PanelMemory& p = panels_[which];
  const bool lines_along = along_k(which);
  return fmt::format("{} + ({}) * {} + {}", p.name, lines_along ? along : k, p.form.pitch,
                     lines_along ? k : along);
}

namespace {

/// acc + a @ b by matrix instructions: each warp has a grid of accumulators of 16 x 8.
class MatrixDot {
 public:
  MatrixDot(State& s, const Op& op)
      : s_(s),
        op_(op),
        dot_(s, op),
        grid_(s.placement.grid(s.program().type(op.out[0]).shape)),
        type_(panel_type(s.program().type(op.in[0]).dtype)),
        left_(left_in_registers(s, op)),
        parts_(op.as<DotAttr>().precision == Precision::tf32x3),
        step_(matrix_depth(type_)) {}

  void emit(Writer& out) {
    dot_.take_panels(!left_, out);
    Writer text;
    dot_.begin(text);
    if (left_) pack_left(text);
    lanes(text);
    const int64_t steps = ceil_div(dot_.depth(), step_);
    k_ = s_.c.fresh("k");
    text.line(left_ || steps <= 4 ? "#pragma unroll" : "#pragma unroll 2");
    text.open(fmt::format("for (int {0} = 0; {0} < {1}; ++{0}) {{", k_, steps));
    if (type_ == f64) {
      f64_step(text);
    } else {
      load_left(text);
      multiply(text);
    }
    text.close();
    dot_.finish(text, out);
  }

 private:
  /// The left operand is a tile of accumulators: pairs of its registers are what instructions take.
  void pack_left(Writer& text) {
    const Type& type = s_.program().type(op_.in[0]);
    const ThreadValue& l = s_.placement.layout_of(type.shape);
    s_.c.prelude.outside("Pack");
    const Footprint reads = s_.reads_of(op_.in[0]);
    dot_.also_reads(reads);
    words_ = s_.c.fresh("left");
    text.line(fmt::format("Pack<u16, 2> {}[{}];", words_, l.registers() / 2));
    Nest n(s_, l);
    const Reg r = n.value(op_.in[0]);
    const std::string to = in_packs(s_, words_, n.index({words_, type, l}), 2);
    Expression& e = n.expression();
    if (type_ == bf16) {  // the register holds a bf16: the rest of its bits are 0
      e.body(e.depth()).line(fmt::format("{} = (u16)((u32){}({}) >> 16);", to,
                                         s_.c.prelude.use("bits", f32, 1), r.text));
    } else {
      e.body(e.depth()).line(
          fmt::format("{}(&{}, {});", s_.c.prelude.use("store", type_, 1), to, r.text));
    }
    if (s_.guards(reads)) n.guard();
    n.emit(text);
  }

  /// Where the lane's lines of the first matrices begin.
  void lanes(Writer& text) {
    const std::string lane = s_.c.fresh("lane");
    text.line(fmt::format("const int {} = {};", lane, s_.digit(1, 32)));
    const auto warp = [&](int64_t below, size_t axis) {
      if (grid_.warps[axis] == 1) return std::string();
      return fmt::format("({}) * {} + ", s_.digit(32 * below, grid_.warps[axis]),
                         grid_.reach(axis) / grid_.warps[axis]);
    };
    const std::string rows = warp(grid_.warps[1], 0), columns = warp(1, 1);
    const auto name = [&](const char* wish, const std::string& place) {
      const std::string n = s_.c.fresh(wish);
      text.line(fmt::format("const auto* const {} = {};", n, place));
      return n;
    };
    if (!left_) a_ = name("a_at", first_place(0, rows, lane));
    b_ = name("b_at", first_place(1, columns, lane));
  }

  /// Whether lanes read elements of the operand one by one.
  bool by_elements(size_t which) const {
    return type_ == f64 || (type_ == f32 && !dot_.along_k(which));
  }

  std::string first_place(size_t which, const std::string& warp, const std::string& lane) const {
    if (by_elements(which))
      return dot_.place(which, fmt::format("{}{} / 4", warp, lane), lane + " % 4");
    // Lanes 8 i .. 8 i + 7 give the lines of matrix i of four: along the result's axis these are
    // side by side first for A, last for B.
    const std::string low = lane + " % 8", second = lane + " / 8 % 2", third = lane + " / 16";
    const std::string &along = which == 0 ? second : third, &deep = which == 0 ? third : second;
    if (dot_.along_k(which))
      return dot_.place(which, fmt::format("{}{} + {} * 8", warp, low, along),
                        fmt::format("{} * {}", deep, 16 / bytes(type_)));
    return dot_.place(which, fmt::format("{}{} * 8", warp, along),
                      fmt::format("{} + {} * 8", low, deep));
  }

  std::string next(size_t which, const std::string& tile, int64_t tiles,
                   const std::string& k) const {
    const Panel& p = dot_.form(which);
    const int64_t line = dot_.along_k(which) ? p.pitch : 1,
                  along = dot_.along_k(which) ? 1 : p.pitch;
    return fmt::format("{} * {} + {} * {}", tile, tiles * line, k, step_ * along);
  }

  void load_left(Writer& text) {
    a_words_ = s_.c.fresh("a");
    text.line(fmt::format("u32 {}[{}][4];", a_words_, grid_.tiles[0]));
    if (parts_) {
      a_small_ = s_.c.fresh("a_small");
      odd_ = s_.c.fresh("odd");
      text.line(fmt::format("u32 {}[{}][4];", a_small_, grid_.tiles[0]));
      text.line(fmt::format("f32 {} = 0;  // NaN where an element is no number", odd_));
    }
    text.line("#pragma unroll");
    if (left_) {
      const int64_t own = s_.placement.grid(s_.program().type(op_.in[0]).shape).tiles[1];
      text.open(fmt::format("for (int m = 0; m < {} * 4; ++m) {{", grid_.tiles[0]));
      text.line(fmt::format(
          "{}[m / 4][m % 4] = __builtin_bit_cast(u32, {}[(m / 4 * {} + {} * 2) * 2 + m % 4]);",
          a_words_, words_, own, k_));
    } else {
      text.open(fmt::format("for (int m = 0; m < {}; ++m) {{", grid_.tiles[0]));
      read_words(0, a_words_ + "[m]", fmt::format("{} + {}", a_, next(0, "m", 16, k_)), text);
      if (type_ == f32) round_words(a_words_ + "[m]", a_small_ + "[m]", odd_, text);
    }
    text.close();
  }

  /// The four registers of an operand for one step of k.
  void read_words(size_t which, const std::string& words, const std::string& from, Writer& text) {
    if (!by_elements(which)) {
      text.line(fmt::format("{}({}, {});",
                            s_.call(dot_.along_k(which) ? "ldmatrix_x4" : "ldmatrix_x4_trans"),
                            words, from));
      return;
    }
    const int64_t far = 4 * dot_.form(which).pitch;
    text.line("#pragma unroll");
    text.line(
        fmt::format("for (int i = 0; i < 4; ++i) {}[i] = __builtin_bit_cast(u32, *({} + i % "
                    "2 * {} + i / 2 * {}));",
                    words, from, which == 0 ? 8 : far, which == 0 ? far : 8));
  }

  /// Words of f32 as instructions of tf32 take them.
  void round_words(const std::string& words, const std::string& small, const std::string& odd,
                   Writer& text) {
    text.line("#pragma unroll");
    text.line(parts_ ? fmt::format("for (int i = 0; i < 4; ++i) {}({}[i], {}[i], {});",
                                   s_.call("split_tf32"), words, small, odd)
                     : fmt::format("for (int i = 0; i < 4; ++i) {1}[i] = "
                                   "{0}(__builtin_bit_cast(f32, {1}[i]));",
                                   s_.call("tf32"), words));
  }

  std::string instruction() const {
    if (type_ == f16) return "mma_m16n8k16_f32_f16";
    if (type_ == bf16) return "mma_m16n8k16_f32_bf16";
    if (type_ == f32) return "mma_m16n8k8_f32_tf32";
    const auto sign = [&](size_t which) {
      return s_.program().type(op_.in[which]).dtype == i8 ? "s8" : "u8";
    };
    return fmt::format("mma_m16n8k32_i32_{}_{}", sign(0), sign(1));
  }

  void multiply(Writer& text) {
    const std::string b = s_.c.fresh("b");
    text.line("#pragma unroll");
    text.open(fmt::format("for (int n = 0; n < {}; n += 2) {{", grid_.tiles[1]));
    text.line(fmt::format("u32 {}[4];", b));
    read_words(1, b, fmt::format("{} + {}", b_, next(1, "n", 8, k_)), text);
    if (parts_) {
      const std::string small = s_.c.fresh("b_small"), odd = s_.c.fresh("odd");
      text.line(fmt::format("u32 {}[4];", small));
      text.line(fmt::format("f32 {} = {};", odd, odd_));
      round_words(b, small, odd, text);
      text.open(fmt::format("if ({0}({1} != {1})) {{", s_.call("any"), odd));
      products([&](int half) { part_products(half, b, small, true, text); }, text);
      text.close();
      text.open("else {");
      products([&](int half) { part_products(half, b, small, false, text); }, text);
      text.close();
    } else {
      if (type_ == f32) round_words(b, "", "", text);
      const std::string call = s_.call(instruction());
      const std::string type = s_.c.prelude.type(s_.program().type(op_.out[0]).dtype);
      products(
          [&](int half) {
            text.line(fmt::format("{}(*({} (*)[4])({}), {}[m], {});", call, type, sums_at(half),
                                  a_words_, half_of(b, half)));
          },
          text);
    }
    text.close();
  }

  std::string sums_at(int half) const {
    return fmt::format("{} + (m * {} + n + {}) * 4", dot_.sums(), grid_.tiles[1], half);
  }
  static std::string half_of(const std::string& words, int half) {
    return fmt::format("*(const u32 (*)[2])({} + {})", words, 2 * half);
  }

  /// Every row of instructions, by the two that share one read of B.
  void products(const std::function<void(int half)>& product, Writer& text) {
    text.line("#pragma unroll");
    text.open(fmt::format("for (int m = 0; m < {}; ++m) {{", grid_.tiles[0]));
    for (int half = 0; half < 2; ++half) {
      const bool odd = grid_.tiles[1] % 2 != 0 && half == 1;
      if (odd) text.open(fmt::format("if (n + 1 < {}) {{", grid_.tiles[1]));
      product(half);
      if (odd) text.close();
    }
    text.close();
  }

  /// The products of parts from small to large, apart from the sums: instructions add to these
  /// with fewer bits than f32 has. `odd`: where a large part is no number, that product says all.
  void part_products(int half, const std::string& b, const std::string& b_small, bool odd,
                     Writer& text) {
    const std::string call = s_.call(instruction()), d = s_.c.fresh("d");
    const auto add = [&](const std::string& left, const std::string& right) {
      text.line(fmt::format("{}({}, {}[m], {});", call, d, left, half_of(right, half)));
    };
    text.line(fmt::format("f32 {}[4] = {{}};", d));
    add(a_small_, b);
    add(a_words_, b_small);
    if (odd) text.line(fmt::format("for (f32& x : {}) x = x - x == 0 ? x : 0;", d));
    add(a_words_, b);
    text.line("#pragma unroll");
    text.line(fmt::format("for (int i = 0; i < 4; ++i) ({})[i] += {}[i];", sums_at(half), d));
  }

  /// Sixteen steps of k by four instructions of four, each for eight of the sixteen rows.
  void f64_step(Writer& text) {
    const std::string call = s_.call("mma_m8n8k4_f64");
    const Panel &a = dot_.form(0), &b = dot_.form(1);
    const auto at = [&](size_t which, const std::string& tile, const Panel& p) {
      const bool k = dot_.along_k(which);
      return fmt::format("({}) * {} + ({} * 4 + q) * {}", tile, 8 * (k ? p.pitch : 1), k_,
                         4 * (k ? 1 : p.pitch));
    };
    text.line("#pragma unroll");
    text.open("for (int q = 0; q < 4; ++q) {");
    text.line(fmt::format("f64 a[{}];", 2 * grid_.tiles[0]));
    text.line("#pragma unroll");
    text.line(fmt::format("for (int m = 0; m < {}; ++m) a[m] = {}[{}];", 2 * grid_.tiles[0], a_,
                          at(0, "m", a)));
    text.line("#pragma unroll");
    text.open(fmt::format("for (int n = 0; n < {}; ++n) {{", grid_.tiles[1]));
    text.line(fmt::format("const f64 b = {}[{}];", b_, at(1, "n", b)));
    text.line("#pragma unroll");
    text.line(
        fmt::format("for (int m = 0; m < {}; ++m) {}(*(f64 (*)[2])({} + ((m / 2 * {} + n) * 2 "
                    "+ m % 2) * 2), a[m], b);",
                    2 * grid_.tiles[0], call, dot_.sums(), grid_.tiles[1]));
    text.close();
    text.close();
  }

  State& s_;
  const Op& op_;
  PanelDot dot_;
  const MatrixGrid grid_;
  const DType type_;
  const bool left_;   ///< the left operand lies in registers
  const bool parts_;  ///< elements are multiplied in two parts
  const int64_t step_;
  std::string a_, b_, k_, words_, a_words_, a_small_, odd_;
};

}  // namespace

void emit_matrix_dot(State& s, const Op& op, Writer& out) { MatrixDot(s, op).emit(out); }

}  // namespace tw::cuda
