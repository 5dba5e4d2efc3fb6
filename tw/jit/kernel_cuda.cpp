#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <map>
#include <mutex>

#include "tw/base/error.h"
#include "tw/emit/cpu/emit_cpu.h"
#include "tw/emit/cuda/emit_cuda.h"
#include "tw/jit/backend.h"
#include "tw/jit/nvrtc.h"
#include "tw/runtime/cuda/cuda.h"

namespace tw {

namespace {

/// What a kernel's parameters may have (CUDA C++ Programming Guide, from CUDA 12.1 on).
constexpr size_t kMostParameterBytes = 32764;

class CudaToolchain : public Toolchain {
 public:
  CudaToolchain(const GpuMachine& machine, bool debug) : machine_(machine), debug_(debug) {}

  std::string identity() const override {
    return fmt::format("compiler {}\nflags {}\nmachine {}\n", nvrtc_.identity,
                       fmt::join(nvrtc_flags(machine_.arch, debug_), " "), to_string(machine_));
  }
  std::string compile(const std::string& text) const override {
    return compile_without_spills(nvrtc_, machine_.arch, text, debug_).cubin;
  }

 private:
  const Nvrtc& nvrtc_ = find_nvrtc();
  const GpuMachine& machine_;
  const bool debug_;
};

class CudaBackend : public Backend {
 public:
  CudaBackend(const Device& d, const CompileOptions& o) : device_(d), options_(o) {}

  Signature signature(const Program& p, Signature::DimCheck check) const override {
    LaunchSpec spec = launch_spec(p);
    size_t words = spec.args.size() + spec.dims.size() + 1;
    for (const LaunchSpec::Arg& a : spec.args) words += static_cast<size_t>(a.rank);
    if (words * 8 > kMostParameterBytes) {
      throw UserError(fmt::format("{}: its arguments take {} bytes: GPUs take at most {}", p.name,
                                  words * 8, kMostParameterBytes));
    }
    return {p.name, std::move(spec), std::move(check)};
  }
  std::span<const Pass> passes() const override { return cuda_passes(); }
  /// What these passes ask of it is the same for all.
  const CpuMachine& machine_of_passes() const override { return machine_named("generic"); }
  Emitted emit(const Program& lowered, const Specialisation& s) const override {
    EmittedCuda e = emit_cuda(lowered, s, device_.gpu(), options_.mapping, options_.debug_info);
    return {std::move(e.text), std::move(e.launch)};
  }
  const char* text_file() const override { return "kernel.cu"; }
  const char* language() const override { return "CUDA"; }
  Cache::Form form() const override { return Cache::Form::cubin; }
  std::unique_ptr<const Toolchain> toolchain() const override {
    return std::make_unique<CudaToolchain>(device_.gpu(), options_.debug_info);
  }

  std::optional<Variant> load(Cache& cache, const std::string& key) const override {
    const std::optional<Cache::Cubin> found = cache.load_cubin(key);
    return found ? std::optional(variant(*found)) : std::nullopt;
  }
  Variant store(Cache& cache, const std::string& key, const Emitted& emitted,
                const std::string& object) const override {
    const Cache::Cubin cubin{object, to_string(emitted.launch)};
    cache.store_cubin(key, cubin, emitted.text);
    return variant(cubin);
  }

  void run(const Call& call, const Variant& v, const Messages& messages,
           const cuda::Stream* stream) const override {
    call.check_addresses([&](const void* p) { return cuda::memory_fault(device_, p); });
    const cuda::Stream s = stream ? *stream : cuda::Stream::standard(device_);
    cuda::check_stream(*v.function, s);
    const int64_t grid =
        std::min(call.instances() * v.launch.cluster, most_blocks(v.launch, device_.gpu()));
    const int64_t zeroed = call.zeroed_bytes(), all = zeroed + grid * v.launch.scratch_bytes;
    SmallArray<uint64_t, 64> words(call.words());
    const uint64_t memory = all > 0 ? cuda::workspace(s, all) : 0;
    if (zeroed > 0) cuda::clear(s, memory, zeroed);
    const uint64_t told = v.launch.messages ? inbox(s, call, messages) : 0;
    const uint64_t workspace = v.launch.scratch_bytes > 0 ? memory + zeroed : 0;
    call.write_words({words.data(), words.size()}, {memory, workspace, told});
    const cuda::LaunchShape shape{grid, v.launch.threads, v.launch.shared_bytes, v.launch.early};
    if (v.launch.tensor_maps.empty()) {
      cuda::launch(*v.function, {words.data(), words.size()}, shape, s);
      return;
    }
    cuda::launch(*v.function, with_maps(call, v.launch, {words.data(), words.size()}), shape, s);
  }

 private:
  /// In front of tensor maps stand only those addresses of memory that the spec asks for.
  std::vector<uint64_t> with_maps(const Call& call, const LaunchSpec& spec,
                                  std::span<const uint64_t> all) const {
    std::vector<uint64_t> words(all.begin(), all.end() - 2);
    if (spec.scratch_bytes > 0) words.push_back(all[all.size() - 2]);
    if (spec.messages) words.push_back(all.back());
    std::vector<TensorView> args;
    for (size_t i = 0; i < spec.args.size(); ++i) args.push_back(call.argument(i));
    cuda::add_tensor_maps(device_, spec, args, words);
    return words;
  }

  /// Where the kernel's messages of a stream go.
  uint64_t inbox(const cuda::Stream& s, const Call& call, const Messages& messages) const {
    const std::lock_guard guard(lock_);
    std::shared_ptr<cuda::Inbox>& box = inboxes_[s.handle()];
    if (!box) {
      box = cuda::Inbox::make(
          s, [messages, program = call.program(), axes = call.grid_axes()](const void* all) {
            hear_messages(all, program, axes, messages);
          });
    }
    return box->memory();
  }

  Variant variant(const Cache::Cubin& cubin) const {
    Variant v{.launch = parse_launch_spec(cubin.metadata)};
    v.function = cuda::Module::load(device_, cubin.bytes)->function(v.launch.entry);
    if (!v.function) throw InternalError("a compiled kernel lacks its entry " + v.launch.entry);
    return v;
  }

  const Device& device_;
  const CompileOptions& options_;
  mutable std::mutex lock_;
  mutable std::map<void*, std::shared_ptr<cuda::Inbox>> inboxes_;  ///< by stream
};

}  // namespace

std::unique_ptr<const Backend> cuda_backend(const Device& d, const CompileOptions& options) {
  return std::make_unique<CudaBackend>(d, options);
}

}  // namespace tw
