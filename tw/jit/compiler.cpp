#include "tw/jit/compiler.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fmt/format.h>
#include <fstream>
#include <initializer_list>
#include <iterator>
#include <sstream>
#include <sys/stat.h>
#include <unistd.h>

#include "tw/base/env.h"
#include "tw/base/error.h"
#include "tw/jit/process.h"
#include "tw/jit/temporary_folder.h"

namespace tw {

namespace fs = std::filesystem;

// ---- finding it

static constexpr const char* kInstall =
    "install one (Debian: apt-get install g++, or clang), or name one in TW_CXX";

/// Programs that stand in for a compiler under its name. Started under any other name they do not
/// know what to run, and their size and time of change say nothing of the compiler behind.
static bool is_wrapper(const fs::path& real) {
  for (const char* name : {"ccache", "sccache", "distcc", "icecc", "colorgcc"}) {
    if (real.filename() == name) return true;
  }
  return false;
}

/// The path of a program with its links resolved, searched as a shell does, wrappers left out;
/// empty when there is none.
static std::string search_path(const std::string& program) {
  auto real = [](const std::string& candidate) {
    std::error_code error;
    const fs::path path = fs::canonical(candidate, error);
    const bool good = !error && fs::is_regular_file(path, error) && !is_wrapper(path) &&
                      access(path.c_str(), X_OK) == 0;
    return good ? path.string() : std::string();
  };
  if (program.find('/') != std::string::npos) return real(program);
  const std::string path = env(Env::path);
  const std::string folders = path.empty() ? "/usr/local/bin:/usr/bin:/bin" : path;
  for (size_t begin = 0; begin <= folders.size();) {
    const size_t end = std::min(folders.find(':', begin), folders.size());
    const std::string found = real(folders.substr(begin, end - begin) + "/" + program);
    if (!found.empty()) return found;
    begin = end + 1;
  }
  return "";
}

static Compiler compiler_at(const std::string& path) {
  struct stat file {};
  stat(path.c_str(), &file);
  const bool clang = fs::path(path).filename().string().find("clang") != std::string::npos;
  return {.path = path,
          .family = clang ? CompilerFamily::clang : CompilerFamily::gcc,
          .identity = fmt::format("{} {} {}.{:09}", path, file.st_size, file.st_mtim.tv_sec,
                                  file.st_mtim.tv_nsec)};
}

Compiler find_compiler() {
  if (std::string named = env(Env::cxx); !named.empty()) {
    std::string found = search_path(named);
    if (found.empty())
      throw UserError(fmt::format("TW_CXX is '{}', which is no program", named),
                      "name a C++ compiler (not ccache or the like), or unset it");
    return compiler_at(found);
  }
  for (const char* name : {"c++", "g++", "clang++"}) {
    if (std::string found = search_path(name); !found.empty()) return compiler_at(found);
  }
  throw EnvError("no C++ compiler found: kernels for the CPU are compiled when first used",
                 kInstall);
}

std::vector<std::string> compile_flags(const Compiler& c, const CpuMachine& m, bool debug) {
  // contract=fast: a*b+c may become one rounding, as the language says; no-math-errno: a square
  // root is an instruction. No other fast-math: NaN, infinities and signed zeros keep their
  // meaning.
  std::vector<std::string> flags = {"-std=c++17",
                                    "-O2",
                                    "-march=" + m.march,
                                    "-fPIC",
                                    "-shared",
                                    "-nostdlib",
                                    "-fno-math-errno",
                                    "-ffp-contract=fast",
                                    "-fno-exceptions",
                                    "-fno-asynchronous-unwind-tables",
                                    "-fno-semantic-interposition",
                                    "-w",
                                    "-pipe"};
  if (m.vnni) flags.push_back("-mavx512vnni");
  if (c.family == CompilerFamily::gcc) flags.push_back("-fno-trapping-math");
  if (debug) flags.push_back("-g");
  return flags;
}

// ---- running it

static std::string read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

/// Not called write_file(): in one unit with a user of tensor/file.h that name would be two.
static void write_text(const std::string& path, const std::string& text) {
  std::ofstream file(path, std::ios::binary);
  file << text;
  file.close();
  if (!file)
    throw EnvError(fmt::format("cannot write '{}'", path), "point TMPDIR to a folder with room");
}

static bool holds_any(const std::string& text, std::initializer_list<const char*> parts) {
  return std::any_of(parts.begin(), parts.end(),
                     [&](const char* part) { return text.find(part) != std::string::npos; });
}

/// True for a line that finds fault with a place in the text: "FILE:LINE: error: WHAT". What the
/// driver, assembler and linker say of themselves names no line; fatal errors are of missing files.
static bool is_diagnosis(const std::string& line) {
  for (const char* mark : {": error: ", ": internal compiler error: "}) {
    const size_t at = line.find(mark);
    if (at == std::string::npos || at == 0 || line[at - 1] < '0' || line[at - 1] > '9') continue;
    return !holds_any(line.substr(at), {"out of memory", "annot allocate memory"});
  }
  return false;
}

/// The line that tells most, fit to be part of one: a diagnosis, else an error, else the first.
static std::string telling_line(const std::string& messages) {
  constexpr size_t kMost = 500;
  std::istringstream in(messages);
  std::string best;
  int best_rank = 0;
  for (std::string line; std::getline(in, line);) {
    const bool error = holds_any(line, {"error", "Error", "ERROR", "memory", "Killed"});
    const int rank = is_diagnosis(line) ? 3 : error ? 2 : line.empty() ? 0 : 1;
    if (rank > best_rank) {
      best = std::move(line);
      best_rank = rank;
    }
  }
  if (best.size() > kMost) best = best.substr(0, kMost) + "...";
  std::replace_if(
      best.begin(), best.end(), [](char c) { return c < ' ' || c > '~'; }, '?');
  return best;
}

/// Throws what a compile without an object ended with.
[[noreturn]] static void fail(const Compiler& c, const Finished& done, const std::string& messages,
                              const std::string& text, const std::string& folder) {
  const std::string line = telling_line(messages);
  const std::string said = line.empty() ? "it said nothing" : line;
  if (done.kind == Finished::Kind::could_not_start)
    throw EnvError(fmt::format("cannot start the C++ compiler '{}': {}", c.path, done.reason),
                   kInstall);
  if (done.kind != Finished::Kind::exited)
    throw EnvError(
        fmt::format("the C++ compiler '{}' was ended: {}: {}", c.path, done.reason, said),
        "memory or time ran out; run again with more");
  if (messages.find("No space left") != std::string::npos)
    throw EnvError(fmt::format("no space for the C++ compiler's files in '{}'", folder),
                   "point TMPDIR to a folder with room");
  if (done.code != 0 && is_diagnosis(line))
    throw InternalError("the C++ compiler rejected a kernel: " + line, text);
  const std::string how =
      done.code == 0 ? "made no object" : fmt::format("failed with {}", done.code);
  throw EnvError(fmt::format("the C++ compiler '{}' {}: {}", c.path, how, said),
                 "give it more memory, install it anew, or name another C++ compiler in TW_CXX");
}

std::string compile_shared(const Compiler& c, const CpuMachine& m, const std::string& text,
                           bool debug) {
  return compile_shared(c, compile_flags(c, m, debug), text);
}

std::string compile_shared(const Compiler& c, const std::vector<std::string>& flags,
                           const std::string& text) {
  const TemporaryFolder folder;
  write_text(folder.text(), text);
  std::vector<std::string> command = {c.path};
  command.insert(command.end(), flags.begin(), flags.end());
  command.insert(command.end(), {"-o", folder.object(), folder.text(), "-lm"});

  const Finished done = run_process(command, folder.messages(), kCompileSeconds);
  std::string object = read_file(folder.object());
  if (done.kind == Finished::Kind::exited && done.code == 0 && !object.empty()) return object;
  fail(c, done, read_file(folder.messages()), text, folder.path());
}

std::optional<int> line_of_code(const std::string& object_path, uint64_t offset,
                                const std::string& file) {
  const std::string tool = search_path("addr2line");
  if (tool.empty()) return std::nullopt;
  const TemporaryFolder folder;
  run_process({tool, "-i", "-e", object_path, fmt::format("{:#x}", offset)}, folder.messages(),
              kCompileSeconds);
  std::istringstream said(read_file(folder.messages()));
  for (std::string place; std::getline(said, place);) {  // FILE:LINE, or FILE:LINE (what)
    const size_t colon = place.rfind(':');
    if (colon == std::string::npos || !place.substr(0, colon).ends_with(file)) continue;
    const int line = std::atoi(place.c_str() + colon + 1);
    return line > 0 ? std::optional(line) : std::nullopt;
  }
  return std::nullopt;
}

}  // namespace tw
