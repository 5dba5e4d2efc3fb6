#include <cstdlib>
#include <dlfcn.h>
#include <filesystem>
#include <fmt/format.h>
#include <fstream>
#include <gtest/gtest.h>
#include <stdexcept>
#include <unistd.h>

#include "tw/base/env.h"

#include "tests/emit/nvrtc.h"
#include "tests/emit/thread_cases.h"
#include "tests/support/golden.h"

namespace tw::test {
namespace {

namespace fs = std::filesystem;

class Thread : public testing::TestWithParam<ThreadGroup> {};

TEST_P(Thread, IsCudaThatNvrtcTakes) {
  if (!has_nvrtc()) GTEST_SKIP() << "no NVRTC here";
  const std::string text = thread_text(GetParam(), cpu::Thread::cuda);
  for (const char* arch : {"sm_80", "sm_90a"}) {
    const std::string complaints = nvrtc_complaints(text, arch);
    EXPECT_EQ(complaints, "") << arch << "\n" << text;
  }
}

/// The text compiled by TW_CXX, or g++.
void* emulated(const std::string& text, const std::string& name) {
  const fs::path folder = fs::temp_directory_path() / fmt::format("tw_thread_test_{}", getpid());
  fs::create_directories(folder);
  const fs::path source = folder / (name + ".cpp"), library = folder / (name + ".so");
  std::ofstream(source) << text;
  const std::string cxx = env(Env::cxx).empty() ? "g++" : env(Env::cxx);
  const std::string command = fmt::format(
      "{} -O2 -std=c++17 -fPIC -shared -nostdlib -fno-math-errno -ffp-contract=fast -w {} -o {}",
      cxx, source.string(), library.string());
  if (std::system(command.c_str()) != 0) throw std::runtime_error("does not compile:\n" + text);
  void* handle = dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!handle) throw std::runtime_error(dlerror());
  fs::remove_all(folder);
  return handle;
}

TEST_P(Thread, GivesWhatTheLanguageSaysWhenEmulated) {
  const ThreadGroup& group = GetParam();
  void* library = emulated(thread_text(group, cpu::Thread::emulated), group.name);
  for (const ThreadCase& c : group.cases) {
    using Kernel = void (*)(const uint64_t*, const uint64_t*, uint64_t*, int64_t);
    const auto kernel = reinterpret_cast<Kernel>(dlsym(library, c.name.c_str()));
    ASSERT_NE(kernel, nullptr) << c.name;
    std::vector<uint64_t> out(c.arguments[0].size());
    const uint64_t* second = c.arguments.size() > 1 ? c.arguments[1].data() : nullptr;
    kernel(c.arguments[0].data(), second, out.data(), static_cast<int64_t>(out.size()));
    EXPECT_EQ(wrong_results(c, out), "");
  }
}

TEST(ThreadText, SaysWhatOnlyAGpuCanCheck) {
  std::string list;
  for (const ThreadGroup& group : thread_groups()) {
    for (const ThreadCase& c : group.cases) {
      if (only_on_gpu(c)) list += c.name + "\n";
    }
  }
  TW_EXPECT_GOLDEN("only_on_gpu.txt", list);
}

INSTANTIATE_TEST_SUITE_P(Groups, Thread, testing::ValuesIn(thread_groups()),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace tw::test
