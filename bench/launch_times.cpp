// What a launch costs beside the kernel's own work: medians in nanoseconds. `tools/soak
// launch-times` keeps its log.
#include <algorithm>
#include <chrono>
#include <fmt/format.h>
#include <thread>
#include <vector>

#include "tw/base/error.h"
#include "tw/ir/print.h"
#include "tw/jit/kernel.h"
#include "tw/runtime/cuda/cuda.h"
#include "tw/runtime/thread_pool.h"

namespace tw {
namespace {

/// Median nanoseconds of body() over 1000 slices of `calls` calls, `pause_us` before each.
template <class F>
double median_ns(F&& body, int calls, int pause_us = 0) {
  std::vector<double> times;
  for (int slice = 0; slice < 1000; ++slice) {
    if (pause_us > 0) std::this_thread::sleep_for(std::chrono::microseconds(pause_us));
    const auto start = std::chrono::steady_clock::now();
    for (int i = 0; i < calls; ++i) body();
    const std::chrono::duration<double, std::nano> took = std::chrono::steady_clock::now() - start;
    times.push_back(took.count() / calls);
  }
  std::nth_element(times.begin(), times.begin() + times.size() / 2, times.end());
  return times[times.size() / 2];
}

Program scale() {
  return parse(
      "program scale\ndim N\nin x: f32[N]\nout y: f32[N]\ngrid (cdiv(N, 64))\n"
      "%0 = load x{pid0*64} : f32[64]\n%1 = full 3 : f32[64]\n%2 = mul %0, %1 : f32[64]\n"
      "store %2 to y{pid0*64}\n");
}

/// The host's part of a launch on a GPU; TW_CUDA_DRIVER may name tests/libfake_cuda.so of the
/// build.
void run_gpu() {
  const Device d = Device::open("cuda:0");
  const Kernel k = compile(scale(), d);
  const Tensor x = empty(d, f32, {64}), y = empty(d, f32, {64});
  const std::vector<TensorView> inputs{x}, outputs{y};
  k(inputs, outputs);
  const cuda::Stream s = cuda::Stream::make(d);
  fmt::print("y = 3 x on {}, 1 instance of 64: {:.0f} ns\n", d.gpu().name,
             median_ns([&] { k.launch(s, inputs, outputs); }, 20));
  s.synchronize();
}

int run() {
  const Device d = Device::open("cpu:0");
  ThreadPool& pool = d.pool();
  fmt::print("{} threads\n", pool.threads());
  const Kernel k = compile(scale(), d);
  for (int64_t n : {64, 128, 4096}) {
    const Tensor x = empty(d, f32, {n}), y = empty(d, f32, {n});
    const std::vector<TensorView> inputs{x}, outputs{y};
    k(inputs, outputs);
    fmt::print("y = 3 x, {} instances of 64: {:.0f} ns; {:.0f} ns with views made for the call\n",
               n / 64, median_ns([&] { k(inputs, outputs); }, 20),
               median_ns([&] { k({x}, {y}); }, 20));
  }
  const auto nothing = [](void*, int64_t, int64_t, void*) {};
  for (int64_t n : {1, 2, 1000}) {
    fmt::print("a run of {} empty items: {:.0f} ns\n", n,
               median_ns([&] { pool.run(n, nothing, nullptr); }, 20));
  }
  fmt::print("a run of 2 empty items when the workers sleep: {:.0f} ns\n",
             median_ns([&] { pool.run(2, nothing, nullptr); }, 1, 300));
  if (cuda::device_count() > 0) run_gpu();
  return 0;
}

}  // namespace
}  // namespace tw

int main() {
  try {
    return tw::run();
  } catch (const tw::Error& e) {
    fmt::print(stderr, "{}\n", e.what());
    return e.exit_code();
  }
}
