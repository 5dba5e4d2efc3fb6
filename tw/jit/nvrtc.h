#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "tw/jit/kernel.h"

namespace tw {

/// NVRTC, NVIDIA's compiler of CUDA text, as a library of this process.
struct Nvrtc {
  std::string path;      ///< of libnvrtc.so.13
  std::string identity;  ///< version and size: what cache keys say of it
  void* library = nullptr;
};

/// Loaded once and never unloaded: one that this process has already, else the first of
/// nvrtc_paths(). Throws EnvError that names the package when there is none, UserError when
/// TW_NVRTC names no folder of one.
const Nvrtc& find_nvrtc();
/// Where it is looked for, in order; TW_NVRTC alone when that is set.
std::vector<std::string> nvrtc_paths();
/// The first that is there. Throws EnvError that names the package.
Nvrtc load_nvrtc(std::span<const std::string> paths);

/// What the compiler is started with, for cache keys and reports. `debug`: lines of the text.
std::vector<std::string> nvrtc_flags(const std::string& arch, bool debug);

/// From any thread, several at once. Throws InternalError with text and log when the compiler finds
/// fault with the text, EnvError when it fails for any other reason.
CompiledCuda compile_cubin(const Nvrtc& nvrtc, const std::string& arch, const std::string& text,
                           bool debug);

/// The same for text that defines TW_BLOCKS, how many blocks of it a multiprocessor is to hold,
/// unless that is defined already: the most that leave each thread registers enough (but for a few
/// bytes that it may spill: 16, or 64 where one block would be left of two), and no more than the
/// text says.
CompiledCuda compile_without_spills(const Nvrtc& nvrtc, const std::string& arch,
                                    const std::string& text, bool debug);

}  // namespace tw
