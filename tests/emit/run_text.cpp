#include "tests/emit/run_text.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <filesystem>
#include <fmt/format.h>
#include <fstream>
#include <map>
#include <stdexcept>
#include <unistd.h>

#include "tw/base/env.h"
#include "tw/base/hash.h"
#include "tw/emit/cpu/emit_cpu.h"
#include "tw/ir/print.h"
#include "tw/ir/verify.h"
#include "tw/passes/pipeline.h"

namespace tw::test {
namespace {

namespace fs = std::filesystem;

/// The last tensor is written; of that size, around the caches.
constexpr int64_t kStreamingBytes = 32 << 20;

Specialisation facts_of(const std::vector<TensorView>& tensors) {
  Specialisation s;
  for (const TensorView& t : tensors) {
    ParamFacts f{t.dtype, t.rank(), -1, 0, false};
    for (int k = t.rank(); k-- > 0;) {
      if (t.strides[k] == 1 && f.unit_axis < 0) f.unit_axis = k;
      if (t.strides[k] == 0) f.zero_stride |= 1u << k;
    }
    s.params.push_back(f);
  }
  s.streaming = tensors.back().count() * bytes(tensors.back().dtype) >= kStreamingBytes;
  return s;
}

Program lowered(const std::string& ir, const Specialisation& s, const CpuMachine& machine) {
  Program p = parse(ir);
  verify(p, "parse");
  run_passes(p, cpu_passes(), {machine, {}, s}, true);
  return p;
}

/// Equal programs on tensors of the same facts are lowered once a process.
const EmittedCpu& emitted(const std::string& ir, const Specialisation& s, const std::string& isa,
                          const Mapping& mapping = {}) {
  static std::map<std::string, EmittedCpu> known;
  const std::vector<std::string> names(s.params.size(), "p");
  const std::string key =
      fmt::format("{}\n{}\n{}\n{}", isa, to_string(mapping), to_string(s, names), ir);
  if (const auto it = known.find(key); it != known.end()) return it->second;
  const CpuMachine machine = machine_for(isa);
  return known.emplace(key, emit_cpu(lowered(ir, s, machine), s, machine, mapping, false))
      .first->second;
}

/// The entry of the compiled text; equal texts are compiled once a process.
TwEntry compiled(const EmittedCpu& e, const std::string& isa, const char* level = "-O2") {
  static std::map<std::string, TwEntry> known;
  const std::string key = hash_hex(e.text + isa + level);
  if (const auto it = known.find(key); it != known.end()) return it->second;
  const fs::path folder = fs::temp_directory_path() / fmt::format("tw_emit_test_{}", getpid());
  fs::create_directories(folder);
  const fs::path source = folder / (key + ".cpp"), library = folder / (key + ".so");
  std::ofstream(source) << e.text;
  const CpuMachine machine = machine_for(isa);
  const std::string cxx = env(Env::cxx).empty() ? "g++" : env(Env::cxx);
  const std::string command = fmt::format(
      "{} {} -march={}{} -fPIC -shared -nostdlib -fno-math-errno -ffp-contract=fast -w {} -o {} "
      "2>&1",
      cxx, level, machine.march, machine.vnni ? " -mavx512vnni" : "", source.string(),
      library.string());
  if (std::system(command.c_str()) != 0) throw std::runtime_error("does not compile:\n" + e.text);
  void* handle = dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!handle) throw std::runtime_error(dlerror());
  fs::remove_all(folder);
  return known[key] = reinterpret_cast<TwEntry>(dlsym(handle, e.launch.entry.c_str()));
}

struct Host {
  TwHost abi;
  int64_t scratch_bytes;
  int64_t first = 0, last = INT64_MAX;  ///< the instances that run
};

void par(const TwHost* host, int64_t n, void (*task)(void*, int64_t, int64_t, void*), void* ctx) {
  const Host& h = *reinterpret_cast<const Host*>(host);
  constexpr int64_t kStep = 3, kPage = 64;
  n = std::min(n, h.last);
  for (int64_t lo = h.first; lo < n; lo += kStep) {
    void* scratch = std::aligned_alloc(kPage, (h.scratch_bytes + kPage) / kPage * kPage);
    constexpr int64_t kPoisoned = 1 << 20;  // small problems use the first part of it
    std::memset(scratch, 0xff, static_cast<size_t>(std::min(h.scratch_bytes, kPoisoned)));
    task(ctx, lo, std::min(n, lo + kStep), scratch);
    std::free(scratch);
  }
}

}  // namespace

