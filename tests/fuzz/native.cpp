#include "tests/fuzz/native.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <fmt/format.h>
#include <memory>
#include <stdexcept>
#include <sys/mman.h>
#include <unistd.h>

#include "tw/jit/compiler.h"
#include "tw/passes/pipeline.h"
#include "tw/runtime/device.h"

namespace tw::test {

namespace {

const CpuMachine& this_machine() {
  static const Device device = Device::open("cpu:0");
  return device.cpu();
}

bool is_aligned(const TensorView& t, int unit_axis) {
  bool aligned = reinterpret_cast<uintptr_t>(t.data) % 16 == 0;
  for (int k = 0; k < t.rank(); ++k)
    if (k != unit_axis) aligned = aligned && t.strides[k] * bytes(t.dtype) % 16 == 0;
  return aligned;
}

/// Loads a shared object from memory and finds its entry; the library stays for the process.
TwEntry load(const std::string& library, const std::string& entry) {
  const int fd = memfd_create("tw_fuzz", MFD_CLOEXEC);
  if (fd < 0 || write(fd, library.data(), library.size()) != static_cast<ssize_t>(library.size()))
    throw std::runtime_error("no memory for a shared object");
  void* handle = dlopen(fmt::format("/proc/self/fd/{}", fd).c_str(), RTLD_NOW | RTLD_LOCAL);
  close(fd);
  if (!handle) throw std::runtime_error(dlerror());
  void* symbol = dlsym(handle, entry.c_str());
  if (!symbol) throw std::runtime_error("no entry " + entry);
  return reinterpret_cast<TwEntry>(symbol);
}

struct Host {
  TwHost abi;
  int64_t scratch_bytes;
};

void par(const TwHost* host, int64_t n, void (*task)(void*, int64_t, int64_t, void*), void* ctx) {
  const Host& h = *reinterpret_cast<const Host*>(host);
  constexpr int64_t kLine = 64;
  int64_t step = 1;
  for (int64_t lo = 0; lo < n; lo += step, step = step % 3 + 1) {
    const int64_t size = (h.scratch_bytes + kLine) / kLine * kLine;
    const std::unique_ptr<void, decltype(&std::free)> scratch(
        std::aligned_alloc(kLine, static_cast<size_t>(size)), &std::free);
    constexpr int64_t kPoisoned = 1 << 20;  // small programs use the first part of it
    std::memset(scratch.get(), 0xff, static_cast<size_t>(std::min(size, kPoisoned)));
    task(ctx, lo, std::min(n, lo + step), scratch.get());
  }
}

/// Asserts of random programs hold. A text cannot be left by exceptions.
void tell(const TwHost*, int64_t number, const int64_t*, int64_t element, const void*) {
  fmt::print(stderr, "assert {} failed at element {}\n", number, element);
  std::abort();
}

}  // namespace

Specialisation assumptions_of(const Arguments& a) {
  Specialisation s;
  s.fits32 = true;
  for (const Guarded& g : a.tensors) {
    const TensorView& t = g.view();
    ParamFacts f{t.dtype, t.rank(), -1, 0, false};
    for (int k = t.rank(); k-- > 0;) {
      if (t.strides[k] == 1 && f.unit_axis < 0) f.unit_axis = k;
      if (t.strides[k] == 0) f.zero_stride |= 1u << k;
    }
    f.aligned = is_aligned(t, f.unit_axis);
    s.params.push_back(f);
  }
  return s;
}

NativeKernel::NativeKernel(const RandomProgram& r, const Hooks& hooks) {
  Program p = r.program;
  canonicalize(p);
  if (hooks.program) changed_ = hooks.program(p);
  Specialisation s = assumptions_of(arguments(r));
  if (hooks.assumptions) changed_ = hooks.assumptions(s) || changed_;
  Mapping mapping;  // of every other program: contractions in many small pieces
  if (r.seed % 2 == 1) mapping.knobs = {{"pm", 1 + r.seed / 2 % 11}, {"pn", 1 + r.seed / 2 % 13}};
  run_passes(p, cpu_passes(), {this_machine(), mapping, s}, true);
  emitted_ = emit_cpu(p, s, this_machine(), mapping, false);
  if (hooks.text) changed_ = hooks.text(emitted_.text) || changed_;
}

/// Planted bugs lie in the text, whatever the compiler makes of it: -Og takes half the time.
void NativeKernel::compile() {
  static const Compiler compiler = find_compiler();
  std::vector<std::string> flags = compile_flags(compiler, this_machine(), false);
  std::ranges::replace(flags, "-O2", "-Og");
  entry_ = load(compile_shared(compiler, flags, emitted_.text), emitted_.launch.entry);
}

void NativeKernel::run(const RandomProgram& r, const Arguments& a) const {
  std::vector<int64_t> dims, strides;
  for (const auto& [name, value] : r.dims) dims.push_back(value);
  std::vector<void*> data;
  for (const Guarded& g : a.tensors) {
    data.push_back(g.view().data);
    strides.insert(strides.end(), g.view().strides.begin(), g.view().strides.end());
  }
  const Host host{{par, 1, tell}, emitted_.launch.scratch_bytes};
  const TwArgs args{data.data(), dims.data(), strides.data(), &host.abi};
  if (const int code = entry_(&args); code != 0)
    throw std::runtime_error(fmt::format("the kernel returned {}", code));
}

}  // namespace tw::test
