#include "tests/fuzz/shrink.h"

#include <algorithm>
#include <optional>

#include "tw/base/error.h"
#include "tw/ir/verify.h"

namespace tw::test {

namespace {

/// The list that holds op number `target` (in the order of walk) and its place there.
struct Place {
  std::vector<Op>* list = nullptr;
  size_t at = 0;
};

std::optional<Place> find(Region& r, int& left) {
  for (size_t i = 0; i < r.ops.size(); ++i) {
    if (left-- == 0) return Place{&r.ops, i};
    if (is_fold(r.ops[i].code)) continue;  // a combiner is one piece
    for (Region& inner : r.ops[i].regions)
      if (const auto p = find(inner, left)) return p;
  }
  return std::nullopt;
}

std::optional<Place> find(Program& p, int target) { return find(p.body, target); }

void replace_uses(Region& r, ValueId from, ValueId to) {
  for (Op& op : r.ops) {
    std::replace(op.in.begin(), op.in.end(), from, to);
    for (Region& inner : op.regions) replace_uses(inner, from, to);
  }
  std::replace(r.yields.begin(), r.yields.end(), from, to);
}

Number one_of(DType t) { return is_float(t) ? Number{false, 0, 1} : Number{true, 1, 0}; }

/// Ways to make the program smaller at one op.
enum class Step : uint8_t { operand, constant, first_region, second_region };

bool to_operand(Program& p, const Place& place) {
  const Op op = (*place.list)[place.at];
  if (op.out.empty()) {
    place.list->erase(place.list->begin() + static_cast<int64_t>(place.at));
    return true;
  }
  for (ValueId out : op.out) {
    const auto same = std::find_if(op.in.begin(), op.in.end(),
                                   [&](ValueId v) { return p.type(v) == p.type(out); });
    if (same == op.in.end()) return false;
    replace_uses(p.body, out, *same);
  }
  place.list->erase(place.list->begin() + static_cast<int64_t>(place.at));
  return true;
}

bool to_constant(Program& p, const Place& place) {
  const Op op = (*place.list)[place.at];
  if (op.out.empty() || op.code == Opcode::full) return false;
  std::vector<Op> constants;
  for (ValueId out : op.out)
    constants.push_back(
        Op{Opcode::full, op.at, {}, {out}, FullAttr{one_of(p.type(out).dtype)}, {}});
  const auto at = place.list->erase(place.list->begin() + static_cast<int64_t>(place.at));
  place.list->insert(at, constants.begin(), constants.end());
  return true;
}

bool writes(const Program& p, const Region& r) {
  bool any = false;
  walk(r, [&](const Op& op) { any |= effect(p, op) == Effect::write; });
  return any;
}

/// A branch by one of its sides. What writes stays in its branch, which may be what keeps instances
/// from writing to the same place.
bool to_region(Program& p, const Place& place, size_t side) {
  const Op op = (*place.list)[place.at];
  if (op.code != Opcode::if_ || writes(p, op.regions[side])) return false;
  const Region& r = op.regions[side];
  const auto at = place.list->erase(place.list->begin() + static_cast<int64_t>(place.at));
  place.list->insert(at, r.ops.begin(), r.ops.end());
  for (size_t k = 0; k < op.out.size(); ++k) replace_uses(p.body, op.out[k], r.yields[k]);
  return true;
}

bool take(Program& p, Step step, int target) {
  const auto place = find(p, target);
  if (!place) return false;
  switch (step) {
    case Step::operand:
      return to_operand(p, *place);
    case Step::constant:
      return to_constant(p, *place);
    case Step::first_region:
      return to_region(p, *place, 0);
    case Step::second_region:
      return to_region(p, *place, 1);
  }
  return false;
}

int op_count(const Program& p) {
  int n = 0;
  walk(p, [&](const Op&) { ++n; });
  return n;
}

bool valid(const Program& p) {
  try {
    verify(p, "shrink");
    return true;
  } catch (const Error&) {
    return false;
  }
}

/// Simpler data: one tensor at a time.
std::vector<TensorSpec> plainer(const TensorSpec& s) {
  std::vector<TensorSpec> list;
  if (s.layout != Layout::contiguous) list.push_back(s), list.back().layout = Layout::contiguous;
  if (s.special_one_in != 0) list.push_back(s), list.back().special_one_in = 0;
  if (s.fill != Fill::small_integers) list.push_back(s), list.back().fill = Fill::small_integers;
  return list;
}

}  // namespace

RandomProgram shrink(RandomProgram r, const std::function<bool(const RandomProgram&)>& fails,
                     int budget) {
  const auto accept = [&](RandomProgram candidate) {
    drop_dead(candidate.program);
    if (!valid(candidate.program) || budget-- <= 0 || !fails(candidate)) return false;
    r = std::move(candidate);
    return true;
  };
  for (bool smaller = true; smaller && budget > 0;) {
    smaller = false;
    // From the end: what comes late hangs on most, and takes most with it.
    for (int target = op_count(r.program); target-- > 0 && budget > 0;)
      for (Step step : {Step::operand, Step::first_region, Step::second_region, Step::constant}) {
        RandomProgram candidate = r;
        if (target >= op_count(r.program) || !take(candidate.program, step, target)) continue;
        if (accept(std::move(candidate))) {
          smaller = true;
          break;
        }
      }
    for (size_t i = 0; i < r.tensors.size(); ++i)
      for (const TensorSpec& s : plainer(r.tensors[i])) {
        RandomProgram candidate = r;
        candidate.tensors[i] = s;
        smaller = accept(std::move(candidate)) || smaller;
      }
  }
  return r;
}

}  // namespace tw::test
