#pragma once

#include <dlfcn.h>
#include <filesystem>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <fstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "tw/ir/program.h"
#include "tw/jit/compiler.h"
#include "tw/jit/process.h"
#include "tw/tensor/tensor.h"

namespace tw::test {

/// A caller of the ejected function of a program: `call`, whose arguments are arrays.
inline std::string caller_text(const Program& p, const std::string& function,
                               const std::string& header) {
  std::vector<std::string> values;
  size_t given = 0;
  for (size_t k = 0; k < arguments(p).size(); ++k) {
    values.push_back(fmt::format("Any{{data[{}]}}", k));
    if (p.params[k].dims.empty()) continue;
    for (const char* array : {"dims", "strides"}) {
      values.push_back(
          fmt::format("*(const int64_t (*)[{}]){}[{}]", p.params[k].dims.size(), array, k));
    }
  }
  for (size_t d = 0; d < p.dims.size(); ++d) {
    bool determined = false;
    for (const Param& a : p.params) {
      for (const Expr& e : a.dims) {
        determined |= !e.is_constant() && e.symbol().id == static_cast<int>(d);
      }
    }
    if (!determined) values.push_back(fmt::format("given[{}]", given++));
  }
  return fmt::format(R"(#include "{}"
struct Any {{
  void* p;
  template <class T>
  operator T*() const {{ return (T*)p; }}
}};
extern "C" int call(void* const* data, const int64_t* const* dims, const int64_t* const* strides,
                    const int64_t* given, TwPar par, void* pool) {{
  (void)given;
  return {}({}, 2, par, pool);
}}
)",
                     header, function, fmt::join(values, ", "));
}

/// The function of an ejected source, called through a library of nothing but that source and its
/// caller.
class EjectedFunction {
 public:
  using Par = void (*)(void* pool, int64_t n, void (*fn)(void*, int64_t, int64_t), void* ctx);

  /// `source`: what was given to Kernel::eject(). Throws what the compiler says, warnings too.
  EjectedFunction(const Compiler& compiler, const Program& p, const std::string& source,
                  const std::vector<std::string>& flags = {"-O2"},
                  const std::string& function = "") {
    const std::filesystem::path path(source);
    static int loaded = 0;  // the loader takes a path that it knows for the library that it has
    const std::string library = fmt::format("{}.{}.so", source, ++loaded);
    const std::string caller = source + ".caller.cpp";
    const std::string messages = source + ".messages";
    std::ofstream(caller) << caller_text(p, function.empty() ? p.name : function,
                                         path.stem().string() + ".h");
    std::vector<std::string> command = {compiler.path, "-Wall", "-Wextra", "-Werror", "-shared",
                                        "-fPIC",       "-o",    library,   source,    caller};
    command.insert(command.end(), flags.begin(), flags.end());
    const Finished done = run_process(command, messages, kCompileSeconds);
    std::ifstream said(messages);
    const std::string text((std::istreambuf_iterator<char>(said)), {});
    if (done.code != 0 || !text.empty()) throw std::runtime_error(text);
    library_ = dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (!library_) throw std::runtime_error(dlerror());
    call_ = reinterpret_cast<Call>(dlsym(library_, "call"));
  }
  ~EjectedFunction() {
    if (library_) dlclose(library_);
  }
  EjectedFunction(const EjectedFunction&) = delete;
  EjectedFunction& operator=(const EjectedFunction&) = delete;

  /// On tensors in declaration order; `given`: dims that no tensor determines.
  int operator()(const std::vector<TensorView>& tensors, const std::vector<int64_t>& given = {},
                 Par par = nullptr, void* pool = nullptr) const {
    std::vector<void*> data;
    std::vector<const int64_t*> dims, strides;
    for (const TensorView& t : tensors) {
      data.push_back(t.data);
      dims.push_back(t.dims.data());
      strides.push_back(t.strides.data());
    }
    return call_(data.data(), dims.data(), strides.data(), given.data(), par, pool);
  }

 private:
  using Call = int (*)(void* const*, const int64_t* const*, const int64_t* const*, const int64_t*,
                       Par, void*);
  void* library_ = nullptr;
  Call call_ = nullptr;
};

}  // namespace tw::test
