#pragma once

#include "tw/measure/impl/ceiling_loops.h"

// Included by one source file per instruction set: everything here is private to that file.
namespace tw::measure {
namespace {

/// V: a vector of floats; kChains of them keep two pipes of four to five steps busy.
template <class V, int kChains>
double chains(int64_t steps) {
  V acc[kChains];
  for (V& a : acc) a = V{} + 1.0f;
  V x = V{} + 0.5f, y = V{} + 0.25f;
  asm volatile("" : "+m"(x), "+m"(y));
  for (int64_t i = 0; i < steps; ++i) {
#pragma GCC unroll 32
    for (V& a : acc) a = a * x + y;
  }
  for (V& a : acc) asm volatile("" ::"m"(a));
  constexpr int64_t kLanes = sizeof(V) / sizeof(float);
  return 2.0 * static_cast<double>(kChains * kLanes * steps);
}

/// Streams are prefetched, and give or take whole lines, so that stores around the caches find
/// theirs complete.
inline constexpr size_t kAhead = 1024, kLineBytes = 64;

/// Calls line(offset) for the lines of all streams in turn.
template <size_t kStreams, class F>
[[gnu::always_inline]] inline void each_line(size_t bytes, const F& line) {
  const size_t each = bytes / kStreams / kLineBytes * kLineBytes;
  for (size_t i = 0; i < each; i += kLineBytes) {
#pragma GCC unroll 4
    for (size_t s = 0; s < kStreams; ++s) line(s * each + i);
  }
}

template <class V, size_t kStreams>
void read_all(const char* from, size_t bytes) {
  V sum[kLineBytes / sizeof(V)] = {};
  each_line<kStreams>(bytes, [&](size_t at) {
    __builtin_prefetch(from + at + kAhead);
    const V* here = reinterpret_cast<const V*>(from + at);
    for (V& v : sum) v += *here++;
  });
  for (V& v : sum) asm volatile("" ::"m"(v));
}

template <class V, size_t kStreams, void (*store)(V*, V)>
void write_all(char* to, size_t bytes) {
  const V v = V{} + 1.0f;
  each_line<kStreams>(bytes, [&](size_t at) {
    for (size_t i = 0; i < kLineBytes; i += sizeof(V)) store(reinterpret_cast<V*>(to + at + i), v);
  });
  asm volatile("" ::: "memory");
}

template <class V, size_t kStreams, void (*store)(V*, V)>
void copy_all(char* to, const char* from, size_t bytes) {
  each_line<kStreams>(bytes, [&](size_t at) {
    __builtin_prefetch(from + at + kAhead);
    for (size_t i = 0; i < kLineBytes; i += sizeof(V))
      store(reinterpret_cast<V*>(to + at + i), *reinterpret_cast<const V*>(from + at + i));
  });
  asm volatile("" ::: "memory");
}

template <class V>
void store_plain(V* to, V v) {
  asm volatile("" ::: "memory");
  *to = v;
}

template <class V, size_t kStreams, void (*around)(V*, V)>
void write_either(char* to, size_t bytes, bool around_caches) {
  around_caches ? write_all<V, kStreams, around>(to, bytes)
                : write_all<V, kStreams, store_plain<V>>(to, bytes);
}

template <class V, size_t kStreams, void (*around)(V*, V)>
void copy_either(char* to, const char* from, size_t bytes, bool around_caches) {
  around_caches ? copy_all<V, kStreams, around>(to, from, bytes)
                : copy_all<V, kStreams, store_plain<V>>(to, from, bytes);
}

template <class V, size_t kStreams, void (*around)(V*, V)>
constexpr CeilingLoops::Streams streams() {
  return {read_all<V, kStreams>, write_either<V, kStreams, around>,
          copy_either<V, kStreams, around>};
}

template <class V, int kChains, void (*around)(V*, V)>
const CeilingLoops* loops(const char* name) {
  static const CeilingLoops table = {name, chains<V, kChains>, streams<V, 1, around>(),
                                     streams<V, 4, around>()};
  return &table;
}

}  // namespace
}  // namespace tw::measure
