#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tw/target/machine.h"

namespace tw {

enum class CompilerFamily : uint8_t { gcc, clang };

/// The C++ compiler that turns emitted text into shared objects.
struct Compiler {
  std::string path;  ///< absolute, links resolved
  CompilerFamily family = CompilerFamily::gcc;
  std::string identity;  ///< path, size and time of change: what cache keys say of it
};

/// TW_CXX, or the first of c++, g++ and clang++ on PATH. Starts no process. Throws EnvError that
/// names the packages when there is none, UserError when TW_CXX is none.
Compiler find_compiler();

/// What the compiler is started with, for cache keys and reports.
std::vector<std::string> compile_flags(const Compiler& c, const CpuMachine& m, bool debug);

/// Bytes of the shared object that the text compiles to. Throws InternalError with the text when
/// the compiler finds fault with a line of it, EnvError when it fails for any other reason.
std::string compile_shared(const Compiler& c, const CpuMachine& m, const std::string& text,
                           bool debug);
/// The same with flags of the caller's, which make it a shared object.
std::string compile_shared(const Compiler& c, const std::vector<std::string>& flags,
                           const std::string& text);

/// The line of the text that an instruction of a shared object compiled with -g1 comes from, by its
/// offset in the object, as addr2line tells; nothing where it does not, or is not installed. With a
/// `file`: the line of that file, which has called what the instruction is of.
std::optional<int> line_of_code(const std::string& object_path, uint64_t offset,
                                const std::string& file = "");

}  // namespace tw
