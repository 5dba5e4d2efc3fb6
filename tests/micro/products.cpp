#include <fmt/format.h>

#include "tw/num/codec.h"

#include "tests/micro/micro.h"

namespace tw::test {

namespace {

/// How an operand lies in shared memory: pieces of 16 bytes, rows of m or n by columns of k.
struct OperandForm {
  int swizzle;      ///< bytes of a line, 0: lines of 16 that are not mixed
  bool transposed;  ///< lines go along rows, not along k
  int advance;      ///< bytes of a line in front of the k that are multiplied
};

/// Expressions for the byte of element (r, k), and the distances for the descriptor.
struct FormText {
  std::string byte;
  int leading, stride;
};

FormText text_of_form(const OperandForm& f, int rows, int size) {
  const int line = f.swizzle == 0 ? 16 : f.swizzle, group = 8 * line, elements = line / size;
  if (!f.transposed && f.swizzle == 0)  // pieces of 16 bytes along k behind each other
    return {fmt::format("r / 8 * {0} + k * {2} / 16 * {1} + r % 8 * 16 + k * {2} % 16", group,
                        rows / 8 * group, size),
            rows / 8 * group, group};
  if (!f.transposed)
    return {fmt::format("r / 8 * {0} + r % 8 * {1} + {2} + k * {3}", group, line, f.advance, size),
            0, group};
  // blocks of 8 k by a line of rows: first those of the other k, then those of other rows
  return {fmt::format("r / {0} * {1} + k / 8 * {2} + k % 8 * {3} + r % {0} * {4}", elements,
                      2 * group, group, line, size),
          f.swizzle == 0 ? group : 2 * group, f.swizzle == 0 ? 2 * group : group};
}

/// One of the products of a number of columns.
struct GroupProductCase {
  std::string type;
  bool registers;
  OperandForm a, b;

  std::string says() const {
    const auto form = [](const OperandForm& f) {
      return fmt::format("{}{}{}", f.swizzle, f.transposed ? "t" : "",
                         f.advance > 0 ? fmt::format("+{}", f.advance) : "");
    };
    return fmt::format("{} a {} b {}", type, registers ? "registers" : form(a), form(b));
  }
  std::string function(int n) const {
    return fmt::format("tw_wgmma_{}_m64n{}k{}_f32_{}", registers ? "rs" : "ss", n,
                       type == "e4m3" ? 32 : 16, type);
  }
};

/// Every pair of forms turns up with some number of columns.
std::vector<GroupProductCase> cases_of(int n) {
  constexpr int kSwizzles[] = {0, 32, 64, 128};
  std::vector<GroupProductCase> all;
  const auto add = [&](const char* type, bool registers, bool ta, bool tb) {
    const int turn = n / 8 - 1 + 5 * static_cast<int>(all.size());
    const auto form = [&](int which, bool transposed) {
      const int swizzle = kSwizzles[which % 4];
      const int steps = transposed || swizzle == 0 ? 1 : swizzle / 32;
      return OperandForm{swizzle, transposed, turn / 3 % steps * 32};
    };
    all.push_back({type, registers, form(turn, ta), form(turn / 4, tb)});
  };
  for (const char* type : {"bf16", "f16"}) {
    for (const int flags : {0, 1, 2, 3}) add(type, false, (flags & 1) != 0, (flags & 2) != 0);
    for (const bool transposed : {false, true}) add(type, true, false, transposed);
  }
  add("e4m3", false, false, false);
  return all;
}

std::string put_text(const char* to, const char* from, int rows, int k, const OperandForm& f,
                     int size) {
  const int pieces = f.swizzle / 16;
  return fmt::format(
      R"(    for (int i = t; i < {0} * {1}; i += 128) {{
      const int r = i / {1}, k = i % {1};
      u32 byte = {2};
      {3}*({4}*)({5} + byte) = {6}[i];
    }}
)",
      rows, k, text_of_form(f, rows, size).byte,
      pieces > 0 ? fmt::format("byte ^= byte / 128 % {} * 16;\n      ", pieces) : "",
      size == 1 ? "u8" : "u16", to, from);
}

