// Cases of kind PIPE: races and order in pipelines that broke comparable systems, as our language
// has them. The names are the rows of tests/cases/README.md.
#include <cstring>
#include <gtest/gtest.h>

#include "tw/emu/device.h"
#include "tw/interp/interpreter.h"
#include "tw/jit/kernel.h"
#include "tw/kernels/entry.h"
#include "tw/lang/lang.h"

#include "tests/support/normal.h"

namespace tw::test {
namespace {

using kernels::KernelEntry;
using kernels::Problem;
using Views = std::vector<TensorView>;

/// Runs a program; calls of one count on in schedules.
struct PipeRunner {
  std::string name;
  std::function<void(const Views& inputs, const Views& outputs)> run;
};

PipeRunner emulated_runner(const Program& p, const std::string& mapping) {
  register_emulator();
  CompileOptions options;
  options.mapping = parse_mapping(mapping);
  return {"emu:0 " + mapping, compile(p, Device::open("emu:0"), options)};
}

/// The interpreter, the CPU, and the emulator with each mapping.
std::vector<PipeRunner> pipe_runners(const Program& p, const std::vector<std::string>& mappings) {
  std::vector<PipeRunner> all = {
      {"interp", [p](const Views& in, const Views& out) { interpret(p, in, out); }},
      {"cpu:0", compile(p, Device::open("cpu:0"))}};
  for (const std::string& mapping : mappings) all.push_back(emulated_runner(p, mapping));
  return all;
}

const std::vector<std::string> kStages = {"cuda1 stages=1", "cuda1 stages=2", "cuda1 stages=3",
                                          "cuda1 stages=4"};

Tensor small_integers(DType t, std::vector<int64_t> dims) {
  Tensor x = host_tensor(t, std::move(dims));
  for (int64_t i = 0; i < x.count(); ++i) set(x, i, static_cast<double>(i * 7 % 11 - 5));
  return x;
}

/// s = X0; four times: acc += s, or s B; s = X[i]. The last X[i] is read by nobody.
Program reader_before_overwrite(bool product) {
  Trace k("reader");
  TensorRef X0 = k.input("X0", f16, {32, 32}), X = k.input("X", f16, {128, 32});
  TensorRef B = k.input("B", f16, {32, 32}), Y = k.output("Y", f32, {32, 32});
  Tile s = load(X0.tile({0, 0}, {32, 32})), acc = k.zeros(f32, {32, 32});
  const Tile b = load(B.tile({0, 0}, {32, 32}));
  for (Index i : k.range(4)) {
    acc = product ? dot(s, b, acc) : acc + cast(s, f32);
    s = load(X.tile({i, 0}, {32, 32}));
  }
  store(Y.tile({0, 0}, {32, 32}), acc);
  return k.finish();
}

TEST(PipeCases, PIPE_01) {
  const Tensor x0 = small_integers(f16, {32, 32}), x = small_integers(f16, {128, 32}),
               b = small_integers(f16, {32, 32});
  const auto row_of_sum = [&](int64_t m, int64_t n) {
    double sum = get(x0, m * 32 + n);
    for (int64_t i = 0; i < 3; ++i) sum += get(x, (i * 32 + m) * 32 + n);
    return sum;
  };
  for (const bool product : {false, true}) {
    for (const PipeRunner& r : pipe_runners(reader_before_overwrite(product), kStages)) {
      const Tensor y = host_tensor(f32, {32, 32});
      r.run({x0, x, b}, {y});
      for (int64_t i = 0; i < y.count(); ++i) {
        double want = product ? 0 : row_of_sum(i / 32, i % 32);
        for (int64_t k = 0; product && k < 32; ++k)
          want += row_of_sum(i / 32, k) * get(b, k * 32 + i % 32);
        ASSERT_EQ(get(y, i), want) << r.name << ", product " << product << ", element " << i;
      }
    }
  }
}

/// 32 of a block's 512 threads fill what all of them read.
TEST(PipeCases, PIPE_02) {
  Trace k("filled_by_few");
  TensorRef Y = k.output("Y", i32, {512}), shared = k.scratch("shared", i32, {32});
  store(shared.tile({0}, {32}), cast(k.iota({32}, 0), i32));
  store(Y.tile({0}, {512}), gather(shared, {k.iota({512}, 0) % 32}));
  constexpr int kRuns = 1000;
  for (const PipeRunner& r : pipe_runners(k.finish(), {"cuda1 warps=16"})) {
    for (int run = 0; run < (r.name == "interp" ? 1 : kRuns); ++run) {
      const Tensor y = host_tensor(i32, {512});
      r.run({}, {y});
      for (int64_t i = 0; i < 512; ++i)
        ASSERT_EQ(get(y, i), static_cast<double>(i % 32)) << r.name << ", run " << run;
    }
  }
}

/// The operands of a product are cleared before the loop that loads them; `late`: each product is
/// of those that the turn before loaded, the first one of what was cleared. In the language it is
/// the tiles that are cleared: where they lie is the compiler's.
Program cleared_operands(bool late) {
  constexpr int64_t kTile = 64, kDepth = 32;
  Trace k("cleared");
  Index M = k.dim("M"), N = k.dim("N"), K = k.dim("K");
  TensorRef A = k.input("A", f16, {M, K}), B = k.input("B", f16, {K, N});
  TensorRef C = k.output("C", f16, {M, N});
  auto [m, n] = k.grid(cdiv(M, kTile), cdiv(N, kTile));
  Tile a = k.zeros(f16, {kTile, kDepth}), b = k.zeros(f16, {kDepth, kTile});
  Tile acc = k.zeros(f32, {kTile, kTile});
  for (Index i : k.range(cdiv(K, kDepth))) {
    if (late) acc = dot(a, b, acc);
    a = load(A.tile({m, i}, {kTile, kDepth}));
    b = load(B.tile({i, n}, {kDepth, kTile}));
    if (!late) acc = dot(a, b, acc);
  }
  if (late) acc = dot(a, b, acc);
  store(C.tile({m, n}, {kTile, kTile}), cast(acc, f16));
  return k.finish();
}

TEST(PipeCases, PIPE_03) {
  constexpr int64_t kSize = 256;
  const KernelEntry& gemm = kernels::kernel_named("gemm");
  const Problem p = complete(gemm, {{{"m", kSize}, {"n", kSize}, {"k", kSize}}, f16});
  const Tensor a = host_tensor(f16, {kSize, kSize}), b = host_tensor(f16, {kSize, kSize});
  fill_normal(a, 1);
  fill_normal(b, 2);
  const Views in = {a, b};
  const check::Reference want = gemm.reference(p, in);
  for (const bool late : {false, true}) {
    for (const PipeRunner& r : pipe_runners(
             cleared_operands(late), {"cuda1 stages=2", "cuda1 stages=3", "cuda1 stages=4"})) {
      const Tensor c = host_tensor(f16, {kSize, kSize});
      const Views out = {c};
      r.run(in, out);
      EXPECT_LE(check::worst_error(want, out).ratio, 1) << r.name << ", late " << late;
    }
  }
}

/// One head of attention and its gradients' inputs, of f16 values with a deviation of 3.
struct BackwardCase {
  BackwardCase(int64_t batch, int64_t sq, int64_t skv) {
    const KernelEntry& forward = kernels::kernel_named("attention");
    problem = {
        {{"batch", batch}, {"heads", 1}, {"kv_heads", 1}, {"sq", sq}, {"skv", skv}, {"head", 128}},
        f16};
    const Problem whole = complete(forward, problem);
    for (const check::Argument& x : forward.arguments(whole)) {
      tensors.push_back(host_tensor(x.dtype, x.dims));
      if (!x.output) fill_normal(tensors.back(), tensors.size(), 3);
    }
    const Device cpu = Device::open("cpu:0");
    compile(forward.trace(whole, cpu.target()), cpu)({tensors[0], tensors[1], tensors[2]},
                                                     {tensors[3], tensors[4]});
    tensors.insert(tensors.begin() + 4, host_tensor(f16, tensors[0].dims()));
    fill_normal(tensors[4], 9, 3);
  }
  Problem problem;
  std::vector<Tensor> tensors;  ///< Q, K, V, O, dO, L
};

/// Each of so many runs is within its bound, and all have the same bits.
void expect_repeats(const KernelEntry& entry, const BackwardCase& c, const Device& device,
                    int runs) {
  const Problem p = complete(entry, c.problem);
  const Kernel kernel = compile(entry.trace(p, device.target()), device);
  const Views in(c.tensors.begin(), c.tensors.end());
  const check::Reference want = entry.reference(p, in);
  std::string first;
  for (int run = 0; run < runs; ++run) {
    std::vector<Tensor> made;
    for (const check::Argument& x : entry.arguments(p))
      if (x.output) made.push_back(host_tensor(x.dtype, x.dims));
    const Views out(made.begin(), made.end());
    kernel(in, out);
    std::string bits;
    for (const Tensor& t : made)
      bits.append(t.data<char>(), static_cast<size_t>(byte_count(t.dtype(), t.dims())));
    if (run == 0) {
      EXPECT_LE(check::worst_error(want, out).ratio, 1) << entry.name;
      first = bits;
    }
    ASSERT_EQ(bits, first) << entry.name << ", run " << run;
  }
}

/// Of 300 sequences of 2048 queries a part of one, for which a test has time; queries and keys in
/// kernels of their own, which add nothing by atomics. What the assembler makes of it, a GPU alone
/// can say: a schedule of the emulator is another order of the same text.
TEST(PipeCases, PIPE_04) {
  register_emulator();
  const BackwardCase part(1, 512, 128), tiny(2, 70, 128);
  for (const char* name : {"attention_backward_queries", "attention_backward_keys"}) {
    const KernelEntry& entry = kernels::kernel_named(name);
    expect_repeats(entry, part, Device::open("cpu:0"), 50);
    expect_repeats(entry, tiny, Device::open("emu:0"), 8);
  }
}

}  // namespace
}  // namespace tw::test
