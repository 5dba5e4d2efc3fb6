#include <cstdint>
#include <fmt/format.h>

#include "tw/cli/gpu_ceilings.h"

namespace tw::cli {

namespace {

/// Words are addresses and counts.
constexpr const char* kCommon = R"(
typedef unsigned long long u64;
typedef unsigned int u32;
struct Words { u64 to, from, n, passes; };
#define LOOP extern "C" __global__ void __launch_bounds__(256)
static __device__ __forceinline__ u32 hash(u32 x) {
  x ^= x >> 16; x *= 0x7feb352du; x ^= x >> 15; x *= 0x846ca68bu;
  return x ^ x >> 16;
}
static __device__ u64 self() { return (u64)blockIdx.x * blockDim.x + threadIdx.x; }
static __device__ u64 all() { return (u64)gridDim.x * blockDim.x; }

LOOP empty(const Words w) {}
// A ring through w.n lines, in an order that nobody guesses; *w.from is where it is entered.
LOOP make_ring(const Words w) {
  if (self() == 0) *(u64*)w.from = w.to;
  for (u64 i = self(); i < w.n; i += all())
    *(u64*)(w.to + 128 * i) = w.to + 128 * ((i * 1664525 + 1013904223) & (w.n - 1));
}
// Goes on where the run before ended, since the cache has what that one read.
LOOP follow_ring(const Words w) {
  if (threadIdx.x != 0) return;
  const volatile u64* at = (const volatile u64*)*(u64*)w.from;
  for (u64 i = 0; i < w.n; ++i) at = (const volatile u64*)*at;
  *(u64*)w.from = (u64)at;
}
// How many clocks 64 w.n operations take of which each needs the one before.
LOOP count_clocks(const Words w) {
  const float a = (float)(w.to >> 63);
  float x = a;
  const u64 begin = clock64();
#pragma unroll 1
  for (u64 i = 0; i < w.n; ++i) {
#pragma unroll
    for (int j = 0; j < 64; ++j) x = x * a + a;
  }
  const u64 clocks = clock64() - begin;
  if (self() == 0) *(u64*)w.to = x == 12345 ? 0 : clocks;
}
)";

/// Passes over w.n tiles, which the blocks take in turn. A tile is of `vectors` times 16 bytes a
/// thread, on their way together, and stays in no first-level cache: each SM would find there what
/// it reads again. `hint` is of loads and stores: cg, or cs for what is not used again.
std::string streams(int vectors, const char* hint) {
  constexpr const char* kLoop = R"(
LOOP {0}_{1}_{2}(const Words w) {{
  u32 sum = threadIdx.x;
  const u64 step = gridDim.x % w.n;
  u64 tile = blockIdx.x % w.n;
  for (u64 i = blockIdx.x; i < w.n * w.passes; i += gridDim.x) {{
    const u64 first = tile * ({1} * 256) + threadIdx.x;
    const uint4* from = (const uint4*)w.from + first;
    uint4* to = (uint4*)w.to + first;
    uint4 v[{1}];
#pragma unroll
    for (int k = 0; k < {1}; ++k) {3};
#pragma unroll
    for (int k = 0; k < {1}; ++k) {4};
    tile += step;
    if (tile >= w.n) tile -= w.n;
  }}
  if (sum == 0x12345679u) *(u32*)w.to = (u32)*(u64*)w.from;
}}
)";
  const std::string load = fmt::format("v[k] = __ld{}(from + k * 256)", hint),
                    store = fmt::format("__st{}(to + k * 256, v[k])", hint),
                    number = "v[k] = uint4{sum, sum + k, (u32)i, sum}",
                    add = "sum += v[k].x ^ v[k].y ^ v[k].z ^ v[k].w";
  return fmt::format(kLoop, "read", vectors, hint, load, add) +
         fmt::format(kLoop, "write", vectors, hint, number, store) +
         fmt::format(kLoop, "copy", vectors, hint, load, store);
}

/// A loop of eight chains, each of eight steps a trip: `step` is one instruction of chain x[k], of
/// type `type`. It takes a number of its own from one more register, as three that lie in one bank
/// are not read at once.
std::string chains(const char* name, const char* type, const char* step) {
  return fmt::format(R"(
LOOP {0}(const Words w) {{
  {1} x[8];
  const {1} a = ({1})(w.to >> 63);
#pragma unroll
  for (int k = 0; k < 8; ++k) x[k] = ({1})(threadIdx.x + k);
#pragma unroll 1
  for (u64 i = 0; i < w.n; ++i) {{
#pragma unroll
    for (int j = 0; j < 8; ++j)
#pragma unroll
      for (int k = 0; k < 8; ++k) {{ {2}; }}
  }}
#pragma unroll
  for (int k = 1; k < 8; ++k) x[0] += x[k];
  if (x[0] == ({1})12345) *({1}*)w.to = x[0];
}}
)",
                     name, type, step);
}

struct MatrixKind {
  const char* name;
  const char* hopper;  ///< wgmma's shape and types
  const char* before;  ///< mma's shape and types; null where there is none
  bool sums_integers;
  const char* hopper_end;  ///< of wgmma's operands
  uint32_t keep, set;      ///< bits of a random word that leave numbers below 1
};
constexpr MatrixKind kMatrixKinds[] = {
    {"dot_bf16", "m64n256k16.f32.bf16.bf16", "m16n8k16.row.col.f32.bf16.bf16.f32", false,
     ", 1, 1, 1, 0, 0", 0x807f807f, 0x3f003f00},
    {"dot_f16", "m64n256k16.f32.f16.f16", "m16n8k16.row.col.f32.f16.f16.f32", false,
     ", 1, 1, 1, 0, 0", 0x83ff83ff, 0x38003800},
    {"dot_tf32", "m64n256k8.f32.tf32.tf32", "m16n8k8.row.col.f32.tf32.tf32.f32", false, ", 1, 1, 1",
     0x807fffff, 0x3f000000},
    {"dot_e4m3", "m64n256k32.f32.e4m3.e4m3", nullptr, false, ", 1, 1, 1", 0x87878787, 0x38383838},
    {"dot_i8", "m64n256k32.s32.s8.s8", "m16n8k32.row.col.s32.s8.s8.s32", true, ", 1", 0xffffffff,
     0}};

