// Every kernel of the library on NEON: ejected for it, built by aarch64-linux-gnu-g++, run under
// qemu-aarch64 on small problems of its sweep, and judged by its reference and bound. The last line
// counts kernels run and kernels that disagree; 0 means that none does.
#include <CLI/CLI.hpp>
#include <cstring>
#include <filesystem>
#include <fmt/format.h>
#include <fstream>
#include <optional>
#include <stdexcept>
#include <unistd.h>

#include "tw/check/verify.h"
#include "tw/jit/kernel.h"
#include "tw/jit/process.h"
#include "tw/kernels/entry.h"

#include "tests/jit/ejected.h"

namespace tw::test {
namespace {

namespace fs = std::filesystem;
using kernels::KernelEntry;
using kernels::Problem;

constexpr int kSeconds = 120;  // for one build or one run

struct Options {
  std::string kernel, compiler = "/usr/bin/aarch64-linux-gnu-g++";
  std::string emulator = "/usr/bin/qemu-aarch64";
};

/// Reads tensors (rank, dims, strides, bytes, contents), calls the kernel on copies between guard
/// zones, and writes the contents back. Leaves with the kernel's code, or 100 when a guard changed.
const char* const kMain = R"(#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
extern "C" int call(void* const* data, const int64_t* const* dims, const int64_t* const* strides,
                    const int64_t* given,
                    void (*par)(void*, int64_t, void (*)(void*, int64_t, int64_t), void*), void*);
struct Tensor {
  int64_t dims[8], strides[8], bytes;
  unsigned char* memory;
};
enum { kGuard = 256, kMost = 32 };
static Tensor tensors[kMost];
static int64_t number(FILE* f) {
  int64_t n = 0;
  if (fread(&n, 8, 1, f) != 1) exit(101);
  return n;
}
int main(int, char** names) {
  FILE* in = fopen(names[1], "rb");
  const int64_t count = number(in);
  void* data[kMost];
  const int64_t *dims[kMost], *strides[kMost];
  for (int64_t k = 0; k < count; ++k) {
    Tensor& t = tensors[k];
    const int64_t rank = number(in);
    for (int64_t i = 0; i < rank; ++i) t.dims[i] = number(in);
    for (int64_t i = 0; i < rank; ++i) t.strides[i] = number(in);
    t.bytes = number(in);
    t.memory = (unsigned char*)malloc(t.bytes + 2 * kGuard);
    memset(t.memory, 0xa5, t.bytes + 2 * kGuard);
    if (t.bytes && fread(t.memory + kGuard, t.bytes, 1, in) != 1) exit(101);
    data[k] = t.memory + kGuard, dims[k] = t.dims, strides[k] = t.strides;
  }
  const int code = call(data, dims, strides, nullptr, nullptr, nullptr);
  if (code) return code;
  FILE* out = fopen(names[2], "wb");
  for (int64_t k = 0; k < count; ++k) {
    const Tensor& t = tensors[k];
    for (int i = 0; i < kGuard; ++i)
      if (t.memory[i] != 0xa5 || t.memory[kGuard + t.bytes + i] != 0xa5) return 100;
    fwrite(t.memory + kGuard, 1, t.bytes, out);
  }
  return fclose(out);
}
)";

class Folder {
 public:
  Folder() : path_(fs::temp_directory_path() / fmt::format("tw_neon_{}", getpid())) {
    fs::create_directories(path_);
  }
  ~Folder() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  std::string file(const std::string& name) const { return path_ / name; }

 private:
  fs::path path_;
};

/// Throws what the command says when it fails.
void run(const std::vector<std::string>& command, const Folder& folder) {
  const std::string messages = folder.file("messages");
  const Finished done = run_process(command, messages, kSeconds);
  if (done.kind == Finished::Kind::exited && done.code == 0) return;
  std::ifstream said(messages);
  throw std::runtime_error(fmt::format("{} left with {} {}: {}", command[0], done.code, done.reason,
                                       std::string((std::istreambuf_iterator<char>(said)), {})));
}

/// A kernel as a program of its own for the other machine.
class Emulated {
 public:
  Emulated(const KernelEntry& entry, const Problem& p, const Options& options, const Folder& folder)
      : options_(options), folder_(folder) {
    static int made = 0;
    const std::string name = fmt::format("kernel{}", ++made);
    const std::string source = folder.file(name + ".cpp"), caller = folder.file(name + "_call.cpp");
    const CpuMachine& neon = machine_named("neon");
    const Kernel kernel = compile(entry.trace(p, {neon, 1}), Device::open_as(neon));
    kernel.eject(source);
    std::ofstream(caller) << caller_text(kernel.program(), kernel.program().name, name + ".h")
                          << kMain;
    program_ = folder.file(name);
    run({options.compiler, "-std=c++17", "-O2", "-static", "-o", program_, source, caller}, folder);
  }

