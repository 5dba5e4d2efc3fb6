#include <algorithm>
#include <bit>
#include <cmath>
#include <fmt/format.h>

#include "tw/base/error.h"
#include "tw/cli/gpu_ceilings.h"
#include "tw/jit/kernel.h"
#include "tw/limit/limit.h"
#include "tw/runtime/cuda/cuda.h"

namespace tw::cli {

namespace {

constexpr int kRepeats = 10;
constexpr double kTera = 1e12;

/// Of each of two arrays: far more than a cache, and so much that starting and ending do not count,
/// where there is as much. A power of two.
int64_t memory_bytes(const GpuMachine& m) {
  constexpr uint64_t kMost = uint64_t{4} << 30;
  return static_cast<int64_t>(std::bit_floor(std::min(kMost, static_cast<uint64_t>(m.memory) / 8)));
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
  double seconds(const std::string& name, int64_t n, int64_t grid, int64_t passes = 1) const {
    const std::shared_ptr<const cuda::Function> f = module_->function(name);
    if (!f) throw InternalError("the loops for GPUs lack " + name);
    const uint64_t words[] = {reinterpret_cast<uint64_t>(to_.data<void>()),
                              reinterpret_cast<uint64_t>(from_.data<void>()),
                              static_cast<uint64_t>(n), static_cast<uint64_t>(passes)};
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

  /// What the last loop left at the begin of the first array.
  uint64_t left() const {
    uint64_t word = 0;
    const TensorView there{to_.data<void>(), i64, {1}, {1}}, here{&word, i64, {1}, {1}};
    cuda::copy_out(stream_, here, there);
    return word;
  }

  /// Of an empty kernel among many in a graph.
  double launch_us() const {
    constexpr int kLaunches = 200;
    const std::shared_ptr<const cuda::Function> f = module_->function("empty");
    const uint64_t words[] = {0, 0, 0, 0};
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

/// A GPU that was idle takes a while to reach its clock.
void warm_up(const Loops& l) {
  constexpr double kSeconds = 0.3;
  for (double spent = 0; spent < kSeconds;)
    spent += kRepeats * l.seconds("fma_f32", 1024, int64_t{8} * l.multiprocessors());
}

/// 1e12 a second, of a loop that does `each` when all chains of one thread go a step.
double chain_rate(const Loops& l, const char* name, double each) {
  constexpr int64_t kTrips = 1024, kSteps = 8;
  const int64_t grid = int64_t{8} * l.multiprocessors();
  const double steps = static_cast<double>(kTrips * kSteps * grid * kLoopThreads);
  return each * steps / l.seconds(name, kTrips, grid) / kTera;
}

/// Of products: wgmma of m64n256 with rows of 32 bytes, two groups a block; or mma of m16n8 with as
/// long ones (16 of tf32), eight warps a block. 0 where the GPU has none.
double matrix_rate(const Loops& l, const char* name, int element_bytes) {
  constexpr int64_t kTrips = 1024;
  constexpr int kUnrolled = 8, kWarps = kLoopThreads / 32;
  if (!l.has(name)) return 0;
  const bool hopper = l.machine().arch == "sm_90a";
  const int64_t grid = (hopper ? 1 : 2) * l.multiprocessors();
  const double depth = 32.0 / element_bytes;
  const double product = hopper ? 2 * 2.0 * 64 * 256 * depth : kWarps * 2.0 * 16 * 8 * depth;
  const double work = product * kUnrolled * static_cast<double>(kTrips) * static_cast<double>(grid);
  return work / l.seconds(name, kTrips, grid) / kTera;
}

/// The best way to do `what` with arrays of about so many bytes, `passes` times in one launch. A
/// block takes tiles in turn, or one each. Later passes must not find in first-level caches what
/// they read, where only cg leaves nothing.
double stream_rate(const Loops& l, const std::string& what, int64_t bytes, int64_t passes) {
  double best = 0;
  for (const StreamLoop& s : kStreamLoops) {
    if (passes > 1 && s.hint != std::string_view("cg")) continue;
    const int64_t tiles = std::max<int64_t>(1, bytes / s.tile_bytes()), each = tiles * passes;
    for (const int64_t a_multiprocessor : {int64_t{4}, int64_t{8}, int64_t{16}, each}) {
      const int64_t grid = std::min(a_multiprocessor * l.multiprocessors(), each);
      const double moved = static_cast<double>(each * s.tile_bytes());
      best = std::max(best, moved / l.seconds(stream_loop(what, s), tiles, grid, passes) / kTera);
    }
  }
  return best;
}

/// Of one warp: the processors' clock, and how long an operation takes to be of use to the next.
void measure_clock(const Loops& l, GpuPeaks& p) {
  constexpr int64_t kTrips = 1 << 14, kSteps = 64;
  const double seconds = l.seconds("count_clocks", kTrips, 1);
  const auto clocks = static_cast<double>(l.left());
  p.clock_ghz = clocks / seconds * 1e-9;
  p.arithmetic_cycles = static_cast<int>(std::lround(clocks / (kTrips * kSteps)));
}

Bandwidth memory_rates(const Loops& l, int64_t bytes) {
  return {stream_rate(l, "read", bytes, 1), stream_rate(l, "write", bytes, 1),
          2 * stream_rate(l, "copy", bytes, 1)};
}

/// Passes in one launch, since a launch takes longer than one. A part of the cache, as each half of
/// it may keep what the other has.
Bandwidth cache_rates(const Loops& l, int64_t most_bytes) {
  constexpr int64_t kPasses = 256;
  Bandwidth best;
  for (const int64_t share : {4, 8}) {
    const int64_t bytes = std::min(most_bytes, l.machine().l2 / share);
    best.read = std::max(best.read, stream_rate(l, "read", bytes, kPasses));
    best.write = std::max(best.write, stream_rate(l, "write", bytes, kPasses));
    best.copy = std::max(best.copy, 2 * stream_rate(l, "copy", bytes / 2, kPasses));
  }
  return best;
}

/// From a load to the next, of addresses in so many bytes, a power of two. `flush` bytes are read
/// first, which leaves nothing of the ring in the cache.
double load_ns(const Loops& l, int64_t bytes, int64_t flush) {
  constexpr int kLoads = 20000;
  l.seconds("make_ring", bytes / kLineBytes, l.multiprocessors());
  if (flush > 0) {
    const StreamLoop& s = kStreamLoops[0];
    l.seconds(stream_loop("read", s), flush / s.tile_bytes(), l.multiprocessors());
  }
  return l.seconds("follow_ring", kLoads, 1) / kLoads * 1e9;
}

}  // namespace

GpuPeaks measure_gpu(const Device& d) {
  const Loops l(d);
  const int64_t memory = memory_bytes(d.gpu());
  // Four times the cache, and no more: pages beyond those that the GPU keeps in mind cost more.
  const auto ring = static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(4 * d.gpu().l2)));
  GpuPeaks p;
  warm_up(l);
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
  const Bandwidth far = memory_rates(l, memory), near = cache_rates(l, memory);
  p.read = far.read, p.write = far.write, p.copy = far.copy;
  p.cache_read = near.read, p.cache_write = near.write, p.cache_copy = near.copy;
  p.load_ns = load_ns(l, std::min(memory, ring), memory);
  p.cached_load_ns = load_ns(l, std::min(memory, int64_t{1} << 20), 0);
  measure_clock(l, p);
  p.launch_us = l.launch_us();
  return p;
}

}  // namespace tw::cli
