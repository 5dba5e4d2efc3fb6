#include "tw/graph/session.h"

#include <gmock/gmock.h>
#include <thread>

#include "tests/support/expect_error.h"
#include "tests/support/onnx_writer.h"

namespace tw::graph {
namespace {

using namespace tw::test;
using testing::ElementsAre;

Session load_model(const ModelProto& m, const SessionOptions& options = {}) {
  const ModelFolder folder;
  return Session::load(folder.write(m), options);
}

Tensor counted(const std::vector<int64_t>& dims) {
  Tensor t = host_tensor(f32, dims);
  for (int64_t i = 0; i < t.count(); ++i) set(t, i, static_cast<double>(i % 7) - 3);
  return t;
}

/// A view of extents that no memory has.
TensorView huge(std::vector<int64_t> dims) {
  static float nothing;
  TensorView v{&nothing, f32, std::move(dims), {}};
  v.strides = contiguous_strides(v.dims);
  return v;
}

void expect_small_model_runs(const Session& s, int64_t n) {
  const Tensor x = counted({n, 3});
  const std::vector<NamedTensor> y = s.run({{"x", x}});
  ASSERT_EQ(y.size(), 1);
  EXPECT_EQ(y[0].name, "y");
  ASSERT_EQ(y[0].tensor.dims(), (std::vector<int64_t>{n, 3}));
  const double w[] = {1, -2, 0.5};
  for (int64_t i = 0; i < x.count(); ++i)
    EXPECT_EQ(get(y[0].tensor, i), std::max(get(x, i) + w[i % 3], 0.0)) << i;
}

TEST(Session, RunsAtAnySizeWithOnePlan) {
  const Session s = load_model(small_model());
  ASSERT_EQ(s.inputs().size(), 1);
  EXPECT_EQ(s.inputs()[0].name, "x");
  EXPECT_EQ(s.inputs()[0].dtype, f32);
  EXPECT_THAT(s.inputs()[0].dims, ElementsAre("N", "3"));
  EXPECT_THAT(s.outputs().at(0).dims, ElementsAre("N", "3"));
  for (const int64_t n : {4, 1, 0, 1000}) expect_small_model_runs(s, n);
  s.prepare({{"x", {77, 3}}});
  EXPECT_EQ(s.plan({{"x", {77, 3}}}).plan, s.general_plan());
}

TEST(Session, ThreadsRunAtOnce) {
  const Session s = load_model(small_model());
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&s, t] {
      for (int64_t n = 1; n < 20; ++n) expect_small_model_runs(s, n + t);
    });
  for (std::thread& t : threads) t.join();
}

ModelProto without_shape() {
  ModelProto m = small_model();
  m.inputs = {shapeless_proto("x", kFloat)};
  return m;
}

TEST(Session, MakesPlansForExtentsWhereItMust) {
  const Session s = load_model(without_shape());
  EXPECT_EQ(s.general_plan(), nullptr);
  EXPECT_EQ(s.why_sizes(), "input 'x' has no shape in the model; give its extents");
  EXPECT_THAT(s.inputs().at(0).dims, ElementsAre(".."));
  for (const int64_t n : {4, 1, 4}) expect_small_model_runs(s, n);
  std::vector<std::thread> threads;
  for (int64_t t = 1; t < 5; ++t) threads.emplace_back([&s, t] { expect_small_model_runs(s, t); });
  for (std::thread& t : threads) t.join();
}

TEST(Session, KeepsTheLastPlans) {
  const Session s = load_model(without_shape());
  const auto plan = [&](int64_t n) { return s.plan({{"x", {n, 3}}}).plan; };
  const auto first = plan(1);
  for (int64_t n = 2; n < 9; ++n) plan(n);
  EXPECT_EQ(plan(1), first);
  for (int64_t n = 11; n < 19; ++n) plan(n);
  EXPECT_NE(plan(1), first);
}

TEST(Session, ExtentsThatThePlanExcludesGetOne) {
  ModelProto m = small_model();
  m.initializers = {};
  m.inputs = {value_proto("x", kFloat, {"N", "3"}), value_proto("w", kFloat, {"M", "3"})};
  const Session s = load_model(m);
  const Tensor x = counted({4, 3}), same = counted({4, 3}), one = counted({1, 3});
  EXPECT_EQ(s.plan({{"x", {4, 3}}, {"w", {4, 3}}}).plan, s.general_plan());
  EXPECT_NE(s.plan({{"x", {4, 3}}, {"w", {1, 3}}}).plan, s.general_plan());
  for (const Tensor& w : {same, one}) {
    const Tensor y = s.run({{"x", x}, {"w", w}}).at(0).tensor;
    for (int64_t i = 0; i < y.count(); ++i)
      EXPECT_EQ(get(y, i), std::max(get(x, i) + get(w, i % w.count()), 0.0));
  }
  TW_EXPECT_ERROR(UserError, "broadcasts extents 4 and 2", [&] {
    s.run({{"x", x}, {"w", counted({2, 3})}});
  });
}

TEST(Session, InputsAreCheckedByName) {
  const Session s = load_model(small_model());
  const Tensor x = counted({2, 3});
  TW_EXPECT_ERROR(UserError, "the model's input 'x' is missing", [&] { s.run({}); });
  TW_EXPECT_ERROR(UserError, "the model has no input 'xs'; did you mean 'x'?", [&] {
    s.run({{"x", x}, {"xs", x}});
  });
  TW_EXPECT_ERROR(UserError, "input 'x' is i64, wanted f32", [&] {
    s.run({{"x", host_tensor(i64, {2, 3})}});
  });
  TW_EXPECT_ERROR(UserError, "input 'x' has extents [3,2], wanted [N,3]", [&] {
    s.run({{"x", counted({3, 2})}});
  });
  TW_EXPECT_ERROR(UserError, "input 'x' has extents [6], wanted [N,3]", [&] {
    s.run({{"x", counted({6})}});
  });
}

TEST(Session, RefusesRunsThatNoMemoryHolds) {
  const int64_t rows = (int64_t{1} << 40) / 12;  // 1 TB of f32[rows,3]
  for (const ModelProto& m : {small_model(), without_shape()}) {
    const Session s = load_model(m);
    TW_EXPECT_ERROR(UserError, "give smaller inputs", [&] { s.run({{"x", huge({rows, 3})}}); });
    TW_EXPECT_ERROR(UserError, "give smaller inputs", [&] { s.prepare({{"x", {rows, 3}}}); });
  }
  const Session limited = load_model(small_model(), {.memory_limit = 1000});
  expect_small_model_runs(limited, 20);
  TW_EXPECT_ERROR(UserError, "takes 12000 bytes, of 1000; raise the memory limit", [&] {
    limited.run({{"x", counted({1000, 3})}});
  });
}

TEST(Session, StridedInputsAreTaken) {
  const Session s = load_model(small_model());
  const Tensor x = counted({3, 5}).transpose(0, 1);
  const Tensor y = s.run({{"x", x}}).at(0).tensor;
  EXPECT_EQ(get(y, 4), std::max(get(x, 4) - 2, 0.0));
}

}  // namespace
}  // namespace tw::graph
