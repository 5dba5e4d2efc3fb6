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

/// Several streams, each prefetched: one per core does not fill the bus.
inline constexpr size_t kStreams = 4, kAhead = 1024;

template <class V>
void read_all(const char* from, size_t bytes) {
  const size_t each = bytes / kStreams / sizeof(V);
  const V* at = reinterpret_cast<const V*>(from);
  V sum[kStreams] = {};
  for (size_t i = 0; i < each; ++i) {
#pragma GCC unroll 4
    for (size_t s = 0; s < kStreams; ++s) {
      const V* here = at + s * each + i;
      __builtin_prefetch(reinterpret_cast<const char*>(here) + kAhead);
      sum[s] += *here;
    }
  }
  for (V& v : sum) asm volatile("" ::"m"(v));
}

template <class V, void (*store)(V*, V)>
void write_all(char* to, size_t bytes) {
  const size_t each = bytes / kStreams / sizeof(V);
  V* at = reinterpret_cast<V*>(to);
  V v = V{} + 1.0f;
  for (size_t i = 0; i < each; ++i) {
#pragma GCC unroll 4
    for (size_t s = 0; s < kStreams; ++s) store(at + s * each + i, v);
  }
  asm volatile("" ::: "memory");
}

template <class V, void (*store)(V*, V)>
void copy_all(char* to, const char* from, size_t bytes) {
  const size_t each = bytes / kStreams / sizeof(V);
  V* out = reinterpret_cast<V*>(to);
  const V* in = reinterpret_cast<const V*>(from);
  for (size_t i = 0; i < each; ++i) {
#pragma GCC unroll 4
    for (size_t s = 0; s < kStreams; ++s) {
      const V* here = in + s * each + i;
      __builtin_prefetch(reinterpret_cast<const char*>(here) + kAhead);
      store(out + s * each + i, *here);
    }
  }
  asm volatile("" ::: "memory");
}

template <class V>
void store_plain(V* to, V v) {
  asm volatile("" ::: "memory");
  *to = v;
}

template <class V, void (*around)(V*, V)>
void write_either(char* to, size_t bytes, bool around_caches) {
  around_caches ? write_all<V, around>(to, bytes) : write_all<V, store_plain<V>>(to, bytes);
}

template <class V, void (*around)(V*, V)>
void copy_either(char* to, const char* from, size_t bytes, bool around_caches) {
  around_caches ? copy_all<V, around>(to, from, bytes)
                : copy_all<V, store_plain<V>>(to, from, bytes);
}

template <class V, int kChains, void (*around)(V*, V)>
const CeilingLoops* loops(const char* name) {
  static const CeilingLoops table = {name, chains<V, kChains>, read_all<V>, write_either<V, around>,
                                     copy_either<V, around>};
  return &table;
}

}  // namespace
}  // namespace tw::measure
