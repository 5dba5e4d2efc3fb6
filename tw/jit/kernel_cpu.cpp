#include <fmt/format.h>
#include <fmt/ranges.h>

#include "tw/base/env.h"
#include "tw/base/error.h"
#include "tw/emit/cpu/emit_cpu.h"
#include "tw/jit/backend.h"
#include "tw/jit/compiler.h"

namespace tw {

namespace {

class CpuToolchain : public Toolchain {
 public:
  CpuToolchain(const CpuMachine& machine, bool debug) : machine_(machine), debug_(debug) {}

  std::string identity() const override {
    return fmt::format("compiler {}\nflags {}\nmachine {}\n", compiler_.identity,
                       fmt::join(compile_flags(compiler_, machine_, debug_), " "),
                       to_string(machine_));
  }
  std::string compile(const std::string& text) const override {
    return compile_shared(compiler_, machine_, text, debug_);
  }

 private:
  const Compiler compiler_ = find_compiler();
  const CpuMachine& machine_;
  const bool debug_;
};

class CpuBackend : public Backend {
 public:
  CpuBackend(const Device& d, const CompileOptions& o) : device_(d), options_(o) {}

  Signature signature(const Program& p, Signature::DimCheck check) const override {
    return {p.name, launch_spec(p), device_.cpu(), std::move(check)};
  }
  std::span<const Pass> passes() const override { return cpu_passes(); }
  const CpuMachine& machine_of_passes() const override { return device_.cpu(); }
  Emitted emit(const Program& lowered, const Specialisation& s) const override {
    EmittedCpu e = emit_cpu(lowered, s, device_.cpu(), options_.mapping, options_.debug_info);
    return {std::move(e.text), std::move(e.launch)};
  }
  const char* text_file() const override { return "kernel.cpp"; }
  const char* language() const override { return "C++"; }
  Cache::Form form() const override { return Cache::Form::shared_object; }
  std::unique_ptr<const Toolchain> toolchain() const override {
    return std::make_unique<CpuToolchain>(device_.cpu(), options_.debug_info);
  }

  std::optional<Variant> load(Cache& cache, const std::string& key) const override {
    const std::optional<Cache::Loaded> found = cache.load(key);
    return found ? std::optional(variant(*found)) : std::nullopt;
  }
  Variant store(Cache& cache, const std::string& key, const Emitted& emitted,
                const std::string& object) const override {
    return variant(cache.store(key, to_string(emitted.launch), object, emitted.text));
  }

  void run(const Call& call, const Variant& v, const Messages& messages,
           const cuda::Stream* stream) const override {
    if (stream) device_.gpu();  // throws
    call.run(v.entry, v.launch.scratch_bytes, device_.pool(), options_.threads, messages);
  }

 private:
  static Variant variant(const Cache::Loaded& loaded) {
    Variant v{.launch = parse_launch_spec(loaded.metadata), .module = loaded.module};
    v.entry = reinterpret_cast<TwEntry>(v.module->symbol(v.launch.entry));
    if (v.entry) return v;
    const std::string lack = "a compiled kernel lacks its entry " + v.launch.entry;
    if (env(Env::cxx).empty()) throw InternalError(lack);
    throw EnvError(fmt::format("{}, made by TW_CXX '{}'", lack, env(Env::cxx)),
                   "name a C++ compiler in TW_CXX, or unset it");
  }

  const Device& device_;
  const CompileOptions& options_;
};

}  // namespace

std::unique_ptr<const Backend> cpu_backend(const Device& d, const CompileOptions& options) {
  return std::make_unique<CpuBackend>(d, options);
}

}  // namespace tw
