#include <gmock/gmock.h>
#include <numeric>

#include "tw/graph/evaluate.h"
#include "tw/graph/fuse.h"
#include "tw/graph/onnx/importer.h"
#include "tw/graph/plan.h"
#include "tw/runtime/device.h"

#include "tests/graph/written_model.h"
#include "tests/support/expect_error.h"

namespace tw::graph::onnx {
namespace {

using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;

/// Dropout of x in training mode.
Written dropping(float ratio, const std::map<std::string, Attribute>& attributes,
                 const std::vector<Extent>& dims = {2, 4}) {
  Written w;
  w.input("x", f32, dims);
  w.m.initializers["ratio"] = floats_of({}, {ratio});
  w.list("training", {1});
  w.node("Dropout", {"x", "ratio", "training"}, {"y", "mask"}, attributes);
  w.output("y");
  w.output("mask");
  return w;
}

std::vector<Tensor> dropped(float ratio, int64_t seed) {
  const Tensor x = floats_of({2, 4}, {1, 2, 3, 4, 5, 6, 7, 8});
  return evaluate(import(dropping(ratio, {{"seed", attribute(seed)}}).m), {x.view()});
}

TEST(OnnxTraining, DropsWhatNumpyDrops) {
  // RandomState(0).uniform(size=8): 0.549 0.715 0.603 0.545 0.424 0.646 0.438 0.892
  std::vector<Tensor> got = dropped(0.5F, 0);
  EXPECT_EQ(got[1].dtype(), b1);
  EXPECT_THAT(to_doubles(got[1]), ElementsAre(1, 1, 1, 1, 0, 1, 0, 1));
  EXPECT_THAT(to_doubles(got[0]), ElementsAre(2, 4, 6, 8, 0, 12, 0, 16));
  // RandomState(2**32 - 1): 0.098 0.912 0.789 0.780 0.018 0.970 0.593 0.146
  got = dropped(0.75F, 4294967295);
  EXPECT_THAT(to_doubles(got[1]), ElementsAre(0, 1, 1, 1, 0, 1, 0, 0));
  EXPECT_THAT(to_doubles(got[0]), ElementsAre(0, 8, 12, 16, 0, 24, 0, 0));
}

TEST(OnnxTraining, DropsTheSameInEveryRun) {
  Tensor x = host_tensor(f32, {50, 40});
  std::iota(x.data<float>(), x.data<float>() + x.count(), 1.0F);
  Graph g = import(dropping(0.5F, {{"seed", attribute(7)}}, {50, 40}).m);
  const std::vector<Tensor> want = evaluate(g, {x.view()});
  fuse(g);
  const Plan plan(std::move(g), Device::open("cpu:0"));
  for (int run = 0; run < 2; ++run) {
    const std::vector<Tensor> got = plan.run({x.view()});
    for (size_t o = 0; o < 2; ++o) EXPECT_EQ(to_doubles(got[o]), to_doubles(want[o])) << o;
  }
  const std::vector<double> mask = to_doubles(want[1]);
  const double kept = std::accumulate(mask.begin(), mask.end(), 0.0);
  EXPECT_GT(kept, 900);
  EXPECT_LT(kept, 1100);
}

TEST(OnnxTraining, DropsNothingWithARatioOfZero) {
  const Tensor x = floats_of({2, 4}, {1, 2, 3, 4, 5, 6, 7, 8});
  const std::vector<Tensor> got = evaluate(import(dropping(0, {}).m), {x.view()});
  EXPECT_EQ(to_doubles(got[0]), to_doubles(x));
  EXPECT_EQ(got[1].dims(), x.dims());
  EXPECT_THAT(to_doubles(got[1]), Each(1));
}

TEST(OnnxTraining, RefusesMasksThatNothingDecides) {
  const auto fault = [](const Written& w) {
    return test::error_text<UserError>([&] { import(w.m); });
  };
  const auto seeded = [](int64_t s) {
    return std::map{std::pair{std::string("seed"), attribute(s)}};
  };
  EXPECT_THAT(fault(dropping(0.5F, {})),
              HasSubstr("Dropout 'y': is in training mode without a seed"));
  EXPECT_THAT(fault(dropping(0.5F, seeded(-1))), HasSubstr("seed -1, wanted 0 to 4294967295"));
  EXPECT_THAT(fault(dropping(0.5F, seeded(4294967296))), HasSubstr("has seed 4294967296"));
  EXPECT_THAT(fault(dropping(1, seeded(0))), HasSubstr("drops a share of 1, wanted"));
  const Written named = dropping(0.5F, seeded(0), {"N", 4});
  TW_EXPECT_ERROR(NeedsSizes, "an extent of input 0", [&] { import(named.m); });
  for (const char* data : {"ratio", "training"}) {
    Written w = dropping(0.5F, seeded(0));
    w.m.initializers.erase(data);
    w.input(data, data == std::string("ratio") ? f32 : b1, {1});
    EXPECT_THAT(fault(w), HasSubstr(std::string("'") + data + "',"));
  }
  Written whole = dropping(0.5F, seeded(0));
  whole.m.inputs[0].dtype = i32;
  EXPECT_THAT(fault(whole), HasSubstr("'x', is i32, wanted f16"));
}

/// BatchNormalization of two channels, or of one where x has one axis.
Written normalized(const std::vector<Extent>& dims, int64_t channels, int64_t opset,
                   int64_t training_mode) {
  Written w(opset);
  w.input("x", f32, dims);
  for (const char* name : {"scale", "bias", "mean", "var"}) w.input(name, f32, {channels});
  std::map<std::string, Attribute> attributes = {{"epsilon", attribute_of_real(0)},
                                                 {"momentum", attribute_of_real(0.75F)}};
  if (opset >= 14) attributes["training_mode"] = attribute(training_mode);
  w.node("BatchNormalization", {"x", "scale", "bias", "mean", "var"}, {"y", "now_mean", "now_var"},
         attributes);
  for (const char* name : {"y", "now_mean", "now_var"}) w.output(name);
  return w;
}

TEST(OnnxTraining, NormalizesByTheBatch) {
  const Graph two = import(normalized({2, 2, 1}, 2, 15, 1).m);
  std::vector<Tensor> got =
      evaluate(two, {floats_of({2, 2, 1}, {2, 10, 6, 12}).view(), floats_of({2}, {2, 3}).view(),
                     floats_of({2}, {1, -1}).view(), floats_of({2}, {8, 0}).view(),
                     floats_of({2}, {0, 5}).view()});
  EXPECT_THAT(to_doubles(got[0]), ElementsAre(-1, -4, 3, 2));
  EXPECT_THAT(to_doubles(got[1]), ElementsAre(7, 2.75));
  EXPECT_THAT(to_doubles(got[2]), ElementsAre(1, 4));
  const Graph one = import(normalized({2}, 1, 14, 1).m);
  got = evaluate(
      one, {floats_of({2}, {2, 6}).view(), floats_of({1}, {2}).view(), floats_of({1}, {1}).view(),
            floats_of({1}, {8}).view(), floats_of({1}, {0}).view()});
  EXPECT_THAT(to_doubles(got[0]), ElementsAre(-1, 3));
  EXPECT_THAT(to_doubles(got[1]), ElementsAre(7));
  EXPECT_THAT(to_doubles(got[2]), ElementsAre(1));
}

/// Opsets below 14 leave open what the running variance is of.
TEST(OnnxTraining, RefusesFiguresOfBatchesThatNoTrainingGives) {
  const auto fault = [](const Written& w) {
    return test::error_text<UserError>([&] { import(w.m); });
  };
  EXPECT_THAT(fault(normalized({2, 2, 1}, 2, 15, 0)), HasSubstr("output 1, 'now_mean'"));
  EXPECT_THAT(fault(normalized({2, 2, 1}, 2, 9, 0)), HasSubstr("output 1, 'now_mean'"));
  EXPECT_THAT(fault(normalized({2, 2, 1}, 3, 15, 1)), HasSubstr("'scale', has extent 3"));
}

}  // namespace
}  // namespace tw::graph::onnx
