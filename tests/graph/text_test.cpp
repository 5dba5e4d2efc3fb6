#include <gmock/gmock.h>

#include "tw/graph/evaluate.h"
#include "tw/graph/graph.h"

#include "tests/support/expect_error.h"

namespace tw::graph {
namespace {

const char* const kText = R"(graph "net \"1\""
dim N "N"
dim dim1 "past + 1"
%0 = input f32[N, dim1]  "x"
%1 = input i64[N]  "ids"
%2 = sizes i64[2] {N*2, 4}  "shape"
%3 = [i0 < N, i1 < dim1] add(%0[i0, i1], f32 ~0.5)  "half"
%4 = [i0 < N] max [i1 < dim1] where(lt({i1}, i64 3), %3[i0, i1], f32 ~2) then neg($)  "top"
%5 = [i0 < N] argmax [i1 < dim1] %3[i0, i1]  "place"
%6 = [i0 < N, i1 < 3] %3[@%1[i0], i1 - 1 else f32 ~7]  "rows"
%7 = [i0 < N] f32(eq(%5[i0], {mod(i0, 2)}))  "even"
output "top" = %4
output "place" = %5
output "rows" = %6
output "even" = %7
)";

TEST(GraphText, IsReadAndWrittenAlike) {
  const Graph g = parse_graph(kText);
  EXPECT_EQ(to_string(g), kText);
  EXPECT_EQ(verify(g), "");
}

TEST(GraphText, MeansWhatItSays) {
  const Graph g = parse_graph(kText);
  Tensor x = host_tensor(f32, {2, 4}), ids = host_tensor(i64, {2});
  for (int64_t i = 0; i < 8; ++i) set(x, i, static_cast<double>(i % 5));
  set(ids, 0, 1), set(ids, 1, 9);
  const std::vector<Tensor> y = evaluate(g, {x, ids});
  EXPECT_THAT(to_doubles(y[0]), testing::ElementsAre(-2.5, -4.5));
  EXPECT_THAT(to_doubles(y[1]), testing::ElementsAre(3, 0));
  EXPECT_THAT(to_doubles(y[2]), testing::ElementsAre(7, 4.5, 0.5, 7, 7, 7));
  EXPECT_THAT(to_doubles(y[3]), testing::ElementsAre(0, 0));
}

TEST(GraphText, SaysWhatIsWrong) {
  const auto bad = [](const std::string& line, const char* message) {
    TW_EXPECT_ERROR(UserError, message, [&] { parse_graph("graph \"g\"\n" + line + "\n"); });
  };
  bad("%0 = input f33[2]  \"x\"", "line 2 of a graph: got 'f33', wanted a dtype");
  bad("%0 = [i0 < 2] %7[i0]  \"y\"", "%7 is not there yet");
  bad("%0 = [i0 < 2] spin(f32 ~1)  \"y\"", "'spin' is no operation");
  bad("%0 = [i0 < 2] f32 ~1  \"y\" z", "wanted the end of the line");
  bad("turn %0", "wanted a tensor, dim, require or output");
}

TEST(GraphVerifier, FindsFaults) {
  const auto faults = [](const std::function<void(Graph&, Compute&)>& change) {
    Graph g("g");
    const TensorId x = g.input("x", f32, {4, 3});
    Compute c{{x}, {4, 3}, 1, Fold::sum, load(0, f32, {axis(0), axis(1)}), nullptr};
    const TensorId y = g.compute(c, "y");
    g.output("y", y);
    std::vector<Node> nodes = g.nodes();
    change(g, nodes[0].compute);
    g.replace_nodes(nodes);
    return verify(g);
  };
  EXPECT_EQ(faults([](Graph&, Compute&) {}), "");
  EXPECT_THAT(faults([](Graph&, Compute& c) { c.fold = Fold::none; }),
              testing::HasSubstr("reduced axes without a fold"));
  EXPECT_THAT(faults([](Graph&, Compute& c) { c.body = load(0, f32, {axis(0)}); }),
              testing::HasSubstr("at 1 coordinates of 2"));
  EXPECT_THAT(faults([](Graph&, Compute& c) {
                c.body = load(0, f64, {axis(0), axis(1)});
              }),
              testing::HasSubstr("reads %0 as f64, it is f32"));
  EXPECT_THAT(faults([](Graph&, Compute& c) {
                c.body = load(0, f32, {axis(0), axis(7)});
              }),
              testing::HasSubstr("mentions i7, which is no axis here"));
  EXPECT_THAT(faults([](Graph&, Compute& c) {
                c.finish = load(0, f32, {axis(0), axis(1)});
              }),
              testing::HasSubstr("mentions i1, which is no axis here"));
  EXPECT_THAT(faults([](Graph&, Compute& c) { c.body = result(f32); }),
              testing::HasSubstr("reads the fold's result inside it"));
  EXPECT_THAT(faults([](Graph&, Compute& c) {
                c.body = load(0, f32, {index(Expr::symbol(axis_symbol(0)) + 4), axis(1)});
              }),
              testing::HasSubstr("reads %0 outside, at i0 + 4"));
  EXPECT_THAT(faults([](Graph&, Compute& c) { c.operands = {1}; }),
              testing::HasSubstr("operand %1 is not there yet"));
  EXPECT_THAT(faults([](Graph&, Compute& c) { c.axes[0] = 5; }),
              testing::HasSubstr("its tensor has other extents"));
}

}  // namespace
}  // namespace tw::graph
