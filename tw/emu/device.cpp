#include "tw/emu/device.h"

#include <atomic>
#include <charconv>
#include <cstring>
#include <fmt/format.h>

#include "tw/base/env.h"
#include "tw/base/error.h"
#include "tw/emit/cpu/emit_cpu.h"
#include "tw/emit/cuda/emit_cuda.h"
#include "tw/emu/impl/run.h"
#include "tw/jit/backend.h"

namespace tw {

namespace {

/// Few enough that all run side by side, and that small grids give a block several instances.
constexpr int kBlocks = 4;

/// Ends a launch spec in metadata; the text follows.
constexpr char kEndOfSpec = '\0';

uint64_t first_seed() {
  const std::string text = env(Env::emu_seed);
  uint64_t seed = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), seed);
  if (error == std::errc() && end == text.data() + text.size()) return seed;
  throw UserError(fmt::format("TW_EMU_SEED is '{}': wanted a number from 0 on", text));
}

class EmuToolchain : public Toolchain {
 public:
  explicit EmuToolchain(const GpuMachine& machine) : machine_(machine) {}
  std::string identity() const override {
    return fmt::format("{}machine {}\n", emu::compiler_identity(), to_string(machine_));
  }
  std::string compile(const std::string& text) const override { return emu::compile_text(text); }

 private:
  const GpuMachine& machine_;
};

class EmuBackend : public Backend {
 public:
  EmuBackend(const Device& d, const CompileOptions& o) : device_(d), options_(o) {}

  Signature signature(const Program& p, Signature::DimCheck check) const override {
    return {p.name, launch_spec(p), std::move(check)};
  }
  std::span<const Pass> passes() const override { return cuda_passes(); }
  const CpuMachine& machine_of_passes() const override { return machine_named("generic"); }
  /// Without lines of the user's file: those of reports are the text's.
  Emitted emit(const Program& lowered, const Specialisation& s) const override {
    EmittedCuda e =
        emit_cuda(lowered, s, device_.gpu(), options_.mapping, false, cpu::Thread::emulated);
    return {emu::with_starter(e.text, e.launch.entry), std::move(e.launch)};
  }
  const char* text_file() const override { return "kernel.cpp"; }
  const char* language() const override { return "C++"; }
  Cache::Form form() const override { return Cache::Form::shared_object; }
  std::unique_ptr<const Toolchain> toolchain() const override {
    return std::make_unique<EmuToolchain>(device_.gpu());
  }

  std::optional<Variant> load(Cache& cache, const std::string& key) const override {
    const std::optional<Cache::Loaded> found = cache.load(key);
    return found ? std::optional(variant(*found)) : std::nullopt;
  }
  Variant store(Cache& cache, const std::string& key, const Emitted& emitted,
                const std::string& object) const override {
    const std::string metadata = to_string(emitted.launch) + kEndOfSpec + emitted.text;
    return variant(cache.store(key, metadata, object, emitted.text));
  }

  void run(const Call& call, const Variant& v, const Messages& messages,
           const cuda::Stream* stream) const override {
    if (stream) device_.cuda();  // throws
    std::vector<TensorView> args;
    std::vector<Tensor> workspace;
    for (size_t i = 0; i < v.launch.args.size(); ++i) {
      args.push_back(call.argument(i));
      if (!v.launch.args[i].workspace) continue;
      TensorView& t = args.back();
      workspace.push_back(host_tensor(t.dtype, t.dims));
      t.data = workspace.back().data<char>();
      std::memset(t.data, 0, static_cast<size_t>(byte_count(t.dtype, t.dims)));
    }
    const EmuOptions options{
        .seed = first_seed() + launches_++, .resident = kBlocks, .blocks = kBlocks};
    std::vector<char> told(v.launch.messages ? kMessageBytes : 0);
    if (v.launch.messages) clear_messages(told.data());
    const EmuReport report =
        emu::run(emu::loaded_text(v.module), v.text, v.launch, args, call.dims(), options,
                 v.launch.messages ? told.data() : nullptr);
    if (v.launch.messages) hear_messages(told.data(), call.program(), call.grid_axes(), messages);
    if (report.clean()) return;
    throw DeviceError(fmt::format("{}: {}", v.launch.entry, report.text),
                      fmt::format("TW_EMU_SEED={} gives it in a first launch", options.seed));
  }

 private:
  static Variant variant(const Cache::Loaded& loaded) {
    const size_t end = loaded.metadata.find(kEndOfSpec);
    if (end == std::string::npos) throw InternalError("an emulated kernel lacks its text");
    return {.launch = parse_launch_spec(loaded.metadata.substr(0, end)),
            .module = loaded.module,
            .text = loaded.metadata.substr(end + 1)};
  }

  const Device& device_;
  const CompileOptions& options_;
  mutable std::atomic<uint64_t> launches_{0};
};

}  // namespace

void register_emulator() {
  set_emulated_backend([](const Device& d, const CompileOptions& o) {
    return std::unique_ptr<const Backend>(std::make_unique<EmuBackend>(d, o));
  });
  Device::add_emulated(gpu_named("sm_90a"));
}

}  // namespace tw
