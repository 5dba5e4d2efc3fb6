#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "tw/runtime/device.h"
#include "tw/target/launch_spec.h"
#include "tw/tensor/tensor.h"

/// What devices "cuda:N" can do beyond Device: the driver's streams, events, graphs and modules.
/// Every call makes the primary context of its GPU current and restores the one that was, so it may
/// stand beside other users of the driver. Failures are DeviceErrors with the driver's name for
/// them; one of a kernel shows in a later call.
namespace tw::cuda {

class Gpu;

/// GPUs that the driver shows; 0 where there is no driver that we can use.
int device_count();

/// Work in order. Cheap to copy; a stream of our own is destroyed, when its work is done, with its
/// last copy.
class Stream {
 public:
  /// A new stream that does not wait for the default one. Throws UserError for another device.
  static Stream make(const Device& d);
  /// The default (null) stream.
  static Stream standard(const Device& d);
  /// A CUstream or cudaStream_t of someone else, who keeps it alive.
  static Stream of(const Device& d, void* handle);

  void* handle() const { return handle_; }
  Gpu& gpu() const { return *gpu_; }
  /// Waits for its work; then prints of its kernels are heard, and a check of one that failed is
  /// the UserError that it is on a CPU.
  void synchronize() const;

 private:
  Stream(Gpu& gpu, void* handle, std::shared_ptr<void> owner)
      : gpu_(&gpu), handle_(handle), owner_(std::move(owner)) {}
  Gpu* gpu_;
  void* handle_;
  std::shared_ptr<void> owner_;
};

/// Waits for all work of the device, as Stream::synchronize() for that of a stream.
void synchronize(const Device& d);

/// A moment in a stream.
class Event {
 public:
  explicit Event(const Device& d);
  ~Event();
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;

  void record(const Stream& s);
  bool done() const;  ///< whether the moment has passed
  void synchronize() const;
  /// What comes later in that stream waits for the moment.
  void hold(const Stream& s) const;
  /// Of two moments that have passed.
  static double milliseconds(const Event& begin, const Event& end);

 private:
  Gpu& gpu_;
  void* handle_ = nullptr;
};

/// Work that was captured once and is launched as one.
class Graph {
 public:
  /// What body() puts into the stream, which is none of the default ones. Memory and kernels of it
  /// must stay; body() must not allocate nor wait, which kernels may do when first launched.
  Graph(const Stream& s, const std::function<void()>& body);
  ~Graph();
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;
  void launch(const Stream& s) const;

 private:
  Gpu& gpu_;
  void* handle_ = nullptr;
};

/// A kernel of a module.
class Function {
 public:
  const std::string& name() const { return name_; }

 private:
  friend class Module;
  friend void launch(const Function&, std::span<const uint64_t>, const struct LaunchShape&,
                     const Stream&);
  friend void check_stream(const Function&, const Stream&);
  explicit Function(std::string name) : name_(std::move(name)) {}
  std::string name_;
  Gpu* gpu_ = nullptr;
  void* handle_ = nullptr;
  std::shared_ptr<const class Module> module_;
  mutable std::atomic<int64_t> shared_allowed_{48 << 10};
};

/// A cubin loaded onto a device; unloaded with its last owner.
class Module : public std::enable_shared_from_this<Module> {
 public:
  /// Throws DeviceError when the driver refuses it.
  static std::shared_ptr<const Module> load(const Device& d, const std::string& cubin);
  ~Module();
  Module(const Module&) = delete;
  Module& operator=(const Module&) = delete;
  /// Null when it has none of that name. Keeps the module.
  std::shared_ptr<const Function> function(const std::string& name) const;

