#include <fmt/format.h>

#include "tw/emit/cuda/prelude_cuda.h"

namespace tw::cuda {
namespace {

const char* const kMap = "struct __align__(64) TwTensorMap { u64 word[16]; };";

/// "i32 c0, i32 c1", "c0, c1", "%3, %4", "\"r\"(c0), \"r\"(c1)"
std::string list(int rank, const std::string& form, int from = 0) {
  std::string text;
  for (int i = 0; i < rank; ++i)
    text += (i == 0 ? "" : ", ") + fmt::format(fmt::runtime(form), i + from);
  return text;
}

/// Coordinates are in elements, fastest axis first. A multicast goes to the blocks of a mask.
ThreadFunction tensor_load(int rank, bool multicast) {
  const std::string name = fmt::format("tw_tma_load_{}d{}", rank, multicast ? "_multicast" : "");
  const std::string parameters = list(rank, "i32 c{}") + (multicast ? ", u32 mask" : "");
  return {
      .name = name,
      .uses = "TwTensorMap tw_emu_async",
      .cuda = fmt::format(
          R"(__device__ __forceinline__ void {}(void* shared, const TwTensorMap* map,
                                                u64* barrier, {}) {{
  asm volatile("cp.async.bulk.tensor.{}d.shared::cluster.global.mbarrier::complete_tx::bytes{}"
               " [%0], [%1, {{{}}}], [%2]{};"
               :: "r"((u32)__cvta_generic_to_shared(shared)), "l"((u64)map),
                  "r"((u32)__cvta_generic_to_shared(barrier)), {}{} : "memory");
}})",
          name, parameters, rank, multicast ? ".multicast::cluster" : "", list(rank, "%{}", 3),
          multicast ? fmt::format(", %{}", rank + 3) : "", list(rank, "\"r\"(c{})"),
          multicast ? ", \"h\"((u16)mask)" : ""),
      .emulated = fmt::format(R"(inline void {0}(void* shared, const TwTensorMap* map, u64* barrier,
                        {1}, TW_LINE) {{
  const i32 at[] = {{{2}}};
  tw_emu_tensor("{0}", map, shared, barrier, at, {3}, {4}, line);
}})",
                              name, parameters, list(rank, "c{}"), rank, multicast ? "mask" : "0")};
}

ThreadFunction tensor_store(int rank) {
  const std::string name = fmt::format("tw_tma_store_{}d", rank);
  return {
      .name = name,
      .uses = "TwTensorMap tw_emu_async",
      .cuda = fmt::format(
          R"(__device__ __forceinline__ void {}(const TwTensorMap* map, const void* shared, {}) {{
  asm volatile("cp.async.bulk.tensor.{}d.global.shared::cta.bulk_group [%0, {{{}}}], [%1];"
               :: "l"((u64)map), "r"((u32)__cvta_generic_to_shared(shared)), {} : "memory");
}})",
          name, list(rank, "i32 c{}"), rank, list(rank, "%{}", 2), list(rank, "\"r\"(c{})")),
      .emulated = fmt::format(
          R"(inline void {0}(const TwTensorMap* map, const void* shared, {1}, TW_LINE) {{
  const i32 at[] = {{{2}}};
  tw_emu_tensor("{0}", map, (void*)shared, 0, at, {3}, 0, line);
}})",
          name, list(rank, "i32 c{}"), list(rank, "c{}"), rank)};
}

std::vector<ThreadFunction> runs() {
  return {
      {"tw_bulk_load", "tw_emu_async",
       R"(__device__ __forceinline__ void tw_bulk_load(void* shared, const void* global, u32 bytes,
                                             u64* barrier) {
  asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes"
               " [%0], [%1], %2, [%3];"
               :: "r"((u32)__cvta_generic_to_shared(shared)), "l"(__cvta_generic_to_global(global)),
                  "r"(bytes), "r"((u32)__cvta_generic_to_shared(barrier)) : "memory");
})",
       R"(inline void tw_bulk_load(void* shared, const void* global, u32 bytes, u64* barrier,
                         TW_LINE) {
  tw_emu_bulk("tw_bulk_load", shared, (void*)global, bytes, barrier, line);
})"},
      {"tw_bulk_store", "tw_emu_async",
       R"(__device__ __forceinline__ void tw_bulk_store(void* global, const void* shared,
                                              u32 bytes) {
  asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;"
               :: "l"(__cvta_generic_to_global(global)),
                  "r"((u32)__cvta_generic_to_shared(shared)), "r"(bytes) : "memory");
})",
       R"(inline void tw_bulk_store(void* global, const void* shared, u32 bytes, TW_LINE) {
  tw_emu_bulk("tw_bulk_store", (void*)shared, global, bytes, 0, line);
})"},
      {"tw_bulk_commit", "tw_emu_async",
       R"(__device__ __forceinline__ void tw_bulk_commit() {
  asm volatile("cp.async.bulk.commit_group;" ::: "memory");
})",
       R"(inline void tw_bulk_commit(TW_LINE) { tw_emu_bulk_group("tw_bulk_commit", 0, line); })"},
  };
}

/// Until all but N groups of the thread's stores are done, or have read shared memory.
ThreadFunction wait(bool read) {
  const std::string name = read ? "tw_bulk_wait_read" : "tw_bulk_wait";
  return {.name = name,
          .uses = "tw_emu_async",
          .cuda = fmt::format(R"(template <int N> __device__ __forceinline__ void {}() {{
  asm volatile("cp.async.bulk.wait_group{} %0;" :: "n"(N) : "memory");
}})",
                              name, read ? ".read" : ""),
          .emulated = fmt::format(R"(template <int N> inline void {0}(TW_LINE) {{
  tw_emu_bulk_group("{0}", N, line);
}})",
                                  name)};
}

}  // namespace

std::vector<ThreadFunction> tma_functions() {
  std::vector<ThreadFunction> all = {
      {"TwTensorMap", "", kMap, kMap},
      {"tw_tma_prefetch", "TwTensorMap",
       R"(__device__ __forceinline__ void tw_tma_prefetch(const TwTensorMap* map) {
  asm volatile("prefetch.tensormap [%0];" :: "l"((u64)map) : "memory");
})",
       "inline void tw_tma_prefetch(const TwTensorMap*) {}"}};
  constexpr int kRanks = 5;
  for (int rank = 1; rank <= kRanks; ++rank) {
    all.push_back(tensor_load(rank, false));
    all.push_back(tensor_load(rank, true));
    all.push_back(tensor_store(rank));
  }
  for (ThreadFunction& f : runs()) all.push_back(std::move(f));
  all.push_back(wait(true));
  all.push_back(wait(false));
  return all;
}

}  // namespace tw::cuda
