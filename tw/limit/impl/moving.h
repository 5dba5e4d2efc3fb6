#pragma once

#include <map>
#include <vector>

#include "tw/limit/impl/known.h"

namespace tw {

/// Ops that a larger tile would do less often: what they compute has no axis along which a loop
/// over tiles, or the grid, moves. With one tile they are done once, or not at all where all they
/// do is to go on from what the loop began with.
class Moving {
 public:
  Moving(const Program& p, const Known& known);

  struct Seldom {
    Symbol of;
    bool never = false;
  };
  /// The coordinates and counters around the op for which it is such.
  const std::vector<Seldom>& seldom(const Op& op) const;

 private:
  /// Axes along which a value moves with a symbol, one bit each. Where it moves along none that
  /// tiles have, it is told apart: no tile changes how often that is done.
  struct Motion {
    uint32_t axes = 0;
    bool pinned = false, carried = false;
    bool moves() const { return axes != 0 || pinned; }
    bool operator==(const Motion&) const = default;
  };

  void look(const Region& r, Symbol s);
  void begin(const Op& loop);
  void follow(const Region& r, Symbol s);
  Motion of(const Op& op, Symbol s) const;
  Motion of_view(const Op& op, const View& view, Symbol s) const;
  Motion joined(const Op& op) const;
  Motion moved(const Op& op) const;
  bool fresh(ValueId v) const;

  const Program& p_;
  const Known& known_;
  std::vector<Motion> motion_;  // of values, with the symbol that is looked at
  std::map<const Op*, std::vector<Seldom>> seldom_;
};

}  // namespace tw
