#include "tw/emit/cpu/contract.h"

#include <algorithm>
#include <fmt/format.h>
#include <functional>

#include "tw/base/round.h"
#include "tw/emit/cpu/contract_operand.h"
#include "tw/emit/cpu/contract_thin.h"
#include "tw/emit/cpu/contract_tile.h"
#include "tw/emit/cpu/nest.h"
#include "tw/emit/cpu/pieces.h"

namespace tw::cpu {
namespace {

/// Bytes of a way of the first cache: addresses so far apart share a set.
constexpr int64_t kWay = 4096;
constexpr int64_t kWaitingColumns = 1024;  // of sums that wait in scratch at a time

const char* const kCrowdsText =
    R"(// Whether n lines so far apart fill half of the sets that they fall on in the first cache.
TW_INLINE bool tw_crowds(i64 stride, i64 n) {
  return stride != 0 && stride % 128 == 0 && n > max(4096 / (stride & -stride), 1) * $ways / 2;
})";

const char* const kCopyText =
    R"(static __attribute__((noinline, cold)) void tw_copy(
    i64 m, i64 n, const $T* from, i64 from_row, $T* to, i64 to_row) {
  for (i64 i = 0; i < m; ++i)
    for (i64 j = 0; j < n; ++j) to[i * to_row + j] = from[i * from_row + j];
})";

// Rows as they lie, one after the other; idle ones are copies of the last.
const char* const kRowsText =
    R"(static __attribute__((noinline, cold)) void tw_rows(
    i64 m, i64 wide, i64 n, const $T* from, i64 from_row, $T* to) {
  for (i64 i = 0; i < wide; ++i)
    __builtin_memcpy(to + i * n, from + min(i, m - 1) * from_row, n * sizeof($T));
})";

class Contraction {
 public:
  Contraction(Context& c, const Op& op)
      : c_(c),
        attr_(op.as<ContractAttr>()),
        epilogue_(op.regions[2]),
        sum_(c.program.type(epilogue_.args[0])),
        s_(choose_contract_shape(c.machine, c.mapping, sum_.dtype)),
        a_(c, op.regions[0], 0, s_),
        b_(c, op.regions[1], 1, s_),
        type_(name(s_.type)),
        tile_(use_tile(c.prelude, s_, TileKind::packed)),
        height_(use_tile_height(c.prelude, s_)),
        next_rows_(use_tile_rows(c.prelude, s_)),
        plain_store_(find_plain_store()) {
    loops_ = {c.new_loop("row", sum_.shape[0]),
              c.new_loop("col", sum_.shape[1]),
              c.new_loop("i", sum_.shape[0]),
              c.new_loop("j", sum_.shape[1]),
              c.new_loop("k", Interval::kMax),
              attr_.rows,
              attr_.cols,
              attr_.depth};
    row_ = c.symbol_text(loops_.row);
    col_ = c.symbol_text(loops_.col);
    if (!plain_store_) {
      // Sums that wait cost more than a deep block: depths that fit one do without.
      if (c.mapping.knobs.count("kc") == 0) s_.depth_block *= 2;
      s_.col_block = std::min(s_.col_block, round_up(kWaitingColumns, s_.cols()));
    }
  }

  void emit(Writer& out) {
    use_block(c_.prelude);
    out.open("{");
    declare(out);
    out.open("for (i64 col0 = 0; col0 < cols; col0 += col_block) {");
    out.line("const i64 col_end = min(col0 + col_block, cols);");
    out.open("for (i64 k0 = 0; k0 == 0 || k0 < depth; k0 += k_block) {");
    out.line("const i64 kc = min(k_block, depth - k0);");
    pack_b(out);
    out.open("for (i64 row0 = 0; row0 < rows; row0 += row_block) {");
    out.line("const i64 row_end = min(row0 + row_block, rows);");
    pack_a(out);
    if (may_be_thin()) emit_thin(out);
    emit_panels(out);
    for (int k = 0; k < 4; ++k) out.close();
  }

