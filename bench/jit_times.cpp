// What making the library's kernels ready takes: cold (lowering, emission, the C++ compiler) and
// from the disk cache. One line a kernel, then the two medians. `tools/soak jit-times` keeps its
// log.
#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fmt/format.h>
#include <set>

#include "tw/base/error.h"
#include "tw/jit/compiler.h"
#include "tw/jit/kernel.h"
#include "tw/kernels/entry.h"

namespace tw {
namespace {

struct Times {
  std::vector<double> cold, disk;  // seconds
};

double median(std::vector<double> v) {
  std::nth_element(v.begin(), v.begin() + v.size() / 2, v.end());
  return v[v.size() / 2];
}

/// Seconds from a traced program to a kernel that could be launched.
double ready(const Program& p, const Device& d, const std::vector<TensorView>& inputs,
             const std::vector<TensorView>& outputs) {
  const auto start = std::chrono::steady_clock::now();
  compile(p, d).prepare(inputs, outputs);
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

void time_problem(const kernels::KernelEntry& k, const kernels::Problem& problem, const Device& d,
                  Times& times) {
  std::vector<TensorView> inputs, outputs;
  std::vector<Tensor> memory;
  for (const kernels::Argument& a : k.arguments(problem)) {
    memory.push_back(empty(d, a.dtype, a.dims));
    (a.output ? outputs : inputs).push_back(memory.back());
  }
  const Program p = k.trace(problem, d.target());
  const double cold = ready(p, d, inputs, outputs);
  std::vector<double> again;
  for (int i = 0; i < 11; ++i) again.push_back(ready(p, d, inputs, outputs));
  const double disk = median(again);
  times.cold.push_back(cold);
  times.disk.push_back(disk);
  fmt::print("{:12} {:50} cold {:.3f} s, from disk {:.3f} ms\n", k.name, to_string(problem), cold,
             disk * 1e3);
}

int run() {
  std::string folder = std::filesystem::temp_directory_path() / "tilewright-jit-times-XXXXXX";
  if (!mkdtemp(folder.data())) return 3;
  setenv("TW_CACHE_DIR", folder.c_str(), 1);
  const Device d = Device::open("cpu:0");
  fmt::print("{}\n", find_compiler().identity);
  Times times;
  for (const kernels::KernelEntry& k : kernels::kernel_list()) {
    std::set<std::string> seen;  // of each dtype and options, the first shape
    for (const kernels::Problem& problem : k.bench()) {
      kernels::Problem shapeless = problem;
      shapeless.shape.clear();
      if (seen.insert(to_string(shapeless)).second) time_problem(k, problem, d, times);
    }
  }
  std::filesystem::remove_all(folder);
  if (times.cold.empty()) return 2;
  fmt::print("{} kernels: cold median {:.3f} s, disk median {:.3f} ms\n", times.cold.size(),
             median(times.cold), median(times.disk) * 1e3);
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