/// d = a b, then d += a b, of accumulators that were no numbers. `a` and `b` name the arguments.
std::string product_text(const GroupProductCase& c, int n, size_t number, const char* a,
                         const char* b) {
  const int size = c.type == "e4m3" ? 1 : 2, k = 32 / size;
  const FormText fa = text_of_form(c.a, 64, size), fb = text_of_form(c.b, n, size);
  const std::string flags = size == 1 ? ""
                            : c.registers
                                ? fmt::format("<{}>", int{c.b.transposed})
                                : fmt::format("<{}, {}>", int{c.a.transposed}, int{c.b.transposed});
  const std::string call = fmt::format("{}{}(d, {}, db, ", c.function(n), flags,
                                       c.registers ? "f[0], f[1], f[2], f[3]" : "da");
  std::string text = "  {\n";
  if (!c.registers) text += put_text("shared", a, 64, k, c.a, size);
  text += put_text("other", b, n, k, c.b, size);
  text += "    tw_fence_async();\n    tw_sync();\n";
  if (c.registers)
    text += fmt::format(
        "    u32 f[4];\n    for (int i = 0; i < 4; ++i)\n      f[i] = *(const "
        "u32*)({} + (row + i % 2 * 8) * 16 + pair + i / 2 * 8);\n",
        a);
  else
    text += fmt::format("    const u64 da = tw_wgmma_descriptor<{}>(shared + {}, {}, {});\n",
                        c.a.swizzle, c.a.advance, fa.leading, fa.stride);
  text += fmt::format(R"(    const u64 db = tw_wgmma_descriptor<{0}>(other + {1}, {2}, {3});
    f32 d[{4}];
    for (int i = 0; i < {4}; ++i) d[i] = __builtin_nanf("");
    tw_wgmma_keep(d);
    tw_wgmma_fence();
    {5}false);
    {5}true);
    tw_wgmma_commit();
    tw_wgmma_wait<0>();
    tw_wgmma_keep(d);
    f32* y = x6 + {6};
    for (int i = 0; i < {4}; ++i)
      y[(row + i % 4 / 2 * 8) * {7} + i / 4 * 8 + pair + i % 2] = d[i];
    tw_sync();
  }}
)",
                      c.b.swizzle, c.b.advance, fb.leading, fb.stride, n / 2, call,
                      number * 64 * static_cast<size_t>(n), n);
  return text;
}

double factor(int64_t i, int64_t of) {
  return static_cast<double>(of == 0 ? i * 7 % 13 - 6 : i * 5 % 9 - 4);
}

/// 2 a b, rows of b being columns.
std::vector<double> doubled(int64_t n, int64_t k) {
  std::vector<double> all;
  for (int64_t i = 0; i < 64; ++i) {
    for (int64_t j = 0; j < n; ++j) {
      double sum = 0;
      for (int64_t l = 0; l < k; ++l) sum += 2 * factor(i * k + l, 0) * factor(j * k + l, 1);
      all.push_back(sum);
    }
  }
  return all;
}

MicroKernel products_of(const std::string& group, int n) {
  const std::vector<GroupProductCase> cases = cases_of(n);
  const auto each = static_cast<size_t>(64 * n);
  std::vector<std::string> of = {"tw_wgmma_fence", "tw_wgmma_commit", "tw_wgmma_wait",
                                 "tw_wgmma_keep", "tw_wgmma_descriptor"};
  std::vector<std::string> parts;
  std::string body = R"(  u8* shared = (u8*)(((u64)tw_shared() + 1023) & ~1023ul);
  u8* other = shared + 8192;
  const int row = t / 32 * 16 + t % 32 / 4, pair = t % 4 * 2;
)";
  const std::vector<double> of_halves = doubled(n, 16), of_bytes = doubled(n, 32);
  const Tensor want = host_tensor(f32, {static_cast<int64_t>(cases.size()), 64, n});
  for (size_t p = 0; p < cases.size(); ++p) {
    const GroupProductCase& c = cases[p];
    const char* const a = c.type == "bf16" ? "x0" : c.type == "f16" ? "x2" : "x4";
    const char* const b = c.type == "bf16" ? "x1" : c.type == "f16" ? "x3" : "x5";
    body += product_text(c, n, p, a, b);
    if (of.back() != c.function(n)) of.push_back(c.function(n));
    parts.push_back(c.says());
    const std::vector<double>& sums = c.type == "e4m3" ? of_bytes : of_halves;
    for (size_t i = 0; i < each; ++i)
      want.data<float>()[p * each + i] = static_cast<float>(sums[i]);
  }
  MicroMaker m(group, fmt::format("wgmma_n{}", n), of);
  for (const DType t : {bf16, f16, e4m3}) {
    const int64_t k = 32 / bytes(t);
    m.input(tensor_of(t, {64, k}, [](int64_t i) { return factor(i, 0); }));
    m.input(tensor_of(t, {n, k}, [](int64_t i) { return factor(i, 1); }));
  }
  return m.output(want, parts).shared(1024 + 8192 + 32768).make(1, 128, body);
}

}  // namespace

std::vector<MicroKernel> product_micros(const std::string& group, int first, int last) {
  std::vector<MicroKernel> all;
  for (int n = first; n <= last; n += 8) all.push_back(products_of(group, n));
  return all;
}

}  // namespace tw::test