 private:
  /// Few rows may read B once, where it is.
  bool may_be_thin() const { return b_.plain() && b_.unit_kept(); }
  /// Small operands may be read where they are.
  bool in_place() const { return a_.plain() && a_.unit_k() && may_be_thin(); }

  /// The epilogue's only op when it stores sums as they are, side by side.
  const Op* find_plain_store() const {
    if (epilogue_.ops.size() != 1) return nullptr;
    const Op& op = epilogue_.ops[0];
    if (op.code != Opcode::store || op.in[0] != epilogue_.args[0]) return nullptr;
    const View& view = op.as<ViewAttr>().view;
    return c_.specialisation.params[view.param].unit_axis == view.axes[1] ? &op : nullptr;
  }

  std::string reserve(int64_t elements) {
    const int64_t at = c_.scratch;
    c_.scratch += round_up(elements * bytes(s_.type) + c_.machine.vector_bytes, kAlign);
    c_.scratch_most = std::max(c_.scratch_most, c_.scratch);
    return fmt::format("({}*)((char*)scratch + {})", type_, at);
  }

  void declare(Writer& out) {
    const int64_t before = c_.scratch;
    const int64_t rows = round_up(sum_.shape[0], s_.rows);
    const int64_t cols = round_up(sum_.shape[1], s_.cols());
    const int64_t row_block = std::min(s_.row_block, rows);
    const int64_t col_block = std::min(s_.col_block, cols);
    out.line(fmt::format("// Register tiles of {}x{}; blocks of {} k, {} rows, {} columns.",
                         s_.rows, s_.cols(), s_.depth_block, row_block, col_block));
    out.line(fmt::format("const i64 rows = max({}, 0);", c_.text(attr_.rows)));
    out.line(fmt::format("const i64 cols = max({}, 0);", c_.text(attr_.cols)));
    out.line(fmt::format("const i64 depth = max({}, 0);", c_.text(attr_.depth)));
    out.line(fmt::format("const i64 row_block = tw_block(rows, {}, {});", row_block, s_.rows));
    // The choice is the whole product's, so that bits do not depend on pieces.
    if (may_be_thin()) {
      out.line(fmt::format("const bool thin = {} <= {};  // reads B once, where it is",
                           c_.text(whole_extent(c_.program, attr_.rows)), kThinRows));
    }
    out.line(fmt::format("const i64 col_block = {}tw_block(cols, {}, {});",
                         may_be_thin() ? "thin ? cols : " : "", col_block, s_.cols()));
    out.line(fmt::format("const i64 k_block = tw_block(depth, {}, 8);", s_.depth_block));
    if (in_place()) declare_small(out);
    if (plain_store_) {
      out.line(fmt::format("const bool far = rows * cols > {};  // an eighth of the second cache",
                           c_.machine.l2 / 8 / bytes(s_.type)));
    }
    const int64_t depth = s_.depth_block;
    out.line(fmt::format("{}* const packed_a = {};", type_, reserve(row_block * depth)));
    out.line(fmt::format("{}* const packed_b = {};", type_, reserve(col_block * depth)));
    if (!plain_store_) {
      out.line(fmt::format("{}* const waiting = {};  // sums of earlier k", type_,
                           reserve(rows * col_block)));
    }
    out.line(fmt::format("alignas({}) {} sums[{} * {}];", c_.machine.vector_bytes, type_, s_.rows,
                         s_.cols()));
    c_.scratch = before;
  }

  /// Small operands are read where they are.
  void declare_small(Writer& out) {
    const int64_t size = bytes(s_.type), ways = c_.machine.l1d / kWay;
    std::string same_set, crowds;
    if (s_.rows > ways)  // rows of a tile that share a set push each other out
      same_set = fmt::format(" && {} % {} != 0", a_.kept_stride(), kWay / size);
    if (s_.minds_crowds) {
      c_.prelude.add("crowds", fill(kCrowdsText, {{"ways", std::to_string(ways)}}));
      crowds = fmt::format(" && !tw_crowds({} * {}, depth)", b_.k_stride(), size);
    }
    out.line(fmt::format("const bool a_stays = rows * depth <= {}{};", s_.a_in_place_bytes / size,
                         same_set));
    out.line(fmt::format("const bool b_stays = a_stays && cols * depth <= {}{};",
                         s_.b_in_place_bytes / size, crowds));
  }

