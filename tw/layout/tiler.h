#pragma once

#include "tw/layout/algebra.h"

namespace tw {

/// What is done to a layout as a whole, or to each of its modes by itself; modes that a tiler does
/// not name stay.
class Tiler {
 public:
  Tiler(const Layout& layout) : layout_(layout) {}
  /// `n:1`, the first n elements.
  Tiler(int64_t n) : layout_(n, 1) {}
  Tiler(std::initializer_list<Tiler> modes) : by_mode_(true), modes_(modes) {}

  bool by_mode() const { return by_mode_; }
  /// Of a tiler that is not by mode.
  const Layout& layout() const { return layout_; }
  const std::vector<Tiler>& modes() const { return modes_; }

 private:
  Layout layout_;
  bool by_mode_ = false;
  std::vector<Tiler> modes_;
};

Layout composition(const Layout& a, const Tiler& tiler);

/// (composition(a, b), composition(a, complement(b, a.size()))): mode 0 is the tile b of a, mode 1
/// goes from tile to tile. UserError where tiles do not cover a exactly; CuTe rounds their number
/// up. By mode: ((tile, rest), (tile, rest), ...).
Layout logical_divide(const Layout& a, const Layout& b);
Layout logical_divide(const Layout& a, const Tiler& tiler);
/// The same with the tiles gathered: ((tile, tile), (rest, rest, modes that stay)).
Layout zipped_divide(const Layout& a, const Tiler& tiler);
/// ((tile, tile), rest, rest, modes that stay).
Layout tiled_divide(const Layout& a, const Tiler& tiler);

/// (a, copies of a): mode 1 has the shape of b, and where b gives i it gives the offset of the i-th
/// copy of a that leaves no gap.
Layout logical_product(const Layout& a, const Layout& b);
/// Blocks a laid out after b, mode by mode: ((a0, b0), (a1, b1), ...), coalesced by mode.
Layout blocked_product(const Layout& a, const Layout& b);
/// The same with the elements of each block spread over the whole: ((b0, a0), (b1, a1), ...).
Layout raked_product(const Layout& a, const Layout& b);

}  // namespace tw