  void operator()(const std::vector<TensorView>& tensors) const {
    const std::string in = folder_.file("in"), out = folder_.file("out");
    {
      std::ofstream file(in, std::ios::binary);
      const auto number = [&](int64_t n) {
        file.write(reinterpret_cast<const char*>(&n), sizeof n);
      };
      number(std::ssize(tensors));
      for (const TensorView& t : tensors) {
        number(t.rank());
        for (const int64_t n : t.dims) number(n);
        for (const int64_t n : t.strides) number(n);
        number(size(t));
        file.write(static_cast<const char*>(t.data), size(t));
      }
    }
    run({options_.emulator, program_, in, out}, folder_);
    std::ifstream file(out, std::ios::binary);
    for (const TensorView& t : tensors)
      if (!file.read(static_cast<char*>(t.data), size(t)))
        throw std::runtime_error("the emulated kernel wrote too little");
  }

 private:
  static int64_t size(const TensorView& t) { return byte_count(t.dtype, t.dims); }

  const Options& options_;
  const Folder& folder_;
  std::string program_;
};

/// The problems of the sweep that are small enough to emulate.
std::vector<Problem> problems_of(const KernelEntry& k) {
  constexpr int64_t kMost = 20'000;
  std::vector<Problem> all;
  for (const Problem& some : k.sweep()) {
    const Problem p = complete(k, some);
    int64_t elements = 0;
    for (const kernels::Argument& a : k.arguments(p)) {
      int64_t n = 1;
      for (const int64_t d : a.dims) n *= d;
      elements += n;
    }
    if (elements <= kMost) all.push_back(p);
  }
  return all;
}

/// Whether the kernel agrees with its reference; says how it went.
bool judge(const KernelEntry& entry, const Options& options) {
  const Folder folder;
  check::Sweep sweep({.values = {check::Values::uniform, check::Values::special},
                      .layouts = {},
                      .refuses_aliases = false,
                      .whole = false});
  std::string fault;
  try {
    for (const Problem& p : problems_of(entry)) {
      const Emulated emulated(entry, p, options, folder);
      const auto arguments = entry.arguments(p);
      const auto call = [&](const std::vector<TensorView>& in, const std::vector<TensorView>& out) {
        std::vector<TensorView> all;
        size_t i = 0, o = 0;
        for (const kernels::Argument& a : arguments) all.push_back(a.output ? out[o++] : in[i++]);
        emulated(all);
      };
      sweep.add(
          to_string(p),
          {.arguments = arguments, .run = call, .reference = [&](std::span<const TensorView> in) {
             return entry.reference(p, in);
           }});
    }
    fault = sweep.verdict();
  } catch (const std::exception& e) {
    fault = e.what();
  }
  if (fault.empty() && sweep.runs() == 0) fault = "no problem is small enough";
  fmt::print("{}: {} runs, {} elements, worst error {:.3f} of its bound{}{}\n", entry.name,
             sweep.runs(), sweep.elements(), sweep.worst(), fault.empty() ? "" : "; DISAGREES\n  ",
             fault);
  std::fflush(stdout);
  return fault.empty();
}

int run_all(const Options& options) {
  int kernels = 0, disagree = 0;
  for (const KernelEntry& entry : kernels::kernel_list()) {
    if (!options.kernel.empty() && options.kernel != entry.name) continue;
    ++kernels;
    disagree += judge(entry, options) ? 0 : 1;
  }
  fmt::print("{} kernels run, {} disagree\n", kernels, disagree);
  return kernels > 0 && disagree == 0 ? 0 : 1;
}

}  // namespace
}  // namespace tw::test

int main(int argc, char** argv) {
  tw::test::Options options;
  CLI::App app("every kernel, ejected for NEON and run under an emulator");
  app.add_option("--kernel", options.kernel, "this one only");
  app.add_option("--compiler", options.compiler, "a compiler for aarch64");
  app.add_option("--emulator", options.emulator, "what runs its programs");
  CLI11_PARSE(app, argc, argv);
  return tw::test::run_all(options);
}
