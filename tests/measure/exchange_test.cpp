#include "tw/measure/impl/exchange.h"

#include <algorithm>
#include <gtest/gtest.h>
#include <numeric>
#include <random>

namespace tw::measure {
namespace {

/// Inputs of one set: plain, with strides, one that stays.
struct Inputs {
  std::vector<TensorSpec> specs;
  std::vector<std::vector<float>> elements;

  explicit Inputs(bool strides) {
    specs = {{"A", f32, {7, 11}, {}}, {"B", f32, {5, 3}, {}}, {"W", f32, {9}, {}, true}};
    if (strides) specs[1].strides = {4, 1};
    for (const TensorSpec& t : specs) {
      const int64_t n = strides ? 77 : view_of(t, nullptr).count();
      std::vector<float>& e = elements.emplace_back(n);
      std::iota(e.begin(), e.end(), 1.0F);
    }
  }
  std::vector<TensorView> views() {
    std::vector<TensorView> out;
    for (size_t i = 0; i < specs.size(); ++i) out.push_back(view_of(specs[i], elements[i].data()));
    return out;
  }
};

int changed(const std::vector<float>& a, const std::vector<float>& b) {
  int count = 0;
  for (size_t i = 0; i < a.size(); ++i) count += a[i] != b[i];
  return count;
}

TEST(Stirrer, AJudgeFindsWhatAWorkerHas) {
  for (const bool strides : {false, true}) {
    Inputs first(strides), now(strides);
    Stirrer worker(first.specs, 5);
    std::mt19937_64 random(1);
    for (int step = 0; step < 50; ++step) {
      if (random() % 3 == 0) worker.turn(now.views(), first.views());
      worker.step(now.views(), static_cast<int64_t>(random() % 4));
      Inputs judge(strides);
      Stirrer(first.specs, 5).replay(judge.views(), first.views(), worker.state());
      EXPECT_EQ(judge.elements, now.elements) << step;
    }
    EXPECT_EQ(worker.state().turns > 0, !strides);
    EXPECT_EQ(now.elements[2], first.elements[2]);
  }
}

TEST(Stirrer, ATurnChangesEveryElementAndLosesNone) {
  Inputs first(false), now(false);
  Stirrer stirrer(first.specs, 9);
  stirrer.turn(now.views(), first.views());
  for (const size_t i : {0, 1}) {
    EXPECT_EQ(changed(now.elements[i], first.elements[i]), std::ssize(first.elements[i]));
    std::vector<float> sorted = now.elements[i];
    std::ranges::sort(sorted);
    EXPECT_EQ(sorted, first.elements[i]);
  }
}

}  // namespace
}  // namespace tw::measure
