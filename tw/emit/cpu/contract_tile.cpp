#include "tw/emit/cpu/contract_tile.h"

#include <fmt/format.h>
#include <functional>

#include "tw/emit/cpu/writer.h"

namespace tw::cpu {
namespace {

constexpr int kRowsPerPointer = 5;  // x86 addresses base + {0, 1, 2, 4} strides, and 3 by another

/// Keeps a vector of B in its register; otherwise g++ 12 reads it again for every product.
std::string pin(const CpuMachine& machine, const std::string& name) {
  if (machine.isa == "generic" || machine.vector_bytes == 1) return "";
  const char* kind = machine.isa == "neon" ? "w" : machine.isa == "avx512" ? "v" : "x";
  return fmt::format(" asm(\"\" : \"+{}\"({}));", kind, name);
}

std::string for_each(int n, const std::string& separator,
                     const std::function<std::string(int)>& text) {
  std::string all;
  for (int k = 0; k < n; ++k) all += (k ? separator : "") + text(k);
  return all;
}

/// Two k a turn: one leaves as many steps of pointers, which take the ports of products, and four
/// are slower again (g++ 12, Sapphire Rapids: 182, 195 and 185 GFLOP/s).
constexpr int kTurn = 2;

struct Tile {
  int height;
  TileKind kind;
  bool packed() const { return kind == TileKind::packed; }
  bool strided() const { return kind == TileKind::strided; }
  /// The k of one turn of the loop: a stride of A in a register leaves none for the addresses of a
  /// second.
  int turns() const { return strided() ? 1 : kTurn; }
};

/// Products of the k that is `turn` after that of the pointers.
void step(Writer& out, Prelude& prelude, const ContractShape& s, const Tile& t, int turn) {
  const std::string vector = prelude.type(s.type, s.lanes);
  for (int v = 0; v < s.vectors; ++v) {
    const std::string at = t.packed() ? fmt::format("b + {}", turn * s.cols() + v * s.lanes)
                                      : fmt::format("b + {}{}", turn ? "b_k + " : "", v * s.lanes);
    out.line(fmt::format("{0} b{1} = *(const {2}*)({3});{4}", vector, v,
                         prelude.unaligned(s.type, s.lanes), at,
                         pin(prelude.machine(), fmt::format("b{}", v))));
  }
  for (int i = 0; i < t.height; ++i) {
    const int base = i / kRowsPerPointer * kRowsPerPointer;
    const std::string a =
        t.packed() ? fmt::format("a[{}]", turn * t.height + i)
                   : fmt::format("a{}[{} * a_row{}]", base, i - base, turn ? " + 1" : "");
    out.line(for_each(s.vectors, " ",
                      [&](int v) { return fmt::format("c{0}_{1} += {2} * b{1};", i, v, a); }));
  }
}

void advance(Writer& out, const ContractShape& s, const Tile& t, int turns) {
  std::string text;
  for (int i = 0; i < t.height && !t.packed(); i += kRowsPerPointer)
    text += fmt::format("a{} += {}; ", i, t.strided() ? "a_k" : std::to_string(turns));
  out.line(t.packed() ? fmt::format("a += {}; b += {};", turns * t.height, turns * s.cols())
                      : fmt::format("{}b += {} * b_k;", text, turns));
}

const char* suffix(TileKind kind) {
  switch (kind) {
    case TileKind::packed:
      return "";
    case TileKind::in_place:
      return "_in_place";
    case TileKind::strided:
      return "_strided";
  }
  return "";
}

std::string tile_name(const ContractShape& s, const Tile& t) {
  return fmt::format("tw_tile_{}_{}x{}{}", name(s.type), t.height, s.cols(), suffix(t.kind));
}

std::string parameters(const ContractShape& s, bool with_height, TileKind kind) {
  const bool packed = kind == TileKind::packed;
  return fmt::format(
      "({1}i64 depth, const {0}* a, {2}const {0}* b,{3}\n"
      "    const {0}* from, i64 from_row, {0}* to, i64 to_row)",
      name(s.type), with_height ? "i64 m, " : "",
      packed                      ? ""
      : kind == TileKind::strided ? "i64 a_row, i64 a_k, "
                                  : "i64 a_row, ",
      packed ? "" : " i64 b_k,");
}

std::string call(const ContractShape& s, const Tile& t) {
  const char* strides = t.packed()    ? "a, b"
                        : t.strided() ? "a, a_row, a_k, b, b_k"
                                      : "a, a_row, b, b_k";
  return fmt::format("{}(depth, {}, from, from_row, to, to_row);", tile_name(s, t), strides);
}

/// The loop over k. Sums and pointers are named one by one: arrays of them spill.
void products(Writer& out, Prelude& prelude, const ContractShape& s, const Tile& t) {
  if (!t.packed()) {
    for (int i = 0; i < t.height; i += kRowsPerPointer) {
      out.line(fmt::format("const {0}* a{1} = a + {1} * a_row;", name(s.type), i));
    }
  }
  out.line("i64 k = depth;");
  out.open(fmt::format("for (; k >= {0}; k -= {0}) {{", t.turns()));
  for (int turn = 0; turn < t.turns(); ++turn) {
    out.open("{");
    step(out, prelude, s, t, turn);
    out.close();
  }
  advance(out, s, t, t.turns());
  out.close();
  if (t.turns() == 1) return;
  out.open("if (k > 0) {");
  step(out, prelude, s, t, 0);
  out.close();
}

void add_tile(Prelude& prelude, const ContractShape& s, const Tile& t) {
  Writer out;
  const int height = t.height;
  const std::string vector = prelude.type(s.type, s.lanes);
  const std::string memory = prelude.unaligned(s.type, s.lanes);
  const auto at = [&](const char* base, int i, int v) {
    return fmt::format("{0} + {1} * {0}_row + {2}", base, i, v * s.lanes);
  };
  out.open(fmt::format("static __attribute__((noinline)) void {}{} {{", tile_name(s, t),
                       parameters(s, false, t.kind)));
  for (int i = 0; i < height; ++i) {
    const std::string sums =
        for_each(s.vectors, ", ", [&](int v) { return fmt::format("c{}_{} = {{}}", i, v); });
    out.line(fmt::format("{} {};", vector, sums));
  }
  products(out, prelude, s, t);
  out.open("if (from) {");
  for (int i = 0; i < height; ++i) {
    out.line(for_each(s.vectors, " ", [&](int v) {
      return fmt::format("c{}_{} += *(const {}*)({});", i, v, memory, at("from", i, v));
    }));
  }
  out.close();
  for (int i = 0; i < height; ++i) {
    out.line(for_each(s.vectors, " ", [&](int v) {
      return fmt::format("*({}*)({}) = c{}_{};", memory, at("to", i, v), i, v);
    }));
  }
  out.close();
  prelude.add(tile_name(s, t), out.text());
}

}  // namespace

std::string use_tile_height(Prelude& prelude, const ContractShape& s) {
  const std::string function = fmt::format("tw_tile_height_{}", name(s.type));
  const std::vector<int> heights = s.heights();
  Writer out;
  out.open(fmt::format("TW_INLINE i64 {}(i64 m) {{", function));
  for (size_t k = heights.size(); k-- > 1;) {
    out.line(fmt::format("if (m <= {0}) return {0};", heights[k]));
  }
  out.line(fmt::format("return {};", heights[0]));
  out.close();
  prelude.add(function, out.text());
  return function;
}

std::string use_tile_rows(Prelude& prelude, const ContractShape& s) {
  const std::string function = fmt::format("tw_tile_rows_{}", name(s.type));
  const std::string height = use_tile_height(prelude, s);
  const std::vector<int> heights = s.heights();
  Writer out;
  out.line(
      fmt::format("// How many of the rows that are left the next tile takes: of {} to {} such",
                  s.rows + 1, 2 * s.rows - 1));
  out.line("// that the one after it has no idle rows, where heights allow it.");
  out.open(fmt::format("TW_INLINE i64 {}(i64 left) {{", function));
  out.line(
      fmt::format("if (left <= {0} || left >= {1}) return min(left, {0});", s.rows, 2 * s.rows));
  for (size_t k = 1; k < heights.size(); ++k)
    if (2 * heights[k] >= s.rows)
      out.line(fmt::format("if (left - {0} == {1}(left - {0})) return {0};", heights[k], height));
  out.line(fmt::format("return {};", s.rows));
  out.close();
  out.line("// Of so many rows, how many the last tile has.");
  out.open(fmt::format("TW_INLINE i64 tw_last_{}(i64 rows) {{", name(s.type)));
  out.line(
      fmt::format("const i64 left = rows < {1} ? rows : rows % {0} + {0};", s.rows, 2 * s.rows));
  out.line(fmt::format("return left <= {} ? left : left - {}(left);", s.rows, function));
  out.close();
  prelude.add(function, out.text());
  return function;
}

std::string use_tile(Prelude& prelude, const ContractShape& s, TileKind kind) {
  const std::string function = fmt::format("tw_tile_{}{}", name(s.type), suffix(kind));
  const std::vector<int> heights = s.heights();
  Writer out;
  out.open(fmt::format("TW_INLINE void {}{} {{", function, parameters(s, true, kind)));
  for (size_t k = 0; k < heights.size(); ++k) {
    const Tile t{heights[k], kind};
    add_tile(prelude, s, t);
    out.line(fmt::format("if (m > {}) return {}", k + 1 < heights.size() ? heights[k + 1] : 0,
                         call(s, t)));
  }
  out.close();
  prelude.add(function, out.text());
  return function;
}

std::string use_tile_fetch(Prelude& prelude, const ContractShape& s) {
  const std::string function = fmt::format("tw_tile_fetch_{}", name(s.type));
  Writer out;
  out.open(
      fmt::format("TW_INLINE void {}(i64 m, const {}* c, i64 c_row) {{", function, name(s.type)));
  out.open("for (i64 i = 0; i < m; ++i) {");
  out.line("__builtin_prefetch(c + i * c_row, 1);");
  out.line(fmt::format("__builtin_prefetch(c + i * c_row + {}, 1);", s.cols() - 1));
  out.close();
  out.close();
  prelude.add(function, out.text());
  return function;
}

void use_transpose(Prelude& prelude, DType type, int lanes) {
  Writer out;
  out.open(fmt::format("TW_INLINE void tw_transpose({}* x) {{", prelude.type(type, lanes)));
  // Step h exchanges, in each pair of vectors h apart, the lanes whose numbers differ in bit h.
  for (int h = 1; h < lanes; h *= 2) {
    const std::string low =
        for_each(lanes, ", ", [&](int l) { return std::to_string((l & h) ? lanes + l - h : l); });
    const std::string high =
        for_each(lanes, ", ", [&](int l) { return std::to_string((l & h) ? lanes + l : l + h); });
    for (int i = 0; i < lanes; ++i) {
      if (i & h) continue;
      out.open("{");
      out.line(fmt::format("const {} a = x[{}], b = x[{}];", prelude.type(type, lanes), i, i + h));
      out.line(fmt::format("x[{}] = __builtin_shufflevector(a, b, {});", i, low));
      out.line(fmt::format("x[{}] = __builtin_shufflevector(a, b, {});", i + h, high));
      out.close();
    }
  }
  out.close();
  prelude.add(fmt::format("transpose {}x{}", name(type), lanes), out.text());
}

}  // namespace tw::cpu
