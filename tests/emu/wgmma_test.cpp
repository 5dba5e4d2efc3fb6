#include <fmt/format.h>
#include <gtest/gtest.h>

#include "tw/jit/compiler.h"

#include "tests/emu/run.h"

namespace tw::test {
namespace {

/// How an operand lies in shared memory: rows of m or n by columns of k, 16 bytes a piece.
struct OperandLayout {
  int swizzle;      ///< bytes of a line, 0: lines of 16 that are not mixed
  bool transposed;  ///< lines go along rows, not along k
};

struct GroupProduct {
  const char* type;
  int n;
  bool registers;  ///< A
  OperandLayout a, b;
};

void PrintTo(const GroupProduct& p, std::ostream* out) {
  *out << p.type << " n" << p.n << (p.registers ? " rs" : " ss") << " a" << p.a.swizzle
       << (p.a.transposed ? "t" : "") << " b" << p.b.swizzle << (p.b.transposed ? "t" : "");
}

/// A C expression for the byte of element (r, k), 8 rows or columns of a line after the other with
/// `rows` of them in all; and the distances for the descriptor.
struct OperandPlace {
  std::string byte;
  int leading, stride;
};
OperandPlace placed(const OperandLayout& l, int rows) {
  const int line = l.swizzle == 0 ? 16 : l.swizzle, group = 8 * line, elements = line / 2;
  if (!l.transposed && l.swizzle == 0)  // pieces of 8 k behind each other
    return {
        fmt::format("r / 8 * {0} + k / 8 * {1} + r % 8 * 16 + k % 8 * 2", group, rows / 8 * group),
        rows / 8 * group, group};
  if (!l.transposed)  // the 16 k are the begin of a line
    return {fmt::format("r / 8 * {0} + r % 8 * {1} + k * 2", group, line), 0, group};
  // blocks of 8 k by a line of rows: first those of the other k, then those of other rows
  return {fmt::format("r / {0} * {1} + k / 8 * {2} + k % 8 * {3} + r % {0} * 2", elements,
                      2 * group, group, line),
          l.swizzle == 0 ? group : 2 * group, l.swizzle == 0 ? 2 * group : group};
}

/// d = a b + a b of 64 x 16 and n x 16 elements in f32; the operands come as plain matrices.
Case product_case(const GroupProduct& p) {
  const OperandPlace a = placed(p.a, 64), b = placed(p.b, p.n);
  const std::string flags =
      p.registers ? fmt::format("<{}>", p.b.transposed ? 1 : 0)
                  : fmt::format("<{}, {}>", p.a.transposed ? 1 : 0, p.b.transposed ? 1 : 0);
  const std::string call =
      fmt::format("tw_wgmma_{}_m64n{}k16_f32_{}{}(d, {}, db, {{}})", p.registers ? "rs" : "ss", p.n,
                  p.type, flags, p.registers ? "f[0], f[1], f[2], f[3]" : "da");
  const std::string text = fmt::format(
      R"(
struct Args {{ void* data[3]; i64 strides[6]; TwTensorMap map; }};
__device__ __forceinline__ void put(u8* to, u32 byte, u16 x, u32 swizzle) {{
  const u32 pieces = swizzle / 16;
  if (pieces > 0) byte ^= (byte / 128 % pieces) * 16;
  *(u16*)(to + byte) = x;
}}
extern "C" __global__ void __launch_bounds__(128) tw_k(const __grid_constant__ Args args) {{
  u8* shared = (u8*)(((u64)tw_shared() + 1023) & ~1023ul);
  u8* other = shared + 16384;
  const u16 *a = (const u16*)args.data[0], *b = (const u16*)args.data[1];
  const int t = tw_thread(), row = t / 32 * 16 + t % 32 / 4, pair = t % 4 * 2;
  for (int i = t; i < 64 * 16; i += 128) {{
    const int r = i / 16, k = i % 16;
    put(shared, {a_byte}, a[i], {a_swizzle});
  }}
  for (int i = t; i < {n} * 16; i += 128) {{
    const int r = i / 16, k = i % 16;
    put(other, {b_byte}, b[i], {b_swizzle});
  }}
  tw_fence_async();
  tw_sync();
  u32 f[4];
  for (int i = 0; i < 4; ++i) f[i] = *(const u32*)(a + (row + i % 2 * 8) * 16 + pair + i / 2 * 8);
  f32 d[{half}];
  const u64 da = tw_wgmma_descriptor<{a_swizzle}>(shared, {a_leading}, {a_stride});
  const u64 db = tw_wgmma_descriptor<{b_swizzle}>(other, {b_leading}, {b_stride});
  tw_wgmma_fence();
  {first};
  {second};
  tw_wgmma_commit();
  tw_wgmma_wait<0>();
  f32* y = (f32*)args.data[2];
  for (int i = 0; i < {half}; ++i) y[(row + i % 4 / 2 * 8) * {n} + i / 4 * 8 + pair + i % 2] = d[i];
}}
)",
      fmt::arg("a_byte", a.byte), fmt::arg("b_byte", b.byte), fmt::arg("a_swizzle", p.a.swizzle),
      fmt::arg("b_swizzle", p.b.swizzle), fmt::arg("a_leading", a.leading),
      fmt::arg("a_stride", a.stride), fmt::arg("b_leading", b.leading),
      fmt::arg("b_stride", b.stride), fmt::arg("n", p.n), fmt::arg("half", p.n / 2),
      fmt::arg("first", fmt::format(fmt::runtime(call), "false")),
      fmt::arg("second", fmt::format(fmt::runtime(call), "true")));
  const DType type = std::string(p.type) == "f16" ? f16 : bf16;
  Tensor x = host_tensor(type, {64, 16}), w = host_tensor(type, {p.n, 16}),
         y = host_tensor(f32, {64, p.n});
  for (int64_t i = 0; i < x.count(); ++i) set(x, i, static_cast<double>(i * 7 % 31 - 15));
  for (int64_t i = 0; i < w.count(); ++i) set(w, i, static_cast<double>(i * 5 % 23 - 11));
  Case c = make_case(text, 1, 128, 1024 + 16384 + 16384, {x, w, y}, "rrw", {});
  c.spec.tensor_maps = {{0, 0, {8, 8}}};
  return c;
}

class WgmmaLayouts : public testing::TestWithParam<GroupProduct> {};

/// Small integers: sums are exact.
TEST_P(WgmmaLayouts, AreReadThroughDescriptors) {
  const Case c = product_case(GetParam());
  for (uint64_t seed = 0; seed < 4; ++seed) {
    std::vector<Tensor> out;
    const EmuReport r = run(c, {.seed = seed}, &out);
    ASSERT_TRUE(r.clean()) << r.text;
    for (int64_t i = 0; i < 64; ++i) {
      for (int64_t j = 0; j < GetParam().n; ++j) {
        double sum = 0;
        for (int64_t k = 0; k < 16; ++k)
          sum += 2 * get(c.tensors[0], i * 16 + k) * get(c.tensors[1], j * 16 + k);
        ASSERT_EQ(get(out[2], i * GetParam().n + j), sum) << i << " " << j;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, WgmmaLayouts,
                         testing::Values(GroupProduct{"bf16", 8, false, {128, false}, {128, false}},
                                         GroupProduct{"f16", 24, false, {64, false}, {32, false}},
                                         GroupProduct{"bf16", 128, false, {0, false}, {64, false}},
                                         GroupProduct{"bf16", 256, false, {32, false}, {0, false}},
                                         GroupProduct{"f16", 64, false, {128, true}, {128, true}},
                                         GroupProduct{"bf16", 64, false, {64, true}, {32, true}},
                                         GroupProduct{"bf16", 16, false, {0, true}, {0, true}},
                                         GroupProduct{"f16", 40, true, {0, false}, {0, true}},
                                         GroupProduct{"bf16", 192, true, {0, false}, {64, true}}));

/// A descriptor has addresses in units of 16 bytes.
TEST(Wgmma, OperandsBeginAtWholePieces) {
  const Case c = product_case(
      {.type = "bf16", .n = 8, .registers = false, .a = {128, false}, .b = {128, false}});
  ASSERT_TRUE(run(c, {}).clean());
  const EmuReport r = run(changed(c, "(shared, 0, ", "(shared + 8, 0, "), {});
  EXPECT_EQ(r.fault, EmuFault::misaligned) << r.text;
}

TEST(Wgmma, RegistersInFlightAreNotTouched) {
  if (find_compiler().family == CompilerFamily::clang)
    GTEST_SKIP() << "clang does not tell of every access to a local array";
  const Case c = product_case({"bf16", 16, true, {0, false}, {0, false}});
  const char* commit = "tw_wgmma_commit();\n";
  struct Wrong {
    const char *line, *text;
  };
  for (const Wrong& w : std::vector<Wrong>{{"f[1] = 0;", "writes registers"},
                                           {"d[3] += 1;", "reads registers"},
                                           {"d[5] = 1;", "writes registers"}}) {
    const std::string by = std::string(commit) + "  " + w.line + "\n";
    const EmuReport r = run(changed(c, commit, by), {.seed = 3});
    ASSERT_EQ(r.fault, EmuFault::in_flight) << w.line << r.text;
    EXPECT_NE(r.text.find(w.text), std::string::npos) << r.text;
    EXPECT_NE(r.text.find(w.line), std::string::npos) << r.text;
  }
  EXPECT_TRUE(
      run(changed(c, commit, "tw_wgmma_commit();\n  if (f[1] == 7) return;\n"), {}).clean());
}

}  // namespace
}  // namespace tw::test
