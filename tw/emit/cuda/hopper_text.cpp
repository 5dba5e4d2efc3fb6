#include <fmt/format.h>

#include "tw/emit/cuda/prelude_cuda.h"

namespace tw::cuda {
namespace {

const std::string kInline = "__device__ __forceinline__ ";

/// What instrumented text calls instead of reading the table.
const char* const kTable =
    R"(TW_EMU void tw_emu_mbarrier(const char* kind, void* barrier, u32 value,
                            i32 rank, i32 line) {
  tw_emu.mbarrier(kind, barrier, value, rank, line);
}
TW_EMU void tw_emu_named(const char* kind, u32 number, u32 threads, i32 line) {
  tw_emu.named(kind, number, threads, line);
}
TW_EMU u32 tw_emu_cluster(const char* kind, i32 line) { return tw_emu.cluster(kind, line); }
TW_EMU void* tw_emu_peer(void* shared, u32 rank, i32 line) {
  return tw_emu.peer(shared, rank, line);
}
TW_EMU u32 tw_emu_shared_address(const void* shared, i32 line) {
  return tw_emu.shared_address(shared, line);
}
TW_EMU u32 tw_emu_operand_address(const void* shared, i32 line) {
  if ((u64)shared % 16 != 0) tw_emu.fault(TwEmuFault::misaligned, line, (void*)shared, 16);
  return tw_emu.shared_address(shared, line);
}
TW_EMU void tw_emu_tensor(const char* kind, const void* map, void* shared, void* barrier,
                          const i32* at, i32 rank, u32 mask, i32 line) {
  tw_emu.tensor(kind, map, shared, barrier, at, rank, mask, line);
}
TW_EMU void tw_emu_bulk(const char* kind, void* shared, void* global, u32 bytes, void* barrier,
                        i32 line) {
  tw_emu.bulk(kind, shared, global, bytes, barrier, line);
}
TW_EMU void tw_emu_bulk_group(const char* kind, i32 left, i32 line) {
  tw_emu.bulk_group(kind, left, line);
}
TW_EMU void tw_emu_fence(const char* kind, i32 line) { tw_emu.fence(kind, line); }
TW_EMU void tw_emu_setmaxnreg(const char* kind, i32 count, i32 line) {
  tw_emu.setmaxnreg(kind, count, line);
}
TW_EMU void tw_emu_wgmma(const TwEmuWgmma* product, i32 line) { tw_emu.wgmma(product, line); }
TW_EMU void tw_emu_wgmma_group(const char* kind, i32 left, i32 line) {
  tw_emu.wgmma_group(kind, left, line);
})";

ThreadFunction function(const std::string& name, const std::string& cuda,
                        const std::string& emulated, const std::string& uses = "tw_emu_async") {
  return {.name = name, .uses = uses, .cuda = cuda, .emulated = emulated};
}

/// An instruction without operands.
ThreadFunction plain(const std::string& name, const std::string& instruction,
                     const std::string& call) {
  return function(name,
                  fmt::format("{}void {}() {{ asm volatile(\"{};\" ::: \"memory\"); }}", kInline,
                              name, instruction),
                  fmt::format("inline void {0}(TW_LINE) {{ {1}(\"{0}\", line); }}", name, call));
}

/// An instruction on a barrier, and a number.
ThreadFunction barrier(const std::string& what, const std::string& value,
                       const std::string& instruction) {
  const std::string name = "tw_mbarrier_" + what;
  const std::string parameter = value.empty() ? "" : ", u32 " + value;
  return function(name,
                  fmt::format(R"({}void {}(u64* barrier{}) {{
  asm volatile("{};" :: "r"((u32)__cvta_generic_to_shared(barrier)){} : "memory");
}})",
                              kInline, name, parameter, instruction,
                              value.empty() ? "" : ", \"r\"(" + value + ")"),
                  fmt::format(R"(inline void {0}(u64* barrier{1}, TW_LINE) {{
  tw_emu_mbarrier("{0}", barrier, {2}, -1, line);
}})",
                              name, parameter, value.empty() ? "0" : value));
}

