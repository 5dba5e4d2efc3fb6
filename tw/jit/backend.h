#pragma once

#include <memory>
#include <span>
#include <string>

#include "tw/jit/cache.h"
#include "tw/jit/kernel.h"
#include "tw/jit/variants.h"
#include "tw/passes/pipeline.h"
#include "tw/runtime/launch.h"

namespace tw {

/// Text for a kind of devices.
struct Emitted {
  std::string text;
  LaunchSpec launch;
};

/// The compiler of such text, found.
class Toolchain {
 public:
  virtual ~Toolchain() = default;
  /// Lines of cache keys: compiler, flags, machine.
  virtual std::string identity() const = 0;
  virtual std::string compile(const std::string& text) const = 0;
};

/// How kernels are lowered, emitted, kept and run on a kind of devices.
class Backend {
 public:
  virtual ~Backend() = default;
  virtual Signature signature(const Program& p, Signature::DimCheck check) const = 0;
  virtual std::span<const Pass> passes() const = 0;
  virtual const CpuMachine& machine_of_passes() const = 0;
  virtual Emitted emit(const Program& lowered, const Specialisation& s) const = 0;
  virtual const char* text_file() const = 0;  ///< how a file of text is called
  virtual const char* language() const = 0;
  virtual Cache::Form form() const = 0;
  /// Throws as find_compiler() or find_nvrtc() does.
  virtual std::unique_ptr<const Toolchain> toolchain() const = 0;
  /// The variant that the cache has.
  virtual std::optional<Variant> load(Cache& cache, const std::string& key) const = 0;
  virtual Variant store(Cache& cache, const std::string& key, const Emitted& emitted,
                        const std::string& object) const = 0;
  /// `stream`: null for the default one.
  virtual void run(const Call& call, const Variant& v, const Messages& messages,
                   const cuda::Stream* stream) const = 0;
};

/// The scheme of mappings for such devices.
const char* scheme_of(DeviceKind kind);

/// Both outlive the backend. `options` has a mapping of the device's scheme.
std::unique_ptr<const Backend> backend_of(const Device& d, const CompileOptions& options);
std::unique_ptr<const Backend> cpu_backend(const Device& d, const CompileOptions& options);
std::unique_ptr<const Backend> cuda_backend(const Device& d, const CompileOptions& options);

/// What makes backends of emulated devices: a layer above, when the device becomes known.
using MakeBackend = std::unique_ptr<const Backend> (*)(const Device&, const CompileOptions&);
void set_emulated_backend(MakeBackend make);

}  // namespace tw
