#include <fmt/format.h>

#include "tw/base/error.h"
#include "tw/cli/device.h"
#include "tw/cli/verbs.h"
#include "tw/jit/cache.h"
#include "tw/jit/compiler.h"
#include "tw/runtime/device.h"

namespace tw::cli {

/// One line of the report: what was tried, and what came of it.
template <class F>
static bool examine(const char* what, F&& attempt) {
  try {
    fmt::print("ok    {:<10} {}\n", what, attempt());
    return true;
  } catch (const std::exception& e) {
    fmt::print("FAIL  {:<10} {}\n", what, e.what());
    return false;
  }
}

/// Compiles and runs a small kernel and compares it with its reference.
static std::string try_a_kernel() {
  Arguments a;
  a.target = "elementwise";
  a.shape = {"m=3,n=5"};
  Call call = call_of(a);
  run_call(call, a);
  check::Reference want = call.entry->reference(call.problem, call.input_views());
  if (check::worst_error(want, call.output_views()).ratio > 1)
    throw DeviceError("a kernel gave a wrong result");
  return "a small kernel was compiled (or found in the cache), and is right";
}

int run_doctor(const Arguments&) {
  bool well = examine("device", [] {
    const CpuMachine& m = Device::open("cpu:0").cpu();
    return fmt::format("cpu:0, {} cores, {}", m.cores, m.isa);
  });
  well &= examine("compiler", [] { return find_compiler().path; });
  well &= examine("cache", [] { return Cache::of_environment()->folder(); });
  well &= examine("kernel", try_a_kernel);
  return well ? 0 : 3;
}

}  // namespace tw::cli