  /// Packs all panels of B; only the last, ragged one when the others are read in place.
  void pack_b(Writer& out) {
    if (may_be_thin()) out.line("if (!thin)");
    out.open("{");
    const std::string ragged = fmt::format("col_end - (col_end - col0) % {}", s_.cols());
    out.line(fmt::format("const i64 first = {}col0;",
                         in_place() ? fmt::format("b_stays ? {} : ", ragged) : ""));
    emit_pack_b(c_, b_, s_, loops_, out);
    out.close();
  }

  /// Packs all panels of A; where rows stay, copies those of the last tile when it has idle ones.
  void pack_a(Writer& out) {
    if (in_place()) {
      c_.prelude.add("rows " + type_, fill(kRowsText, {{"T", type_}}));
      out.open("if (a_stays) {");
      out.line(fmt::format("const i64 last = tw_last_{}(row_end - row0), {} = row_end - last;",
                           type_, row_));
      const Symbol k0 = block_counter();
      bound_counter(c_, loops_.row, loops_.rows, 1);
      out.open(fmt::format("if (last != {}(last)) {{", height_));
      const std::string from = a_.address(Expr::symbol(loops_.row), Expr::symbol(k0), out);
      out.line(fmt::format("tw_rows(last, {}(last), kc, {}, {}, packed_a + ({} - row0) * kc);",
                           height_, from, a_.kept_stride(), row_));
      out.close();
      out.close("} else {");
      out.deeper();
    } else {
      out.open("{");
    }
    out.line("const i64 first = row0;");
    emit_pack_a(c_, a_, s_, loops_, out);
    out.close();
  }

  /// All columns of a block at once; panels are left with the epilogue.
  void emit_thin(Writer& out) {
    const std::string thin = use_thin(c_.prelude, s_);
    out.open("if (thin) {");
    out.line(fmt::format("const i64 {} = row0, m = row_end - row0, {} = col0;", row_, col_));
    source(out, true);
    bound_counter(c_, loops_.row, loops_.rows, 1);
    const Symbol k0 = block_counter();
    bound_counter(c_, loops_.col, loops_.cols, 1);
    const std::string b = b_.address(Expr::symbol(loops_.col), Expr::symbol(k0), out);
    std::string to = "waiting", to_row = "col_block";
    if (plain_store_) {
      declare_output(out);
      to = "c";
      to_row = "c_row";
    }
    // Packed panels have the rows side by side.
    const std::string packed_k = height_ + "(m)";
    const std::string steps =
        in_place() ? "a_stays ? a_row : 1, a_stays ? 1 : " + packed_k : "1, " + packed_k;
    out.line(fmt::format("{}(m, col_end - col0, kc, a, {}, {}, {}, {}, {}, k0 == 0);", thin, steps,
                         b, b_.k_stride(), to, to_row));
    out.line(plain_store_ ? "continue;" : "if (k0 + kc < depth) continue;");
    out.close();
  }

  /// The first k of a block.
  Symbol block_counter() {
    const Symbol k0 = c_.new_loop("k0", Interval::kMax);
    c_.loop_names[k0.id] = "k0";
    bound_counter(c_, k0, loops_.depth, 1);
    return k0;
  }

  void emit_panels(Writer& out) {
    out.open(fmt::format("for (i64 {0} = col0; {0} < col_end; {0} += {1}) {{", col_, s_.cols()));
    out.line(fmt::format("const i64 n = min({}, col_end - {});", s_.cols(), col_));
    source(out, false);
    out.open(fmt::format("for (i64 {0} = row0, m; {0} < row_end; {0} += m) {{", row_));
    out.line(fmt::format("m = {}(row_end - {});", next_rows_, row_));
    source(out, true);
    if (plain_store_) {
      emit_plain(out);
    } else {
      emit_fused(out);
    }
    out.close();
    out.close();
  }

