// Two GPUs in one process.
#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <thread>

#include "tw/base/error.h"
#include "tw/runtime/cuda/cuda.h"

#include "tests/runtime/fake/fake_cuda.h"
#include "tests/support/expect_error.h"

namespace tw::cuda {

using test::FakeCuda;

class CudaDevices : public testing::Test {
 protected:
  CudaDevices() { setenv("TW_CUDA_DRIVER", TW_FAKE_CUDA, 1); }
  ~CudaDevices() override {
    fake.failing.clear();
    EXPECT_EQ(fake.contexts_pushed, 0);
    unsetenv("TW_CUDA_DRIVER");
  }
  static std::shared_ptr<const Function> function(const Device& d) {
    return Module::load(d, "fake tw_f")->function("tw_f");
  }

  FakeCuda& fake = test::fresh_fake(TW_FAKE_CUDA);
};

static Tensor counted(std::vector<int64_t> dims) {
  Tensor t = host_tensor(f32, std::move(dims));
  for (int64_t i = 0; i < t.count(); ++i) set(t, i, static_cast<double>(i));
  return t;
}

TEST_F(CudaDevices, HaveHandlesOfTheirOwn) {
  const Device zero = Device::open("cuda:0"), one = Device::open("cuda:1");
  const auto f = function(zero), g = function(one);
  launch(*f, {}, {}, Stream::standard(zero));
  launch(*g, {}, {}, Stream::standard(one));
  launch(*f, {}, {}, Stream::make(zero));
  launch(*g, {}, {}, Stream::make(one));
  ASSERT_EQ(fake.launches.size(), 4u);
  for (size_t i = 0; i < 4; ++i) EXPECT_EQ(fake.launches[i].device, static_cast<int>(i % 2));
  const uint64_t a = workspace(Stream::standard(zero), 100);
  const uint64_t b = workspace(Stream::standard(one), 100);
  EXPECT_EQ(fake.allocated.at(reinterpret_cast<void*>(a)).device, 0);
  EXPECT_EQ(fake.allocated.at(reinterpret_cast<void*>(b)).device, 1);
}

TEST_F(CudaDevices, AreNotMixedUp) {
  const Device zero = Device::open("cuda:0"), one = Device::open("cuda:1");
  const Stream s = Stream::make(zero), t = Stream::make(one);
  const auto f = function(zero);
  TW_EXPECT_ERROR(UserError, "kernel 'tw_f' of cuda:0 is launched on a stream of cuda:1",
                  [&] { launch(*f, {}, {}, t); });
  Event e(zero), of_one(one);
  TW_EXPECT_ERROR(UserError, "an event of cuda:0 is recorded in a stream of cuda:1",
                  [&] { e.record(t); });
  e.record(s);
  of_one.record(t);
  TW_EXPECT_ERROR(UserError, "the time between events of cuda:0 and cuda:1",
                  [&] { Event::milliseconds(e, of_one); });
  const Graph g(s, [&] { launch(*f, {}, {}, s); });
  TW_EXPECT_ERROR(UserError, "a graph of cuda:0 is launched on a stream of cuda:1",
                  [&] { g.launch(t); });
  const Tensor host = counted({8}), here = to_device(zero, host), there = to_device(one, host);
  TW_EXPECT_ERROR(UserError, "copy by a stream of cuda:0: f32[8] strides [1] lies on cuda:1",
                  [&] { copy_in(s, there, host); });
  TW_EXPECT_ERROR(UserError, "copy by a stream of cuda:1: f32[8] strides [1] lies on cuda:0",
                  [&] { copy_out(t, host, here); });
  TW_EXPECT_ERROR(UserError, "lies in the host's memory: wanted memory of cuda:0",
                  [&] { copy_in(s, host, host); });
  const int box[] = {8};
  TW_EXPECT_ERROR(UserError, "tensor map of f32[8] strides [1]: lies on cuda:1",
                  [&] { tensor_map(zero, there, box, 0); });
  EXPECT_TRUE(fake.launches.empty());
}

/// A handle that somebody else gave cannot be told apart before the driver sees it.
TEST_F(CudaDevices, ForeignHandlesOfTheOtherAreTheDriversError) {
  const Device zero = Device::open("cuda:0"), one = Device::open("cuda:1");
  const Stream made = Stream::make(one), wrong = Stream::of(zero, made.handle());
  const auto f = function(zero);
  TW_EXPECT_ERROR(DeviceError, "cuda:0 failed to launch 'tw_f': CUDA_ERROR_INVALID_HANDLE",
                  [&] { launch(*f, {}, {}, wrong); });
  TW_EXPECT_ERROR(DeviceError, "cuda:0 failed to finish the work of a stream",
                  [&] { wrong.synchronize(); });
}

/// That is how work of one device is put behind work of the other.
TEST_F(CudaDevices, WaitForEachOthersEvents) {
  const Device zero = Device::open("cuda:0"), one = Device::open("cuda:1");
  Event e(zero);
  e.record(Stream::make(zero));
  e.hold(Stream::make(one));
  EXPECT_TRUE(e.done());
}

TEST_F(CudaDevices, FailuresLeaveTheContextOfTheOther) {
  const Device zero = Device::open("cuda:0"), one = Device::open("cuda:1");
  const Stream s = Stream::make(zero), t = Stream::make(one);
  const auto f = function(zero), g = function(one);
  const Graph outer(s, [&] {
    launch(*f, {}, {}, s);
    launch(*g, {}, {}, t);  // the other device's context stands within
    fake.failing = "cuLaunchKernelEx";
    fake.code = 700;
    EXPECT_THROW(launch(*g, {}, {}, t), DeviceError);
    fake.failing.clear();
    launch(*f, {}, {}, s);
  });
  outer.launch(s);
  ASSERT_EQ(fake.launches.size(), 3u);
  EXPECT_EQ(fake.launches[0].device, 1);  // was not captured
  EXPECT_EQ(fake.launches[2].device, 0);
}

TEST_F(CudaDevices, AreUsedByThreadsAtOnce) {
  std::vector<std::thread> threads;
  std::atomic<int> right{0};
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&, i] {
      const Device d = Device::open(i % 2 == 0 ? "cuda:0" : "cuda:1");
      const auto f = function(d);
      const Stream s = Stream::make(d);
      for (int k = 0; k < 50; ++k) {
        const Tensor host = counted({16 + k}), there = to_device(d, host);
        Event e(d);
        launch(*f, {}, {}, s);
        e.record(s);
        e.synchronize();
        if (memory_fault(d, there.view().data).empty() &&
            to_doubles(to_host(d, there)) == to_doubles(host))
          ++right;
      }
    });
  }
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(right, 200);
  EXPECT_EQ(fake.launches.size(), 200u);
  for (int device = 0; device < 2; ++device)
    EXPECT_EQ(std::ranges::count(fake.launches, device, &FakeCuda::Launch::device), 100);
}

}  // namespace tw::cuda
