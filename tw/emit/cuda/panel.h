#pragma once

#include "tw/emit/cuda/state.h"

namespace tw::cuda {

/// The panel that all dots which read the tile can use.
Panel panel_of(const State& s, ValueId base);
/// Reserves shared memory for `copies` of the panel. Throws NoRoomForPanels.
PanelMemory reserve_panel(State& s, ValueId base, int64_t copies, Writer& out);

/// Whether a load's lines can be copied to the panel 16 bytes at a time without registers.
bool copies_async(State& s, const Op& load, const Panel& panel);
/// The copies of a load whose view is `view`, not committed.
void copy_panel(State& s, const Op& load, const View& view, const PanelMemory& to, Writer& out);

/// Puts the tile into its panel: as it is loaded, or as registers or expressions have it.
void emit_panel(State& s, ValueId base, const PanelMemory& to, Writer& out);
/// The same for a value that was just defined, where dots in loops read it or nothing else does.
void keep_panel(State& s, ValueId v, Writer& out);

/// Whether the left operand lies in registers as matrix instructions take it.
bool left_in_registers(const State& s, const Op& dot);

}  // namespace tw::cuda
