#include "tw/runtime/cuda/cuda.h"

#include <atomic>
#include <cstdlib>
#include <thread>

#include "tw/base/error.h"

#include "tests/runtime/fake/fake_cuda.h"
#include "tests/support/expect_error.h"

namespace tw::cuda {

using test::FakeCuda;

class Cuda : public testing::Test {
 protected:
  Cuda() { setenv("TW_CUDA_DRIVER", TW_FAKE_CUDA, 1); }
  ~Cuda() override {
    unsetenv("TW_CUDA_DRIVER");
    fake.failing.clear();
  }
  void fail(const char* symbol, int code) {
    fake.failing = symbol;
    fake.code = code;
  }
  template <class F>
  F call(const char* symbol) {
    return reinterpret_cast<F>(dlsym(dlopen(TW_FAKE_CUDA, RTLD_NOW), symbol));
  }

  FakeCuda& fake = test::fresh_fake(TW_FAKE_CUDA);
};

static Tensor numbers(std::vector<int64_t> dims) {
  Tensor t = host_tensor(f32, std::move(dims));
  for (int64_t i = 0; i < t.count(); ++i) set(t, i, static_cast<double>(i));
  return t;
}

TEST_F(Cuda, NoDriverIsToldWithTheWayOut) {
  setenv("TW_CUDA_DRIVER", "/nowhere/libcuda.so.1", 1);
  TW_EXPECT_ERROR(EnvError, "no CUDA driver: /nowhere/libcuda.so.1",
                  [] { Device::open("cuda:0"); });
  TW_EXPECT_ERROR(EnvError, "name its libcuda.so.1 in TW_CUDA_DRIVER",
                  [] { Device::open("cuda:0"); });
  EXPECT_EQ(device_count(), 0);
}

TEST_F(Cuda, ALibraryThatIsNoDriverIsTold) {
  setenv("TW_CUDA_DRIVER", "libm.so.6", 1);
  TW_EXPECT_ERROR(EnvError, "the CUDA driver 'libm.so.6' has no cuInit",
                  [] { Device::open("cuda:0"); });
}

TEST_F(Cuda, OldDriversAndGpusAreToldWithGotAndWanted) {
  fake.version = 12040;
  TW_EXPECT_ERROR(EnvError, "is for CUDA 12.4: wanted 13.0 or later; install NVIDIA's driver 580",
                  [] { Device::open("cuda:0"); });
  fake.version = 13000;
  fake.major = 7;
  fake.devices = 8;  // one that no other test opens
  TW_EXPECT_ERROR(EnvError, "cuda:7 'Fake 7' has compute capability 7.0: wanted 8.0 or later",
                  [] { Device::open("cuda:7"); });
}

TEST_F(Cuda, DriversThatDoNotStartAreTold) {
  fake.devices = 0;
  TW_EXPECT_ERROR(EnvError, "sees no GPU", [] { Device::open("cuda:0"); });
  EXPECT_EQ(device_count(), 0);
  fake.devices = 2;
  fail("cuInit", 999);
  TW_EXPECT_ERROR(EnvError, "does not start: CUDA error 999", [] { Device::open("cuda:0"); });
}

TEST_F(Cuda, NamesOfDevicesAreChecked) {
  EXPECT_EQ(device_count(), 2);
  TW_EXPECT_ERROR(UserError, "unknown device 'cuda:7'; the driver has cuda:0 to cuda:1",
                  [] { Device::open("cuda:7"); });
  for (const char* name : {"cuda", "cuda:", "cuda:x", "cuda:-1", "cuda:01", "cuda:1 ", "cuda:+1"}) {
    TW_EXPECT_ERROR(UserError, "unknown device", [&] { Device::open(name); });
  }
}

TEST_F(Cuda, ADeviceKnowsItsMachine) {
  const Device d = Device::open("cuda:1");
  EXPECT_EQ(d.name(), "cuda:1");
  EXPECT_EQ(d.kind(), DeviceKind::cuda);
  GpuMachine want = gpu_named("sm_90a");
  want.name = "Fake 1";
  want.memory = 1 << 30;
  EXPECT_EQ(d.gpu(), want);
  TW_EXPECT_ERROR(UserError, "device 'cuda:1' is used as a CPU", [&] { d.cpu(); });
  TW_EXPECT_ERROR(UserError, "device 'cuda:1' is used as a CPU", [&] { d.pool(); });
  TW_EXPECT_ERROR(UserError, "device 'cpu:0' is used as a GPU",
                  [] { Device::open("cpu:0").gpu(); });
}

TEST_F(Cuda, MemoryGoesWithItsLastView) {
  const Device d = Device::open("cuda:1");
  const size_t before = fake.allocated.size();
  Tensor part;
  {
    const Tensor t = empty(d, f16, {3, 8});
    EXPECT_TRUE(t.view().is_contiguous());
    ASSERT_EQ(fake.allocated.size(), before + 1);
    EXPECT_EQ(fake.allocated.at(t.view().data).bytes, 48u);
    EXPECT_EQ(fake.allocated.at(t.view().data).device, 1);
    part = t.slice(0, 1, 3);
  }
  EXPECT_EQ(fake.allocated.size(), before + 1);
  part = {};
  EXPECT_EQ(fake.allocated.size(), before);
}

TEST_F(Cuda, NoMemorySaysNeedAndFree) {
  const Device d = Device::open("cuda:0");
  const Tensor held = empty(d, u8, {500'000'000});
  TW_EXPECT_ERROR(EnvError,
                  "no memory on cuda:0 for f32[1000,200000] strides [200000,1]: it takes 0.8 GB, "
                  "0.6 GB of 1.1 GB are free",
                  [&] {
                    empty(d, f32, {1000, 200'000});
                  });
  TW_EXPECT_ERROR(UserError, "", [&] { empty(d, f32, {-1}); });
  fail("cuMemAlloc_v2", 700);
  TW_EXPECT_ERROR(DeviceError,
                  "cuda:0 failed to give memory: CUDA_ERROR_ILLEGAL_ADDRESS (as the test wants)",
                  [&] { empty(d, f32, {1}); });
}

TEST_F(Cuda, CopiesGoThereAndBack) {
  const Device d = Device::open("cuda:0");
  const Tensor host = numbers({4, 6});
  const Tensor there = to_device(d, host);
  EXPECT_NE(there.view().data, host.view().data);
  EXPECT_EQ(to_doubles(to_host(d, there)), to_doubles(host));
  const Tensor turned = host.transpose(0, 1), every = host.slice(1, 1, 6, 2);
  EXPECT_EQ(to_doubles(to_host(d, to_device(d, turned))), to_doubles(turned));
  EXPECT_EQ(to_doubles(to_host(d, there.transpose(0, 1))), to_doubles(turned));
  EXPECT_EQ(to_doubles(to_host(d, there.slice(1, 1, 6, 2))), to_doubles(every));
  TensorView back{there.data<float>() + 23, f32, {24}, {-1}};
  EXPECT_EQ(to_doubles(to_host(d, back)).front(), 23);
  EXPECT_EQ(to_host(d, to_device(d, numbers({0, 6}))).count(), 0);
}

TEST_F(Cuda, CopiesCheckWhatTheyGet) {
  const Device d = Device::open("cuda:0");
  const Stream s = Stream::standard(d);
  const Tensor host = numbers({4, 6}), there = to_device(d, host);
  TW_EXPECT_ERROR(UserError, "wanted contiguous tensors of one type and size", [&] {
    copy_in(s, there, numbers({4, 5}));
  });
  TW_EXPECT_ERROR(UserError, "wanted contiguous tensors of one type and size",
                  [&] { copy_out(s, host.transpose(0, 1), there); });
  fail("cuMemcpyDtoHAsync_v2", 700);
  TW_EXPECT_ERROR(DeviceError, "cuda:0 failed to copy: CUDA_ERROR_ILLEGAL_ADDRESS",
                  [&] { copy_out(s, host, there); });
}

TEST_F(Cuda, MemoryOfOthersIsToldApart) {
  const Device zero = Device::open("cuda:0"), one = Device::open("cuda:1");
  const Tensor host = numbers({8}), there = to_device(one, host);
  EXPECT_EQ(memory_fault(one, there.slice(0, 3, 4).view().data), "");
  EXPECT_EQ(memory_fault(one, nullptr), "");
  EXPECT_EQ(memory_fault(one, host.view().data),
            "lies in the host's memory: wanted memory of cuda:1");
  EXPECT_EQ(memory_fault(zero, there.view().data), "lies on cuda:1: wanted memory of cuda:0");
}

TEST_F(Cuda, LaunchesPassWordsAndShape) {
  const Device d = Device::open("cuda:0");
  fake.parameter_words = 3;
  const auto f = Module::load(d, "fake tw_one tw_two")->function("tw_two");
  ASSERT_TRUE(f);
  const Stream s = Stream::make(d);
  const std::vector<uint64_t> words = {7, ~0ull, 9};
  launch(*f, words, {.grid = 70000, .threads = 256, .shared_bytes = 1024}, s);
  launch(*f, words, {.grid = 1, .threads = 32}, Stream::standard(d));
  ASSERT_EQ(fake.launches.size(), 2u);
  const FakeCuda::Launch& l = fake.launches[0];
  EXPECT_EQ(l.function, "tw_two");
  EXPECT_EQ(l.words, words);
  EXPECT_EQ(l.grid, 70000u);
  EXPECT_EQ(l.threads, 256u);
  EXPECT_EQ(l.shared_bytes, 1024u);
  EXPECT_EQ(l.stream, s.handle());
  EXPECT_EQ(fake.launches[1].stream, nullptr);
}

TEST_F(Cuda, SharedMemoryIsGrantedOnce) {
  const Device d = Device::open("cuda:0");
  const auto f = Module::load(d, "fake tw_f")->function("tw_f");
  const Stream s = Stream::standard(d);
  for (int i = 0; i < 3; ++i) launch(*f, {}, {.shared_bytes = 48 << 10}, s);
  EXPECT_EQ(fake.shared_grants, 0);
  for (int i = 0; i < 3; ++i) launch(*f, {}, {.shared_bytes = 200 << 10}, s);
  EXPECT_EQ(fake.shared_grants, 1);
  EXPECT_EQ(fake.launches.size(), 6u);
}

TEST_F(Cuda, LaunchesThatCannotBeAreRefused) {
  const Device d = Device::open("cuda:0");
  const auto f = Module::load(d, "fake tw_f")->function("tw_f");
  const Stream s = Stream::standard(d);
  auto refuse = [&](const char* text, const LaunchShape& shape) {
    TW_EXPECT_ERROR(DeviceError, text, [&] { launch(*f, {}, shape, s); });
  };
  refuse("cuda:0: 'tw_f' is launched with 0 blocks: wanted 1 to 2147483647", {.grid = 0});
  refuse("with 2147483648 blocks", {.grid = int64_t{1} << 31});
  refuse("with 1025 threads in a block: wanted 1 to 1024", {.threads = 1025});
  refuse("with 232449 bytes of shared memory in a block: wanted 0 to 232448",
         {.shared_bytes = 232449});
  fail("cuLaunchKernelEx", 700);
  refuse("cuda:0 failed to launch 'tw_f': CUDA_ERROR_ILLEGAL_ADDRESS (as the test wants)", {});
  fail("cuFuncSetAttribute", 1);
  refuse("cuda:0 failed to grant shared memory: CUDA_ERROR_INVALID_VALUE",
         {.shared_bytes = 100 << 10});
  TW_EXPECT_ERROR(UserError, "kernel 'tw_f' of cuda:0 is launched on a stream of cuda:1",
                  [&] { launch(*f, {}, {}, Stream::standard(Device::open("cuda:1"))); });
  EXPECT_TRUE(fake.launches.empty());
}

TEST_F(Cuda, ModulesLiveAsLongAsTheirFunctions) {
  const Device d = Device::open("cuda:0");
  const int before = fake.modules;
  auto module = Module::load(d, "fake tw_f");
  EXPECT_EQ(module->function("tw_g"), nullptr);
  auto f = module->function("tw_f");
  module.reset();
  EXPECT_EQ(fake.modules, before + 1);
  f.reset();
  EXPECT_EQ(fake.modules, before);
  TW_EXPECT_ERROR(DeviceError, "failed to load a compiled kernel: CUDA_ERROR_INVALID_IMAGE",
                  [&] { Module::load(d, "no cubin"); });
}

TEST_F(Cuda, TheContextOfOthersComesBack) {
  const Device zero = Device::open("cuda:0"), one = Device::open("cuda:1");
  int foreign = 0;
  call<int (*)(void*)>("cuCtxPushCurrent_v2")(&foreign);
  auto current = [&] {
    void* context = nullptr;
    call<int (*)(void**)>("cuCtxGetCurrent")(&context);
    return context;
  };
  {
    const Tensor a = to_device(zero, numbers({4})), b = to_device(one, numbers({4}));
    const auto f = Module::load(one, "fake tw_f")->function("tw_f");
    const Stream s = Stream::make(one);
    EXPECT_EQ(current(), &foreign);
    launch(*f, {}, {}, s);
    EXPECT_EQ(current(), &foreign);
    synchronize(zero);
    fail("cuLaunchKernelEx", 700);
    EXPECT_THROW(launch(*f, {}, {}, s), DeviceError);
    EXPECT_EQ(current(), &foreign);
    EXPECT_EQ(fake.allocated.at(a.view().data).device, 0);
    EXPECT_EQ(fake.allocated.at(b.view().data).device, 1);
  }
  EXPECT_EQ(current(), &foreign);
  fail("cuCtxPushCurrent_v2", 201);
  TW_EXPECT_ERROR(DeviceError, "cuda:0 failed to take its context: CUDA_ERROR_INVALID_CONTEXT",
                  [&] { synchronize(zero); });
  void* popped = nullptr;
  call<int (*)(void**)>("cuCtxPopCurrent_v2")(&popped);
  EXPECT_EQ(popped, &foreign);
  EXPECT_EQ(current(), nullptr);
}

TEST_F(Cuda, StreamsAndEventsGoWithTheirLastOwner) {
  const Device d = Device::open("cuda:0");
  const int streams = fake.streams, events = fake.events;
  {
    const Stream s = Stream::make(d), copy = s, theirs = Stream::of(d, s.handle());
    EXPECT_EQ(fake.streams, streams + 1);
    EXPECT_EQ(theirs.handle(), copy.handle());
    Event a(d), b(d);
    TW_EXPECT_ERROR(DeviceError, "failed to wait for an event: CUDA_ERROR_INVALID_VALUE",
                    [&] { a.hold(s); });
    a.record(s);
    b.record(s);
    a.hold(Stream::standard(d));
    b.synchronize();
    EXPECT_GT(Event::milliseconds(a, b), 0);
    EXPECT_TRUE(a.done());
    fail("cuEventQuery", 600);
    EXPECT_FALSE(a.done());
    fail("cuEventQuery", 700);
    EXPECT_THROW(a.done(), DeviceError);
    fail("cuStreamSynchronize", 700);
    TW_EXPECT_ERROR(DeviceError, "failed to finish the work of a stream: CUDA_ERROR_ILLEGAL",
                    [&] { s.synchronize(); });
  }
  EXPECT_EQ(fake.streams, streams);
  EXPECT_EQ(fake.events, events);
}

TEST_F(Cuda, GraphsReplayWhatWasCaptured) {
  const Device d = Device::open("cuda:0");
  fake.parameter_words = 1;
  const auto f = Module::load(d, "fake tw_f")->function("tw_f");
  const Stream s = Stream::make(d), other = Stream::make(d);
  const int graphs = fake.graphs;
  {
    const Graph g(s, [&] {
      for (uint64_t i = 0; i < 3; ++i) launch(*f, {{i}}, {.grid = 5}, s);
    });
    EXPECT_TRUE(fake.launches.empty());
    g.launch(other);
    g.launch(other);
    ASSERT_EQ(fake.launches.size(), 6u);
    EXPECT_EQ(fake.launches[5].words, std::vector<uint64_t>{2});
    EXPECT_EQ(fake.launches[5].grid, 5u);
    EXPECT_EQ(fake.launches[5].stream, other.handle());
    EXPECT_EQ(fake.graphs, graphs + 1);
  }
  EXPECT_EQ(fake.graphs, graphs);
}

TEST_F(Cuda, FailedCapturesLeaveTheStreamUsable) {
  const Device d = Device::open("cuda:0");
  const Stream s = Stream::make(d);
  const Tensor host = numbers({4}), there = to_device(d, host);
  const int graphs = fake.graphs;
  TW_EXPECT_ERROR(UserError, "the default stream cannot be captured; capture one of Stream::make",
                  [&] { Graph(Stream::standard(d), [] {}); });
  TW_EXPECT_ERROR(DeviceError, "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED",
                  [&] { Graph(s, [&] { copy_in(s, there, host); }); });
  copy_in(s, there, host);
  fail("cuGraphInstantiateWithFlags", 1);
  TW_EXPECT_ERROR(DeviceError, "failed to make a graph: CUDA_ERROR_INVALID_VALUE",
                  [&] { Graph(s, [] {}); });
  EXPECT_EQ(fake.graphs, graphs);
}

TEST_F(Cuda, WorkspaceIsOneAStreamAndGrows) {
  const Device d = Device::open("cuda:0");
  const Stream a = Stream::make(d), b = Stream::make(d);
  const uint64_t first = workspace(a, 1000);
  EXPECT_EQ(first % 256, 0u);
  EXPECT_EQ(workspace(a, 1 << 20), first);
  EXPECT_NE(workspace(b, 1000), first);
  const uint64_t second = workspace(a, 3 << 20);
  EXPECT_NE(second, first);
  EXPECT_TRUE(fake.allocated.contains(reinterpret_cast<void*>(first)));  // graphs may hold it
  EXPECT_EQ(workspace(a, 1000), second);
}

TEST_F(Cuda, TensorMapsCountAxesFromTheLast) {
  const Device d = Device::open("cuda:0");
  const Tensor t = empty(d, bf16, {5, 70, 136});
  const int box[] = {1, 64, 64};
  const TensorMap map = tensor_map(d, t, box, 128);
  EXPECT_EQ(map.words[15], 0xababababababababu);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(&map) % 64, 0u);
  const auto address = reinterpret_cast<uint64_t>(t.view().data);
  EXPECT_EQ(fake.tensor_map, (std::vector<uint64_t>{9, 3, address,       // bf16, rank
                                                    136, 70, 5,          // extents
                                                    272, 19040,          // bytes
                                                    64, 64, 1, 1, 1, 1,  // box, steps
                                                    0, 3, 3, 0}));       // 128-byte swizzle
  const int wide[] = {1, 1, 136};
  tensor_map(d, t, wide, 0);
  EXPECT_EQ(fake.tensor_map[15], 0u);
}

TEST_F(Cuda, TensorMapsThatCannotBeAreRefused) {
  const Device d = Device::open("cuda:0");
  const Tensor t = empty(d, f32, {8, 64});
  auto refuse = [&](const char* text, const TensorView& v, std::vector<int> box, int swizzle) {
    TW_EXPECT_ERROR(UserError, text, [&] { tensor_map(d, v, box, swizzle); });
  };
  refuse("the box has 1 extents", t, {8}, 0);
  refuse("wanted extents of the box in 1..256", t, {0, 8}, 0);
  refuse("wanted extents of the box in 1..256", t, {257, 8}, 0);
  refuse("a row of the box has 12 bytes: wanted a multiple of 16", t, {8, 3}, 0);
  refuse("has 256 bytes: wanted at most the 128 of its swizzle", t, {8, 64}, 128);
  refuse("swizzle 16: wanted 0, 32, 64 or 128", t, {8, 4}, 16);
  refuse("wanted stride 1 along the last axis", t.transpose(0, 1), {8, 8}, 0);
  refuse("wanted an address of 16 bytes", t.slice(1, 1, 64), {8, 8}, 0);
  refuse("wanted strides of multiples of 16 bytes", empty(d, f32, {8, 63}), {8, 8}, 0);
  refuse("wanted rank 1 to 5", empty(d, f32, {}), {}, 0);
  refuse("wanted rank 1 to 5", empty(d, f32, {1, 1, 1, 1, 1, 4}), {1, 1, 1, 1, 1, 4}, 0);
  refuse("wanted extents in 1..2^32", empty(d, f32, {0, 4}), {1, 4}, 0);
  refuse("no map has such elements", empty(d, i4, {8, 64}), {8, 64}, 0);
  EXPECT_TRUE(fake.tensor_map.empty());
}

TEST_F(Cuda, ManyThreadsLaunch) {
  const Device d = Device::open("cuda:1");
  fake.recording = false;
  const auto f = Module::load(d, "fake tw_f")->function("tw_f");
  std::vector<std::thread> threads;
  std::atomic<int> done{0};
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      const Stream s = Stream::standard(d);
      for (int k = 0; k < 100; ++k) launch(*f, {}, {.shared_bytes = 64 << 10}, s);
      ++done;
    });
  }
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(done, 4);
  EXPECT_GE(fake.shared_grants, 1);
}

}  // namespace tw::cuda
