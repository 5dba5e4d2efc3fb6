#pragma once

#include "tw/emu/emulator.h"
#include "tw/emu/impl/text.h"

namespace tw::emu {

/// run_emulated() with text that is loaded already; `text` is for reports. `messages`:
/// kMessageBytes that are ready for a kernel, when the spec asks for them.
EmuReport run(const LoadedText& loaded, const std::string& text, const LaunchSpec& spec,
              std::span<const TensorView> args, std::span<const int64_t> dims,
              const EmuOptions& options, char* messages = nullptr);

}  // namespace tw::emu
