#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sstream>

#include "tw/emit/cuda/prelude_cuda.h"
#include "tw/jit/compiler.h"
#include "tw/jit/nvrtc.h"

#include "tests/emu/run.h"
#include "tests/support/expect_error.h"

namespace tw::test {
namespace {

/// Statements that call what is no atomic, of pointers and values of the kernel below.
const char* const kCalls = R"(
  shuffles<u8>(p); shuffles<i8>(p); shuffles<u16>(p); shuffles<i16>(p); shuffles<bool>(p);
  shuffles<u32>(p); shuffles<i32>(p); shuffles<f32>(p);
  shuffles<u64>(p); shuffles<i64>(p); shuffles<f64>(p);
  *p = (u8)(tw_any(*p) + tw_ballot(*p) + tw_sync_or(*p) + tw_block() + tw_blocks());
  tw_sync();
  tw_sync_warp();
  u32 r[4];
  tw_ldmatrix_x4(r, tw_shared());
  const u32 b[2] = {r[0], r[1]};
  tw_ldmatrix_x4_trans(r, tw_shared());
  f32 d[4] = {};
  i32 e[4] = {};
  f64 g[2] = {};
  tw_mma_m16n8k16_f32_bf16(d, r, b);
  tw_mma_m16n8k16_f32_f16(d, r, b);
  tw_mma_m16n8k32_i32_s8_s8(e, r, b);
  tw_mma_m16n8k32_i32_u8_s8(e, r, b);
  tw_mma_m16n8k32_i32_s8_u8(e, r, b);
  tw_mma_m16n8k32_i32_u8_u8(e, r, b);
  tw_mma_m16n8k8_f32_tf32(d, r, b);
  tw_mma_m8n8k4_f64(g, d[0], d[1]);
  r[0] = tw_tf32(d[2]);
  tw_split_tf32(r[1], r[2], d[3]);
  tw_copy_async_16(tw_shared(), p, 8);
  tw_copy_async_commit();
  tw_copy_async_wait<1>();
  *(Pack<f32, 4>*)p = Pack<f32, 4>{{d[0], d[1], d[2], d[3]}};
  u16 half[2] = {tw_part<u16>(r[0], 1), 2};
  tw_store_run(p, Pack<u32, 1>{{tw_join(half)}});
  tw_store_run(p, tw_load_run<Pack<u32, 2>>(p));
  tw_store_run((f32*)p, Pack<f32, 4>{{d[0], d[1], d[2], d[3]}});
  *(f64*)p = g[0] + e[0];
  *(i64*)p = tw_tell(p, 1, 2, 3, 4, 5, 8);
)";

/// Of Hopper, but for products of four warps.
const char* const kHopperCalls = R"(
  u64* bar = (u64*)tw_shared();
  tw_mbarrier_init(bar, 1);
  tw_mbarrier_fence_init();
  tw_mbarrier_expect(bar, 16);
  tw_mbarrier_arrive_expect(bar, 16);
  tw_mbarrier_arrive(bar);
  tw_mbarrier_arrive_remote(bar, 1);
  tw_mbarrier_wait(bar, 0);
  tw_named_sync(1, 128);
  tw_named_arrive(2, 128);
  tw_setmaxnreg_dec<40>();
  tw_setmaxnreg_inc<80>();
  *tw_cluster_shared(p, 1) = (u8)(tw_cluster_rank() + tw_elect());
  tw_cluster_arrive();
  tw_cluster_wait();
  tw_cluster_sync();
  tw_fence_async();
  const TwTensorMap* map = &args.map;
  tw_tma_prefetch(map);
  tw_tma_load_1d(bar, map, bar, 1);
  tw_tma_load_2d(bar, map, bar, 1, 2);
  tw_tma_load_3d(bar, map, bar, 1, 2, 3);
  tw_tma_load_4d(bar, map, bar, 1, 2, 3, 4);
  tw_tma_load_5d(bar, map, bar, 1, 2, 3, 4, 5);
  tw_tma_load_1d_multicast(bar, map, bar, 1, 3);
  tw_tma_load_2d_multicast(bar, map, bar, 1, 2, 3);
  tw_tma_load_3d_multicast(bar, map, bar, 1, 2, 3, 3);
  tw_tma_load_4d_multicast(bar, map, bar, 1, 2, 3, 4, 3);
  tw_tma_load_5d_multicast(bar, map, bar, 1, 2, 3, 4, 5, 3);
  tw_tma_store_1d(map, bar, 1);
  tw_tma_store_2d(map, bar, 1, 2);
  tw_tma_store_3d(map, bar, 1, 2, 3);
  tw_tma_store_4d(map, bar, 1, 2, 3, 4);
  tw_tma_store_5d(map, bar, 1, 2, 3, 4, 5);
  tw_bulk_load(bar, p, 16, bar);
  tw_bulk_store(p, bar, 16);
  tw_bulk_commit();
  tw_bulk_wait_read<1>();
  tw_bulk_wait<0>();
  const f32 v = tw_exp2_approx(*p);
  u32 a[4] = {tw_pack_bf16(v, 1), 1, 2, 3};
  tw_stmatrix_x4(bar, a[0], a[1], a[2], a[3]);
  const u64 at = tw_wgmma_descriptor<128>(bar, 0, 1024);
)";

