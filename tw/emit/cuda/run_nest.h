#pragma once

#include "tw/emit/cuda/statements.h"

namespace tw::cuda {

/// Packs of a run each, as memory holds them: words where elements are smaller.
struct Packs {
  std::string name;
  DType stored;
  int64_t count;  ///< elements of one
  int64_t per_word() const { return std::max<int64_t>(1, 4 / bytes(stored)); }
};

/// The tile axis that lies along the tensor's unit axis.
std::optional<size_t> unit_tile_axis(const State& s, const View& view);
std::string conjunction(const std::string& a, const std::string& b);
/// What a run's first element must meet for the whole run to lie inside. Where rows are whole runs
/// the others lie outside.
std::string inside_run(State& s, const View& view, const Coords& coords, const Run& run);
/// Holes of the layout along the axes but the run's own, which is cut in whole runs.
std::string inside_tile(State& s, const layout::ThreadValue& l, const Coords& at, int64_t count,
                        size_t unit);
std::string pack_type(State& s, const Packs& p);
/// `stages`: of so many later iterations of a loop. Those may not be there: without a value ptxas
/// would keep such registers from one instance to the next.
Packs declare_packs(State& s, DType stored, int64_t count, const layout::ThreadValue& l,
                    Writer& out, int64_t stages = 0);
/// The word that the element of that number among all is part of.
std::string word_of(State& s, const Packs& p, const Expr& index);
/// The element.
std::string element_of(State& s, const Packs& p, const Expr& index);
/// x, an element as memory holds it, where it stands in its word.
std::string shifted(State& s, const Packs& p, const Expr& index, const std::string& x);
/// Whether an element lies in its tensor, as text; empty where it is known to.
std::string inside_tensor(State& s, const View& view, const Coords& coords);

/// A nest over runs: the loop over a run's elements is left out, that over its pieces is not.
/// `gather`: what says where they lie, in place of the view.
class RunNest {
 public:
  RunNest(State& s, const layout::ThreadValue& l, const View& view, const Run& run,
          const Op* gather = nullptr);

  /// What the place must meet for its run to lie inside.
  std::string condition();
  /// The number of the run's first element among the registers of a tile of this layout.
  Expr first(const Tile& t) const { return nest.index(t) + piece_ * run_.count; }
  /// Coordinates of element `v` of the run, a symbol.
  Coords element_coords(const Expr& v) const {
    Coords r = coords;
    r[view_.axes[unit_]] = simplify(r[view_.axes[unit_]] + v, s_.c.facts);
    return r;
  }
  Coords element_at(const Expr& v) const {
    Coords r = at_;
    r[unit_] = simplify(r[unit_] + v, s_.c.facts);
    return r;
  }

 private:
  Coords place(const Op& gather);

  State& s_;
  const layout::ThreadValue& l_;
  const View& view_;
  const Run& run_;
  std::string guard_;  ///< what data says
  size_t unit_ = 0;
  Expr piece_ = 0;
  Coords at_;

 public:
  Nest nest;
  Coords coords;
};

}  // namespace tw::cuda