CpuMachine machine_for(const std::string& isa) {
  CpuMachine machine = machine_named(isa == kNoVnni ? "avx512" : isa);
  if (isa == kNoVnni) machine.vnni = false;
  return machine;
}

std::string text_for(const std::string& ir, const std::vector<TensorView>& tensors,
                     const std::string& isa) {
  return emitted(ir, facts_of(tensors), isa).text;
}

Ejected ejected_for(const std::string& ir, const std::vector<TensorView>& tensors,
                    const std::string& isa) {
  const Specialisation s = facts_of(tensors);
  const CpuMachine machine = machine_for(isa);
  return eject_cpu(lowered(ir, s, machine), s, machine, {}, {"kernel"});
}

static void run(const std::string& ir, const std::vector<TensorView>& tensors,
                const std::string& isa, const std::vector<std::pair<std::string, int64_t>>& dims,
                const EmittedCpu& e, Host host, const char* level = "-O2") {
  const TwEntry entry = compiled(e, isa, level);
  const Program p = parse(ir);
  std::vector<int64_t> values(p.dims.size()), strides;
  std::vector<void*> data;
  for (const auto& [name, value] : dims) {
    for (size_t d = 0; d < p.dims.size(); ++d) {
      if (p.dims[d].name == name) values[d] = value;
    }
  }
  for (size_t k = 0; k < tensors.size(); ++k) {
    data.push_back(tensors[k].data);
    strides.insert(strides.end(), tensors[k].strides.begin(), tensors[k].strides.end());
    for (int axis = 0; axis < tensors[k].rank(); ++axis) {
      const Expr& d = p.params[k].dims[axis];
      if (d.kind() == Expr::Kind::symbol) values[d.symbol().id] = tensors[k].dims[axis];
    }
  }
  host.scratch_bytes = e.launch.scratch_bytes;
  const TwArgs args{data.data(), values.data(), strides.data(), &host.abi};
  if (entry(&args) != 0) throw std::runtime_error("the kernel failed");
}

void run_text(const std::string& ir, const std::vector<TensorView>& tensors, const std::string& isa,
              const std::vector<std::pair<std::string, int64_t>>& dims, const Mapping& mapping,
              const char* level) {
  run(ir, tensors, isa, dims, emitted(ir, facts_of(tensors), isa, mapping), {{par, 1}, 0}, level);
}

void run_instances(const std::string& ir, const std::vector<TensorView>& tensors,
                   const std::string& isa, int64_t first, int64_t last) {
  run(ir, tensors, isa, {}, emitted(ir, facts_of(tensors), isa), {{par, 1}, 0, first, last});
}

std::vector<int64_t> dims_chosen(const std::string& ir, const std::vector<int64_t>& dims,
                                 int threads) {
  struct Recorder {
    TwHost abi;
    std::vector<int64_t>& dims;
  };
  const auto record = [](const TwHost* host, int64_t, void (*)(void*, int64_t, int64_t, void*),
                         void* ctx) {
    std::vector<int64_t>& all = reinterpret_cast<const Recorder*>(host)->dims;
    std::copy_n(static_cast<const TwArgs*>(ctx)->dims, all.size(), all.begin());
  };
  const Program p = parse(ir);
  const Specialisation s = contiguous_facts(p);
  std::vector<int64_t> got(lowered(ir, s, machine_named("generic")).dims.size());
  const Recorder host{{record, threads}, got};
  const std::vector<int64_t> strides(64, 1);
  const std::vector<void*> data(p.params.size());
  const TwArgs args{data.data(), dims.data(), strides.data(), &host.abi};
  if (compiled(emitted(ir, s, "generic"), "generic")(&args) != 0)
    throw std::runtime_error("the kernel failed");
  return got;
}

std::vector<std::string> runnable_isas() {
  std::vector<std::string> isas{"generic"};
  if (__builtin_cpu_supports("avx2")) isas.push_back("avx2");
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw")) {
    isas.push_back(__builtin_cpu_supports("avx512vnni") ? "avx512" : kNoVnni);
  }
  return isas;
}

}  // namespace tw::test
