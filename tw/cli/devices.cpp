#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "tw/base/error.h"
#include "tw/cli/device.h"
#include "tw/cli/gpu_ceilings.h"
#include "tw/cli/output.h"
#include "tw/cli/verbs.h"
#include "tw/measure/ceilings.h"
#include "tw/runtime/cuda/cuda.h"

namespace tw::cli {

namespace {

using nlohmann::json;

/// A rate as people and as rows get it.
struct Rate {
  const char* name;
  double value;
  const char* unit;
};

std::vector<Rate> rates_of_cpu(const measure::Ceilings& c) {
  return {{"f32", c.f32_flops * 1e-3, "GFLOP/s"},
          {"memory_read", c.memory.read * 1e-3, "GB/s"},
          {"memory_write", c.memory.write * 1e-3, "GB/s"},
          {"memory_copy", c.memory.copy * 1e-3, "GB/s"},
          {"cache_read", c.cache.read * 1e-3, "GB/s"},
          {"cache_write", c.cache.write * 1e-3, "GB/s"},
          {"cache_copy", c.cache.copy * 1e-3, "GB/s"}};
}

std::vector<Rate> rates_of_gpu(const GpuPeaks& p) {
  return {{"f32", p.f32, "TFLOP/s"},
          {"half", p.half, "TFLOP/s"},
          {"f64", p.f64, "TFLOP/s"},
          {"integer", p.integer, "TOP/s"},
          {"special", p.special, "TOP/s"},
          {"convert", p.convert, "TOP/s"},
          {"dot_tf32", p.dot_tf32, "TFLOP/s"},
          {"dot_half", p.dot_half, "TFLOP/s"},
          {"dot_fp8", p.dot_fp8, "TFLOP/s"},
          {"dot_i8", p.dot_i8, "TOP/s"},
          {"memory_read", p.read, "TB/s"},
          {"memory_write", p.write, "TB/s"},
          {"memory_copy", p.copy, "TB/s"},
          {"cache_read", p.cache_read, "TB/s"},
          {"cache_write", p.cache_write, "TB/s"},
          {"cache_copy", p.cache_copy, "TB/s"},
          {"load", p.load_ns, "ns"},
          {"cached_load", p.cached_load_ns, "ns"},
          {"arithmetic", double(p.arithmetic_cycles), "clocks"},
          {"clock", p.clock_ghz, "GHz"},
          {"launch", p.launch_us, "us"}};
}

/// GPUs, as `devices` tells of them.
void list_gpus(std::vector<json>& rows, std::string& text) {
  const int count = cuda::device_count();
  for (int i = 0; i < count; ++i) {
    const std::string name = fmt::format("cuda:{}", i);
    try {
      const GpuMachine m = Device::open(name).gpu();
      rows.push_back({{"device", name},
                      {"name", m.name},
                      {"arch", m.arch},
                      {"multiprocessors", m.multiprocessors},
                      {"shared_bytes", m.shared_per_multiprocessor},
                      {"l2_bytes", m.l2},
                      {"memory_bytes", m.memory}});
      text += fmt::format(
          "{:<7} {}\n        {} multiprocessors, {}, shared memory {} KiB each\n        L2 {} MiB, "
          "memory {:.1f} GB\n",
          name, m.name, m.multiprocessors, m.arch, m.shared_per_multiprocessor >> 10, m.l2 >> 20,
          double(m.memory) * 1e-9);
    } catch (const Error& e) {
      text += fmt::format("{:<7} {}\n", name, e.message());
    }
  }
}

int measure(const Arguments& a) {
  if (a.device == "interp")
    throw UserError("the interpreter has no rates", "measure cpu:0 or cuda:0");
  const Device device = open_device(a.device, "cpu:0, cuda:0");
  if (device.kind() == DeviceKind::emu)
    throw UserError("an emulated device has no rates", "measure cpu:0 or cuda:0");
  std::string what = device.name();
  std::vector<Rate> rates;
  if (device.kind() == DeviceKind::cpu) {
    const int threads = a.threads > 0 ? a.threads : device.cpu().cores;
    what += fmt::format(", {}, {} thread{}", device.cpu().name, threads, threads == 1 ? "" : "s");
    rates = rates_of_cpu(measure::measure_ceilings(threads));
  } else {
    what += ", " + device.gpu().name;
    rates = rates_of_gpu(measure_gpu(device));
  }
  if (a.json) {
    json row = {{"device", what}};
    for (const Rate& r : rates) row[r.name] = {{"value", r.value}, {"unit", r.unit}};
    write_json(*a.json, {row});
  }
  if (!shows_text(a)) return 0;
  fmt::print("{}\n", what);
  for (const Rate& r : rates) fmt::print("  {:<14} {:>9.4g} {}\n", r.name, r.value, r.unit);
  return 0;
}

}  // namespace

int run_devices(const Arguments& a) {
  if (a.measure) return measure(a);
  if (a.device != Arguments{}.device || a.threads > 0)
    throw UserError(
        fmt::format("{} without --measure", a.threads > 0 ? "--threads" : "--device " + a.device),
        "devices lists all; --measure measures one");
  const Device device = Device::open("cpu:0");
  const CpuMachine& m = device.cpu();
  std::vector<json> rows = {{{"device", device.name()},
                             {"name", m.name},
                             {"isa", m.isa},
                             {"march", m.march},
                             {"cores", m.cores},
                             {"vector_bytes", m.vector_bytes},
                             {"l1d_bytes", m.l1d},
                             {"l2_bytes", m.l2},
                             {"l3_bytes", m.l3}}};
  std::string gpus;
  list_gpus(rows, gpus);
  if (a.json) {
    write_json(*a.json, rows);
    return 0;
  }
  fmt::print("{:<7} {}\n", device.name(), m.name);
  fmt::print("        {} cores, {} ({}-bit vectors), -march={}\n", m.cores, m.isa,
             m.vector_bytes * 8, m.march);
  fmt::print("        L1d {} KiB, L2 {} KiB a core, L3 {} MiB shared\n", m.l1d >> 10, m.l2 >> 10,
             m.l3 >> 20);
  fmt::print("{}", gpus);
  fmt::print("{:<7} CUDA text, run by the CPU and searched for races, slowly\n", "emu:0");
  fmt::print("{:<7} the interpreter: the meaning of every program, slowly\n", "interp");
  return 0;
}

}  // namespace tw::cli
