#pragma once

namespace tw {

/// Makes the device "emu:0" known: kernels become the CUDA text of an H200 and run in the emulator.
/// A launch whose report is not clean throws a DeviceError with the report. Which thread runs when
/// is decided by TW_EMU_SEED and by how often the kernel ran before.
void register_emulator();

}  // namespace tw
