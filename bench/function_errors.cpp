// The largest error of each function of f32 over all 2^32 inputs, in units of the last place around
// the exact result: the text that this machine gets, against the C library in double. One line a
// function; fails when one is further off than it states. `tools/soak functions` keeps its log.
#include <algorithm>
#include <bit>
#include <cmath>
#include <fmt/format.h>
#include <limits>
#include <thread>
#include <vector>

#include "tw/base/error.h"
#include "tw/ir/print.h"
#include "tw/jit/kernel.h"

namespace tw {
namespace {

struct Function {
  Opcode code;
  double (*reference)(double);
};

const Function kFunctions[] = {
    {Opcode::exp, [](double x) { return std::exp(x); }},
    {Opcode::exp2, [](double x) { return std::exp2(x); }},
    {Opcode::log, [](double x) { return std::log(x); }},
    {Opcode::tanh, [](double x) { return std::tanh(x); }},
    {Opcode::erf, [](double x) { return std::erf(x); }},
    {Opcode::tanh_fast, [](double x) { return std::tanh(x); }},
    {Opcode::erf_fast, [](double x) { return std::erf(x); }},
    {Opcode::sin, [](double x) { return std::sin(x); }},
    {Opcode::cos, [](double x) { return std::cos(x); }},
    {Opcode::rsqrt, [](double x) { return 1 / std::sqrt(x); }},
};

constexpr double kWrong = std::numeric_limits<double>::infinity();

/// 2^(e - 23) for the exponent e of x, of the least normal number for smaller ones.
double unit_of(float x) {
  const uint32_t exponent = std::max(std::bit_cast<uint32_t>(x) >> 23 & 255, 1u);
  return std::bit_cast<double>(static_cast<uint64_t>(exponent + 1023 - 127 - 23) << 52);
}

/// The error in ulp; infinite where the kind of value or the sign of a zero differs.
double error_of(float got, double want) {
  if (std::isnan(got) || std::isnan(want)) return std::isnan(got) == std::isnan(want) ? 0 : kWrong;
  const auto rounded = static_cast<float>(want);
  if (std::isinf(got) || std::isinf(rounded)) return got == rounded ? 0 : kWrong;
  if (got == 0 && want == 0 && std::signbit(got) != std::signbit(want)) return kWrong;
  return std::fabs(got - want) / unit_of(rounded);
}

struct Worst {
  double ulps = 0;
  float at = 0;
  void add(double u, float x) {
    if (u > ulps) *this = {u, x};
  }
};

/// Over the inputs whose bits are share, share + shares, .. times the size of a block.
Worst worst_of(const Function& f, const Kernel& k, const Device& d, int64_t share, int64_t shares) {
  constexpr int64_t kBlock = 1 << 16;
  const Tensor x = empty(d, f32, {kBlock}), y = empty(d, f32, {kBlock});
  auto* const in = static_cast<float*>(x.view().data);
  const auto* const out = static_cast<const float*>(y.view().data);
  Worst worst;
  for (int64_t first = share * kBlock; first < int64_t{1} << 32; first += shares * kBlock) {
    for (int64_t i = 0; i < kBlock; ++i)
      in[i] = std::bit_cast<float>(static_cast<uint32_t>(first + i));
    k({x}, {y});
    for (int64_t i = 0; i < kBlock; ++i) worst.add(error_of(out[i], f.reference(in[i])), in[i]);
  }
  return worst;
}

Worst worst_of(const Function& f, const Device& d) {
  const Kernel k = compile(
      parse(fmt::format("program f\ndim N\nin x: f32[N]\nout y: f32[N]\ngrid (cdiv(N, 1024))\n"
                        "%0 = load x{{pid0*1024}} : f32[1024]\n%1 = {} %0 : f32[1024]\n"
                        "store %1 to y{{pid0*1024}}\n",
                        info(f.code).name)),
      d, {.threads = 1});
  const int64_t shares = d.cpu().cores;
  std::vector<Worst> found(shares);
  std::vector<std::jthread> threads;
  for (int64_t s = 0; s < shares; ++s)
    threads.emplace_back([&, s] { found[s] = worst_of(f, k, d, s, shares); });
  threads.clear();  // joins
  Worst all;
  for (const Worst& w : found) all.add(w.ulps, w.at);
  return all;
}

int run() {
  const Device d = Device::open("cpu:0");
  fmt::print("{}, all 2^32 inputs of f32\n", d.cpu().isa);
  bool within = true;
  for (const Function& f : kFunctions) {
    const Worst w = worst_of(f, d);
    fmt::print("{} {:.3f} ulp at {:a}\n", info(f.code).name, w.ulps, w.at);
    std::fflush(stdout);
    within = within && w.ulps <= stated_ulps(f.code, f32);
  }
  return within ? 0 : 2;
}

}  // namespace
}  // namespace tw

int main() {
  try {
    return tw::run();
  } catch (const tw::Error& e) {
    fmt::print(stderr, "{}\n", e.what());
    return e.exit_code();
  }
}
