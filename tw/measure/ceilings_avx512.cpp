#include "tw/measure/impl/ceiling_loops.h"

#ifdef __AVX512F__
#include "tw/measure/impl/ceiling_templates.h"

namespace tw::measure {

typedef float Wide __attribute__((vector_size(64)));

static void around(Wide* to, Wide v) {
#if defined(__clang__)
  __builtin_nontemporal_store(v, to);
#else
  __builtin_ia32_movntps512(reinterpret_cast<float*>(to), v);
#endif
}
const CeilingLoops* avx512_loops() { return loops<Wide, 16, around>("avx512"); }

}  // namespace tw::measure
#else
const tw::measure::CeilingLoops* tw::measure::avx512_loops() { return nullptr; }
#endif
