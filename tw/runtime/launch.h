#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "tw/runtime/small_array.h"
#include "tw/runtime/thread_pool.h"
#include "tw/target/launch_spec.h"
#include "tw/target/machine.h"
#include "tw/target/specialisation.h"
#include "tw/tensor/message.h"
#include "tw/tensor/tensor.h"

namespace tw {

/// A dim that no tensor determines, by name.
using DimValue = std::pair<std::string, int64_t>;

class Signature;
struct CallBinder;

/// What a program may tell, by number, and who hears its prints.
struct Messages {
  std::vector<Message> all;
  PrintLines print = {};
};

/// The arguments of one call, checked, in the form of the text ABI. Usual calls take no heap.
class Call {
 public:
  /// Checks the arguments against the signature: inputs (only read), then outputs (written), each
  /// in declaration order. Throws UserError naming argument, got and wanted: a wrong count, dtype
  /// or rank, a dim with two values or none, a broken promise or fixed extent, missing or
  /// misaligned memory, and an output that overlaps itself or any other argument.
  Call(const Signature& s, std::span<const TensorView> inputs, std::span<const TensorView> outputs,
       std::span<const DimValue> dims);

  bool empty_grid() const { return empty_grid_; }
  int64_t instances() const { return instances_; }  ///< of the grid; 0 when it is empty
  /// The facts that select a variant, packed; equal facts are equal words.
  std::span<const uint64_t> facts() const { return {facts_.data(), facts_.size()}; }
  Specialisation specialisation() const;
  /// Values of the signature's dims.
  std::span<const int64_t> dims() const { return {dims_.data(), dims_.size()}; }
  /// The argument of that number, with strides as compiled text gets them; workspace has no
  /// address.
  TensorView argument(size_t i) const;
  /// What all workspace of the program takes: memory of 256-byte aligned zeros.
  int64_t zeroed_bytes() const { return zeroed_bytes_; }

  /// Runs a compiled entry that wants so much scratch, on at most `threads` threads (0: the
  /// pool's). Throws EnvError when there is no memory for scratch, UserError when a check failed:
  /// of those that did, in the first instance; what other instances write is open.
  void run(TwEntry entry, int64_t scratch_bytes, ThreadPool& pool, int threads,
           const Messages& messages) const;

  /// The same as the parameter of a GPU's kernel: addresses, dims and strides in the order of
  /// TwArgs, then those of `memory` from its workspace on.
  struct Memory {
    uint64_t zeroed = 0, workspace = 0, messages = 0;
  };
  size_t words() const { return data_.size() + dims_.size() + strides_.size() + 2; }
  void write_words(std::span<uint64_t> out, const Memory& memory) const;
  size_t grid_axes() const;
  const std::string& program() const;
  /// Throws UserError naming the argument when fault(address) says why it cannot be used.
  void check_addresses(const std::function<std::string(const void*)>& fault) const;

 private:
  friend struct CallBinder;
  const Signature& signature_;
  SmallArray<void*, 16> data_;
  SmallArray<int64_t, 32> strides_;
  SmallArray<int64_t, 16> dims_;
  SmallArray<uint64_t, 17> facts_;
  bool empty_grid_ = false;
  int64_t instances_ = 0;
  int64_t zeroed_bytes_ = 0;

  /// The address of an argument when workspace begins there.
  void* address(size_t i, void* zeroed) const;
};

/// What calls of a program are checked against: the args, dims and grid of a LaunchSpec, which hold
/// for all variants of the program.
class Signature {
 public:
  /// Calls whose dims are all within `limit` are fine; others are handed to `check`, which throws
  /// UserError when some index would be too large.
  struct DimCheck {
    int64_t limit = std::numeric_limits<int64_t>::max();
    std::function<void(std::span<const int64_t> dims)> check = {};
  };

  /// `program` names it in errors.
  Signature(std::string program, LaunchSpec spec, const CpuMachine& machine, DimCheck dim_check);
  /// Of a GPU: outputs of no size are stored in another way, no size makes offsets narrower, and
  /// it is told where rows are whole runs of 16 bytes.
  Signature(std::string program, LaunchSpec spec, DimCheck dim_check);

  const LaunchSpec& spec() const { return spec_; }
  std::vector<std::string> arg_names() const;

 private:
  friend class Call;
  friend struct CallBinder;
  /// The last few dims beyond the limit that passed: to check them takes longer than a launch.
  class PassedDims;
  std::string program_;
  LaunchSpec spec_;
  DimCheck dim_check_;
  std::shared_ptr<PassedDims> passed_;  ///< shared by copies
  /// floor((dim + add) / by), by > 0, which is what most extents are; else `other`.
  struct Extent {
    int dim = -1;
    int64_t add = 0, by = 1;
    Expr other;
    bool is_dim() const { return dim >= 0 && add == 0 && by == 1; }
  };
  static Extent extent_of(const Expr& e);
  std::vector<Extent> extents_;  ///< of the axes of all args, one after the other
  std::vector<Extent> grid_;
  size_t axes_ = 0;                                            ///< of all args together
  size_t inputs_ = 0;                                          ///< args that are only read
  size_t given_ = 0;                                           ///< args but for workspace
  int64_t stream_from_ = std::numeric_limits<int64_t>::max();  ///< written bytes from which stores
                                                               ///< go around the caches
  bool gpu_ = true;
};

/// Whether outputs of so many bytes together are stored around the caches.
bool streams(int64_t written_bytes, const CpuMachine& machine);

/// What kernels of GPUs leave in a buffer of kMessageBytes (tw/target/launch_spec.h).

/// Makes it ready for a kernel.
void clear_messages(void* buffer);
/// Prints what the kernel printed, and how many prints found no room. Throws as Call::run: what
/// the function that hears prints threw, or UserError for a check that failed: of those that the
/// buffer holds, in the first instance. `axes`: of the grid; `program` is told with lost prints.
void hear_messages(const void* buffer, const std::string& program, size_t axes,
                   const Messages& messages);

}  // namespace tw
