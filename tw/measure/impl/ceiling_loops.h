#pragma once

#include <cstddef>
#include <cstdint>

namespace tw::measure {

/// The loops in one instruction set; each source file that includes this compiles its own.
struct CeilingLoops {
  const char* name;
  /// `steps` rounds of independent chains of multiply-adds; returns flops done.
  double (*multiply_add)(int64_t steps);
  /// Memory in so many parts side by side: one stream does not fill some buses, and several fall
  /// on the same sets of some caches.
  struct Streams {
    void (*read)(const char* from, size_t bytes);
    void (*write)(char* to, size_t bytes, bool around_caches);
    void (*copy)(char* to, const char* from, size_t bytes, bool around_caches);
  } one, four;
};

/// Null where the compiler lacks the instruction set.
const CeilingLoops* avx512_loops();
const CeilingLoops* avx2_loops();
const CeilingLoops* baseline_loops();

}  // namespace tw::measure