std::vector<ThreadFunction> barriers() {
  return {
      barrier("init", "count", "mbarrier.init.shared::cta.b64 [%0], %1"),
      plain("tw_mbarrier_fence_init", "fence.mbarrier_init.release.cluster", "tw_emu_fence"),
      barrier("arrive", "", "mbarrier.arrive.shared::cta.b64 _, [%0]"),
      barrier("expect", "bytes", "mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [%0], %1"),
      barrier("arrive_expect", "bytes", "mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1"),
      function("tw_mbarrier_arrive_remote",
               kInline + R"(void tw_mbarrier_arrive_remote(u64* barrier, u32 rank) {
  asm volatile("{\n.reg .b32 remote;\nmapa.shared::cluster.u32 remote, %0, %1;\n"
               "mbarrier.arrive.release.cluster.shared::cluster.b64 _, [remote];\n}"
               :: "r"((u32)__cvta_generic_to_shared(barrier)), "r"(rank) : "memory");
})",
               R"(inline void tw_mbarrier_arrive_remote(u64* barrier, u32 rank, TW_LINE) {
  tw_emu_mbarrier("tw_mbarrier_arrive_remote", barrier, 0, (i32)rank, line);
})"),
      // In one piece: a loop of C++ around it costs registers.
      function("tw_mbarrier_wait", kInline + R"(void tw_mbarrier_wait(u64* barrier, u32 parity) {
  asm volatile("{\n.reg .pred done;\nagain:\n"
               "mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n"
               "@!done bra again;\n}"
               :: "r"((u32)__cvta_generic_to_shared(barrier)), "r"(parity) : "memory");
})",
               R"(inline void tw_mbarrier_wait(u64* barrier, u32 parity, TW_LINE) {
  tw_emu_mbarrier("tw_mbarrier_wait", barrier, parity, -1, line);
})"),
  };
}

ThreadFunction named(const std::string& what) {
  return function("tw_named_" + what,
                  fmt::format(R"({}void tw_named_{}(u32 number, u32 threads) {{
  asm volatile("bar.{} %0, %1;" :: "r"(number), "r"(threads) : "memory");
}})",
                              kInline, what, what),
                  fmt::format(R"(inline void tw_named_{0}(u32 number, u32 threads, TW_LINE) {{
  tw_emu_named("tw_named_{0}", number, threads, line);
}})",
                              what));
}

ThreadFunction setmaxnreg(const std::string& what) {
  return function("tw_setmaxnreg_" + what,
                  fmt::format(R"(template <int N> {}void tw_setmaxnreg_{}() {{
  asm volatile("setmaxnreg.{}.sync.aligned.u32 %0;" :: "n"(N));
}})",
                              kInline, what, what),
                  fmt::format(R"(template <int N> inline void tw_setmaxnreg_{0}(TW_LINE) {{
  tw_emu_setmaxnreg("tw_setmaxnreg_{0}", N, line);
}})",
                              what));
}

std::vector<ThreadFunction> clusters() {
  return {
      function("tw_cluster_rank", kInline + R"(int tw_cluster_rank() {
  u32 rank;
  asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  return (int)rank;
})",
               "inline int tw_cluster_rank(TW_LINE) "
               "{ return (int)tw_emu_cluster(\"tw_cluster_rank\", line); }"),
      plain("tw_cluster_arrive", "barrier.cluster.arrive.release.aligned", "tw_emu_cluster"),
      plain("tw_cluster_wait", "barrier.cluster.wait.acquire.aligned", "tw_emu_cluster"),
      function("tw_cluster_sync", kInline + R"(void tw_cluster_sync() {
  tw_cluster_arrive();
  tw_cluster_wait();
})",
               R"(inline void tw_cluster_sync(TW_LINE) {
  tw_cluster_arrive(line);
  tw_cluster_wait(line);
})",
               "tw_cluster_arrive tw_cluster_wait"),
      function("tw_cluster_shared",
               "template <class T> " + kInline + R"(T* tw_cluster_shared(T* shared, u32 rank) {
  u64 there;
  asm("mapa.u64 %0, %1, %2;" : "=l"(there) : "l"(shared), "r"(rank));
  return (T*)there;
})",
               R"(template <class T> inline T* tw_cluster_shared(T* shared, u32 rank, TW_LINE) {
  return (T*)tw_emu_peer(shared, rank, line);
})"),
  };
}

