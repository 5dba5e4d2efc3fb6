#include "tw/jit/nvrtc.h"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <dlfcn.h>
#include <filesystem>
#include <fmt/format.h>
#include <glob.h>
#include <link.h>
#include <memory>
#include <mutex>
#include <optional>
#include <sstream>

#include "tw/base/env.h"
#include "tw/base/error.h"

namespace tw {

namespace {

// ---- what we use of the library (NVIDIA's NVRTC documentation); numbers are of nvrtcResult

constexpr int kNoMemory = 1, kBadOption = 5, kBadText = 6, kNoBuiltins = 7;
constexpr int kWantedMajor = 13;
constexpr const char* kLibrary = "libnvrtc.so.13";
constexpr const char* kPackage =
    "pip install nvidia-cuda-nvrtc (version 13), or name the folder of libnvrtc.so.13 in TW_NVRTC";

using ProgramHandle = struct ProgramOfNvrtc*;

/// A function of the library; throws EnvError when it lacks it.
template <class F>
F* function_of(const Nvrtc& n, const char* name) {
  if (void* found = dlsym(n.library, name)) return reinterpret_cast<F*>(found);
  throw EnvError(fmt::format("the NVRTC '{}' has no {}", n.path, name), kPackage);
}

std::vector<std::string> globbed(const std::string& pattern) {
  glob_t found{};
  std::vector<std::string> paths;
  if (glob(pattern.c_str(), 0, nullptr, &found) == 0)
    paths.assign(found.gl_pathv, found.gl_pathv + found.gl_pathc);
  globfree(&found);
  return paths;
}

/// The library asks for its builtins by bare name, which leads to no folder of a package; the
/// loader gives it those that are loaded already.
void load_builtins(const std::string& library) {
  const std::string folder = std::filesystem::path(library).parent_path();
  for (const std::string& path :
       globbed(fmt::format("{}/libnvrtc-builtins.so.{}.*", folder, kWantedMajor)))
    dlopen(path.c_str(), RTLD_NOW | RTLD_GLOBAL);
}

Nvrtc of_library(void* library) {
  Nvrtc n{kLibrary, "", library};
  link_map* map = nullptr;
  if (dlinfo(library, RTLD_DI_LINKMAP, &map) == 0 && map->l_name[0] == '/') n.path = map->l_name;
  load_builtins(n.path);
  int major = 0, minor = 0;
  function_of<int(int*, int*)>(n, "nvrtcVersion")(&major, &minor);
  if (major != kWantedMajor) {
    throw EnvError(
        fmt::format("the NVRTC '{}' is {}.{}: wanted {}", n.path, major, minor, kWantedMajor),
        kPackage);
  }
  std::error_code error;
  const auto size = std::filesystem::file_size(n.path, error);
  n.identity = fmt::format("NVRTC {}.{} of {} bytes", major, minor, error ? 0 : size);
  return n;
}

}  // namespace

std::vector<std::string> nvrtc_paths() {
  if (const std::string named = env(Env::nvrtc); !named.empty()) return {named + "/" + kLibrary};
  std::vector<std::string> folders = {"/usr/local/cuda*/lib64", "/usr/local/cuda*/lib"};
  std::vector<std::string> pythons = {env(Env::virtual_env), env(Env::home) + "/.local",
                                      "/usr/local", "/usr", ".venv"};
  for (const std::string& python : pythons) {
    if (!python.empty()) folders.push_back(python + "/lib/python3*/*-packages/nvidia/*/lib");
  }
  std::vector<std::string> paths;
  for (const std::string& folder : folders) {
    for (const std::string& path : globbed(folder + "/" + kLibrary))
      paths.push_back(std::filesystem::absolute(path));
  }
  paths.push_back(kLibrary);
  return paths;
}

Nvrtc load_nvrtc(std::span<const std::string> paths) {
  std::string reason = "nowhere to look";
  for (const std::string& path : paths) {
    if (void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL)) return of_library(library);
    if (const char* said = dlerror()) reason = said;
  }
  throw EnvError("no NVRTC, which compiles kernels for GPUs: " + reason, kPackage);
}

const Nvrtc& find_nvrtc() {
  static std::mutex lock;
  static const Nvrtc* found = nullptr;
  const std::string named = env(Env::nvrtc);
  if (!named.empty() && !std::filesystem::exists(named + "/" + kLibrary))
    throw UserError(fmt::format("TW_NVRTC is '{}', where no {} lies", named, kLibrary),
                    "name its folder, or unset it");
  const std::lock_guard guard(lock);
  if (found) return *found;
  void* loaded = dlopen(kLibrary, RTLD_NOW | RTLD_NOLOAD);
  return *(found = new Nvrtc(loaded ? of_library(loaded) : load_nvrtc(nvrtc_paths())));
}

// What NVRTC takes from the driver's cache comes without the log that tells of spills.
std::vector<std::string> nvrtc_flags(const std::string& arch, bool debug) {
  std::vector<std::string> flags = {
      "--gpu-architecture=" + arch, "--std=c++17",        "-default-device",
      "-diag-suppress=177",         "--ptxas-options=-v", "--no-cache"};
  if (debug) flags.push_back("-lineinfo");
  return flags;
}

