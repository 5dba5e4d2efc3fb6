#pragma once

#include "tw/emit/cpu/context.h"
#include "tw/emit/cpu/writer.h"

namespace tw::cpu {

/// A contraction of one instance as packed blocks, a register tile, and an epilogue on each tile of
/// sums:
///
///   for blocks of columns (nc), for blocks of k (kc): pack B [nc / nr][kc][nr]
///     for blocks of rows (mc): pack A [mc / mr][kc][mr]
///       for panels of columns, for panels of rows: tw_tile, then (at the last k) the epilogue
///
/// Packing converts to the type of the sum and applies what stands between the load and the
/// product. Small operands of that type already are read in place. Sums of earlier blocks of k wait
/// in the output when the epilogue is one plain store of sums, else in scratch. Padding of packed
/// panels meets only rows and columns of the tile that are never stored, so infinities of A and B
/// make no NaN.
void emit_contract(Context& c, const Op& op, Writer& out);

}  // namespace tw::cpu
