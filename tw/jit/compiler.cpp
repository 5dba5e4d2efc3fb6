#include "tw/jit/compiler.h"

#include <cstdlib>
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

// ------------------------------------------------------------------------------------------------
// finding it

static constexpr const char* kInstall =
    "install one (Debian: apt-get install g++, or clang), or name one in TW_CXX";

/// The absolute path of a program, searched as a shell does; empty when there is none.
static std::string search_path(const std::string& program) {
  if (program.find('/') != std::string::npos)
    return access(program.c_str(), X_OK) == 0 ? program : "";
  const char* path = std::getenv("PATH");
  std::string folders = path ? path : "/usr/local/bin:/usr/bin:/bin";
  for (size_t begin = 0; begin <= folders.size();) {
    size_t end = std::min(folders.find(':', begin), folders.size());
    std::string candidate = folders.substr(begin, end - begin) + "/" + program;
    if (access(candidate.c_str(), X_OK) == 0 && !fs::is_directory(candidate)) return candidate;
    begin = end + 1;
  }
  return "";
}

static Compiler compiler_at(const std::string& found) {
  std::error_code error;
  fs::path real = fs::canonical(found, error);
  if (error) real = found;
  struct stat file {};
  stat(real.c_str(), &file);
  bool clang = real.filename().string().find("clang") != std::string::npos;
  return {.path = real.string(),
          .family = clang ? CompilerFamily::clang : CompilerFamily::gcc,
          .identity = fmt::format("{} {} {}.{:09}", real.string(), file.st_size,
                                  file.st_mtim.tv_sec, file.st_mtim.tv_nsec)};
}

Compiler find_compiler() {
  if (std::string named = env(Env::cxx); !named.empty()) {
    std::string found = search_path(named);
    if (found.empty())
      throw UserError(fmt::format("TW_CXX is '{}', which is no program", named),
                      "name a C++ compiler, or unset it");
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

// ------------------------------------------------------------------------------------------------
// running it

/// A private folder that is removed with all it holds.
class TemporaryFolder {
 public:
  TemporaryFolder() {
    const char* base = std::getenv("TMPDIR");
    path_ = std::string(base && *base ? base : "/tmp") + "/tilewright-XXXXXX";
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
