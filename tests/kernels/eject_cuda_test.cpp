#include <fmt/format.h>
#include <glob.h>
#include <gtest/gtest.h>

#include "tw/jit/kernel.h"
#include "tw/jit/process.h"
#include "tw/kernels/entry.h"

#include "tests/jit/cache_support.h"
#include "tests/jit/scale.h"

namespace tw {
namespace {

using kernels::KernelEntry;
using kernels::Problem;

/// That of .venv, else of a toolkit; empty: neither is here.
std::string nvcc() {
  for (const char* place :
       {TW_TEST_DIR "/../../.venv/lib/python3*/site-packages/nvidia/cu13/bin/nvcc",
        "/usr/local/cuda*/bin/nvcc"}) {
    glob_t found{};
    std::string path;
    if (glob(place, 0, nullptr, &found) == 0) path = found.gl_pathv[0];
    globfree(&found);
    if (!path.empty()) return path;
  }
  return "";
}

class EjectedForGpu : public testing::TestWithParam<KernelEntry> {
 protected:
  /// Ejects for the GPU, and expects that nvcc has nothing to say of it.
  void expect_builds(const Problem& p, const std::string& arch) const {
    const std::string here = fmt::format("{} for {}", to_string(p), arch);
    const Device gpu = Device::open_as(gpu_named(arch));
    const std::string source = folder_.path() + "/kernel.cu";
    compile(GetParam().trace(p, gpu.target()), gpu).eject(source);
    const std::string log = folder_.path() + "/log";
    const Finished done = run_process({nvcc(), "-std=c++17", "-arch=" + arch, "-Xcompiler",
                                       "-Wall,-Wextra", "-c", source, "-o", source + ".o"},
                                      log, kCompileSeconds);
    EXPECT_EQ(done.kind, Finished::Kind::exited) << here << done.reason;
    EXPECT_EQ(done.code, 0) << here << ": " << test::read(log);
    EXPECT_EQ(test::read(log), "") << here;
  }
  test::TempCache folder_;
};

TEST_P(EjectedForGpu, BuildsByNvccAlone) {
  if (nvcc().empty()) GTEST_SKIP() << "there is no nvcc";
  const Problem p = complete(GetParam(), GetParam().bench().at(0));
  for (const char* arch : {"sm_80", "sm_90a"}) expect_builds(p, arch);
}

INSTANTIATE_TEST_SUITE_P(Library, EjectedForGpu,
                         testing::Values(kernels::kernel_named("softmax"),
                                         kernels::kernel_named("gemm"),
                                         kernels::kernel_named("histogram")),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace tw
