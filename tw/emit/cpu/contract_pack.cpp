#include <fmt/format.h>
#include <functional>
#include <vector>

#include "tw/emit/cpu/contract_operand.h"
#include "tw/emit/cpu/contract_tile.h"

namespace tw::cpu {
namespace {

/// Source rows of B that one pass over the panels reads: as many streams of memory.
constexpr int kStreams = 8;

class Packer {
 public:
  Packer(Context& c, const ContractOperand& operand, const ContractShape& s,
         const ContractLoops& loops, bool is_a, Writer& out)
      : c_(c),
        operand_(operand),
        s_(s),
        loops_(loops),
        out_(out),
        is_a_(is_a),
        panel_(is_a ? loops.row : loops.col),
        element_(is_a ? loops.i : loops.j),
        extent_(is_a ? loops.rows : loops.cols),
        width_(is_a ? s.rows : s.cols()),
        p_(c.symbol_text(panel_)),
        k_(c.symbol_text(loops.k)),
        end_(is_a ? "row_end" : "col_end") {}

  void emit() {
    if (operand_.unit_k()) return along_k();
    if (is_a_) {
      out_.line(fmt::format("i64 {} = first;", p_));
      if (operand_.unit_kept()) columns_of_a();
    } else {
      rows_of_b();
      out_.line(fmt::format("i64 {0} = first + ({2} - first) / {1} * {1};", p_, width_, end_));
    }
    rest();
  }

 private:
  using Fill = std::function<void(Expression&)>;

  /// The statements inside the loops over panels and k, `lanes` along one of them. Loads inside
  /// their views are not checked, where facts show that they are.
  Expression body(int lane_loop, int lanes, const Fill& fill) {
    const auto attempt = [&](Assume assume) {
      Expression e(c_);
      e.add_loop(panel_);
      e.add_loop(loops_.k);
      e.set_lanes(lane_loop, lanes);
      e.assume(assume);
      fill(e);
      return e;
    };
    Expression e = attempt(Assume::inside);
    return e.limits().empty() && e.guards().empty() ? std::move(e) : attempt(Assume::nothing);
  }

  std::string element_at(int offset) const {
    return fmt::format("packed + ({} - k0) * {} + {}", k_, width_, offset);
  }

  void declare_packed() {
    out_.line(fmt::format("{}* const packed = {} + ({} - {}) * kc;", name(s_.type),
                          is_a_ ? "packed_a" : "packed_b", p_, is_a_ ? "row0" : "col0"));
  }

  void open_panel(const std::string& more) {
    const std::string whole =
        is_a_ ? fmt::format("{}({} - {}) == {}", use_tile_rows(c_.prelude, s_), end_, p_, width_)
              : fmt::format("{} + {} <= {}", p_, width_, end_);
    out_.open(fmt::format("for (; {1}{2}; {0} += {3}) {{", p_, whole, more, width_));
    declare_packed();
  }

  void loop_over_k(const std::string& from, const std::string& to, Expression& e) {
    out_.open(fmt::format("for (i64 {0} = {1}; {0} < {2}; ++{0}) {{", k_, from, to));
    out_.append(e.body(2));
    out_.close();
  }

  /// Memory runs along k: vectors along k of as many rows (columns) as lanes, transposed.
  void along_k() {
    use_transpose(c_.prelude, s_.type, s_.lanes);
    bound_counter(c_, panel_, extent_, 1);
    bound_counter(c_, loops_.k, loops_.depth, 1);
    Expression fast = body(1, s_.lanes, [&](Expression& e) { transposed(e); });
    out_.append(fast.body(0));
    out_.open(fmt::format("for (i64 {0} = first, m; {0} < {1}; {0} += m) {{", p_, end_));
    next_panel();
    out_.append(fast.body(1));
    out_.line(fmt::format("const i64 k_whole = k0 + kc / {0} * {0};", s_.lanes));
    out_.open(fmt::format("for (i64 {0} = k0; {0} < k_whole; {0} += {1}) {{", k_, s_.lanes));
    out_.append(fast.body(2));
    out_.close();
    elements("k_whole");
    out_.close();
  }

  /// Sets m, the panel's rows (columns), and `wide`, those it has with idle ones.
  void next_panel() {
    out_.line(is_a_ ? fmt::format("m = {}({} - {});", use_tile_rows(c_.prelude, s_), end_, p_)
                    : fmt::format("m = min({}, {} - {});", width_, end_, p_));
    out_.line(fmt::format("const i64 wide = {};", is_a_ ? use_tile_height(c_.prelude, s_) + "(m)"
                                                        : std::to_string(width_)));
    declare_packed();
  }

