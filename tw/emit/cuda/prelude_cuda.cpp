#include "tw/emit/cuda/prelude_cuda.h"

#include <algorithm>
#include <map>
#include <sstream>

#include "tw/base/error.h"
#include "tw/emit/cuda/prelude_emu.h"

namespace tw::cuda {
namespace {

const char* const kTypes = R"(typedef signed char i8;
typedef unsigned char u8;
typedef short i16;
typedef unsigned short u16;
typedef int i32;
typedef unsigned u32;
typedef long i64;
typedef unsigned long u64;
typedef float f32;
typedef double f64;
)";

struct Table {
  std::vector<ThreadFunction> functions;
  std::map<std::string, size_t> by_name;
};

const Table& table() {
  static const Table all = [] {
    Table t;
    for (auto& part : {warp_functions(), matrix_functions(), atomic_functions(), hopper_functions(),
                       tma_functions(), wgmma_functions(), message_functions()}) {
      for (const ThreadFunction& f : part) {
        t.by_name[f.name] = t.functions.size();
        t.functions.push_back(f);
      }
    }
    return t;
  }();
  return all;
}

void take(const std::string& name, std::set<size_t>& taken) {
  const auto it = table().by_name.find(name);
  if (it == table().by_name.end())
    throw InternalError("the prelude of threads has no function '" + name + "'");
  if (!taken.insert(it->second).second) return;
  std::istringstream uses(table().functions[it->second].uses);
  for (std::string use; uses >> use;) take(use, taken);
}

}  // namespace

std::vector<std::string> thread_function_names() {
  std::vector<std::string> names;
  for (const ThreadFunction& f : table().functions) names.push_back(f.name);
  return names;
}

std::string thread_prelude(const std::set<std::string>& used, cpu::Thread kind) {
  std::set<size_t> taken;  // a function stands behind those that it uses
  for (const std::string& name : used) take(name, taken);
  const bool cuda = kind == cpu::Thread::cuda;
  std::string text = cuda ? kTypes : std::string(kTypes) + kEmulatedHead;
  for (const size_t i : taken) {
    const ThreadFunction& f = table().functions[i];
    text += (cuda ? f.cuda : f.emulated) + "\n";
  }
  return text;
}

}  // namespace tw::cuda
