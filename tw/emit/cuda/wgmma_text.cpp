#include <fmt/format.h>

#include "tw/emit/cuda/prelude_cuda.h"

namespace tw::cuda {
namespace {

constexpr int kColumnStep = 8, kMostColumns = 256;

/// The parts of d += a b, or d = a b: 64 rows and n columns, 32 bytes of a and b deep.
struct Product {
  int n;
  std::string type;
  bool a_in_registers;
  std::string name() const {
    return fmt::format("tw_wgmma_{}_m64n{}k{}_f32_{}", a_in_registers ? "rs" : "ss", n,
                       type == "e4m3" ? 32 : 16, type);
  }
  bool transposes() const { return type != "e4m3"; }  ///< bytes of 8 bits it cannot
};

std::string numbered(int count, const std::string& form, int from = 0) {
  std::string text;
  for (int i = 0; i < count; ++i)
    text += (i == 0 ? "" : ", ") + fmt::format(fmt::runtime(form), i + from);
  return text;
}

std::string template_of(const Product& p) {
  return !p.transposes()    ? ""
         : p.a_in_registers ? "template <int TransposeB> "
                            : "template <int TransposeA, int TransposeB> ";
}

std::string parameters_of(const Product& p) {
  const std::string a =
      p.a_in_registers ? "const u32& a0, const u32& a1, const u32& a2, const u32& a3" : "u64 a";
  return fmt::format("f32 (&d)[{}], {}, u64 b, bool add", p.n / 2, a);
}

std::string product_cuda(const Product& p) {
  const int r = p.n / 2, a_operands = p.a_in_registers ? 4 : 1, last = r + a_operands + 2;
  const std::string a =
      p.a_in_registers ? "{" + numbered(4, "%{}", r) + "}" : fmt::format("%{}", r);
  const std::string flags = !p.transposes()    ? ""
                            : p.a_in_registers ? fmt::format(", %{}", last)
                                               : fmt::format(", %{}, %{}", last, last + 1);
  const std::string immediates = !p.transposes()    ? ""
                                 : p.a_in_registers ? ", \"n\"(TransposeB)"
                                                    : ", \"n\"(TransposeA), \"n\"(TransposeB)";
  return fmt::format(
      R"({}__device__ __forceinline__ void {}({}) {{
  asm volatile("{{\n.reg .pred p;\nsetp.ne.b32 p, %{}, 0;\n"
    "wgmma.mma_async.sync.aligned.m64n{}k{}.f32.{}.{} {{{}}}, {}, %{}, p, 1, 1{};\n}}"
    : {}
    : {}, "l"(b), "r"((int)add){});
}})",
      template_of(p), p.name(), parameters_of(p), last - 1, p.n, p.transposes() ? 16 : 32, p.type,
      p.type, numbered(r, "%{}"), a, last - 2, flags, numbered(r, "\"+f\"(d[{}])"),
      p.a_in_registers ? numbered(4, "\"r\"(a{})") : "\"l\"(a)", immediates);
}

std::string product_emulated(const Product& p) {
  const std::string ta = p.transposes() && !p.a_in_registers ? "TransposeA != 0" : "false";
  return fmt::format(
      R"({}inline void {}({}, TW_LINE) {{
  const TwEmuWgmma w = {{d, {}, "{}", {}, {}, add, {{{}}}, {}, b}};
  tw_emu_wgmma(&w, line);
}})",
      template_of(p), p.name(), parameters_of(p), p.n, p.type, ta,
      p.transposes() ? "TransposeB != 0" : "false",
      p.a_in_registers ? "&a0, &a1, &a2, &a3" : "0, 0, 0, 0", p.a_in_registers ? "0" : "a");
}

ThreadFunction step(const std::string& what, const std::string& call) {
  return {.name = "tw_wgmma_" + what,
          .uses = "tw_emu_async",
          .cuda = fmt::format(R"(__device__ __forceinline__ void tw_wgmma_{0}() {{
  asm volatile("wgmma.{1}.sync.aligned;" ::: "memory");
}})",
                              what, what == "commit" ? "commit_group" : what),
          .emulated = fmt::format("inline void tw_wgmma_{0}(TW_LINE) {{ {1}; }}", what, call)};
}

const char* const kWait = R"(template <int N> __device__ __forceinline__ void tw_wgmma_wait() {
  asm volatile("wgmma.wait_group.sync.aligned %0;" :: "n"(N) : "memory");
})";
const char* const kEmulatedWait = R"(template <int N> inline void tw_wgmma_wait(TW_LINE) {
  tw_emu_wgmma_group("tw_wgmma_wait", N, line);
})";

// The compiler must not move registers of a product that is under way. One asm for each: one with
// 128 operands takes the compiler longer.
const char* const kKeep =
    R"(__device__ __forceinline__ void tw_wgmma_keep(f32& r) {
  asm volatile("" : "+f"(r) :: "memory");
}
__device__ __forceinline__ void tw_wgmma_keep(u32& r) {
  asm volatile("" : "+r"(r) :: "memory");
}
template <class T, int N> __device__ __forceinline__ void tw_wgmma_keep(T (&r)[N]) {
#pragma unroll
  for (int i = 0; i < N; ++i) tw_wgmma_keep(r[i]);
})";
const char* const kEmulatedKeep = "template <class T> inline void tw_wgmma_keep(T&) {}";

/// Rows of the operand in swizzled lines of so many bytes; `leading` and `stride` are in bytes.
std::string descriptor(const std::string& head, const std::string& address) {
  return "template <int Swizzle> " + head + R"( {
  const u64 mode = Swizzle == 128 ? 1 : Swizzle == 64 ? 2 : Swizzle == 32 ? 3 : 0;
  const u64 at = )" +
         address + R"(;
  return (at & 0x3ffff) >> 4 | (u64)(leading >> 4) << 16 | (u64)(stride >> 4) << 32 | mode << 62;
})";
}

ThreadFunction descriptors() {
  const std::string name = "tw_wgmma_descriptor",
                    parameters = "(const void* shared, u32 leading, u32 stride";
  return {.name = name,
          .uses = "tw_emu_async",
          .cuda = descriptor("__device__ __forceinline__ u64 " + name + parameters + ")",
                             "(u64)__cvta_generic_to_shared(shared)"),
          .emulated = descriptor("inline u64 " + name + parameters + ", TW_LINE)",
                                 "tw_emu_operand_address(shared, line)")};
}

}  // namespace

std::vector<ThreadFunction> wgmma_functions() {
  std::vector<ThreadFunction> all = {
      step("fence", "tw_emu_fence(\"tw_wgmma_fence\", line)"),
      step("commit", "tw_emu_wgmma_group(\"tw_wgmma_commit\", 0, line)"),
      {"tw_wgmma_wait", "tw_emu_async", kWait, kEmulatedWait},
      {"tw_wgmma_keep", "", kKeep, kEmulatedKeep},
      descriptors(),
  };
  for (const char* type : {"bf16", "f16", "e4m3"}) {
    for (int n = kColumnStep; n <= kMostColumns; n += kColumnStep) {
      for (const bool a_in_registers : {false, true}) {
        const Product p{n, type, a_in_registers};
        if (a_in_registers && !p.transposes()) continue;
        all.push_back({.name = p.name(),
                       .uses = "tw_emu_async",
                       .cuda = product_cuda(p),
                       .emulated = product_emulated(p)});
      }
    }
  }
  return all;
}

}  // namespace tw::cuda
