#include "tw/emit/cuda/prelude_cuda.h"

namespace tw::cuda {
namespace {

// To a tensor in one access, which the compiler else cuts into elements.
const char* const kStoreRun =
    R"(template <class P> __device__ __forceinline__ void tw_store_run(void* p, P v) {
  union { P run; u32 word[sizeof(P) / 4]; } w = {v};
  const size_t at = __cvta_generic_to_global(p);
  if (sizeof(P) == 4) asm volatile("st.global.b32 [%0], %1;" ::"l"(at), "r"(w.word[0]) : "memory");
  if constexpr (sizeof(P) == 8) {
    asm volatile("st.global.v2.b32 [%0], {%1, %2};" ::"l"(at), "r"(w.word[0]), "r"(w.word[1])
                 : "memory");
  }
  if constexpr (sizeof(P) == 16) {
    asm volatile("st.global.v4.b32 [%0], {%1, %2, %3, %4};" ::"l"(at), "r"(w.word[0]),
                 "r"(w.word[1]), "r"(w.word[2]), "r"(w.word[3]) : "memory");
  }
})";
const char* const kLoadRun =
    R"(template <class P> __device__ __forceinline__ P tw_load_run(const void* p) {
  return *(const P*)p;
})";

const char* const kEmulatedLoadRun =
    R"(template <class P> __forceinline__ P tw_load_run(const void* p) {
  P v;
  __builtin_memcpy(&v, p, sizeof v);
  return v;
})";

// Elements of one or two bytes in a word.
const char* const kPart =
    " T tw_part(u32 word, int k) { return (T)(word >> 8 * (int)sizeof(T) * k); }";
const char* const kJoin = R"( u32 tw_join(const T* x) {
  u32 word = 0;
  for (int k = 0; k < 4 / (int)sizeof(T); ++k)
    word |= ((u32)x[k] & ((1u << 8 * sizeof(T)) - 1)) << 8 * (int)sizeof(T) * k;
  return word;
})";

// The bytes of a value as whole words, which is what shuffles move.
const char* const kWords = R"(template <class T> union TwWords {
  T value;
  u32 word[(sizeof(T) + 3) / 4];
};)";

std::string shuffle_of_words(const std::string& head, const std::string& call) {
  return "template <class T> __device__ __forceinline__ T " + head + R"( {
  TwWords<T> w;
  w.word[0] = 0;
  w.value = v;
  for (int i = 0; i < (int)((sizeof(T) + 3) / 4); ++i) w.word[i] = )" +
         call + R"(;
  return w.value;
})";
}

std::string emulated_shuffle(const std::string& name, const std::string& argument) {
  return "template <class T> T tw_" + name + "(T v, i32 " + argument + R"(, TW_LINE) {
  T got;
  tw_emu_warp("tw_)" +
         name + R"(", &v, sizeof(T), )" + argument + R"(, &got, line);
  return got;
})";
}

ThreadFunction number(const std::string& type, const std::string& name, const std::string& cuda) {
  return {
      .name = "tw_" + name,
      .uses = "",
      .cuda = "__device__ __forceinline__ " + type + " tw_" + name + "() { return " + cuda + "; }",
      .emulated = "inline " + type + " tw_" + name + "() { return tw_emu_" + name + "(); }"};
}

/// A template without instructions of its own.
ThreadFunction both(const std::string& name, const std::string& text) {
  const std::string head = "template <class T> ";
  return {.name = name,
          .uses = "",
          .cuda = head + "__device__ __forceinline__" + text,
          .emulated = head + "inline" + text};
}

ThreadFunction shuffle(const std::string& name, const std::string& argument) {
  return {.name = "tw_" + name,
          .uses = "TwWords",
          .cuda = shuffle_of_words(
              "tw_" + name + "(T v, int " + argument + ")",
              (name == "shuffle" ? "__shfl_sync" : "__shfl" + name.substr(7) + "_sync") +
                  std::string("(0xffffffffu, w.word[i], ") + argument + ")"),
          .emulated = emulated_shuffle(name, argument)};
}

}  // namespace

std::vector<ThreadFunction> warp_functions() {
  return {
      {"Pack", "", "template <class T, int N> struct alignas(sizeof(T) * N) Pack { T v[N]; };",
       "template <class T, int N> struct alignas(sizeof(T) * N) Pack { T v[N]; };"},
      {"tw_store_run", "Pack", kStoreRun,
       "template <class P> __forceinline__ void tw_store_run(void* p, P v) {\n"
       "  __builtin_memcpy(p, &v, sizeof v);\n}"},
      {"tw_load_run", "Pack", kLoadRun, kEmulatedLoadRun},
      both("tw_part", kPart),
      both("tw_join", kJoin),
      {"TwWords", "", kWords, ""},
      number("int", "thread", "(int)threadIdx.x"),
      number("i64", "block", "(i64)blockIdx.x"),
      number("i64", "blocks", "(i64)gridDim.x"),
      {"tw_shared", "",
       "extern __shared__ __align__(16) u8 tw_shared_memory[];\n"
       "__device__ __forceinline__ u8* tw_shared() { return tw_shared_memory; }",
       "inline u8* tw_shared() { return tw_emu_shared(); }"},
      {"tw_sync", "", "__device__ __forceinline__ void tw_sync() { __syncthreads(); }",
       "inline void tw_sync(TW_LINE) { tw_emu_sync(\"tw_sync\", 0, line); }"},
      {"tw_sync_or", "",
       "__device__ __forceinline__ int tw_sync_or(int v) { return __syncthreads_or(v); }",
       "inline int tw_sync_or(int v, TW_LINE) { return tw_emu_sync(\"tw_sync_or\", v, line); }"},
      {"tw_sync_warp", "", "__device__ __forceinline__ void tw_sync_warp() { __syncwarp(); }",
       "inline void tw_sync_warp(TW_LINE) { tw_emu_warp(\"tw_sync_warp\", 0, 0, 0, 0, line); }"},
      shuffle("shuffle_xor", "mask"),
      shuffle("shuffle_up", "by"),
      shuffle("shuffle", "lane"),
      {"tw_ballot", "",
       "__device__ __forceinline__ u32 tw_ballot(bool v) "
       "{ return __ballot_sync(0xffffffffu, v); }",
       "inline u32 tw_ballot(bool v, TW_LINE) {\n  u32 got;\n"
       "  tw_emu_warp(\"tw_ballot\", &v, 1, 0, &got, line);\n  return got;\n}"},
      {"tw_any", "",
       "__device__ __forceinline__ bool tw_any(bool v) "
       "{ return __any_sync(0xffffffffu, v) != 0; }",
       "inline bool tw_any(bool v, TW_LINE) {\n  u32 got;\n"
       "  tw_emu_warp(\"tw_any\", &v, 1, 0, &got, line);\n  return got != 0;\n}"},
  };
}

}  // namespace tw::cuda
