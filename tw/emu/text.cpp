#include "tw/emu/impl/text.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <unistd.h>
#include <vector>

#include "tw/base/error.h"
#include "tw/jit/cache.h"
#include "tw/jit/compiler.h"

namespace tw::emu {
namespace {

/// The thread sanitizer's calls tell of every access to memory; the text has its own answers to
/// them, so no runtime is linked. -Og keeps lines apart and takes two thirds of the time of -O1.
/// What a thread has in a register that nothing has written is no zero.
const std::vector<std::string> kFlags = {"-std=c++17",
                                         "-Og",
                                         "-g1",
                                         "-fsanitize=thread",
                                         "-fsanitize=bounds,alignment,shift-exponent",
                                         "-fno-sanitize-recover=all",
                                         "-fPIC",
                                         "-shared",
                                         "-nostdlib",
                                         "-fno-math-errno",
                                         "-ffp-contract=fast",
                                         "-fno-exceptions",
                                         "-w",
                                         "-pipe"};

std::vector<std::string> flags_of(const Compiler& compiler, Unset unset) {
  std::vector<std::string> flags = kFlags;
  flags.push_back(unset == Unset::zeros ? "-ftrivial-auto-var-init=zero"
                                        : "-ftrivial-auto-var-init=pattern");
  // clang takes a read for seen where a write of the same place follows.
  if (compiler.family == CompilerFamily::clang)
    flags.insert(flags.end(), {"-mllvm", "-tsan-instrument-read-before-write=1"});
  return flags;
}

template <class T>
T symbol(const Module& module, const char* name) {
  void* found = module.symbol(name);
  if (!found) throw InternalError(fmt::format("emulated text has no '{}'", name));
  return reinterpret_cast<T>(found);
}

std::shared_ptr<const Module> module_of(const std::string& text, Unset unset) {
  const std::string key = fmt::format("emulated\n{}{}", compiler_identity(unset), text);
  const std::shared_ptr<Cache> cache = Cache::of_environment();
  if (auto loaded = cache->load(key)) return loaded->module;
  const Cache::Turn turn(*cache, key);
  if (turn.waited()) {
    if (auto loaded = cache->load(key)) return loaded->module;
  }
  return cache->store(key, "", compile_text(text, unset), text).module;
}

}  // namespace

/// The parameter of a kernel is a struct by value; a caller that does not know it has its address.
std::string with_starter(const std::string& text, const std::string& entry) {
  return fmt::format(
      "{}\nextern \"C\" __attribute__((no_sanitize(\"thread\"), visibility(\"default\")))\n"
      "void tw_emu_start(const void* args) {{ {}(*(const Args*)args); }}\n",
      text, entry);
}

std::string compiler_identity(Unset unset) {
  const Compiler compiler = find_compiler();
  return fmt::format("compiler {}\nflags {}\n", compiler.identity,
                     fmt::join(flags_of(compiler, unset), " "));
}

std::string compile_text(const std::string& text, Unset unset) {
  const Compiler compiler = find_compiler();
  return compile_shared(compiler, flags_of(compiler, unset), text);
}

LoadedText load_text(const std::string& text, const std::string& entry, Unset unset) {
  return loaded_text(module_of(with_starter(text, entry), unset));
}

LoadedText loaded_text(std::shared_ptr<const Module> module) {
  LoadedText loaded;
  loaded.module = std::move(module);
  loaded.table = symbol<TextTable*>(*loaded.module, "tw_emu");
  if (*symbol<uint64_t*>(*loaded.module, "tw_emu_bytes") != sizeof(TextTable))
    throw InternalError("emulated text and the emulator disagree on their table");
  loaded.start = symbol<void (*)(const void*)>(*loaded.module, "tw_emu_start");
  Dl_info info{};
  if (dladdr(reinterpret_cast<void*>(loaded.start), &info) != 0) {
    loaded.base = reinterpret_cast<uintptr_t>(info.dli_fbase);
    loaded.path = info.dli_fname;
    // The path of an object in memory is this process's, for the loader only.
    const std::string self = "/proc/self/";
    if (loaded.path.starts_with(self))
      loaded.path = fmt::format("/proc/{}/{}", getpid(), loaded.path.substr(self.size()));
  }
  return loaded;
}

std::optional<int> line_of(const LoadedText& text, Place place) {
  const uint32_t value = place.bits & Place::kValue;
  if (!place.has(Place::kIsCode)) return static_cast<int>(value);
  return line_of_code(text.path, value, text.file);
}

}  // namespace tw::emu
