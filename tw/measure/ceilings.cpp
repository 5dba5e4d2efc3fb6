#include "tw/measure/ceilings.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <deque>
#include <fmt/format.h>
#include <sys/mman.h>
#include <thread>
#include <vector>

#include "tw/base/error.h"
#include "tw/measure/impl/ceiling_templates.h"
#include "tw/measure/impl/shared_memory.h"
#include "tw/measure/impl/worker_process.h"

namespace tw::measure {

typedef float Narrow __attribute__((vector_size(16)));

const CeilingLoops* baseline_loops() { return loops<Narrow, 12, store_plain<Narrow>>("baseline"); }

namespace {

/// Cores that were idle take that long to reach their clock.
constexpr double kWarmSeconds = 0.5;
constexpr size_t kMemoryBytes = 256 << 20, kCacheBytes = 256 << 10;

const CeilingLoops& best_loops() {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512f") && avx512_loops() != nullptr) return *avx512_loops();
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && avx2_loops() != nullptr)
    return *avx2_loops();
#endif
  return *baseline_loops();
}

/// Largest rate over repeats of work(thread), which returns how much it did: all threads start
/// together and the slowest ends the time.
template <class F>
double best_rate(int threads, int repeats, const F& work) {
  double best = 0;
  for (int repeat = 0; repeat < repeats; ++repeat) {
    std::atomic<int> waiting{threads};
    std::vector<double> start(threads), end(threads), done(threads);
    const auto body = [&](int t) {
      --waiting;
      while (waiting.load() > 0) std::this_thread::yield();
      start[t] = seconds(CLOCK_MONOTONIC);
      done[t] = work(t);
      end[t] = seconds(CLOCK_MONOTONIC);
    };
    std::vector<std::thread> others;
    for (int t = 1; t < threads; ++t) others.emplace_back(body, t);
    body(0);
    for (std::thread& t : others) t.join();
    double sum = 0;
    for (double d : done) sum += d;
    const double time =
        *std::max_element(end.begin(), end.end()) - *std::min_element(start.begin(), start.end());
    best = std::max(best, sum / time * 1e-6);
  }
  return best;
}

/// Memory of its own, on huge pages where the system grants them, touched.
class Array {
 public:
  explicit Array(size_t bytes) : bytes_(bytes + kHuge) {
    base_ = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (base_ == MAP_FAILED) throw EnvError(fmt::format("cannot allocate {} bytes", bytes_));
    madvise(base_, bytes_, MADV_HUGEPAGE);
    std::memset(base_, 1, bytes_);
  }
  ~Array() { munmap(base_, bytes_); }
  Array(const Array&) = delete;
  Array& operator=(const Array&) = delete;
  char* data() const {
    const auto address = reinterpret_cast<uintptr_t>(base_);
    return reinterpret_cast<char*>((address + kHuge - 1) / kHuge * kHuge);
  }

 private:
  static constexpr size_t kHuge = 2 << 20;
  size_t bytes_;
  void* base_;
};

Ceilings::Stream stream(const CeilingLoops& loops, int threads, int repeats, size_t bytes,
                        int rounds, bool memory) {
  std::deque<Array> from, to;
  for (int t = 0; t < threads; ++t) from.emplace_back(bytes), to.emplace_back(bytes);
  Ceilings::Stream best;
  for (const CeilingLoops::Streams& s : {loops.one, loops.four}) {
    const auto raise = [&](double& rate, double each, const auto& once) {
      const double reached = best_rate(threads, repeats, [&](int t) {
        for (int i = 0; i < rounds; ++i) once(to[t].data(), from[t].data());
        return each * static_cast<double>(bytes) * rounds;
      });
      rate = std::max(rate, reached);
    };
    raise(best.read, 1, [&](char*, char* from) { s.read(from, bytes); });
    raise(best.write, 1, [&](char* to, char*) { s.write(to, bytes, memory); });
    raise(best.copy, 2, [&](char* to, char* from) { s.copy(to, from, bytes, memory); });
  }
  return best;
}

nlohmann::json to_json(const Ceilings::Stream& s) {
  return {{"read", s.read}, {"write", s.write}, {"copy", s.copy}};
}

Ceilings::Stream stream_of(const nlohmann::json& j) {
  return {j.at("read"), j.at("write"), j.at("copy")};
}

}  // namespace

nlohmann::json ceilings_here(int threads, int repeats) {
  const CeilingLoops& loops = best_loops();
  const double start = seconds(CLOCK_MONOTONIC);
  while (seconds(CLOCK_MONOTONIC) - start < kWarmSeconds)
    best_rate(threads, 1, [&](int) { return loops.multiply_add(2000000); });
  const double flops =
      best_rate(threads, repeats, [&](int) { return loops.multiply_add(2000000); });
  return {{"f32_flops", flops},
          {"memory", to_json(stream(loops, threads, repeats, kMemoryBytes, 1, true))},
          {"cache", to_json(stream(loops, threads, repeats, kCacheBytes, 200, false))},
          {"loops", loops.name}};
}

Ceilings measure_ceilings(int threads, const std::string& worker, int repeats) {
  const double start = seconds(CLOCK_MONOTONIC);
  SharedMemory nothing;
  nothing.create(1);
  WorkerProcess process(worker, "ceilings", {nothing.descriptor(), nothing.descriptor()}, threads);
  const nlohmann::json j =
      process.ask({{"do", "ceilings"}, {"threads", threads}, {"repeats", repeats}}, 60);
  return {threads,
          j.at("f32_flops"),
          stream_of(j.at("memory")),
          stream_of(j.at("cache")),
          j.at("loops"),
          seconds(CLOCK_MONOTONIC) - start};
}

}  // namespace tw::measure
