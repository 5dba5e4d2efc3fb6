#include "tests/fuzz/emulated.h"

#include <stdexcept>

#include "tw/emit/cuda/emit_cuda.h"
#include "tw/emu/emulator.h"
#include "tw/passes/pipeline.h"

#include "tests/fuzz/native.h"

namespace tw::test {
namespace {

EmittedCuda emit(const RandomProgram& r, const Arguments& a) {
  Program p = r.program;
  drop_messages(p, true);
  canonicalize(p);
  const Specialisation s = assumptions_of(a);
  const Mapping mapping{"cuda1", {}};
  run_passes(p, cuda_passes(), {machine_named("generic"), mapping, s});
  return emit_cuda(p, s, gpu_named("sm_90a"), mapping, false, cpu::Thread::emulated);
}

}  // namespace

std::string emulated_text(const RandomProgram& r, const Arguments& a) { return emit(r, a).text; }

void run_emulated(const RandomProgram& r, const Arguments& a) {
  const EmittedCuda e = emit(r, a);
  std::vector<TensorView> all;
  for (const auto& t : a.tensors) all.push_back(t.view());
  std::vector<int64_t> dims;
  for (const auto& [name, value] : r.dims) dims.push_back(value);
  const EmuReport report =
      tw::run_emulated(e.text, e.launch, all, dims, {.seed = r.seed, .blocks = 4});
  if (!report.clean()) throw std::runtime_error(report.text);
}

}  // namespace tw::test
