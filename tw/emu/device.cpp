#include "tw/emu/device.h"

#include <atomic>

#include "tw/base/error.h"
#include "tw/emit/cpu/emit_cpu.h"
#include "tw/emit/cuda/emit_cuda.h"
#include "tw/emu/impl/run.h"
#include "tw/jit/backend.h"

namespace tw {

namespace {

/// Ends a launch spec in metadata; the text follows.
constexpr char kEndOfSpec = '\0';

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
    std::vector<char> told(v.launch.messages ? kMessageBytes : 0);
    char* const inbox = v.launch.messages ? told.data() : nullptr;
    if (inbox) clear_messages(inbox);
    const auto hear = [&] {
      if (inbox) hear_messages(inbox, call.program(), call.grid_axes(), messages);
    };
    try {
      emu::run_call(emu::loaded_text(v.module), v.text, v.launch, call, launches_++, inbox);
    } catch (const DeviceError&) {
      hear();
      throw;
    }
    hear();
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
