#include <algorithm>
#include <bit>
#include <fmt/format.h>

#include "tw/base/error.h"
#include "tw/cli/gpu_ceilings.h"
#include "tw/jit/kernel.h"
#include "tw/runtime/cuda/cuda.h"

namespace tw::cli {

namespace {

constexpr int kRepeats = 5;
constexpr int64_t kVector = 16;
constexpr double kTera = 1e12;

/// Far more than a cache, where there is as much: a power of two.
int64_t memory_bytes(const GpuMachine& m) {
  constexpr uint64_t kMost = uint64_t{1} << 30;
  return static_cast<int64_t>(std::bit_floor(std::min(kMost, static_cast<uint64_t>(m.memory) / 4)));
}

/// The loops, loaded, with memory for them.
class Loops {
 public:
  explicit Loops(const Device& d)
      : machine_(d.gpu()),
        stream_(cuda::Stream::make(d)),
        begin_(d),
        end_(d),
        module_(cuda::Module::load(d, compile_cuda(machine_.arch, ceiling_loops(machine_)).cubin)),
        to_(empty(d, i8, {memory_bytes(machine_)})),
        from_(empty(d, i8, {memory_bytes(machine_)})) {}

  bool has(const std::string& name) const { return module_->function(name) != nullptr; }
  int multiprocessors() const { return machine_.multiprocessors; }
  const GpuMachine& machine() const { return machine_; }

  /// The shortest of some runs, after one that does not count.
  double seconds(const std::string& name, uint64_t n, int64_t grid) const {
    const std::shared_ptr<const cuda::Function> f = module_->function(name);
    if (!f) throw InternalError("the loops for GPUs lack " + name);
    const uint64_t words[] = {reinterpret_cast<uint64_t>(to_.data<void>()),
                              reinterpret_cast<uint64_t>(from_.data<void>()), n};
    double best = 0;
    for (int i = 0; i <= kRepeats; ++i) {
      begin_.record(stream_);
      cuda::launch(*f, words, {grid, kLoopThreads, 0}, stream_);
      end_.record(stream_);
      end_.synchronize();
      const double s = cuda::Event::milliseconds(begin_, end_) * 1e-3;
      if (i == 1 || (i > 1 && s < best)) best = s;
    }
    return best;
  }

  /// Of an empty kernel among many in a graph.
  double launch_us() const {
    constexpr int kLaunches = 200;
    const std::shared_ptr<const cuda::Function> f = module_->function("empty");
    const uint64_t words[] = {0, 0, 0};
    const cuda::Graph graph(stream_, [&] {
      for (int i = 0; i < kLaunches; ++i) cuda::launch(*f, words, {1, kLoopThreads, 0}, stream_);
    });
    double best = 0;
    for (int i = 0; i <= kRepeats; ++i) {
      begin_.record(stream_);
      graph.launch(stream_);
      end_.record(stream_);
      end_.synchronize();
      const double us = cuda::Event::milliseconds(begin_, end_) * 1e3 / kLaunches;
      if (i == 1 || (i > 1 && us < best)) best = us;
    }
    return best;
  }

 private:
  const GpuMachine& machine_;
  cuda::Stream stream_;
  mutable cuda::Event begin_, end_;
  std::shared_ptr<const cuda::Module> module_;
  Tensor to_, from_;
};

/// 1e12 a second, of a loop that does `each` in a trip of one thread.
double chain_rate(const Loops& l, const char* name, double each) {
  constexpr uint64_t kTrips = 4096;
  const int64_t grid = int64_t{8} * l.multiprocessors();
  const double work = each * static_cast<double>(kTrips) * static_cast<double>(grid) * kLoopThreads;
  return work / l.seconds(name, kTrips, grid) / kTera;
}

/// Of products: wgmma of m64n256 with rows of 32 bytes, two groups a block; or mma of m16n8 with as
/// long ones (16 of tf32), eight warps a block. 0 where the GPU has none.
double matrix_rate(const Loops& l, const char* name, int element_bytes) {
  constexpr uint64_t kTrips = 1024;
  constexpr int kUnrolled = 8, kWarps = kLoopThreads / 32;
  if (!l.has(name)) return 0;
  const bool hopper = l.machine().arch == "sm_90a";
  const int64_t grid = (hopper ? 1 : 2) * l.multiprocessors();
  const double depth = 32.0 / element_bytes;
  const double product = hopper ? 2 * 2.0 * 64 * 256 * depth : kWarps * 2.0 * 16 * 8 * depth;
  const double work = product * kUnrolled * static_cast<double>(kTrips) * static_cast<double>(grid);
  return work / l.seconds(name, kTrips, grid) / kTera;
}

double stream_rate(const Loops& l, const char* name, int64_t bytes, double directions) {
  // Small arrays stay in the cache from one run to the next.
  const int64_t grid = int64_t{8} * l.multiprocessors();
  const double s = l.seconds(name, static_cast<uint64_t>(bytes / kVector), grid);
  return directions * static_cast<double>(bytes) / s / kTera;
}

double load_ns(const Loops& l, int64_t bytes) {
  constexpr int kLoads = 20000;
  constexpr int64_t kPlace = 64;
  l.seconds("make_ring", static_cast<uint64_t>(bytes / kPlace), l.multiprocessors());
  return l.seconds("follow_ring", kLoads, 1) / kLoads * 1e9;
}

}  // namespace

GpuPeaks measure_gpu(const Device& d) {
  const Loops l(d);
  const int64_t memory = memory_bytes(d.gpu()), cached = std::min(memory, d.gpu().l2 / 4);
  GpuPeaks p;
  p.source = "measured on " + d.name();
  p.f32 = chain_rate(l, "fma_f32", 16);
  p.half = chain_rate(l, "fma_half", 32);
  p.f64 = chain_rate(l, "fma_f64", 16);
  p.integer = chain_rate(l, "integers", 16);
  p.special = chain_rate(l, "special", 8);
  p.convert = chain_rate(l, "convert", 16);
  p.dot_tf32 = matrix_rate(l, "dot_tf32", 4);
  p.dot_half = std::max(matrix_rate(l, "dot_bf16", 2), matrix_rate(l, "dot_f16", 2));
  p.dot_fp8 = matrix_rate(l, "dot_e4m3", 1);
  p.dot_i8 = matrix_rate(l, "dot_i8", 1);
  p.read = stream_rate(l, "read_memory", memory, 1);
  p.write = stream_rate(l, "write_memory", memory, 1);
  p.copy = stream_rate(l, "copy_memory", memory, 2);
  p.cache_read = stream_rate(l, "read_memory", cached, 1);
  p.cache_write = stream_rate(l, "write_memory", cached, 1);
  p.cache_copy = stream_rate(l, "copy_memory", cached, 2);
  p.load_ns = load_ns(l, memory / 4);
  p.cached_load_ns = load_ns(l, std::min(memory, int64_t{1} << 20));
  p.launch_us = l.launch_us();
  return p;
}

}  // namespace tw::cli
