#include <fmt/format.h>
#include <gtest/gtest.h>
#include <random>

#include "tw/emit/cuda/emit_cuda.h"
#include "tw/emu/emulator.h"
#include "tw/interp/interpreter.h"
#include "tw/ir/print.h"
#include "tw/lang/lang.h"
#include "tw/passes/pipeline.h"
#include "tw/tensor/tensor.h"

namespace tw::test {
namespace {

EmittedCuda scans_in(Program p, bool aligned) {
  canonicalize(p);
  Specialisation s = contiguous_facts(p);
  for (ParamFacts& f : s.params) f.aligned = aligned;
  const Mapping mapping{"cuda1", {}};
  run_passes(p, cuda_passes(), {machine_named("generic"), mapping, s}, true);
  return emit_cuda(p, s, gpu_named("sm_90a"), mapping, false, cpu::Thread::emulated);
}

/// Small integers: sums are exact in every grouping, products of slopes stay small.
Tensor small_tensor(DType t, const std::vector<int64_t>& dims, std::mt19937& random) {
  Tensor x = host_tensor(t, dims);
  std::uniform_int_distribution<int> any(-1, 1);
  for (int64_t i = 0; i < x.count(); ++i) set(x, i, any(random) + (is_float(t) ? 0.25 : 0));
  return x;
}

/// The program, of dims that tensors give, in the emulator and by the interpreter; the last
/// `outputs` tensors are written.
void expect_equal(const Program& p, const std::vector<std::vector<int64_t>>& shapes, size_t outputs,
                  const std::vector<int64_t>& dims, bool aligned) {
  const EmittedCuda e = scans_in(p, aligned);
  constexpr int64_t kLong = 1000;  // those take seconds each
  const uint64_t seeds = shapes[0][0] * shapes[0][1] > kLong ? 1 : 3;
  for (uint64_t seed = 0; seed < seeds; ++seed) {
    std::mt19937 random(static_cast<uint32_t>(seed));
    std::vector<Tensor> tensors;
    std::vector<TensorView> views;
    for (size_t k = 0; k < shapes.size(); ++k) {
      tensors.push_back(small_tensor(p.params[k].dtype, shapes[k], random));
      views.push_back(tensors[k]);
    }
    const EmuReport report = run_emulated(e.text, e.launch, views, dims, {.seed = seed});
    ASSERT_TRUE(report.clean()) << report.text;
    const auto inputs = views.end() - static_cast<std::ptrdiff_t>(outputs);
    std::vector<std::vector<double>> got;
    for (auto v = inputs; v != views.end(); ++v) got.push_back(to_doubles(*v));
    const Interpretation want = interpret(p, {views.begin(), inputs}, {inputs, views.end()}, {},
                                          {.mode = InterpretMode::bounded});
    for (size_t y = 0; y < outputs; ++y)
      for (size_t i = 0; i < got[y].size(); ++i) {
        const Scalar& w = want.outputs[y][i];
        const double wanted =
            is_float(views[shapes.size() - outputs + y].dtype) ? w.f : static_cast<double>(w.i);
        ASSERT_LE(std::abs(got[y][i] - wanted), w.bound)
            << "output " << y << ", element " << i << ", seed " << seed;
      }
  }
}

/// Elements that take the emulator a second for each scan.
constexpr int64_t kMany = 2000;

/// Sums, largest elements, masks, and affine maps (whose order counts), from either end.
std::string scans_text(int64_t m, int64_t n, int axis) {
  const std::string shape = fmt::format("[{},{}]", m, n);
  std::string head = "program scans\n", body;
  const auto add = [&](std::string text) {
    for (size_t at; (at = text.find('@')) != std::string::npos;) text.replace(at, 1, shape);
    for (size_t at; (at = text.find('~')) != std::string::npos;)
      text.replace(at, 1, std::to_string(axis));
    return text;
  };
  head += add("in X: f32@\nin H: f16@\nin A: i32@\nin B: i32@\n");
  body += add("%0 = load X{0, 0} : f32@\n%1 = load H{0, 0} : f16@\n");
  body += add("%2 = load A{0, 0} : i32@\n%3 = load B{0, 0} : i32@\n");
  body += add("%4 = full 0 : i32[1,1]\n%5 = lt %4, %2 : b1@\n");
  int v = 6;
  std::vector<std::pair<const char*, const char*>> kinds = {{"sum %0", "f32"}};
  if (m * n < kMany) kinds.insert(kinds.end(), {{"sum %1", "f16"}, {"max %2", "i32"}});
  for (const char* from : {"", "reverse "}) {
    for (const auto& [what, type] : kinds) {
      head += add(fmt::format("out Y{}: {}@\n", v, type));
      body += add(fmt::format("%{0} = scan {1}{2} axis ~ : {3}@\nstore %{0} to Y{0}{{0, 0}}\n", v,
                              from, what, type));
      ++v;
    }
    head += add(fmt::format("out Y{}: i32@\nout Y{}: i32@\nout Y{}: i32@\n", v, v + 1, v + 2));
    body += add(fmt::format(
        R"(%{0}, %{1} = scan {9}custom %2, %3 axis ~ : i32@, i32@ (%{2}, %{3}, %{4}, %{5}) {{
  %{6} = mul %{2}, %{4} : i32[]
  %{7} = mul %{3}, %{4} : i32[]
  %{8} = add %{7}, %{5} : i32[]
  yield %{6}, %{8}
}}
)",
        v, v + 1, v + 3, v + 4, v + 5, v + 6, v + 7, v + 8, v + 9, from));
    body +=
        add(fmt::format("%{0} = scan {3}or %5 axis ~ : b1@\n%{1} = cast %{0} : i32@\n"
                        "store %{2} to Y{2}{{0, 0}}\nstore %{4} to Y{4}{{0, 0}}\n"
                        "store %{1} to Y{5}{{0, 0}}\n",
                        v + 10, v + 11, v, from, v + 1, v + 2));
    v += 12;
  }
  return head + "grid (1)\n\n" + body;
}

