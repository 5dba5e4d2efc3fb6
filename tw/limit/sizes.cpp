#include "tw/limit/impl/sizes.h"

#include <algorithm>
#include <fmt/format.h>

#include "tw/base/error.h"
#include "tw/base/round.h"

namespace tw {

Sizes::Sizes(const Program& p, std::span<const int64_t> dims) : dims_(dims) {
  if (dims.size() != p.dims.size())
    throw UserError(fmt::format("program '{}' has {} dims, {} values were given", p.name,
                                p.dims.size(), dims.size()));
  for (const Expr& extent : p.grid) grid_.push_back(std::max<int64_t>(value(extent, {}), 0));
}

int64_t Sizes::value(const Expr& e, const Coordinates& at) const {
  return evaluate(e, [&](Symbol s) {
    if (s.kind == SymbolKind::dim) return dims_[s.id];
    const auto found = at.find(s);
    return found == at.end() ? 0 : found->second;
  });
}

int64_t Sizes::trips(const LoopAttr& loop, const Coordinates& at) const {
  const int64_t lo = value(loop.lo, at), hi = value(loop.hi, at);
  const int64_t step = std::max<int64_t>(value(loop.step, at), 1);
  return hi > lo ? ceil_div(hi - lo, step) : 0;
}

int64_t Sizes::instances() const {
  int64_t n = 1;
  for (int64_t extent : grid_) n *= extent;
  return n;
}

Coordinates Sizes::instance(int64_t index) const {
  Coordinates at;
  for (size_t axis = grid_.size(); axis-- > 0; index /= grid_[axis])
    at[{SymbolKind::pid, static_cast<int>(axis)}] = index % grid_[axis];
  return at;
}

bool holds(CompareKind kind, int64_t a, int64_t b) {
  switch (kind) {
    case CompareKind::lt:
      return a < b;
    case CompareKind::le:
      return a <= b;
    case CompareKind::eq:
      return a == b;
    case CompareKind::ne:
      return a != b;
  }
  return false;
}

}  // namespace tw