namespace {

/// One text in the library.
class NvrtcProgram {
 public:
  NvrtcProgram(const Nvrtc& n, const std::string& text) : n_(n) {
    auto create = function_of<int(ProgramHandle*, const char*, const char*, int, const char* const*,
                                  const char* const*)>(n, "nvrtcCreateProgram");
    if (const int code = create(&handle_, text.c_str(), "kernel.cu", 0, nullptr, nullptr))
      fail(code);
  }
  ~NvrtcProgram() { function_of<int(ProgramHandle*)>(n_, "nvrtcDestroyProgram")(&handle_); }
  NvrtcProgram(const NvrtcProgram&) = delete;
  NvrtcProgram& operator=(const NvrtcProgram&) = delete;

  int compile(const std::vector<std::string>& flags) {
    std::vector<const char*> list;
    for (const std::string& flag : flags) list.push_back(flag.c_str());
    return function_of<int(ProgramHandle, int, const char* const*)>(n_, "nvrtcCompileProgram")(
        handle_, static_cast<int>(list.size()), list.data());
  }
  std::string log() const { return bytes("nvrtcGetProgramLogSize", "nvrtcGetProgramLog"); }
  std::string cubin() const { return bytes("nvrtcGetCUBINSize", "nvrtcGetCUBIN"); }

  [[noreturn]] void fail(int code) const {
    const char* said = function_of<const char*(int)>(n_, "nvrtcGetErrorString")(code);
    throw EnvError(fmt::format("the NVRTC '{}' failed: {}", n_.path, said),
                   code == kNoMemory     ? "memory ran out; run again with more"
                   : code == kBadOption  ? "this GPU may need a later one"
                   : code == kNoBuiltins ? "libnvrtc-builtins.so.13 must lie beside it"
                                         : kPackage);
  }

 private:
  std::string bytes(const char* size_name, const char* name) const {
    size_t size = 0;
    if (const int code = function_of<int(ProgramHandle, size_t*)>(n_, size_name)(handle_, &size))
      fail(code);
    std::string all(size, '\0');
    if (const int code = function_of<int(ProgramHandle, char*)>(n_, name)(handle_, all.data()))
      fail(code);
    return all;
  }

  const Nvrtc& n_;
  ProgramHandle handle_ = nullptr;
};

/// The numbers that stand before each `unit` in the log.
std::vector<int64_t> numbers_before(const std::string& log, const std::string& unit) {
  std::vector<int64_t> found;
  for (size_t at = log.find(unit); at != std::string::npos; at = log.find(unit, at + 1)) {
    size_t begin = at;
    while (begin > 0 && log[begin - 1] >= '0' && log[begin - 1] <= '9') --begin;
    int64_t n = 0;
    if (std::from_chars(log.data() + begin, log.data() + at, n).ec == std::errc())
      found.push_back(n);
  }
  return found;
}

std::string first_error(const std::string& log) {
  std::istringstream in(log);
  for (std::string line; std::getline(in, line);) {
    if (line.find("error") != std::string::npos) return line;
  }
  return log.substr(0, log.find('\n'));
}

}  // namespace

CompiledCuda compile_cubin(const Nvrtc& nvrtc, const std::string& arch, const std::string& text,
                           bool debug) {
  const auto start = std::chrono::steady_clock::now();
  NvrtcProgram program(nvrtc, text);
  const int code = program.compile(nvrtc_flags(arch, debug));
  CompiledCuda c;
  c.log = program.log();
  while (!c.log.empty() && c.log.back() == '\0') c.log.pop_back();
  if (code == kBadText)
    throw InternalError("NVRTC rejected a kernel: " + first_error(c.log), c.log + "\n" + text);
  if (code != 0) program.fail(code);
  c.cubin = program.cubin();
  for (int64_t n : numbers_before(c.log, " registers"))
    c.registers = std::max(c.registers, static_cast<int>(n));
  for (int64_t n : numbers_before(c.log, " bytes smem"))
    c.shared_bytes = std::max(c.shared_bytes, n);
  for (int64_t n : numbers_before(c.log, " bytes spill stores")) c.spill_bytes += n;
  c.serialized = c.log.find("(C75") != std::string::npos;
  const std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - start;
  c.milliseconds = took.count();
  return c;
}

static int64_t few_spilled(int blocks) { return blocks == 2 ? 64 : 16; }

/// The next number of blocks to try: far fewer where much is spilled, as tries take seconds then.
static int fewer_blocks(int blocks, int64_t spilled) {
  constexpr int64_t kMuch = 1024;
  return spilled > kMuch ? std::max(1, blocks / 4) : blocks * 3 / 4;
}

CompiledCuda compile_without_spills(const Nvrtc& nvrtc, const std::string& arch,
                                    const std::string& text, bool debug) {
  CompiledCuda made = compile_cubin(nvrtc, arch, text, debug);
  static const std::string kDefinition = "#define TW_BLOCKS ";
  const size_t at = text.find(kDefinition);
  if (at == std::string::npos) return made;
  for (int blocks = std::stoi(text.substr(at + kDefinition.size()));
       blocks > 1 && made.spill_bytes > few_spilled(blocks);) {
    blocks = fewer_blocks(blocks, made.spill_bytes);
    made = compile_cubin(nvrtc, arch, fmt::format("{}{}\n#line 1\n{}", kDefinition, blocks, text),
                         debug);
  }
  return made;
}

CompiledCuda compile_cuda(const std::string& arch, const std::string& text) {
  return compile_without_spills(find_nvrtc(), arch, text, false);
}

}  // namespace tw
