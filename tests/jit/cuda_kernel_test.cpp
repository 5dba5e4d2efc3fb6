#include <algorithm>
#include <chrono>
#include <fstream>
#include <thread>

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

TEST_F(CudaKernel, BeginsBeforeTheLaunchBeforeItEnds) {
  const Kernel k = compile(scale(3), device);
  for (const int n : {64, 200, 1 << 22}) {
    k({on_device({n})}, {on_device({n})});
    EXPECT_TRUE(fake.launches.back().early) << n;
  }
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

/// No emitter makes such specs yet: one is put into the cache.
TEST_F(CudaKernel, TensorMapsFollowTheWords) {
  const Tensor x = on_device({64}), y = on_device({64});
  compile(scale(4), device).prepare({x}, {y});
  const auto kept = Cache::of_environment();
  const std::string key = kept->items().at(0).key;
  Cache::Cubin cubin = *kept->load_cubin(key);
  LaunchSpec spec = parse_launch_spec(cubin.metadata);
  spec.tensor_maps = {{0, 0, {32}}, {1, 0, {16}}};
  cubin.metadata = to_string(spec);
  kept->clear();  // what lies there stays
  kept->store_cubin(key, cubin, "");
  fake.parameter_words = 8 + 2 * 16;
  compile(scale(4), device)({x}, {y});
  const std::vector<uint64_t>& words = fake.launches.at(0).words;
  EXPECT_EQ(std::vector<uint64_t>(words.begin(), words.begin() + 8),
            (std::vector<uint64_t>{word(x), word(y), 64, 1, 1, 0, 0, 0}));
  EXPECT_EQ(words[8], 0xababababababababu);
  EXPECT_EQ(words.back(), 0xababababababababu);
  EXPECT_EQ(fake.tensor_map[2], word(y));
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
  fake.failing = "cuLaunchKernelEx";
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

/// y = x, which is checked and printed.
static Program watched() {
  return parse(
      "program watched\nin x: i32[2, 64]\nout y: i32[2, 64]\ngrid (2)\n"
      "%0 = load x{pid0, 0} : i32[1,64]\n%1 = full 0 : i32[1,1]\n%2 = lt %1, %0 : b1[1,64]\n"
      "assert %2 \"x is positive\" // k.cpp:7\n%3 = slice %0 at (0, 0) : i32[1,2]\n"
      "print %3 \"first\"\nstore %0 to y{pid0, 0}\n");
}

/// What a kernel would leave in its messages.
static void leave(uint64_t messages, int64_t part, std::vector<int64_t> record,
                  std::vector<int32_t> elements = {}) {
  auto* const begin = reinterpret_cast<char*>(messages) + part;
  auto* const head = reinterpret_cast<MessagePart*>(begin);
  const uint64_t bytes = 48 + (elements.size() * 4 + 15) / 16 * 16;
  if (head->used + bytes > head->bytes) {
    ++head->lost;
    return;
  }
  record.insert(record.begin(), static_cast<int64_t>(bytes));
  std::copy(record.begin(), record.end(), reinterpret_cast<int64_t*>(begin + head->used));
  std::copy(elements.begin(), elements.end(), reinterpret_cast<int32_t*>(begin + head->used + 48));
  head->used += bytes;
}

TEST_F(CudaKernel, MessagesAreHeardWhenTheStreamIsDone) {
  std::string heard;
  const PrintLines hear = [&](std::string_view lines) { heard += lines; };
  const Kernel k = compile(watched(), device, {.checked = true, .print = hear});
  const Tensor x = empty(device, i32, {2, 64}), y = empty(device, i32, {2, 64});
  const cuda::Stream s = cuda::Stream::make(device), other = cuda::Stream::make(device);
  fake.parameter_words = 8;  // data, strides, workspace, messages
  k.launch(s, {x}, {y});
  k.launch(other, {x}, {y});
  const uint64_t messages = fake.launches.at(0).words[7], others = fake.launches.at(1).words[7];
  ASSERT_NE(messages, others);
  EXPECT_EQ(fake.allocated.at(reinterpret_cast<void*>(messages)).bytes, size_t{kMessageBytes});
  leave(messages, kCheckBytes, {1, 1, 0, 0, -1}, {5, -6});
  cuda::synchronize(device);
  EXPECT_EQ(heard, "first (1) [0, :] = 5 -6\n");
  s.synchronize();
  leave(messages, 0, {0, 1, 0, 0, 63});
  leave(messages, 0, {0, 0, 0, 0, 3});
  leave(others, kCheckBytes, {1, 0, 0, 0, -1}, {7, 8});
  TW_EXPECT_ERROR(UserError,
                  "k.cpp:7: error: check failed: x is positive, at element [0, 3] of instance (0)",
                  [&] { s.synchronize(); });
  EXPECT_EQ(heard, "first (1) [0, :] = 5 -6\n") << "the other stream is not done";
  s.synchronize();
  other.synchronize();
  EXPECT_EQ(heard, "first (1) [0, :] = 5 -6\nfirst (0) [0, :] = 7 8\n");
}

/// A copy waits for its stream.
TEST_F(CudaKernel, CopiesHearMessagesToo) {
  const Kernel k = compile(watched(), device, {.checked = true, .print = [](std::string_view) {}});
  const Tensor x = empty(device, i32, {2, 64}), y = empty(device, i32, {2, 64});
  fake.parameter_words = 8;
  k({x}, {y});
  leave(fake.launches.at(0).words[7], 0, {0, 1, 0, 0, 0});
  TW_EXPECT_ERROR(UserError, "at element [0, 0] of instance (1)",
                  [&] { cuda::to_host(device, y); });
  cuda::to_host(device, y);
}

TEST_F(CudaKernel, PrintsWithoutRoomAreCounted) {
  std::string heard;
  const PrintLines hear = [&](std::string_view lines) { heard = lines; };
  const Kernel k = compile(watched(), device, {.print = hear});
  const Tensor x = empty(device, i32, {2, 64}), y = empty(device, i32, {2, 64});
  fake.parameter_words = 8;
  k({x}, {y});
  const int64_t fit = (kMessageBytes - kCheckBytes - 32) / 64;
  for (int64_t i = 0; i < fit + 3; ++i)
    leave(fake.launches.at(0).words[7], kCheckBytes, {0, 0, 0, 0, -1}, {1, 2});
  cuda::synchronize(device);
  EXPECT_EQ(heard, "watched: 3 more prints found no room in 1044480 bytes\n");
}

TEST_F(CudaKernel, WorkspaceIsClearedInTheStream) {
  const Kernel k = compile(parse("program counted\ndim N\nout y: i32[N]\nworkspace w: i32[N]\n"
                                 "workspace t: u64[1]\ngrid (N) ticket t\n"
                                 "%0 = load w{pid0} : i32[1]\nstore %0 to y{pid0}\n"),
                           device);
  const Tensor y = empty(device, i32, {100});
  fake.parameter_words = 3;
  k({}, {y});
  const std::vector<uint64_t> words = fake.launches.at(0).words;
  EXPECT_EQ(words[2] - words[1], 512u);  // 400 bytes, in steps of 256
  auto* const memory = reinterpret_cast<unsigned char*>(words[1]);
  std::fill_n(memory, 520, 1);
  k({}, {y});
  EXPECT_EQ(fake.launches.at(1).words, words);
  EXPECT_EQ(std::count(memory, memory + 520, 0), 520);
}

/// Each device has the program's kernels of its own, and threads may use both at once.
TEST_F(CudaKernel, DevicesHaveKernelsOfTheirOwn) {
  const Device other = Device::open("cuda:1");
  const Kernel here = compile(scale(3), device), there = compile(scale(3), other);
  const int modules = fake.modules;
  std::vector<std::thread> threads;
  for (const auto& [kernel, d] : {std::pair{&here, &device}, std::pair{&there, &other}}) {
    threads.emplace_back([kernel = kernel, d = d] {
      const Tensor x = empty(*d, f32, {64}), y = empty(*d, f32, {64});
      for (int i = 0; i < 20; ++i) (*kernel)({x}, {y});
    });
  }
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(fake.modules, modules + 2);
  for (int i = 0; i < 2; ++i)
    EXPECT_EQ(std::ranges::count(fake.launches, i, &FakeCuda::Launch::device), 20);
  const Tensor x = empty(device, f32, {64}), y = empty(device, f32, {64});
  const size_t allocated = fake.allocated.size();
  TW_EXPECT_ERROR(UserError, "of cuda:0 is launched on a stream of cuda:1",
                  [&] { here.launch(cuda::Stream::make(other), {x}, {y}); });
  EXPECT_EQ(fake.allocated.size(), allocated);
}

}  // namespace tw::test
