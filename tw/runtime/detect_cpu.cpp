#if defined(__x86_64__)
#include <cpuid.h>
#endif
#include <algorithm>
#include <fstream>
#include <string>
#include <unistd.h>

#include "tw/runtime/device.h"
#include "tw/runtime/thread_pool.h"

namespace tw {

namespace {

/// The widest instruction set whose every feature (those of the compiler's -march level) is there
/// and enabled by the operating system.
std::string detect_isa() {
#if defined(__x86_64__)
  __builtin_cpu_init();
  unsigned a = 0, b = 0, c = 0, d = 0, extended = 0;
  __get_cpuid(1, &a, &b, &c, &d);
  __get_cpuid(0x80000001, &a, &b, &extended, &d);
  const bool movbe = c >> 22 & 1, f16c = c >> 29 & 1, lzcnt = extended >> 5 & 1;
  const bool v3 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
                  __builtin_cpu_supports("bmi") && __builtin_cpu_supports("bmi2") && movbe &&
                  f16c && lzcnt;
  const bool v4 = v3 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                  __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512dq") &&
                  __builtin_cpu_supports("avx512vl");
  return v4 ? "avx512" : v3 ? "avx2" : "generic";
#elif defined(__aarch64__)
  return "neon";
#else
  return "generic";
#endif
}

bool has_vnni() {
#if defined(__x86_64__)
  return __builtin_cpu_supports("avx512vnni");
#else
  return false;
#endif
}

std::string model_name() {
  std::ifstream cpuinfo("/proc/cpuinfo");
  for (std::string line; std::getline(cpuinfo, line);) {
    if (line.rfind("model name", 0) != 0) continue;
    const size_t colon = line.find(": ");
    if (colon != std::string::npos) return line.substr(colon + 2);
  }
  return "unknown";
}

/// First word of a file of /sys about a cache of the first core; empty where there is none.
std::string cache_word(int index, const char* file) {
  std::ifstream in("/sys/devices/system/cpu/cpu0/cache/index" + std::to_string(index) + "/" + file);
  std::string word;
  in >> word;
  return word;
}

/// Bytes of the cache of data of a level, as the kernel has it from the processor; 0 when it does
/// not say.
int64_t cache_bytes(int level) {
  for (int i = 0; !cache_word(i, "level").empty(); ++i) {
    if (cache_word(i, "level") != std::to_string(level)) continue;
    if (cache_word(i, "type") == "Instruction") continue;
    const std::string size = cache_word(i, "size");  // such as 32768K
    const auto digits = static_cast<size_t>(
        std::ranges::find_if(size, [](char c) { return c < '0' || c > '9'; }) - size.begin());
    if (digits == 0 || digits > 9) return 0;
    const int shift = size.ends_with("K") ? 10 : size.ends_with("M") ? 20 : 0;
    return std::stoll(size.substr(0, digits)) << shift;
  }
  return 0;
}

/// Bytes of a cache, or what stands there already when the system does not say. The C library takes
/// what a hypervisor says of caches, which may be those of several processors: the kernel goes
/// first.
void ask(int level, int what, int64_t& bytes) {
  if (const int64_t n = cache_bytes(level); n > 0) {
    bytes = n;
    return;
  }
  const long n = sysconf(what);
  if (n > 0) bytes = n;
}

}  // namespace

CpuMachine detect_cpu() {
  CpuMachine m = machine_named(detect_isa());
#if defined(__aarch64__)
  m.march = "armv8-a";  // any 64-bit Arm runs it; the named machine is a newer one
#endif
  m.vnni = has_vnni() && m.isa == "avx512";
  m.name = model_name();
  ask(1, _SC_LEVEL1_DCACHE_SIZE, m.l1d);
  ask(2, _SC_LEVEL2_CACHE_SIZE, m.l2);
  ask(3, _SC_LEVEL3_CACHE_SIZE, m.l3);
  m.cores = usable_cores();
  return m;
}

}  // namespace tw
