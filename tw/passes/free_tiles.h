#pragma once

#include "tw/passes/pipeline.h"

namespace tw {

/// Frees a contraction from the extents of the program's tile. Along an axis of the grid where
/// neighbouring instances do neighbouring rows (columns) of the product, a tile has no meaning
/// where one instance ends and the next begins; so the axis is cut into pieces of a length that the
/// launch chooses, which knows sizes and threads:
///
///   grid (cdiv(M, 64))                        dim PieceRows at_most 4096
///   contract rows min(64, M - pid0*64)   =>   grid (cdiv(M, PieceRows))
///     load A{pid0*64, 0} : f32[64, 64]        contract rows min(PieceRows, M - pid0*PieceRows)
///                                               load A{pid0*PieceRows, 0} : f32[4096, 64]
///
/// Programs of tiles of 64x64 and of 528x1024 become the same. The program stays when it holds more
/// than one contraction, and an axis stays along which the coordinate is used for anything but to
/// place tiles side by side, an element depends on its position in the tile, or a tile is read that
/// does not move. No bit changes: the order of sums depends on their depth alone.
void free_tiles(Program& p, const PassContext& context);

}  // namespace tw