/// "%first, %first+1, .."
std::string registers(int first, int count) {
  std::string list;
  for (int i = 0; i < count; ++i) list += fmt::format("{}%{}", i ? ", " : "", first + i);
  return list;
}
std::string operands(const char* constraint, const char* array, int count) {
  std::string list;
  for (int i = 0; i < count; ++i)
    list += fmt::format("{}\"{}\"({}[{}])", i ? ", " : "", constraint, array, i);
  return list;
}

/// Two groups of warps with operands in shared memory, whose rows of 32 bytes lie as core matrices
/// without a swizzle: 128 bytes from one to the next along k, 256 along the other axis.
std::string wgmma_loop(const MatrixKind& k) {
  return fmt::format(R"(
LOOP {0}(const Words w) {{
  __shared__ alignas(128) u32 tiles[(64 + 256) * 8];
  for (u32 i = threadIdx.x; i < (64 + 256) * 8; i += blockDim.x)
    tiles[i] = (hash(i + 1) & {1:#x}u) | {2:#x}u;
  asm volatile("fence.proxy.async;" ::: "memory");
  __syncthreads();
  const u64 shape = (u64)(128 >> 4) << 16 | (u64)(256 >> 4) << 32;
  const u32 at = (u32)__cvta_generic_to_shared(tiles);
  const u64 a = shape | (at >> 4 & 0x3fff), b = shape | (at + 64 * 32) >> 4 & 0x3fff;
  {3} d[128];
#pragma unroll
  for (int i = 0; i < 128; ++i) d[i] = 0;
  for (u64 i = 0; i < w.n; ++i) {{
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
#pragma unroll
    for (int j = 0; j < 8; ++j)
      asm volatile("wgmma.mma_async.sync.aligned.{4} {{{5}}}, %128, %129{6};"
                   : {7} : "l"(a), "l"(b));
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
    asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
  }}
  {3} sum = 0;
#pragma unroll
  for (int i = 0; i < 128; ++i) sum += d[i];
  if (sum == ({3})12345) *({3}*)w.to = sum;
}}
)",
                     k.name, k.keep, k.set, k.sums_integers ? "int" : "float", k.hopper,
                     registers(0, 128), k.hopper_end,
                     operands(k.sums_integers ? "+r" : "+f", "d", 128));
}

/// Eight independent products of a warp.
std::string mma_loop(const MatrixKind& k) {
  return fmt::format(R"(
LOOP {0}(const Words w) {{
  u32 a[4], b[2];
  for (int i = 0; i < 4; ++i) a[i] = (hash(threadIdx.x * 4 + i) & {1:#x}u) | {2:#x}u;
  for (int i = 0; i < 2; ++i) b[i] = (hash(threadIdx.x * 2 + i + 9999) & {1:#x}u) | {2:#x}u;
  {3} d[8][4] = {{}};
  for (u64 i = 0; i < w.n; ++i) {{
#pragma unroll
    for (int j = 0; j < 8; ++j)
      asm volatile("mma.sync.aligned.{4} {{{5}}}, {{{6}}}, {{{7}}}, {{{5}}};"
                   : {8} : {9}, {10});
  }}
  {3} sum = 0;
  for (int j = 0; j < 8; ++j)
    for (int i = 0; i < 4; ++i) sum += d[j][i];
  if (sum == ({3})12345) *({3}*)w.to = sum;
}}
)",
                     k.name, k.keep, k.set, k.sums_integers ? "int" : "float", k.before,
                     registers(0, 4), registers(4, 4), registers(8, 2),
                     operands(k.sums_integers ? "+r" : "+f", "d[j]", 4), operands("r", "a", 4),
                     operands("r", "b", 2));
}

}  // namespace

std::string stream_loop(const std::string& what, const StreamLoop& s) {
  return fmt::format("{}_{}_{}", what, s.vectors, s.hint);
}

std::string ceiling_loops(const GpuMachine& m) {
  std::string text = kCommon;
  for (const StreamLoop& s : kStreamLoops) text += streams(s.vectors, s.hint);
  text += chains("fma_f32", "float", "x[k] = x[k] * a + a");
  text += chains("fma_f64", "double", "x[k] = x[k] * a + a");
  text += chains("fma_half", "u32",
                 R"(asm volatile("fma.rn.f16x2 %0, %0, %1, %1;" : "+r"(x[k]) : "r"(a)))");
  text += chains("integers", "u32",
                 R"(if (k % 2) x[k] = x[k] * a + a; else )"
                 R"(asm volatile("lop3.b32 %0, %0, %1, %2, 0x6a;" : "+r"(x[k]) )"
                 R"(: "r"(a), "r"(x[(k + 2) % 8])))");
  text += chains("special", "float", R"(asm volatile("ex2.approx.ftz.f32 %0, %0;" : "+f"(x[k])))");
  text += chains("convert", "float",
                 R"(u32 y; asm volatile("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(y) : "f"(x[k]), )"
                 R"("f"(a)); x[k] = __uint_as_float(y))");
  for (const MatrixKind& k : kMatrixKinds) {
    if (m.arch == "sm_90a")
      text += wgmma_loop(k);
    else if (k.before != nullptr)
      text += mma_loop(k);
  }
  return text;
}

}  // namespace tw::cli
