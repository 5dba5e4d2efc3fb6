#pragma once

#include "tw/layout/layout.h"

namespace tw {

/// The same function of an index in the fewest modes; never a tuple in a tuple. Modes of size 1
/// go, and `a:d, b:a*d` becomes `a*b:d`.
Layout coalesce(const Layout& layout);
/// Coalesces each mode of the top alone, so that the rank and coordinates of the top stay.
Layout coalesce_modes(const Layout& layout);

/// The layout R with R(c) == a(b(c)) at every coordinate c of b, each of which is one of R.
/// UserError where b leaves the domain of a, or runs through a in steps that no layout
/// describes: a sum of two of its modes carries from one mode of a to the next. (Where a repeats
/// offsets there may be an R all the same.)
Layout composition(const Layout& a, const Layout& b);

/// The layout R of the rest: its offsets rise, 0 alone is also one of `layout`, and
/// (layout, R) reaches each of 0..n-1, past which it goes only to end its last copy.
/// UserError unless the strides of `layout`, without those that are 0, can be ordered so that each
/// is a multiple of the extent of those before it.
Layout complement(const Layout& layout, int64_t n);

/// A layout R with layout(R(i)) == i for every i of R, from the modes that run on from 1 without a
/// gap: 1:0 where none does.
Layout right_inverse(const Layout& layout);
/// A layout R with R(layout(i)) == i for every i of `layout`. UserError as for the complement, and
/// where two indices have one offset.
Layout left_inverse(const Layout& layout);

}  // namespace tw
