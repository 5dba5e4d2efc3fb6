#include "tw/emit/cpu/combine.h"

namespace tw::cpu {

Regs combine_tuples(Expression& e, const Region& combiner, const Regs& left, const Regs& right) {
  for (size_t n = 0; n < left.size(); ++n) {
    e.bind(combiner.args[n], [reg = left[n]](const Coords&) { return reg; });
    e.bind(combiner.args[left.size() + n], [reg = right[n]](const Coords&) { return reg; });
  }
  e.forget(combiner);
  Regs r;
  for (const ValueId v : combiner.yields) r.push_back(e.value(v, {}));
  e.forget(combiner);
  return r;
}

}  // namespace tw::cpu
