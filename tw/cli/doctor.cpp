#include <fmt/format.h>

#include "tw/base/error.h"
#include "tw/cli/device.h"
#include "tw/cli/verbs.h"
#include "tw/jit/cache.h"
#include "tw/jit/compiler.h"
#include "tw/runtime/device.h"

namespace tw::cli {

/// One line of the report: what was tried, and what came of it. `code` becomes that of the first
/// failure, as any other verb would end with it.
template <class F>
static void examine(const char* what, F&& attempt, int& code) {
  try {
    fmt::print("ok    {:<10} {}\n", what, attempt());
  } catch (const Error& e) {
    fmt::print("FAIL  {:<10} {}\n", what, e.what());
    if (code == 0) code = e.exit_code();
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
  const auto device = [] {
    const CpuMachine& m = Device::open("cpu:0").cpu();
    return fmt::format("cpu:0, {} cores, {}", m.cores, m.isa);
  };
  int code = 0;
  examine("device", device, code);
  examine(
      "compiler", [] { return find_compiler().path; }, code);
  examine(
      "cache", [] { return Cache::of_environment()->folder(); }, code);
  examine("kernel", try_a_kernel, code);
  return code;
}

}  // namespace tw::cli
