#include "tw/cli/device.h"

#include "tw/base/error.h"
#include "tw/check/staged.h"
#include "tw/interp/interpreter.h"

namespace tw::cli {

static Program program_for(const kernels::KernelEntry& k, const kernels::Problem& p,
                           const Device& d, const Arguments& a) {
  return k.trace(p, d.target(a.threads));
}

Device open_device(const std::string& name, const std::string& known) {
  try {
    return Device::open(name);
  } catch (const UserError& e) {
    if (name.starts_with("cuda:")) throw;  // which says how many there are
    throw UserError(e.message(), "known devices: " + known);
  }
}

/// One on which kernels run.
static Device open_device(const std::string& name) {
  return open_device(name, "cpu:0, cuda:0, emu:0, interp");
}

Kernel kernel_for(const kernels::KernelEntry& k, const kernels::Problem& p, const Arguments& a) {
  const Device device = open_device(a.device);
  CompileOptions options;
  options.threads = a.threads;
  if (!a.mapping.empty()) options.mapping = parse_mapping(a.mapping);
  return compile(program_for(k, p, device, a), device, options);
}

RunKernel runner(const kernels::KernelEntry& k, const kernels::Problem& p, const Arguments& a) {
  if (a.device == "interp")
    return [program = program_for(k, p, Device::open("cpu:0"), a)](
               const auto& in, const auto& out) { interpret(program, in, out); };
  return
      [kernel = kernel_for(k, p, a), device = open_device(a.device)](
          const auto& in, const auto& out) { check::run_on_host_tensors(kernel, device, in, out); };
}

std::string run_call(const Call& call, const Arguments& a) {
  const std::vector<TensorView> in = call.input_views(), out = call.output_views();
  if (a.device == "interp") {
    runner(*call.entry, call.problem, a)(in, out);
    return "";
  }
  const Kernel kernel = kernel_for(*call.entry, call.problem, a);
  check::run_on_host_tensors(kernel, open_device(a.device), in, out);
  return kernel.source_path(in, out);
}

}  // namespace tw::cli
