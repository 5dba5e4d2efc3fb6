#include <cmath>
#include <gmock/gmock.h>
#include <limits>

#include "tw/graph/evaluate.h"
#include "tw/graph/onnx/importer.h"

#include "tests/graph/written_model.h"
#include "tests/support/expect_error.h"

namespace tw::graph::onnx {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::NanSensitiveDoubleEq;
using Doubles = std::vector<double>;

constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();

Graph running_sums(const std::vector<Extent>& dims, int64_t axis, bool exclusive, bool reverse) {
  Written w;
  w.input("x", f32, dims);
  w.list("axis", {axis});
  w.node("CumSum", {"x", "axis"}, {"y"},
         {{"exclusive", attribute(exclusive ? 1 : 0)}, {"reverse", attribute(reverse ? 1 : 0)}});
  w.output("y");
  return import(w.m);
}

Doubles sums_of_rows(const Tensor& x, bool exclusive, bool reverse) {
  const int64_t n = x.dims()[1];
  Doubles all;
  for (int64_t i = 0; i < x.count(); ++i) {
    double sum = 0;
    for (int64_t j = 0; j < n; ++j) {
      const int64_t ahead = reverse ? j - i % n : i % n - j;
      if (ahead > 0 || (ahead == 0 && !exclusive)) sum += get(x, i / n * n + j);
    }
    all.push_back(sum);
  }
  return all;
}

/// One block, a part of one, and blocks of blocks; of numbers and of names.
TEST(OnnxOrder, SumsWhatComesBefore) {
  for (const int64_t n : {0, 1, 128, 129, 700}) {
    const Tensor x = host_tensor(f32, {3, n});
    for (int64_t i = 0; i < x.count(); ++i) set(x, i, static_cast<double>(i * 7 % 13));
    for (const int mode : {0, 1, 2, 3}) {
      const bool exclusive = mode % 2 == 1, reverse = mode >= 2;
      const Doubles want = sums_of_rows(x, exclusive, reverse);
      for (const std::vector<Extent>& dims : {std::vector<Extent>{3, n}, {3, "N"}}) {
        const Graph g = running_sums(dims, -1, exclusive, reverse);
        EXPECT_EQ(to_doubles(evaluate(g, {x.view()})[0]), want) << n << " mode " << mode;
        EXPECT_EQ(to_doubles(run_fused(g, {x.view()})[0]), want) << n << " " << mode;
      }
    }
  }
}

TEST(OnnxOrder, SumsAlongTheFirstAxis) {
  const Graph g = running_sums({3, 2}, 0, false, false);
  const Tensor x = floats_of({3, 2}, {1, 2, 3, 4, 5, INFINITY});
  EXPECT_THAT(to_doubles(run_fused(g, {x.view()})[0]), ElementsAre(1, 2, 4, 6, 9, INFINITY));
}

struct Chosen {
  Doubles values, places;
};
Chosen chosen(const std::vector<float>& x, int64_t count, bool largest, const Extent& extent) {
  Written w;
  w.input("x", f32, {extent});
  w.list("k", {count});
  w.node("TopK", {"x", "k"}, {"v", "i"}, {{"largest", attribute(largest ? 1 : 0)}});
  w.output("v");
  w.output("i");
  const Graph g = import(w.m);
  const Tensor given = floats_of({std::ssize(x)}, x);
  const std::vector<Tensor> want = evaluate(g, {given.view()});
  const std::vector<Tensor> got = run_fused(g, {given.view()});
  EXPECT_THAT(to_doubles(got[1]), testing::ElementsAreArray(to_doubles(want[1])));
  return {to_doubles(got[0]), to_doubles(got[1])};
}

/// Of equal ones the first; NaN is above all.
TEST(OnnxOrder, ChoosesTheFirstInSize) {
  const std::vector<float> x = {2, -INFINITY, 5, kNaN, 5, -INFINITY, 0};
  for (const Extent& extent : {Extent(7), Extent("N")}) {
    const Chosen most = chosen(x, 4, true, extent);
    EXPECT_THAT(most.places, ElementsAre(3, 2, 4, 0));
    EXPECT_THAT(most.values, ElementsAre(NanSensitiveDoubleEq(kNaN), 5, 5, 2));
    const Chosen least = chosen(x, 7, false, extent);
    EXPECT_THAT(least.places, ElementsAre(1, 5, 6, 0, 2, 4, 3));
    EXPECT_THAT(chosen(x, 0, true, extent).values, ElementsAre());
  }
  const std::string fault = test::error_text<UserError>([&] { chosen(x, 8, true, Extent(7)); });
  EXPECT_THAT(fault, HasSubstr("wants 8 elements of 7"));
}

Attribute attribute_of_text(const char* v) {
  Attribute a;
  a.kind = Attribute::Kind::text;
  a.texts = {v};
  return a;
}

/// Data, indices and updates of a node that scatters, run and compared with what it means.
struct Scattered {
  const char* op;
  Tensor data, indices, updates;
  std::map<std::string, Attribute> attributes = {};

