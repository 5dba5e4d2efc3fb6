#include "tw/emit/cuda/few_digits.h"

#include <algorithm>
#include <map>
#include <vector>

namespace tw::cuda {

std::set<ValueId> values_of_few_digits(const Program& p) {
  std::vector<const Op*> ops;
  std::map<ValueId, bool> only;  // of values whose uses were seen
  walk(p, [&](const Op& op) {
    ops.push_back(&op);
    for (const Region& r : op.regions) {
      for (const ValueId v : r.yields) only[v] = false;
    }
  });
  const auto is_f32 = [&](ValueId v) { return p.type(v).dtype == f32; };
  const auto seen_as_bf16 = [&](const Op& op, size_t k) {
    if (op.code == Opcode::cast)
      return p.type(op.out[0]).dtype == bf16 && op.as<CastAttr>().rounding == Rounding::RN;
    const bool keeps = op.code == Opcode::mul || op.code == Opcode::div || op.code == Opcode::neg ||
                       (op.code == Opcode::where && k > 0);
    if (!keeps) return false;
    const auto result = only.find(op.out[0]);
    return result != only.end() && result->second;
  };
  // Uses stand after what they use.
  for (size_t n = ops.size(); n-- > 0;) {
    const Op& op = *ops[n];
    for (size_t k = 0; k < op.in.size(); ++k) {
      bool& all = only.try_emplace(op.in[k], is_f32(op.in[k])).first->second;
      all = all && seen_as_bf16(op, k);
    }
  }
  std::set<ValueId> found;
  for (const auto& [v, all] : only) {
    if (all) found.insert(v);
  }
  return found;
}

}  // namespace tw::cuda
