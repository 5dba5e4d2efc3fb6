#include <charconv>
#include <cstring>
#include <fmt/format.h>
#include <iterator>

#include "tw/base/env.h"
#include "tw/base/error.h"
#include "tw/emu/impl/run.h"

namespace tw::emu {
namespace {

/// Few enough that all run side by side, and that small grids give a block several instances. Which
/// instances are one block's changes with the schedule.
int blocks_of(uint64_t seed) {
  constexpr int kBlocks[] = {4, 7, 3, 5};
  return kBlocks[seed % std::size(kBlocks)];
}

uint64_t first_seed() {
  const std::string text = env(Env::emu_seed);
  uint64_t seed = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), seed);
  if (error == std::errc() && end == text.data() + text.size()) return seed;
  throw UserError(fmt::format("TW_EMU_SEED is '{}': wanted a number from 0 on", text));
}

/// Workspace is zeros.
std::vector<TensorView> arguments_of(const tw::Call& call, const LaunchSpec& spec,
                                     std::vector<Tensor>& workspace) {
  std::vector<TensorView> args;
  for (size_t i = 0; i < spec.args.size(); ++i) {
    args.push_back(call.argument(i));
    if (!spec.args[i].workspace) continue;
    TensorView& t = args.back();
    workspace.push_back(host_tensor(t.dtype, t.dims));
    t.data = workspace.back().data<char>();
    std::memset(t.data, 0, static_cast<size_t>(byte_count(t.dtype, t.dims)));
  }
  return args;
}

}  // namespace

void run_call(const LoadedText& loaded, const std::string& text, const LaunchSpec& spec,
              const tw::Call& call, uint64_t launch, char* messages) {
  std::vector<Tensor> workspace;
  const std::vector<TensorView> args = arguments_of(call, spec, workspace);
  const uint64_t seed = first_seed() + launch;
  const int blocks = blocks_of(seed);
  const EmuOptions options{.seed = seed, .resident = blocks, .blocks = blocks};
  const EmuReport report = run(loaded, text, spec, args, call.dims(), options, messages);
  if (report.clean()) return;
  throw DeviceError(fmt::format("{}: {}", spec.entry, report.text),
                    fmt::format("the same command repeats it; TW_EMU_SEED={} gives a first launch "
                                "this schedule",
                                seed));
}

}  // namespace tw::emu
