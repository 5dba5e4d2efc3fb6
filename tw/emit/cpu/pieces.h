#pragma once

#include <string>

#include "tw/emit/cpu/context.h"
#include "tw/emit/cpu/writer.h"

namespace tw::cpu {

/// Programs that passes/free_tiles cut into pieces: emitted text chooses their lengths, at the
/// launch, from sizes and threads.

/// Whether the program has dims that are chosen.
bool chooses(const Program& p);

/// The extent of a grid's axis when pieces are of one element.
Expr most_pieces(const Program& p, const Expr& extent);

/// The extent of an axis of the contraction over all pieces; `extent` is that of one.
Expr whole_extent(const Program& p, const Expr& extent);

/// The function choose_pieces(dims, threads), which sets the chosen dims from the given ones: the
/// lengths for which the busiest thread does least. Knobs pm and pn of the mapping overrule.
void emit_choose(Context& c, Writer& out);

/// Declares `dims`, a copy of the dims in the array `given` and the chosen ones.
void choose_dims(const Program& p, const std::string& given, const std::string& threads,
                 Writer& out);

/// Asks for tw_block(n, most, unit), n in equal blocks of whole units.
void use_block(Prelude& prelude);

}  // namespace tw::cpu