  Graph graph() const {
    Written w;
    const auto extents = [](const Tensor& t) {
      return std::vector<Extent>(t.dims().begin(), t.dims().end());
    };
    w.input("x", data.dtype(), extents(data));
    w.input("i", i64, extents(indices));
    w.input("u", updates.dtype(), extents(updates));
    w.node(op, {"x", "i", "u"}, {"y"}, attributes);
    w.output("y");
    return import(w.m);
  }
  Doubles run() const {
    const std::vector<TensorView> inputs = {data.view(), indices.view(), updates.view()};
    const Doubles want = to_doubles(evaluate(graph(), inputs)[0]);
    EXPECT_EQ(to_doubles(run_fused(graph(), inputs)[0]), want) << op;
    return want;
  }
  std::string fault() const {
    return test::error_text<UserError>([&] { graph(); });
  }
};

/// The last of updates of one element stays; those outside go nowhere.
TEST(OnnxOrder, ScattersElements) {
  const Tensor x = floats_of({2, 3}, {1, 2, 3, 4, 5, 6});
  const Tensor at = list_of({2, -1, 0, 9}).reshape({1, 4});
  const Tensor u = floats_of({1, 4}, {10, 20, 30, 40});
  const std::map<std::string, Attribute> along = {{"axis", attribute(1)}};
  EXPECT_THAT((Scattered{"ScatterElements", x, at, u, along}.run()),
              ElementsAre(30, 2, 20, 4, 5, 6));
  const Tensor none = list_of({}).reshape({2, 0}), nothing = host_tensor(f32, {2, 0});
  EXPECT_THAT((Scattered{"ScatterElements", x, none, nothing, along}.run()),
              ElementsAre(1, 2, 3, 4, 5, 6));
}

TEST(OnnxOrder, ScattersByEachReduction) {
  const Tensor x = floats_of({4}, {1, -0.0F, 3, 4}), at = list_of({2, -2, 0});
  const auto reduced = [&](const char* reduction, const std::vector<float>& u) {
    return Scattered{
        "ScatterElements", x, at, floats_of({3}, u), {{"reduction", attribute_of_text(reduction)}}};
  };
  const Doubles sum = reduced("add", {10, 20, 30}).run();
  EXPECT_THAT(sum, ElementsAre(31, 0, 33, 4));
  EXPECT_TRUE(std::signbit(sum[1]));
  EXPECT_THAT(reduced("mul", {10, 20, 30}).run(), ElementsAre(30, 0, 600, 4));
  EXPECT_THAT(reduced("min", {-10, 20, 30}).run(), ElementsAre(1, 0, -10, 4));
  EXPECT_THAT(reduced("max", {-10, 20, -30}).run(), ElementsAre(1, 0, 20, 4));
  EXPECT_THAT(reduced("mean", {1, 2, 3}).fault(), HasSubstr("has reduction 'mean', wanted none"));
}

TEST(OnnxOrder, ScattersRows) {
  const Tensor x = floats_of({3, 2}, {1, 2, 3, 4, 5, 6});
  const Tensor rows = list_of({-1, 0}).reshape({2, 1});
  EXPECT_THAT((Scattered{"ScatterND", x, rows, floats_of({2, 2}, {7, 8, 9, 10})}.run()),
              ElementsAre(9, 10, 3, 4, 7, 8));
  const Tensor places = list_of({0, 1, 2, -2}).reshape({2, 2});
  EXPECT_THAT((Scattered{"ScatterND", x, places, floats_of({2}, {7, 8})}.run()),
              ElementsAre(1, 7, 3, 4, 8, 6));
}

TEST(OnnxOrder, RefusesUpdatesThatDoNotFit) {
  const Tensor x = floats_of({2, 2}, {1, 2, 3, 4}), two = floats_of({2}, {1, 2});
  const Tensor tall = list_of({0, 0, 0}).reshape({1, 3}), deep = list_of({0, 0, 0}).reshape({1, 3});
  const Tensor three = floats_of({1, 3}, {1, 2, 3});
  EXPECT_THAT((Scattered{"ScatterElements", x, tall, three}.fault()), HasSubstr("extent 3"));
  EXPECT_THAT((Scattered{"ScatterElements", x, tall, two}.fault()), HasSubstr("has 1 axes"));
  EXPECT_THAT((Scattered{"ScatterND", x, deep, two}.fault()), HasSubstr("places 3 axes of 2"));
  const Tensor row = list_of({0}).reshape({1, 1});
  EXPECT_THAT((Scattered{"ScatterND", x, row, three}.fault()), HasSubstr("has extent 3 of axis 1"));
}

}  // namespace
}  // namespace tw::graph::onnx
