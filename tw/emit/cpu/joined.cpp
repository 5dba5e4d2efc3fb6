#include <fmt/format.h>

#include "tw/emit/cpu/expression.h"

namespace tw::cpu {

void Expression::join(int outer, int count) {
  outer_ = outer;
  joined_ = count;
  lanes_ *= count;
}

std::optional<Reg> Expression::value_of_one_loop(ValueId v, const Coords& at, uint32_t loops) {
  const bool inner = loops >> lane_loop_ & 1, outer = loops >> outer_ & 1;
  if (inner == outer) return std::nullopt;
  const Reg r = apart(outer_, joined_, [&] { return value(v, at); });
  if (outer && r.lanes == 1) return r;
  const std::string spread = fmt::format("spread_{}", joined_);
  if (inner || register_type(r.dtype) != f32 || !c_.prelude.has_own(spread, f32, lanes_)) {
    joinable_ = false;
    return r;
  }
  const std::string f = c_.prelude.use(spread, f32, lanes_);
  return define(r.dtype, lanes_, r.loops | 1u << lane_loop_, fmt::format("{}({})", f, r.text));
}

Reg Expression::join_loads(DType t, DType stored, const Coords& at,
                           const std::function<Address()>& address) {
  const int each = lanes_ / joined_;
  const Address along = apart(outer_, joined_, address), first = apart(lane_loop_, each, address);
  if (first.step != 1 || !along.regular()) joinable_ = false;
  uint32_t loops = 0;
  for (const Expr& e : at) loops |= loops_of(e);
  std::vector<Reg> parts;
  for (int n = 0; n < joined_; ++n) {
    const std::string f = c_.prelude.use("load", stored, each);
    std::string offset;
    if (n > 0 && along.step) offset = fmt::format(" + {}", n * *along.step);
    if (n > 0 && !along.step) offset = fmt::format(" + {} * ({})", n, along.step_text);
    parts.push_back(
        define(t, each, loops, fmt::format("{}({}{})", f, first.pointer, offset), t == b1 ? 4 : 0));
  }
  for (; parts.size() > 1; parts.resize(parts.size() / 2)) {
    for (size_t n = 0; n + 1 < parts.size(); n += 2) {
      const Reg &a = parts[n], &b = parts[n + 1];
      const DType reg = t == b1 ? i32 : register_type(t);
      const std::string f = c_.prelude.use("join", reg, 2 * a.lanes);
      parts[n / 2] =
          define(t, 2 * a.lanes, loops, fmt::format("{}({}, {})", f, a.text, b.text), a.mask_bytes);
    }
  }
  return parts[0];
}

}  // namespace tw::cpu
