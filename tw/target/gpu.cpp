#include "tw/target/gpu.h"

#include <algorithm>
#include <array>
#include <fmt/format.h>

#include "tw/base/error.h"
#include "tw/base/round.h"

namespace tw {

std::string to_string(const GpuMachine& m) {
  return fmt::format(
      "{} arch={} multiprocessors={} shared_per_block={} shared_per_multiprocessor={} registers={} "
      "max_threads={} most_cluster={} early_launch={} l2={} memory={} copy_bandwidth={:.0f}",
      m.name, m.arch, m.multiprocessors, m.shared_per_block, m.shared_per_multiprocessor,
      m.registers, m.max_threads, m.most_cluster, m.early_launch, m.l2, m.memory, m.copy_bandwidth);
}

/// Null for an unknown name.
static const GpuMachine* find_gpu(const std::string& name) {
  // Sources: the table of technical specifications in NVIDIA's CUDA C++ Programming Guide, the data
  // sheets of A100 80GB SXM (2039 GB/s) and H200 SXM (4.8 TB/s).
  static const std::array kMachines = {
      GpuMachine{.name = "NVIDIA A100-SXM4-80GB",
                 .arch = "sm_80",
                 .multiprocessors = 108,
                 .shared_per_block = 163 << 10,
                 .shared_per_multiprocessor = 164 << 10,
                 .registers = 64 << 10,
                 .max_threads = 2048,
                 .l2 = 40 << 20,
                 .memory = int64_t{80} << 30,
                 .copy_bandwidth = copy_bandwidth(1593000, 5120)},
      GpuMachine{.name = "NVIDIA H200",
                 .arch = "sm_90a",
                 .multiprocessors = 132,
                 .shared_per_block = 227 << 10,
                 .shared_per_multiprocessor = 228 << 10,
                 .registers = 64 << 10,
                 .max_threads = 2048,
                 .most_cluster = most_cluster(9),
                 .early_launch = early_launch(9),
                 .l2 = 60 << 20,
                 .memory = int64_t{140} << 30,
                 .copy_bandwidth = copy_bandwidth(3201000, 6144)},
  };
  constexpr std::array kShort = {"a100", "h200"};
  for (size_t i = 0; i < kMachines.size(); ++i)
    if (kMachines[i].arch == name || kShort[i] == name) return &kMachines[i];
  return nullptr;
}

const GpuMachine& gpu_named(const std::string& name) {
  if (const GpuMachine* m = find_gpu(name)) return *m;
  throw UserError(fmt::format("unknown gpu '{}'", name), "known gpus: sm_80 (a100), sm_90a (h200)");
}

bool is_gpu_name(const std::string& name) { return find_gpu(name) != nullptr; }

// The limits and granularities are those of compute capabilities 8.0 and 9.0 in NVIDIA's CUDA C++
// Programming Guide.
int resident_blocks(const GpuMachine& m, int threads, int registers, int64_t shared_bytes) {
  constexpr int kWarp = 32, kMostBlocks = 32, kRegisterUnit = 256, kSystemShared = 1 << 10;
  constexpr int kSchedulers = 4;
  const int warps = ceil_div(threads, kWarp);
  const int of_warp = round_up(std::max(registers, 1) * kWarp, kRegisterUnit);
  const int by_registers = m.registers / of_warp / kSchedulers * kSchedulers / warps;
  const int by_threads = m.max_threads / (warps * kWarp);
  const auto by_shared =
      static_cast<int>(m.shared_per_multiprocessor / (shared_bytes + kSystemShared));
  return std::min({kMostBlocks, by_threads, by_registers, by_shared});
}

std::string gpu_arch(int major, int minor) {
  return fmt::format("sm_{}{}{}", major, minor, major >= 9 ? "a" : "");
}

int most_cluster(int major) { return major >= 9 ? 8 : 1; }

bool early_launch(int major) { return major >= 9; }

double copy_bandwidth(int64_t clock_khz, int64_t bus_bits) {
  // 4.28 TB/s were measured on an H200, of 4.92.
  constexpr double kReached = 0.87;
  return kReached * 2e3 * static_cast<double>(clock_khz) * static_cast<double>(bus_bits) / 8;
}

}  // namespace tw
