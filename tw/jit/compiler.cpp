#include "tw/jit/compiler.h"

#include <fcntl.h>
#include <filesystem>
#include <fmt/format.h>
#include <fstream>
#include <iterator>
#include <sys/stat.h>
#include <unistd.h>

#include "tw/base/env.h"
#include "tw/base/error.h"
#include "tw/jit/process.h"

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
  if (c.family == CompilerFamily::gcc) flags.push_back("-fno-trapping-math");
  if (debug) flags.push_back("-g");
  return flags;
}

// ---- running it

/// A private folder that is removed with all it holds.
class TemporaryFolder {
 public:
  TemporaryFolder() {
    const std::string base = env(Env::tmpdir);
    path_ = (base.empty() ? "/tmp" : base) + "/tilewright-XXXXXX";
    if (!mkdtemp(path_.data()))
      throw EnvError(fmt::format("cannot make a temporary folder '{}': {}", path_,
                                 std::error_code(errno, std::generic_category()).message()),
                     "point TMPDIR to a folder with room");
  }
  ~TemporaryFolder() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  std::string file(const char* name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

static std::string read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

static void write_file(const std::string& path, const std::string& text) {
  std::ofstream file(path, std::ios::binary);
  file << text;
  file.close();
  if (!file)
    throw EnvError(fmt::format("cannot write '{}'", path), "point TMPDIR to a folder with room");
}

/// The first line that says "error", else the first line.
static std::string first_error(const std::string& messages) {
  size_t at = messages.find("error");
  size_t begin = at == std::string::npos ? 0 : messages.rfind('\n', at) + 1;
  return messages.substr(begin, messages.find('\n', begin) - begin);
}

std::string compile_shared(const Compiler& c, const CpuMachine& m, const std::string& text,
                           bool debug) {
  TemporaryFolder folder;
  write_file(folder.file("kernel.cpp"), text);
  std::vector<std::string> command = {c.path};
  for (std::string& flag : compile_flags(c, m, debug)) command.push_back(std::move(flag));
  command.insert(command.end(), {"-o", folder.file("kernel.so"), folder.file("kernel.cpp"), "-lm"});

  Finished done = run_process(command, folder.file("messages"), kCompileSeconds);
  std::string messages = read_file(folder.file("messages"));
  if (done.kind == Finished::Kind::could_not_start)
    throw EnvError(fmt::format("cannot start the C++ compiler '{}': {}", c.path, done.reason),
                   kInstall);
  if (done.kind != Finished::Kind::exited)
    throw EnvError(fmt::format("the C++ compiler '{}' was ended: {}", c.path, done.reason),
                   "memory or time ran out; run again with more");
  std::string object = read_file(folder.file("kernel.so"));
  if (done.code == 0 && !object.empty()) return object;
  if (messages.find("No space left") != std::string::npos)
    throw EnvError(fmt::format("no space for the C++ compiler's files in '{}'", folder.file("")),
                   "point TMPDIR to a folder with room");
  throw InternalError("the C++ compiler rejected a kernel: " + first_error(messages), text);
}

}  // namespace tw