struct Scanned {
  int64_t m, n;
  int axis;
};

class RegisterScans : public testing::TestWithParam<Scanned> {};

TEST_P(RegisterScans, AreWhatTheInterpreterSays) {
  const auto& [m, n, axis] = GetParam();
  const Program p = parse(scans_text(m, n, axis));
  const std::vector<std::vector<int64_t>> shapes(p.params.size(), {m, n});
  expect_equal(p, shapes, p.params.size() - 4, {}, n % 8 == 0);
}

INSTANTIATE_TEST_SUITE_P(Extents, RegisterScans,
                         testing::Values(Scanned{1, 1, 1}, Scanned{3, 5, 1}, Scanned{2, 31, 1},
                                         Scanned{2, 33, 1}, Scanned{1, 1000, 1}, Scanned{7, 128, 1},
                                         Scanned{1, 4097, 1}, Scanned{1, 4096, 1}, Scanned{5, 3, 0},
                                         Scanned{33, 40, 0}, Scanned{1000, 3, 0},
                                         Scanned{64, 256, 0}, Scanned{4097, 1, 0}),
                         [](const auto& info) {
                           return fmt::format("{}x{}_axis{}", info.param.m, info.param.n,
                                              info.param.axis);
                         });

/// Rows in parts, with the sum of those before.
Program carried(bool reverse, int64_t rows, int64_t columns) {
  Trace k("carried");
  Index M = k.dim("M"), N = k.dim("N");
  TensorRef X = k.input("X", f32, {M, N}), Y = k.output("Y", f32, {M, N});
  auto [i] = k.grid(cdiv(M, rows));
  const Index parts = cdiv(N, columns);
  Tile carry = k.zeros(f32, {rows, 1});
  for (Index n : k.range(parts)) {
    const Index j = reverse ? parts - 1 - n : n;
    Tile sum = scan(load(X.tile({i, j}, {rows, columns})), 1, Combiner::sum, {.reverse = reverse});
    sum = sum + carry;
    store(Y.tile({i, j}, {rows, columns}), sum);
    carry = slice(sum, {0, reverse ? 0 : columns - 1}, {rows, 1});
  }
  return k.finish();
}

TEST(RegisterScans, OfPartsOfRowsCarrySums) {
  for (const bool reverse : {false, true})
    for (const int64_t columns : {16, 100, 1024}) {
      expect_equal(carried(reverse, 2, columns), {{5, 2050}, {5, 2050}}, 1, {5, 2050}, false);
      expect_equal(carried(reverse, 1, columns), {{3, 2052}, {3, 2052}}, 1, {3, 2052}, true);
    }
}

}  // namespace
}  // namespace tw::test