 private:
  Module(Gpu& gpu, const std::string& cubin);
  Gpu& gpu_;
  void* handle_ = nullptr;
};

struct LaunchShape {
  int64_t grid = 1;          ///< blocks, 1 to 2^31 - 1
  int threads = 1;           ///< of a block, 1 to 1024
  int64_t shared_bytes = 0;  ///< dynamic shared memory of a block
  /// It may begin before earlier launches of the stream end: the kernel waits for them itself.
  bool early = false;
};

/// Throws UserError when the stream is of another GPU than the kernel.
void check_stream(const Function& f, const Stream& s);
/// Starts a kernel that has one parameter, of these words. Allocates nothing. Throws DeviceError
/// for a shape that the GPU cannot have, and when the launch fails.
void launch(const Function& f, std::span<const uint64_t> words, const LaunchShape& shape,
            const Stream& s);

/// Workspace for launches of a stream, of at least so many bytes, 256-byte aligned. It grows at
/// first use; one of a graph is that of the stream it was captured from.
uint64_t workspace(const Stream& s, int64_t bytes);
/// Zeros in memory of the stream's GPU, when the work before it is done.
void clear(const Stream& s, uint64_t memory, int64_t bytes);

/// Copies all elements from the host to the device and back, in the order of the stream; returns
/// when the host's memory is free to be used. Both are contiguous, of one type and one count of
/// elements; UserError otherwise.
void copy_in(const Stream& s, const TensorView& to, const TensorView& from);
void copy_out(const Stream& s, const TensorView& to, const TensorView& from);
/// The same on the device: it does not wait.
void copy_there(const Stream& s, const TensorView& to, const TensorView& from);

/// Contiguous copies, of tensors of any strides, after all work of the default stream.
Tensor to_device(const Device& d, const TensorView& host);
Tensor to_host(const Device& d, const TensorView& t);

/// Memory between addresses that nobody has: an access before it or behind it is an illegal one,
/// after which the process can use the GPU no more. For tests of kernels.
class FencedMemory {
 public:
  /// Of at least so many bytes, whole pages of the GPU. Throws EnvError when there is not as much.
  FencedMemory(const Device& d, int64_t bytes);
  ~FencedMemory();
  FencedMemory(const FencedMemory&) = delete;
  FencedMemory& operator=(const FencedMemory&) = delete;

  char* data() const;
  int64_t bytes() const { return bytes_; }

 private:
  void give_back() noexcept;
  Gpu& gpu_;
  int64_t bytes_ = 0, page_ = 0;
  uint64_t fence_ = 0;  ///< the page before the memory
  bool mapped_ = false;
};

/// Why kernels of the device cannot use this memory; empty when they can. Null is fine.
std::string memory_fault(const Device& d, const void* p);

/// CUtensorMap: what bulk copies between a tensor and shared memory get, as a parameter.
struct alignas(64) TensorMap {
  uint64_t words[16];
};
/// For boxes of `box` elements (of each axis, as the view's; the last one's are neighbours),
/// swizzled over 0 (not at all), 32, 64 or 128 bytes; elements outside are read as zeros. UserError
/// for a view or box that the hardware has no map for, with what it wants.
TensorMap tensor_map(const Device& d, const TensorView& t, std::span<const int> box,
                     int swizzle_bytes);
/// Puts the maps of a spec behind the other words of a kernel's parameter, each on a boundary of 64
/// bytes. UserError, which names the argument, as tensor_map().
void add_tensor_maps(const Device& d, const LaunchSpec& spec, std::span<const TensorView> args,
                     std::vector<uint64_t>& words);

/// Memory of a GPU in which the kernels of a stream leave messages (tw/runtime/launch.h). Whoever
/// waits for the stream or its device, copies too, has them heard.
class Inbox {
 public:
  /// `hear` gets the memory's bytes, on the host; what it throws, the one who waits gets.
  static std::shared_ptr<Inbox> make(const Stream& s, std::function<void(const void*)> hear);
  ~Inbox();
  Inbox(const Inbox&) = delete;
  Inbox& operator=(const Inbox&) = delete;

  uint64_t memory() const { return memory_; }
  bool is_of(const Stream& s) const { return s.handle() == stream_; }
  /// The stream's work is done. It may be gone itself.
  void read();

 private:
  Inbox(const Stream& s, std::function<void(const void*)> hear);
  void clear();
  Gpu& gpu_;
  void* const stream_;
  const std::function<void(const void*)> hear_;
  std::mutex lock_;
  uint64_t memory_ = 0;
};

}  // namespace tw::cuda
