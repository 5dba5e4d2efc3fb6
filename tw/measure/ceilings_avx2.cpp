#include "tw/measure/impl/ceiling_loops.h"

#if defined(__AVX2__) && defined(__FMA__)
#include "tw/measure/impl/ceiling_templates.h"

namespace tw::measure {

typedef float Wide __attribute__((vector_size(32)));

static void around(Wide* to, Wide v) {
#if defined(__clang__)
  __builtin_nontemporal_store(v, to);
#else
  __builtin_ia32_movntps256(reinterpret_cast<float*>(to), v);
#endif
}
const CeilingLoops* avx2_loops() { return loops<Wide, 12, around>("avx2"); }

}  // namespace tw::measure
#else
const tw::measure::CeilingLoops* tw::measure::avx2_loops() { return nullptr; }
#endif
