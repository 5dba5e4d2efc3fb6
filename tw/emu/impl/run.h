#pragma once

#include "tw/emu/emulator.h"
#include "tw/emu/impl/text.h"
#include "tw/runtime/launch.h"

namespace tw::emu {

/// run_emulated() with text that is loaded already; `text` is for reports. `messages`:
/// kMessageBytes that are ready for a kernel, when the spec asks for them.
EmuReport run(const LoadedText& loaded, const std::string& text, const LaunchSpec& spec,
              std::span<const TensorView> args, std::span<const int64_t> dims,
              const EmuOptions& options, char* messages = nullptr);

/// A launch on "emu:0": few blocks, that do the instances of the grid in turn. Schedules are
/// numbered from TW_EMU_SEED on: UserError where that is no number. DeviceError for a report that
/// is not clean.
void run_call(const LoadedText& loaded, const std::string& text, const LaunchSpec& spec,
              const tw::Call& call, uint64_t launch, char* messages = nullptr);

}  // namespace tw::emu
