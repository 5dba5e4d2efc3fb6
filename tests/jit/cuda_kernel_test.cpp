#include <algorithm>
#include <chrono>
#include <fstream>

#include "tw/base/error.h"
#include "tw/jit/kernel.h"
#include "tw/jit/nvrtc.h"
#include "tw/runtime/cuda/cuda.h"

#include "tests/jit/cache_support.h"
#include "tests/jit/scale.h"
#include "tests/runtime/fake/fake_cuda.h"
#include "tests/support/expect_error.h"

namespace tw::test {

/// Real texts and cubins, launched on a driver that only writes down what it gets.
class CudaKernel : public testing::Test {
 protected:
  void SetUp() override { find_nvrtc(); }
  Tensor on_device(std::vector<int64_t> dims) { return empty(device, f32, std::move(dims)); }

  const ScopedEnv python{"VIRTUAL_ENV", TW_TEST_DIR "/../../.venv"};
  const ScopedEnv driver{"TW_CUDA_DRIVER", TW_FAKE_CUDA};
  FakeCuda& fake = fresh_fake(TW_FAKE_CUDA);
  TempCache cache;
  const Device device = Device::open("cuda:0");
};

static uint64_t word(const Tensor& t) { return reinterpret_cast<uint64_t>(t.view().data); }

/// y[i, j] = a[i, j + shift], a dim that no tensor has.
static Program shifted_columns() {
  return parse(
      "program shifted\ndim M\ndim N\ndim shift\nin a: f32[M, N]\nout y: f32[M, N]\n"
      "grid (cdiv(M, 16))\n"
      "%0 = load a{pid0*16, shift} : f32[16, 32]\nstore %0 to y{pid0*16, 0}\n");
}

/// What a block cannot hold: 512 KB, summed along columns.
static Program large_tiles() {
  return parse(
      "program large\ndim M\nin a: f32[M, 512]\nout y: f32[M, 512]\ngrid (cdiv(M, 256))\n"
      "%0 = load a{pid0*256, 0} : f32[256, 512]\n%1 = scan sum %0 axis 0 : f32[256, 512]\n"
      "store %1 to y{pid0*256, 0}\n");
}

TEST_F(CudaKernel, LaunchesWithWordsInOrder) {
  const Kernel k = compile(scale(3), device);
  const Tensor x = on_device({200}), wide = on_device({400}), y = wide.slice(0, 0, 400, 2);
  fake.parameter_words = 6;
  k({x}, {y});
  ASSERT_EQ(fake.launches.size(), 1u);
  const FakeCuda::Launch& l = fake.launches[0];
  EXPECT_EQ(l.words, (std::vector<uint64_t>{word(x), word(y), 200, 1, 2, 0}));
  EXPECT_EQ(l.grid, 4u);  // of 64 elements each
  EXPECT_EQ(l.threads % 32, 0u);
  EXPECT_GT(l.threads, 0u);
  EXPECT_EQ(l.stream, nullptr);
  EXPECT_EQ(l.function.substr(0, 9), "tw_scale_");
  EXPECT_EQ(k.mapping(), "cuda1");
}

TEST_F(CudaKernel, ShowsWhatItBecame) {
  const Kernel k = compile(scale(5), device, {.mapping = parse_mapping("cuda1 warps=2")});
  const Tensor x = on_device({64}), y = on_device({64});
  EXPECT_EQ(k.source_path({x}, {y}), "");
  k.prepare({x}, {y});
  EXPECT_TRUE(fake.launches.empty());
  const std::string path = k.source_path({x}, {y});
  EXPECT_EQ(path.substr(path.size() - 3), ".cu");
  EXPECT_EQ(read(path), k.source({x}, {y}));
  EXPECT_THAT(read(path), testing::HasSubstr("__global__"));
  k({x}, {y});
  EXPECT_EQ(fake.launches.at(0).threads, 64u);
  const int modules = fake.modules;
  k({x}, {y});
  EXPECT_EQ(fake.modules, modules) << "a variant is loaded once";
}

TEST_F(CudaKernel, TheCacheKeepsCubins) {
  const Tensor x = on_device({64}), y = on_device({64});
  compile(scale(4), device).prepare({x}, {y});
  ASSERT_EQ(cache.files(".cubin").size(), 1u);
  EXPECT_EQ(cache.files(".cu").size(), 1u);
  {
    const ScopedEnv no_compile("TW_NO_COMPILE", "1");
    const Kernel k = compile(scale(4), device);
    k({x}, {y});
    EXPECT_EQ(k.explain_miss({x}, {y}), "");
    TW_EXPECT_ERROR(UserError, "TW_NO_COMPILE is set and 'scale' is not in the cache",
                    [&] { compile(scale(7), device).prepare({x}, {y}); });
  }
  const std::vector<Cache::Item> items = Cache::of_environment()->items();
  ASSERT_EQ(items.size(), 1u);
  EXPECT_THAT(items[0].key, testing::HasSubstr("compiler NVRTC 13."));
  EXPECT_THAT(items[0].key, testing::HasSubstr("flags --gpu-architecture=sm_90a "));
  EXPECT_THAT(items[0].key, testing::HasSubstr("machine Fake 0 arch=sm_90a multiprocessors=132"));
  EXPECT_THAT(items[0].key, testing::HasSubstr("mapping cuda1\n"));
  EXPECT_EQ(items[0].bytes,
            static_cast<int64_t>(std::filesystem::file_size(cache.files(".cubin")[0]) +
                                 std::filesystem::file_size(cache.files(".cu")[0])));
  Cache::of_environment()->clear();
  EXPECT_TRUE(cache.files(".cubin").empty());
  EXPECT_TRUE(cache.files(".cu").empty());
}

TEST_F(CudaKernel, DamagedCubinsAreBuiltAgain) {
  const Tensor x = on_device({64}), y = on_device({64});
  compile(scale(4), device).prepare({x}, {y});
  const std::string path = cache.files(".cubin").at(0), whole = read(path);
  for (const std::string& damaged :
       {whole.substr(0, whole.size() / 2), std::string(), whole + "x"}) {
    write(path, damaged);
    const auto said = warnings([&] { compile(scale(4), device).prepare({x}, {y}); });
    ASSERT_EQ(said.size(), 1u);
    EXPECT_THAT(said[0], testing::HasSubstr("is damaged; it is built again"));
    EXPECT_EQ(read(path), whole);
  }
}

TEST_F(CudaKernel, WithoutAFolderTheCacheIsMemory) {
  const std::string folder = cache.path() + "/file";
  write(folder, "no folder");
  const ScopedEnv none("TW_CACHE_DIR", folder);
  const Tensor x = on_device({64}), y = on_device({64});
  const auto said = warnings([&] { compile(scale(4), device).prepare({x}, {y}); });
  EXPECT_EQ(said.size(), 1u);
  const ScopedEnv no_compile("TW_NO_COMPILE", "1");
  compile(scale(4), device).prepare({x}, {y});
}

TEST_F(CudaKernel, MemoryElsewhereIsRefused) {
  const Kernel k = compile(scale(3), device);
  const Tensor x = on_device({64}), y = on_device({64}), host = host_tensor(f32, {64});
  const Tensor other = empty(Device::open("cuda:1"), f32, {64});
  TW_EXPECT_ERROR(UserError,
                  "scale: input 'x' lies in the host's memory: wanted memory of cuda:0; copy it",
                  [&] { k({host}, {y}); });
  TW_EXPECT_ERROR(UserError, "scale: output 'y' lies on cuda:1: wanted memory of cuda:0",
                  [&] { k({x}, {other}); });
  TW_EXPECT_ERROR(UserError, "output 'y' overlaps input 'x'", [&] { k({x}, {x}); });
  EXPECT_TRUE(fake.launches.empty());
  const Tensor none = on_device({0});
  k({none}, {none});
  EXPECT_TRUE(fake.launches.empty()) << "an empty grid launches nothing";
}

TEST_F(CudaKernel, MappingsAreOfTheDevice) {
  TW_EXPECT_ERROR(UserError, "mapping: scheme 'cpu1' on device 'cuda:0'; wanted 'cuda1'",
                  [&] { compile(scale(3), device, {.mapping = parse_mapping("cpu1 kc=64")}); });
  TW_EXPECT_ERROR(UserError, "mapping: scheme 'cuda1' on device 'cpu:0'; wanted 'cpu1'", [&] {
    compile(scale(3), Device::open("cpu:0"), {.mapping = parse_mapping("cuda1 warps=4")});
  });
}

TEST_F(CudaKernel, StreamsAndGraphs) {
  const Kernel k = compile(scale(3), device);
  const Tensor x = on_device({64}), y = on_device({64});
  const cuda::Stream s = cuda::Stream::make(device);
  k.launch(s, {x}, {y});
  ASSERT_EQ(fake.launches.size(), 1u);
  EXPECT_EQ(fake.launches[0].stream, s.handle());
  const cuda::Graph g(s, [&] {
    k.launch(s, {x}, {y});
    k.launch(s, {y}, {x});
  });
  EXPECT_EQ(fake.launches.size(), 1u);
  g.launch(s);
  EXPECT_EQ(fake.launches.size(), 3u);
  TW_EXPECT_ERROR(UserError, "device 'cpu:0' is used as a GPU", [&] {
    const Tensor a = host_tensor(f32, {8}), b = host_tensor(f32, {8});
    compile(scale(3), Device::open("cpu:0")).launch(s, {a}, {b});
  });
  TW_EXPECT_ERROR(UserError, "of cuda:0 is launched on a stream of cuda:1",
                  [&] { k.launch(cuda::Stream::standard(Device::open("cuda:1")), {x}, {y}); });
}

TEST_F(CudaKernel, DimsOfNoTensorAreWords) {
  const Kernel k = compile(shifted_columns(), device);
  const Tensor a = on_device({40, 50}), y = on_device({40, 50});
  fake.parameter_words = 10;
  k({a}, {y}, {{"shift", 7}});
  ASSERT_EQ(fake.launches.size(), 1u);
  EXPECT_EQ(fake.launches[0].words,
            (std::vector<uint64_t>{word(a), word(y), 40, 50, 7, 50, 1, 50, 1, 0}));
  EXPECT_EQ(fake.launches[0].grid, 3u);
}

TEST_F(CudaKernel, WorkspaceIsThatOfTheStream) {
  const Kernel k = compile(large_tiles(), device);
  const Tensor a = on_device({1024, 512}), y = on_device({1024, 512});
  fake.parameter_words = 8;
  k({a}, {y});
  k({a}, {y});
  const cuda::Stream s = cuda::Stream::make(device);
  k.launch(s, {a}, {y});
  ASSERT_EQ(fake.launches.size(), 3u);
  const uint64_t standard = fake.launches[0].words.back(), other = fake.launches[2].words.back();
  EXPECT_EQ(fake.launches[1].words.back(), standard);
  EXPECT_NE(other, standard);
  EXPECT_GE(fake.allocated.at(reinterpret_cast<void*>(other)).bytes, size_t{4 * 256 * 512 * 4});
}

TEST_F(CudaKernel, FailuresOfTheDriverAreTold) {
  const Kernel k = compile(scale(3), device);
  const Tensor x = on_device({64}), y = on_device({64});
  fake.failing = "cuModuleLoadData";
  fake.code = 700;
  TW_EXPECT_ERROR(DeviceError, "failed to load a compiled kernel: CUDA_ERROR_ILLEGAL_ADDRESS",
                  [&] { k({x}, {y}); });
  fake.failing = "cuLaunchKernel";
  TW_EXPECT_ERROR(DeviceError, "cuda:0 failed to launch 'tw_scale_", [&] { k({x}, {y}); });
  fake.failing.clear();
  k({x}, {y});
  EXPECT_EQ(fake.launches.size(), 1u);
}

TEST_F(CudaKernel, EjectsWhatItLaunches) {
  const Kernel k = compile(scale(3), device);
  const Tensor x = on_device({64}), y = on_device({64});
  k.eject(cache.path() + "/k.cu", {x}, {y});
  const std::string ejected = read(cache.path() + "/k.cu"), launched = k.source({x}, {y});
  const size_t from = launched.find("struct Args"), to = launched.find("extern \"C\"");
  ASSERT_LT(from, to);
  EXPECT_THAT(ejected, testing::HasSubstr(launched.substr(from, to - from)));
  EXPECT_THAT(read(cache.path() + "/k.h"), testing::HasSubstr("cudaError_t scale(const float* x"));
  TW_EXPECT_ERROR(UserError, "k.cpp' is no name of CUDA source; wanted a file that ends in .cu",
                  [&] { k.eject(cache.path() + "/k.cpp"); });
}

TEST_F(CudaKernel, EjectsForAGpuThatIsNotHere) {
  const Device described = Device::open_as(gpu_named("sm_80"));
  EXPECT_EQ(described.name(), "sm_80");
  EXPECT_EQ(described.kind(), DeviceKind::cuda);
  const Kernel k = compile(scale(3), described);
  k.eject(cache.path() + "/k.cu");
  EXPECT_THAT(read(cache.path() + "/k.cu"), testing::HasSubstr("tilewright for sm_80, cuda1"));
  const Tensor x = on_device({64}), y = on_device({64});
  TW_EXPECT_ERROR(UserError, "device 'sm_80' is a description: nothing runs on it; open cuda:0",
                  [&] { k({x}, {y}); });
}

TEST_F(CudaKernel, LaunchesAreCheap) {
  const Kernel k = compile(scale(3), device);
  const Tensor x = on_device({64}), y = on_device({64});
  fake.recording = false;
  std::vector<double> us;
  for (int i = 0; i < 1000; ++i) {
    const auto start = std::chrono::steady_clock::now();
    k({x}, {y});
    const std::chrono::duration<double, std::micro> took = std::chrono::steady_clock::now() - start;
    us.push_back(took.count());
  }
  std::nth_element(us.begin(), us.begin() + 500, us.end());
  EXPECT_LT(us[500], 30);  // a fraction of this where nothing else runs: bench/launch_times
}

}  // namespace tw::test
