#include <fmt/format.h>
#include <gtest/gtest.h>
#include <regex>
#include <set>

#include "tw/emit/cpu/task.h"
#include "tw/passes/canonicalize.h"
#include "tw/passes/pipeline.h"

#include "tests/emit/nvrtc.h"
#include "tests/support/random_program.h"

namespace tw::test {
namespace {

const char* const kAbi = R"(#define __builtin_prefetch(...)
struct TwHost {
  void (*tell)(const TwHost*, i64 number, const i64* instance, i64 element, const void* elements);
};
struct TwArgs {
  void* const* data;
  const i64* dims;
  const i64* strides;
  const TwHost* host;
};
)";

const char* const kKernel = R"(
extern "C" __global__ void kernel(TwArgs args, i64 instances, void* scratch) {
  task(&args, 0, instances, scratch);
}
)";

/// Atomics stand in another part of a GPU's text: here some function of each name.
std::string atomics_of(const std::string& task) {
  const std::regex name("tw_atomic_\\w+");
  std::set<std::string> names;
  for (std::sregex_iterator it(task.begin(), task.end(), name), end; it != end; ++it)
    names.insert(it->str());
  std::string out;
  for (const std::string& n : names)
    out += fmt::format("template <class T, class... V> T {}(T* p, V...) {{ return *p; }}\n", n);
  return out;
}

/// The program as a CPU runs it, but of one lane, as text for one thread of a GPU.
std::string one_thread(Program p) {
  const CpuMachine& machine = cpu::thread_machine(cpu::Thread::cuda);
  canonicalize(p);
  const Specialisation s = contiguous_facts(p);
  run_passes(p, cpu_passes(), {machine, {}, s}, true);
  const cpu::TaskText t = cpu::emit_task(cpu::with_safe_names(p), s, machine, {}, false, kAbi);
  return t.prelude + atomics_of(t.task) + t.task + kKernel;
}

TEST(ThreadPrograms, OfEveryOpAreCudaThatNvrtcTakes) {
  if (!has_nvrtc()) GTEST_SKIP() << "no NVRTC here";
  constexpr uint64_t kPrograms = 10;
  for (uint64_t seed = 0; seed < kPrograms; ++seed) {
    const std::string text = one_thread(random_program(seed).program);
    EXPECT_EQ(nvrtc_complaints(text, "sm_80", {"-default-device"}), "") << "seed " << seed;
  }
}

}  // namespace
}  // namespace tw::test