  /// Pointer of a panel of A or B, packed or in place; where it may be in place a_row or b_k, too,
  /// of A for rows that stay.
  void source(Writer& out, bool is_a) {
    const char* const v = is_a ? "a" : "b";
    const std::string packed = is_a ? fmt::format("packed_a + ({} - row0) * kc", row_)
                                    : fmt::format("packed_b + ({} - col0) * kc", col_);
    const std::string step = is_a ? "a_row" : "b_k";
    if (!in_place()) {
      out.line(fmt::format("const {}* const {} = {};", type_, v, packed));
      return;
    }
    const ContractOperand& x = is_a ? a_ : b_;
    const Symbol panel = is_a ? loops_.row : loops_.col, k0 = block_counter();
    bound_counter(c_, panel, is_a ? loops_.rows : loops_.cols, 1);
    const std::string full = is_a ? height_ + "(m)" : std::to_string(s_.cols());
    const std::string there = fmt::format("{}_in_place", v);
    out.line(
        fmt::format("const bool {} = {}_stays && {} == {};", there, v, is_a ? "m" : "n", full));
    out.line(fmt::format("const {}* {} = {};", type_, v, packed));
    out.open(fmt::format("if ({}) {{", there));
    const std::string address = x.address(Expr::symbol(panel), Expr::symbol(k0), out);
    out.line(fmt::format("{} = {};", v, address));
    out.close();
    out.line(fmt::format("const i64 {} = {} ? {} : {};", step, there,
                         is_a ? x.kept_stride() : x.k_stride(), is_a ? "kc" : full));
  }

  /// Calls the register tile: sums of `from` (0: none) and products go to `to`.
  void call_tile(Writer& out, const std::string& from, const std::string& to) {
    const std::string packed = fmt::format("{}(m, kc, a, b, {}, {});", tile_, from, to);
    if (!in_place()) return out.line(packed);
    const std::string other = use_tile(c_.prelude, s_, TileKind::in_place);
    out.line(fmt::format("if (a_stays) {}(m, kc, a, a_row, b, b_k, {}, {});", other, from, to));
    out.line("else " + packed);
  }

  /// Declares c, where the sums of (row, col) go, and the step of its rows.
  void declare_output(Writer& out) {
    const View& view = plain_store_->as<ViewAttr>().view;
    const ParamFacts& facts = c_.specialisation.params[view.param];
    Coords at(view.origin.begin(), view.origin.end());
    at[view.axes[0]] = simplify(at[view.axes[0]] + Expr::symbol(loops_.row), c_.facts);
    at[view.axes[1]] = simplify(at[view.axes[1]] + Expr::symbol(loops_.col), c_.facts);
    Expression e(c_);
    const std::string address = e.address(view.param, at).pointer;
    out.append(e.body(0));
    const bool still = facts.zero_stride >> view.axes[0] & 1;
    const std::string stride =
        fmt::format("{}_s{}", c_.program.params[view.param].name, view.axes[0]);
    out.line(fmt::format("{}* const c = {};", type_, address));
    out.line(fmt::format("const i64 c_row = {};", still ? "0" : stride));
  }

  void use_copy() { c_.prelude.add("copy " + type_, fill(kCopyText, {{"T", type_}})); }

  /// Sums go to the output in every block of k.
  void emit_plain(Writer& out) {
    declare_output(out);
    const std::string n = std::to_string(s_.cols());
    const Fill values{{"N", n}, {"height", height_}};
    out.open(fill("if (m == $height(m) && n == $N) {", values));
    out.line(fmt::format("if (k0 > 0 || far) {}(m, c, c_row);", use_tile_fetch(c_.prelude, s_)));
    call_tile(out, "k0 == 0 ? 0 : c, c_row", "c, c_row");
    out.close("} else {");
    out.deeper();
    out.line("if (k0 > 0) tw_copy(m, n, c, c_row, sums, $N);", values);
    call_tile(out, "k0 == 0 ? 0 : sums, " + n, "sums, " + n);
    out.line("tw_copy(m, n, sums, $N, c, c_row);", values);
    out.close();
    use_copy();
  }