  /// A vector longer than what is left of a panel's row overlaps the row that is written next, so
  /// rows are written in order. Idle rows (columns) are copies of the last one.
  void transposed(Expression& e) {
    Writer& text = e.body(2);
    const std::string memory = c_.prelude.unaligned(s_.type, s_.lanes);
    const std::string vector = c_.prelude.type(s_.type, s_.lanes);
    std::vector<std::string> arrays;
    for (int group = 0; group < width_; group += s_.lanes) {
      std::string values;
      for (int l = 0; l < s_.lanes; ++l) {
        const bool there = group + l < width_;
        values += l ? ", " : "";
        const Expr at = group + l == 0 ? Expr::symbol(panel_)
                                       : min(Expr::symbol(panel_) + (group + l), extent_ - 1);
        values +=
            there ? e.widen(operand_.value(e, at, Expr::symbol(loops_.k))).text : vector + "{}";
      }
      arrays.push_back(c_.fresh("lines"));
      text.line(fmt::format("{} {}[] = {{{}}};", vector, arrays.back(), values));
      text.line(fmt::format("tw_transpose({});", arrays.back()));
    }
    for (int l = 0; l < s_.lanes; ++l) {
      for (size_t g = 0; g < arrays.size(); ++g) {
        const std::string at = fmt::format("packed + ({} - k0 + {}) * wide + {}", k_, l,
                                           static_cast<int>(g) * s_.lanes);
        text.line(fmt::format("*({}*)({}) = {}[{}];", memory, at, arrays[g], l));
      }
    }
  }

  Expression rows_of_vectors(int vectors) {
    bound_counter(c_, panel_, extent_, static_cast<int64_t>(vectors - 1) * s_.lanes + 1);
    bound_counter(c_, loops_.k, loops_.depth, 1);
    const std::string memory = c_.prelude.unaligned(s_.type, s_.lanes);
    return body(0, s_.lanes, [&](Expression& e) {
      for (int v = 0; v < vectors; ++v) {
        const Reg x =
            e.widen(operand_.value(e, Expr::symbol(panel_) + v * s_.lanes, Expr::symbol(loops_.k)));
        e.body(2).line(fmt::format("*({}*)({}) = {};", memory, element_at(v * s_.lanes), x.text));
      }
    });
  }

  /// Memory runs along the rows of A: whole vectors, while all their lanes are rows of A.
  void columns_of_a() {
    const int vectors = (width_ + s_.lanes - 1) / s_.lanes;
    Expression e = rows_of_vectors(vectors);
    out_.append(e.body(0));
    open_panel(fmt::format(" && {} + {} <= rows", p_, vectors * s_.lanes));
    out_.append(e.body(1));
    loop_over_k("k0", "k0 + kc", e);
    out_.close();
  }

  /// Memory runs along the columns of B, or along none of the axes.
  void rows_of_b() {
    Expression e = rows_of_vectors(s_.vectors);
    out_.append(e.body(0));
    out_.open(fmt::format("for (i64 stream = k0; stream < k0 + kc; stream += {}) {{", kStreams));
    out_.line(fmt::format("const i64 stream_end = min(stream + {}, k0 + kc);", kStreams));
    out_.line(fmt::format("i64 {} = first;", p_));
    open_panel("");
    out_.append(e.body(1));
    loop_over_k("stream", "stream_end", e);
    out_.close();
    out_.close();
  }

  /// The last panel, and panels that vectors cannot read.
  void rest() {
    out_.open(fmt::format("for (i64 m; {0} < {1}; {0} += m) {{", p_, end_));
    next_panel();
    elements("k0");
    out_.close();
  }

  /// m rows (columns) of a panel that is `wide`, element by element.
  void elements(const std::string& from_k) {
    bound_counter(c_, element_, extent_, 1);
    bound_counter(c_, loops_.k, loops_.depth, 1);
    const std::string x = c_.symbol_text(element_);
    Expression e(c_);
    e.add_loop(loops_.k);
    e.add_loop(element_);
    const Reg r = operand_.value(e, Expr::symbol(element_), Expr::symbol(loops_.k));
    out_.append(e.body(0));
    out_.open(fmt::format("for (i64 {0} = {1}; {0} < k0 + kc; ++{0}) {{", k_, from_k));
    out_.append(e.body(1));
    out_.open(fmt::format("for (i64 {0} = {1}; {0} < {1} + m; ++{0}) {{", x, p_));
    out_.append(e.body(2));
    out_.line(fmt::format("packed[({} - k0) * wide + {} - {}] = {};", k_, x, p_, r.text));
    out_.close();
    out_.line(fmt::format("for (i64 l = m; l < wide; ++l) packed[({} - k0) * wide + l] = 0;", k_));
    out_.close();
  }

  Context& c_;
  const ContractOperand& operand_;
  const ContractShape& s_;
  const ContractLoops& loops_;
  Writer& out_;
  bool is_a_;
  Symbol panel_, element_;
  Expr extent_;
  int width_;
  std::string p_, k_, end_;
};

}  // namespace

void emit_pack_a(Context& c, const ContractOperand& a, const ContractShape& s,
                 const ContractLoops& loops, Writer& out) {
  Packer(c, a, s, loops, true, out).emit();
}

void emit_pack_b(Context& c, const ContractOperand& b, const ContractShape& s,
                 const ContractLoops& loops, Writer& out) {
  Packer(c, b, s, loops, false, out).emit();
}

}  // namespace tw::cpu
