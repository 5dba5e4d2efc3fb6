#pragma once

#include <memory>
#include <string>
#include <vector>

#include "tw/ir/program.h"
#include "tw/runtime/device.h"
#include "tw/runtime/launch.h"
#include "tw/target/mapping.h"

namespace tw {

namespace cuda {
class Stream;
}

enum class Mode : uint8_t { fast, deterministic, batch_invariant };

struct CompileOptions {
  Mode mode = Mode::fast;
  Mapping mapping = {};  ///< empty knobs: chosen for the machine; {}: of the device's scheme
  bool debug_info =
      false;              ///< #line and -g; the place of the program is then part of the cache key
  bool checked = false;   ///< checks of the program, and integer divisions by zero, are UserErrors
  PrintLines print = {};  ///< gets what prints of the program say; empty: standard output
  int threads = 0;        ///< most threads a launch may use; 0: the pool's
};

struct EjectOptions {
  std::string name = "";      ///< of the function; empty: the program's
  std::string made_for = "";  ///< "m=64,n=32": what the tiles were chosen for; the header says it
  bool streaming = false;  ///< for outputs that are larger than a core's share of the last cache;
                           ///< where tensors are given, they decide
};

/// A program made ready for a device. Variants are compiled on first use of their specialisation,
/// found in the disk cache when some process compiled them before. Immutable or locked inside;
/// calls from many threads are safe.
class Kernel {
 public:
  /// Runs on tensors in declaration order: inputs (`in`), then outputs (`out` and `inout`), each
  /// group in order. Checks count, dtype, rank, that a named dim has one value everywhere,
  /// promises, bounds of grid and aliasing (an output may overlap nothing): UserError naming
  /// argument, got and wanted. Empty grids launch nothing.
  /// `dims`: values of dims that no tensor determines (plain integer arguments), by name.
  void operator()(const std::vector<TensorView>& inputs, const std::vector<TensorView>& outputs,
                  const std::vector<DimValue>& dims = {}) const;
  /// The same on a stream of the kernel's GPU. Both return when the work is in the stream; its
  /// tensors, which lie on the GPU, must stay until it is done.
  void launch(const cuda::Stream& stream, const std::vector<TensorView>& inputs,
              const std::vector<TensorView>& outputs, const std::vector<DimValue>& dims = {}) const;
  /// Compiles (or loads) the variant for such tensors without running it.
  void prepare(const std::vector<TensorView>& inputs, const std::vector<TensorView>& outputs,
               const std::vector<DimValue>& dims = {}) const;

  const Program& program() const;
  /// The emitted text of the variant for such tensors.
  std::string source(const std::vector<TensorView>& inputs, const std::vector<TensorView>& outputs,
                     const std::vector<DimValue>& dims = {}) const;
  /// How that text is launched.
  LaunchSpec launch_spec(const std::vector<TensorView>& inputs,
                         const std::vector<TensorView>& outputs,
                         const std::vector<DimValue>& dims = {}) const;
  /// Where that text lies once the variant is compiled; empty when there is no cache folder.
  std::string source_path(const std::vector<TensorView>& inputs,
                          const std::vector<TensorView>& outputs,
                          const std::vector<DimValue>& dims = {}) const;
  /// Why the disk cache lacks the variant for such tensors (see Cache::explain_miss); empty when it
  /// has it.
  std::string explain_miss(const std::vector<TensorView>& inputs,
                           const std::vector<TensorView>& outputs,
                           const std::vector<DimValue>& dims = {}) const;
  std::string mapping() const;

  /// Makes the kernel source that its owner builds without us: writes `path`, which ends in .cpp,
  /// of kernels for GPUs in .cu, and the header beside it, whose comment says how to call the
  /// function and what it relies on. It serves tensors of any size and address that are contiguous,
  /// or that lie as these do: with stride 1 and stride 0 along the same axes. The same compiler
  /// gives the same bits as calls of the kernel. UserError for another path and for a name that is
  /// no identifier; throws as write_file() does.
  void eject(const std::string& path, const EjectOptions& options = {}) const;
  void eject(const std::string& path, const std::vector<TensorView>& inputs,
             const std::vector<TensorView>& outputs, const std::vector<DimValue>& dims = {},
             const EjectOptions& options = {}) const;

 private:
  friend Kernel compile(Program p, const Device& d, CompileOptions o);
  struct State;
  State& state() const;
  void eject_as(const std::string& path, const Specialisation& s,
                const EjectOptions& options) const;
  std::shared_ptr<State> state_;
};

/// Throws UserError for an impossible mapping or count of threads.
Kernel compile(Program p, const Device& d, CompileOptions o = {});

/// Arguments that a kernel is to be prepared for.
struct Preparation {
  Kernel kernel;
  std::vector<TensorView> inputs, outputs;
  std::vector<DimValue> dims;
};
/// Prepares all, several at a time; the compiler runs on every core. Throws what the first failing
/// one throws, after all have been tried.
void prepare_all(const std::vector<Preparation>& all);

/// Compiled CUDA text, and what the assembler said of it.
struct CompiledCuda {
  std::string cubin, log;
  int registers = 0;         ///< of a thread, the most of any kernel
  int64_t shared_bytes = 0;  ///< of a block, beside what a launch adds; the most of any kernel
  int64_t spill_bytes = 0;   ///< stored by a thread for lack of registers, of all kernels
  bool serialized = false;   ///< a remark C75xx: it gave up to overlap tensor-core instructions
  double milliseconds = 0;
};

/// Text compiled for an architecture, as kernels for GPUs are: see compile_without_spills() of
/// tw/jit/nvrtc.h.
CompiledCuda compile_cuda(const std::string& arch, const std::string& text);

}  // namespace tw