  /// Sums wait in scratch; those of the last block go through the epilogue.
  void emit_fused(Writer& out) {
    // Tile by tile: rows a power of two apart would share few sets of the cache.
    out.line(fmt::format("{}* const w = waiting + {} * col_block + ({} - col0) * {};", type_, row_,
                         col_, height_ + "(m)"));
    const std::string n = std::to_string(s_.cols()), from = "k0 == 0 ? 0 : w, " + n;
    if (may_be_thin()) {
      use_copy();
      out.open("if (thin) {");
      out.line(
          fmt::format("tw_copy(m, n, waiting + {} - col0, col_block, sums, {});", col_, s_.cols()));
      out.close("} else {");
      out.deeper();
    }
    out.line(
        fmt::format("if (k0 > 0) {}({}(m), w, {});", use_tile_fetch(c_.prelude, s_), height_, n));
    out.open("if (k0 + kc < depth) {");
    call_tile(out, from, "w, " + n);
    out.line("continue;");
    out.close();
    call_tile(out, from, "sums, " + n);
    if (may_be_thin()) out.close();
    emit_epilogue(out);
  }

  void emit_epilogue(Writer& out) {
    const std::string i = c_.symbol_text(loops_.i), j = c_.symbol_text(loops_.j);
    bound_counter(c_, loops_.i, loops_.rows, 1);
    bound_counter(c_, loops_.j, loops_.cols, 1);
    Expression e(c_);
    e.add_loop(loops_.i);
    e.add_loop(loops_.j);
    e.set_lanes(1, s_.lanes);
    const bool one_column = prove_le(attr_.cols, 1, c_.facts);  // then there are no whole vectors
    std::vector<Writer> whole;
    if (!one_column) {
      evaluate(e, Assume::inside, "");
      whole = e.take_from(2);
    }
    if (!e.limits().empty() || !e.guards().empty()) {
      evaluate(e, Assume::nothing, "");
      whole = e.take_from(2);
    }
    // The lanes of the last vector reach past the columns: nothing is known of them.
    c_.facts[loops_.j] = SymbolFact{{0, Interval::kMax}, 1};
    evaluate(e, Assume::nothing, fmt::format("{} + n - {}", col_, j));
    const std::vector<Writer> part = e.take_from(2);
    out.append(e.body(0));
    out.open(fmt::format("for (i64 {0} = {1}; {0} < {1} + m; ++{0}) {{", i, row_));
    out.append(e.body(1));
    out.line(fmt::format("i64 {} = {};", j, col_));
    if (!one_column) {
      out.open(fmt::format("for (; {0} + {1} <= {2} + n; {0} += {1}) {{", j, s_.lanes, col_));
      out.append(whole[0]);
      out.close();
    }
    out.open(fmt::format("if ({} < {} + n) {{", j, col_));
    out.append(part[0]);
    out.close();
    out.close();
  }

  void evaluate(Expression& e, Assume assume, const std::string& active) {
    e.assume(assume);
    e.set_active(active);
    e.bind(epilogue_.args[0], [&](const Coords&) {
      return e.define(sum_.dtype, s_.lanes, 3,
                      fmt::format("*(const {}*)(sums + ({} - {}) * {} + {} - {})",
                                  c_.prelude.type(s_.type, s_.lanes), c_.symbol_text(loops_.i),
                                  row_, s_.cols(), c_.symbol_text(loops_.j), col_));
    });
    const Coords at{Expr::symbol(loops_.i), Expr::symbol(loops_.j)};
    for (const Op& op : epilogue_.ops) {
      if (op.code != Opcode::store) continue;
      write_element(e, e.value(op.in[0], at), {&op.as<ViewAttr>().view, nullptr}, at, active);
    }
  }

  Context& c_;
  const ContractAttr& attr_;
  const Region& epilogue_;
  const Type& sum_;
  ContractShape s_;
  ContractOperand a_, b_;
  std::string type_, tile_, height_, next_rows_;
  const Op* plain_store_;
  ContractLoops loops_;
  std::string row_, col_;
};

}  // namespace

void emit_contract(Context& c, const Op& op, Writer& out) { Contraction(c, op).emit(out); }

}  // namespace tw::cpu