std::vector<ThreadFunction> warps() {
  return {
      function("tw_elect", kInline + R"(bool tw_elect() {
  u32 is_it;
  asm volatile("{\n.reg .pred p;\nelect.sync _|p, 0xffffffff;\nselp.u32 %0, 1, 0, p;\n}"
               : "=r"(is_it));
  return is_it != 0;
})",
               R"(inline bool tw_elect(TW_LINE) {
  u32 is_it;
  tw_emu_warp("tw_elect", 0, 0, 0, &is_it, line);
  return is_it != 0;
})",
               ""),
      function("tw_stmatrix_x4",
               kInline + R"(void tw_stmatrix_x4(void* row, u32 a, u32 b, u32 c, u32 d) {
  asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};"
               :: "r"((u32)__cvta_generic_to_shared(row)), "r"(a), "r"(b), "r"(c), "r"(d)
               : "memory");
})",
               R"(inline void tw_stmatrix_x4(void* row, u32 a, u32 b, u32 c, u32 d, TW_LINE) {
  const struct { void* row; u32 r[4]; } in = {row, {a, b, c, d}};
  tw_emu_warp("tw_stmatrix_x4", &in, sizeof(in), 0, 0, line);
})",
               ""),
      function("tw_pack_bf16", kInline + R"(u32 tw_pack_bf16(f32 low, f32 high) {
  u32 r;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(r) : "f"(high), "f"(low));
  return r;
})",
               R"(inline u32 tw_emu_bf16(f32 x) {
  const u32 bits = __builtin_bit_cast(u32, x);
  return x != x ? 0x7fff : (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
}
inline u32 tw_pack_bf16(f32 low, f32 high) { return tw_emu_bf16(low) | tw_emu_bf16(high) << 16; })",
               ""),
      function("tw_exp2_approx", kInline + R"(f32 tw_exp2_approx(f32 x) {
  f32 y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
})",
               "inline f32 tw_exp2_approx(f32 x) { return __builtin_exp2f(x); }", ""),
  };
}

/// Lets the next launch begin, and waits until those before this one are done.
ThreadFunction grid_dependency_sync() {
  return function("tw_grid_dependency_sync", kInline + R"(void tw_grid_dependency_sync() {
  asm volatile("griddepcontrol.launch_dependents;\n\tgriddepcontrol.wait;" ::: "memory");
})",
                  R"(inline void tw_grid_dependency_sync(TW_LINE) {
  tw_emu_fence("tw_grid_dependency_sync", line);
})");
}

}  // namespace

std::vector<ThreadFunction> hopper_functions() {
  std::vector<ThreadFunction> all = {{"tw_emu_async", "", "", kTable}};
  for (ThreadFunction& f : barriers()) all.push_back(std::move(f));
  for (ThreadFunction& f : clusters()) all.push_back(std::move(f));
  for (ThreadFunction& f : warps()) all.push_back(std::move(f));
  for (const char* what : {"sync", "arrive"}) all.push_back(named(what));
  for (const char* what : {"inc", "dec"}) all.push_back(setmaxnreg(what));
  all.push_back(grid_dependency_sync());
  all.push_back(plain("tw_fence_async", "fence.proxy.async.shared::cta", "tw_emu_fence"));
  return all;
}

}  // namespace tw::cuda
