#include <cstdlib>
#include <fstream>
#include <functional>
#include <gtest/gtest.h>
#include <sstream>

#include "tw/base/error.h"
#include "tw/check/staged.h"
#include "tw/jit/nvrtc.h"

#include "tests/runtime/fake/fake_cuda.h"
#include "tests/support/expect_error.h"
#include "tests/zoo/species.h"

namespace tw::zoo {
namespace {

TEST(GpuZoo, ThePageHasARowOfEach) {
  std::ifstream file(TW_TEST_DIR "/../../docs/judge.md");
  std::stringstream page;
  page << file.rdbuf();
  for (const Species& s : species()) {
    const std::string row =
        "| `" + std::string(s.name) + "` | " + s.what + " | " + s.verdict + " |";
    EXPECT_NE(page.str().find(row), std::string::npos) << row;
  }
}

TEST(GpuZoo, HasManyCheatsAndHonestOnes) {
  const std::vector<Species> all = species();
  const auto honest = std::ranges::count_if(
      all, [](const Species& s) { return std::string(s.verdict) == "accepted"; });
  EXPECT_GE(honest, 6);
  EXPECT_GE(static_cast<long>(all.size()) - honest, 25);
}

TEST(GpuZoo, TextIsCudaThatNvrtcTakes) {
  EXPECT_NO_THROW(compile_cubin(find_nvrtc(), "sm_90a", text(), false));
}

/// A driver whose memory is the host's: callables of tests compute there themselves.
class OnDevice : public testing::Test {
 protected:
  OnDevice() { setenv("TW_CUDA_DRIVER", TW_FAKE_CUDA, 1); }
  ~OnDevice() override { unsetenv("TW_CUDA_DRIVER"); }

  using Work = std::function<void(const measure::TensorSet&)>;
  struct Does : check::DeviceCallable {
    explicit Does(Work w) : work(std::move(w)) {}
    std::string prepare(const std::vector<measure::TensorSet>& s) override {
      sets = s;
      return "about";
    }
    void run(int set, const cuda::Stream&) override { work(sets[static_cast<size_t>(set)]); }
    Work work;
    std::vector<measure::TensorSet> sets;
  };

  static Tensor numbers(double first) {
    Tensor t = host_tensor(f32, {3, 5});
    for (int64_t i = 0; i < t.count(); ++i) set(t, i, first + static_cast<double>(i));
    return t;
  }
  static void doubles(const measure::TensorSet& s) {
    for (int64_t i = 0; i < 15; ++i) set(s.outputs[0], i, 2 * get(s.inputs[0], i));
  }
  /// A contestant on two sets of tensors, which does this.
  void have(Work work) {
    auto does = std::make_unique<Does>(std::move(work));
    callable = does.get();
    contestant = check::on_device(Device::open("cuda:0"), std::move(does));
    EXPECT_EQ(contestant->prepare({{{x[0]}, {y[0]}}, {{x[1]}, {y[1]}}}), "about");
  }
  void call(int set) {
    contestant->bring(set);
    contestant->run(set);
    contestant->deliver(set);
    contestant->settle();
  }

  test::FakeCuda& fake = test::fresh_fake(TW_FAKE_CUDA);
  Tensor x[2] = {numbers(1), numbers(50)}, y[2] = {numbers(-1), numbers(-2)};
  Does* callable = nullptr;
  std::unique_ptr<measure::Contestant> contestant;
};

TEST_F(OnDevice, OutputsAreBroughtBackAndNewInputsThere) {
  have(doubles);
  call(0);
  EXPECT_EQ(get(y[0], 14), 30);
  EXPECT_EQ(get(y[1], 14), 12) << "of a set that was not called";
  set(x[0], 14, 100);
  call(0);
  EXPECT_EQ(get(y[0], 14), 200);
  contestant.reset();
  EXPECT_TRUE(fake.mapped.empty());
}

TEST_F(OnDevice, WhatIsBroughtLaterIsNotSeenBefore) {
  have(doubles);
  contestant->bring(0);
  set(x[0], 0, 1000);
  contestant->run(0);
  contestant->deliver(0);
  EXPECT_EQ(get(y[0], 0), 2);
}

TEST_F(OnDevice, InputsMustStay) {
  have([](const measure::TensorSet& s) {
    doubles(s);
    set(s.inputs[0], 3, 0);
  });
  TW_EXPECT_ERROR(DeviceError, "it wrote to an input", [&] { call(1); });
}

TEST_F(OnDevice, OutputsMustStayAsTheyWereDelivered) {
  have(doubles);
  contestant->bring(0);
  contestant->run(0);
  contestant->deliver(0);
  set(callable->sets[0].outputs[0], 3, 0);
  TW_EXPECT_ERROR(DeviceError, "an output changed after the work of its stream was done",
                  [&] { contestant->settle(); });
}

TEST_F(OnDevice, ChangesOfOtherOutputsComeBack) {
  have([&](const measure::TensorSet& s) {
    doubles(s);
    if (s.outputs[0].data == callable->sets[1].outputs[0].data)
      set(callable->sets[0].outputs[0], 3, 77);
  });
  call(0);
  EXPECT_EQ(get(y[0], 3), 8);
  call(1);
  EXPECT_EQ(get(y[0], 3), 77);
}

TEST_F(OnDevice, MemoryBesideTensorsMustStay) {
  have([&](const measure::TensorSet& s) {
    doubles(s);
    auto* y = static_cast<float*>(s.outputs[0].data);
    // Where it begins a page of the host by chance, a fence lies before it.
    y[fake.mapped.contains(y) ? s.outputs[0].count() : -1] = 0;
  });
  TW_EXPECT_ERROR(DeviceError, "memory beside the tensors was written", [&] { call(0); });
}

// The end of a tensor that ends a page of the host ends the memory, which the fake driver fences as
// a GPU does.
TEST_F(OnDevice, AFenceIsWhereThePageOfTheHostEnds) {
  const Tensor pages = host_tensor(u8, {3 << 12});
  char* end = pages.data<char>() + (2 << 12);
  end -= reinterpret_cast<uintptr_t>(end) % (1 << 12);
  const Device d = Device::open("cuda:0");
  const auto there = [&](char* data) {
    const check::Staged staged(d, {TensorView{data, u8, {100}, {1}}});
    char* copy = static_cast<char*>(staged.view(0).data);
    const auto& [memory, about] = *fake.mapped.begin();
    return std::pair{copy - static_cast<char*>(memory),
                     static_cast<char*>(memory) + about.bytes - copy};
  };
  EXPECT_EQ(there(end - 100).second, 100) << "at the end";
  EXPECT_EQ(there(end).first, 0) << "at the begin";
  EXPECT_LT(there(end - 201).second, 100 + 256) << "near the end";
  const check::Staged none(d, {TensorView{end, u8, {0}, {1}}});
  EXPECT_EQ(cuda::memory_fault(d, none.view(0).data), "") << "of no bytes";
}

}  // namespace
}  // namespace tw::zoo
