#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "tw/runtime/impl/cuda_api.h"
#include "tw/target/gpu.h"

namespace tw::cuda {

class Inbox;
class Stream;

/// One GPU of one driver. Made by the first that asks and never destroyed, since memory on it may
/// go while static objects do.
class Gpu {
 public:
  /// Throws EnvError as driver() does and for a GPU too old, UserError when there are not as many.
  static Gpu& open(int ordinal);
  Gpu(const Gpu&) = delete;
  Gpu& operator=(const Gpu&) = delete;

  const Api& api() const { return api_; }
  const std::string& name() const { return name_; }  ///< "cuda:0"
  int ordinal() const { return ordinal_; }
  const GpuMachine& machine() const { return machine_; }
  ContextHandle context() const { return context_; }

  /// Throws DeviceError that says `what` failed and how, when it did.
  void check(Result code, const char* what) const {
    if (code != 0) fail(code, what);
  }
  [[noreturn]] void fail(Result code, const std::string& what) const;

  /// Of at least `bytes` bytes, the same for all launches of a stream, which run one after the
  /// other. What was given stays as long as the process, since captured graphs may hold it.
  Pointer workspace(StreamHandle stream, int64_t bytes);

  void add(const std::shared_ptr<Inbox>& box);
  /// Has the messages of a stream's kernels heard, of all streams for null. Their work is done.
  void hear(const Stream* s);

 private:
  Gpu(const Api& api, int ordinal);

  const Api& api_;
  const int ordinal_;
  const std::string name_;
  GpuMachine machine_;
  ContextHandle context_ = nullptr;
  struct Workspace {
    Pointer memory = 0;
    int64_t bytes = 0;
  };
  std::mutex lock_;
  std::map<StreamHandle, Workspace> workspaces_;
  std::vector<std::weak_ptr<Inbox>> inboxes_;
};

/// While alive, the GPU's context is this thread's current one; then the one before is again.
class Current {
 public:
  explicit Current(const Gpu& gpu) : Current(gpu, 0) { gpu.check(failed_, "to take its context"); }
  ~Current() {
    ContextHandle mine = nullptr;
    if (pushed_) api_.context_pop(&mine);
  }
  Current(const Current&) = delete;
  Current& operator=(const Current&) = delete;

 protected:
  Current(const Gpu& gpu, int) : api_(gpu.api()) {
    ContextHandle now = nullptr;
    failed_ = api_.context_current(&now);
    if (failed_ != 0 || now == gpu.context()) return;
    failed_ = api_.context_push(gpu.context());
    pushed_ = failed_ == 0;
  }

 private:
  const Api& api_;
  Result failed_ = 0;
  bool pushed_ = false;
};

/// The same for destructors: a driver that ended before them is no error.
struct CurrentAtEnd : Current {
  explicit CurrentAtEnd(const Gpu& gpu) : Current(gpu, 0) {}
};

/// Memory on the GPU. Throws EnvError that says how much there is.
Pointer allocate(const Gpu& gpu, int64_t bytes, const std::string& what);
void release(const Gpu& gpu, Pointer p) noexcept;

}  // namespace tw::cuda
