#include "tests/kernels/run_kernel.h"

#include <gtest/gtest.h>

#include "tw/check/guarded.h"

namespace tw::test {

using check::Guarded;
using kernels::KernelEntry;
using kernels::Problem;

Tensor tensor(DType t, std::vector<int64_t> dims, const std::vector<double>& values) {
  Tensor made = host_tensor(t, std::move(dims));
  EXPECT_EQ(made.count(), std::ssize(values));
  for (int64_t i = 0; i < made.count(); ++i) set(made, i, values[static_cast<size_t>(i)]);
  return made;
}

static Kernel kernel_for(const KernelEntry& entry, const Problem& problem) {
  const Device cpu = Device::open("cpu:0");
  return compile(entry.trace(problem, cpu.target()), cpu);
}

std::vector<std::vector<double>> run_kernel(const std::string& kernel, const Problem& problem,
                                            const std::vector<Tensor>& inputs) {
  const KernelEntry& entry = kernels::kernel_named(kernel);
  const Problem whole = complete(entry, problem);
  std::vector<TensorView> views(inputs.begin(), inputs.end()), out;
  std::vector<Guarded> outputs;
  for (const kernels::Argument& a : entry.arguments(whole))
    if (a.output) outputs.emplace_back(a.dtype, a.dims);
  for (const Guarded& g : outputs) out.push_back(g);
  kernel_for(entry, whole)(views, out);
  std::vector<std::vector<double>> results;
  for (const Guarded& g : outputs) {
    EXPECT_EQ(g.damage(), "");
    results.push_back(to_doubles(g));
  }
  return results;
}

std::vector<std::vector<double>> check_kernel(const std::string& kernel, const Problem& problem,
                                              const std::vector<Tensor>& inputs) {
  const KernelEntry& entry = kernels::kernel_named(kernel);
  const Problem whole = complete(entry, problem);
  const std::vector<std::vector<double>> got = run_kernel(kernel, problem, inputs);
  const std::vector<TensorView> in(inputs.begin(), inputs.end());
  std::vector<Tensor> outputs;
  for (const kernels::Argument& a : entry.arguments(whole))
    if (a.output) outputs.push_back(tensor(a.dtype, a.dims, got[outputs.size()]));
  const check::Worst worst = check::worst_error(
      entry.reference(whole, in), std::vector<TensorView>(outputs.begin(), outputs.end()));
  EXPECT_LE(worst.ratio, 1) << to_string(whole) << ": element " << worst.index << " of output "
                            << worst.output;
  return got;
}

check::Subject subject(const KernelEntry& entry, const Problem& problem) {
  return {
      .arguments = entry.arguments(problem),
      .run = [kernel = kernel_for(entry, problem)](const auto& in,
                                                   const auto& out) { kernel(in, out); },
      .reference = [&entry, problem](
                       std::span<const TensorView> in) { return entry.reference(problem, in); }};
}

std::vector<double> run_program(Program p, const std::vector<Tensor>& inputs, DType out,
                                std::vector<int64_t> dims) {
  Guarded y(out, std::move(dims));
  std::vector<TensorView> views(inputs.begin(), inputs.end());
  compile(std::move(p), Device::open("cpu:0"))(views, {y});
  EXPECT_EQ(y.damage(), "");
  return to_doubles(y);
}

}  // namespace tw::test