/// Every product of four warps whose name holds `part`.
std::string product_calls(const std::string& part) {
  std::string text;
  for (const std::string& name : cuda::thread_function_names()) {
    const size_t n = name.find("_m64n");
    if (n == std::string::npos || name.find(part) == std::string::npos) continue;
    const bool registers = name.find("_rs_") != std::string::npos;
    const bool bytes = name.ends_with("e4m3");
    text += fmt::format(
        "  {{\n    f32 d[{}];\n    for (f32& x : d) x = v;\n    tw_wgmma_keep(d);\n"
        "    tw_wgmma_fence();\n    {}{}(d, {}, at, *p > 3);\n    tw_wgmma_commit();\n"
        "    tw_wgmma_wait<0>();\n    tw_wgmma_keep(d);\n    for (f32 x : d) *(f32*)p += x;\n  "
        "}}\n",
        std::atoi(name.c_str() + n + 5) / 2, name,
        bytes       ? ""
        : registers ? "<1>"
                    : "<0, 1>",
        registers ? "a[0], a[1], a[2], a[3]" : "at");
  }
  return text;
}

std::string hopper_program(const std::string& products) {
  return std::string(R"(
struct Args { void* data[1]; TwTensorMap map; };
extern "C" __global__ void __launch_bounds__(128) __cluster_dims__(2, 1, 1)
tw_k(const __grid_constant__ Args args) {
  u8* p = (u8*)args.data[0];
  tw_grid_dependency_sync();)") +
         kHopperCalls + products + "}\n";
}

std::set<std::string> hopper_names() {
  std::set<std::string> names = {"tw_shared"};
  for (const auto& part :
       {cuda::hopper_functions(), cuda::tma_functions(), cuda::wgmma_functions()}) {
    for (const cuda::ThreadFunction& f : part) names.insert(f.name);
  }
  return names;
}

/// Every atomic of every type that it takes.
std::string atomic_calls() {
  std::string text;
  for (const std::string& name : cuda::thread_function_names()) {
    if (!name.starts_with("tw_atomic_")) continue;
    const std::string op = name.substr(10, name.find('_', 10) - 10);
    std::istringstream types(op == "cas" ? "u8 u16 i32 u32 i64 u64"
                             : op == "and" || op == "or" || op == "xor"
                                 ? "i32 u32 i64 u64"
                                 : "i32 u32 i64 u64 f32 f64");
    for (std::string t; types >> t;) {
      text += fmt::format("  *({0}*)p = {1}(({0}*)p, 1{2});\n", t, name, op == "cas" ? ", 2" : "");
    }
  }
  return text;
}

std::string program_of_all() {
  return std::string(R"(
struct Args { void* data[1]; };
template <class T> __device__ void shuffles(u8* p) {
  const T v = ((T*)p)[tw_thread()];
  ((T*)p)[0] = tw_shuffle_xor(v, 1);
  ((T*)p)[1] = tw_shuffle_up(v, 1);
  ((T*)p)[2] = tw_shuffle(v, 3);
}
extern "C" __global__ void __launch_bounds__(256) tw_k(const __grid_constant__ Args args) {
  u8* p = (u8*)args.data[0];)") +
         kCalls + atomic_calls() + "}\n";
}

TEST(ThreadPrelude, ProgramCallsEveryFunction) {
  const std::string program = program_of_all() + hopper_program(product_calls(""));
  for (const std::string& name : cuda::thread_function_names()) {
    if (name == "TwWords" || name == "TwSame" || name == "tw_emu_type" || name == "tw_emu_async")
      continue;
    EXPECT_NE(program.find(name), std::string::npos) << name;
  }
}

TEST(ThreadPrelude, OnlyWhatIsUsedIsPrinted) {
  for (const cpu::Thread kind : {cpu::Thread::cuda, cpu::Thread::emulated}) {
    const std::string text = cuda::thread_prelude({"tw_shuffle_xor"}, kind);
    EXPECT_NE(text.find(" tw_shuffle_xor("), std::string::npos);
    EXPECT_EQ(text.find(" tw_shuffle_up("), std::string::npos);
    EXPECT_EQ(text.find("atomic_add"), std::string::npos);
  }
  const std::string used = cuda::thread_prelude({"tw_atomic_min_relaxed_block"}, cpu::Thread::cuda);
  EXPECT_LT(used.find("tw_atomic_cas_relaxed_block("), used.find("tw_atomic_min_relaxed_block("));
}

TEST(ThreadPrelude, UnknownFunctionIsNamed) {
  TW_EXPECT_ERROR(InternalError, "no function 'tw_nothing'",
                  [] { cuda::thread_prelude({"tw_nothing"}, cpu::Thread::cuda); });
}

TEST(ThreadPrelude, HostCompilerTakesEveryFunction) {
  const std::string text = with_prelude(program_of_all());
  EXPECT_FALSE(
      compile_shared(find_compiler(), {"-std=c++17", "-w", "-shared", "-fPIC"}, text).empty());
}

TEST(ThreadPrelude, HostCompilerTakesEveryFunctionOfHopper) {
  const std::string text = with_prelude(hopper_program(product_calls("")));
  EXPECT_FALSE(
      compile_shared(find_compiler(), {"-std=c++17", "-w", "-shared", "-fPIC"}, text).empty());
}

TEST(ThreadPrelude, NvrtcTakesEveryFunctionOfHopper) {
  for (const char* part : {"n8k", "n24k", "n128k", "n256k16_f32_bf16", "n200k16_f32_f16"}) {
    const std::string text = cuda::thread_prelude(hopper_names(), cpu::Thread::cuda) +
                             hopper_program(product_calls(part));
    EXPECT_NO_THROW(compile_cubin(find_nvrtc(), "sm_90a", text, false)) << part;
  }
}

TEST(ThreadPrelude, NvrtcTakesEveryFunction) {
  std::set<std::string> all;
  const std::set<std::string> hopper = hopper_names();
  for (const std::string& name : cuda::thread_function_names()) {
    if (name == "tw_shared" || hopper.count(name) == 0) all.insert(name);
  }
  const std::string text = cuda::thread_prelude(all, cpu::Thread::cuda) + program_of_all();
  for (const char* arch : {"sm_80", "sm_90a"})
    EXPECT_NO_THROW(compile_cubin(find_nvrtc(), arch, text, false)) << arch;
}

}  // namespace
}  // namespace tw::test
