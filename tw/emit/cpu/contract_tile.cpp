#include "tw/emit/cpu/contract_tile.h"

#include <fmt/format.h>
#include <functional>

#include "tw/emit/cpu/writer.h"

namespace tw::cpu {
namespace {

constexpr int kRowsPerPointer = 5;  // x86 addresses base + {0, 1, 2, 4} strides, and 3 by another

/// Keeps a vector of B in its register; otherwise g++ 12 reads it again for every product.
std::string pin(const CpuMachine& machine, const std::string& name) {
  if (machine.isa == "generic") return "";
  const char* kind = machine.isa == "neon" ? "w" : machine.isa == "avx512" ? "v" : "x";
  return fmt::format(" asm(\"\" : \"+{}\"({}));", kind, name);
}

std::string for_each(int n, const std::string& separator,
                     const std::function<std::string(int)>& text) {
  std::string all;
  for (int k = 0; k < n; ++k) all += (k ? separator : "") + text(k);
  return all;
}

/// A register tile: its height, and whether A and B are panels of packed blocks, whose strides are
/// known. Then two k a turn pay; strides in registers leave none for the addresses of a second k.
struct Tile {
  int height;
  bool packed;
};

/// Products of one k.
void step(Writer& out, Prelude& prelude, const ContractShape& s, const Tile& t) {
  const std::string vector = prelude.type(s.type, s.lanes);
  for (int v = 0; v < s.vectors; ++v) {
    out.line(fmt::format("{0} b{1} = *(const {2}*)(b + {3});{4}", vector, v,
                         prelude.unaligned(s.type, s.lanes), v * s.lanes,
                         pin(prelude.machine(), fmt::format("b{}", v))));
  }
  for (int i = 0; i < t.height; ++i) {
    const int base = i / kRowsPerPointer * kRowsPerPointer;
    const std::string a =
        t.packed ? fmt::format("a[{}]", i) : fmt::format("a{}[{} * a_row]", base, i - base);
    out.line(for_each(s.vectors, " ",
                      [&](int v) { return fmt::format("c{0}_{1} += {2} * b{1};", i, v, a); }));
  }
  std::string advance;
  for (int i = 0; i < t.height; i += kRowsPerPointer) advance += fmt::format("a{} += a_k; ", i);
  out.line(t.packed ? fmt::format("a += {}; b += {};", t.height, s.cols()) : advance + "b += b_k;");
}

std::string tile_name(const ContractShape& s, const Tile& t) {
  return fmt::format("tw_tile_{}_{}x{}{}", name(s.type), t.height, s.cols(),
                     t.packed ? "_packed" : "");
}

std::string parameters(const ContractShape& s, bool with_height, bool packed) {
  return fmt::format(
      "({1}i64 depth, const {0}* a, {2}const {0}* b, {3}\n"
      "    const {0}* from, i64 from_row, {0}* to, i64 to_row)",
      name(s.type), with_height ? "i64 m, " : "", packed ? "" : "i64 a_row, i64 a_k, ",
      packed ? "" : "i64 b_k,");
}

std::string call(const ContractShape& s, const Tile& t) {
  return tile_name(s, t) + (t.packed
                                ? "(depth, a, b, from, from_row, to, to_row);"
                                : "(depth, a, a_row, a_k, b, b_k, from, from_row, to, to_row);");
}

/// The loop over k. Sums and pointers are named one by one: arrays of them spill.
void products(Writer& out, Prelude& prelude, const ContractShape& s, const Tile& t) {
  if (!t.packed) {
    for (int i = 0; i < t.height; i += kRowsPerPointer) {
      out.line(fmt::format("const {0}* a{1} = a + {1} * a_row;", name(s.type), i));
    }
    out.open("for (i64 k = depth; k > 0; --k) {");
    step(out, prelude, s, t);
    out.close();
    return;
  }
  out.line("i64 k = depth;");
  out.open("for (; k >= 2; k -= 2) {");
  for (int turn = 0; turn < 2; ++turn) {
    out.open("{");
    step(out, prelude, s, t);
    out.close();
  }
  out.close();
  out.open("if (k > 0) {");
  step(out, prelude, s, t);
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
                       parameters(s, false, t.packed)));
  for (int i = 0; i < height; ++i) {
    const std::string sums =
        for_each(s.vectors, ", ", [&](int v) { return fmt::format("c{}_{} = {{}}", i, v); });
    out.line(fmt::format("{} {};", vector, sums));
  }
  for (int i = 0; i < height; ++i) {
    out.line(
        fmt::format("__builtin_prefetch(to + {0} * to_row, 1); "
                    "__builtin_prefetch(to + {0} * to_row + {1}, 1);",
                    i, s.cols() - 1));
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

std::string use_tile(Prelude& prelude, const ContractShape& s, bool in_place) {
  const std::string function =
      fmt::format("tw_tile_{}{}", name(s.type), in_place ? "_in_place" : "");
  const std::vector<int> heights = s.heights();
  Writer out;
  out.open(fmt::format("TW_INLINE void {}{} {{", function, parameters(s, true, false)));
  const Tile packed{s.rows, true};
  add_tile(prelude, s, packed);
  const std::string strides =
      fmt::format(" && a_row == 1 && a_k == {} && b_k == {}", s.rows, s.cols());
  out.line(fmt::format("if (m > {}{}) return {}", heights.size() > 1 ? heights[1] : 0,
                       in_place ? strides : "", call(s, packed)));
  for (size_t k = in_place ? 0 : 1; k < heights.size(); ++k) {
    const Tile t{heights[k], false};
    add_tile(prelude, s, t);
    out.line(fmt::format("if (m > {}) return {}", k + 1 < heights.size() ? heights[k + 1] : 0,
                         call(s, t)));
  }
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
