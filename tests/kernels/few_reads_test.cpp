#include <cmath>
#include <gtest/gtest.h>

#include "tw/interp/interpreter.h"
#include "tw/jit/kernel.h"
#include "tw/kernels/loss/loss.h"
#include "tw/kernels/quant/quant.h"
#include "tw/kernels/rows/rows.h"

namespace tw {

using kernels::Problem;
using kernels::RowReduction;
using kernels::RowTiling;

/// A program of the library with a tiling of its own, and the kernel that it is.
struct FewReads {
  const char* kernel;
  std::map<std::string, std::string> options;
  std::function<Program(DType, const RowTiling&)> make;
};

static const FewReads kPrograms[] = {
    {"softmax", {}, [](DType t, const RowTiling& r) { return kernels::softmax(t, r); }},
    {"layernorm", {}, [](DType t, const RowTiling& r) { return kernels::layernorm(t, r, 1e-5f); }},
    {"rmsnorm", {}, [](DType t, const RowTiling& r) { return kernels::rmsnorm(t, r, 1e-5f); }},
    {"add_rmsnorm",
     {},
     [](DType t, const RowTiling& r) { return kernels::add_rmsnorm(t, r, 1e-5f); }},
    {"row_reduce",
     {{"op", "argmax"}},
     [](DType t, const RowTiling& r) { return kernels::row_reduce(RowReduction::argmax, t, r); }},
    {"column_reduce",
     {{"op", "argmax"}},
     [](DType t, const RowTiling& r) {
       return kernels::column_reduce(RowReduction::argmax, t, r);
     }},
    {"cross_entropy", {}, [](DType t, const RowTiling& r) {
       return kernels::cross_entropy(t, -100, {r.rows, r.cols, r.few_reads});
     }}};

/// Rows longer than a tile, in chunks, and rows that a tile holds, of the forms for GPUs: their
/// tiles are too long for small problems to have several.
TEST(FewReads, ChunksAndWholeRowsAreTheReference) {
  for (const FewReads& program : kPrograms) {
    const kernels::KernelEntry& entry = kernels::kernel_named(program.kernel);
    check::Sweep sweep({.layouts = {}});
    for (const DType t : {f32, bf16}) {
      const Program p = program.make(t, {.rows = 2, .cols = 64, .few_reads = true});
      for (const auto& [m, n] : {std::pair{5, 300}, {3, 64}, {4, 129}, {3, 7}, {0, 80}}) {
        const Problem whole = complete(entry, {{{"m", m}, {"n", n}}, t, program.options});
        sweep.add(std::string(entry.name) + " " + to_string(whole),
                  {.arguments = entry.arguments(whole),
                   .run = [&](const auto& in, const auto& out) { interpret(p, in, out); },
                   .reference =
                       [&](std::span<const TensorView> in) { return entry.reference(whole, in); }});
      }
    }
    EXPECT_EQ(sweep.verdict(), "");
  }
}

/// The square of the first mean overflows, and must count nothing: there is no chunk before.
TEST(FewReads, EqualElementsFarFromZeroAreTheirMean) {
  constexpr int64_t n = 200;
  const Program p = kernels::layernorm(f32, {.cols = 64, .few_reads = true}, 1e-5f);
  const Tensor x = host_tensor(f32, {1, n}), gamma = host_tensor(f32, {n});
  const Tensor beta = host_tensor(f32, {n}), y = host_tensor(f32, {1, n});
  for (int64_t i = 0; i < n; ++i) {
    set(x, i, 0x1p66);
    set(gamma, i, 3);
    set(beta, i, static_cast<double>(i));
  }
  interpret(p, {x, gamma, beta}, {y});
  EXPECT_EQ(to_doubles(y), to_doubles(beta));
}

/// Every row has a bf16 significand as its largest, and all of them up to 2^-17 of it beside.
TEST(Quantise, ProductsGiveTheCodesOfQuotients) {
  constexpr int64_t kBinades = 18, kColumns = 128 * kBinades;
  const std::vector<int> exponents{-126, -122, -118, -100, -60, 0, 59, 63, 70, 127};
  const int64_t m = 128 * std::ssize(exponents);
  const Tensor x = host_tensor(bf16, {m, kColumns});
  for (int64_t i = 0; i < m; ++i) {
    const int64_t top = 128 + i % 128;
    for (int64_t j = 0; j < kColumns; ++j) {
      const int64_t least = j < 128 ? std::min(128 + j, top) : 128 + j % 128;
      const int exponent = exponents[i / 128] - 7 - static_cast<int>(j / 128);
      set(x, i * kColumns + j, std::ldexp(j % 2 == 0 ? least : -least, exponent));
    }
    set(x, i * kColumns, std::ldexp(top, exponents[i / 128] - 7));
  }
  const auto codes = [&](bool products) {
    const Tensor q = host_tensor(e4m3, {m, kColumns}), scale = host_tensor(f32, {m});
    const kernels::QuantizeTiling tiling{1, 4096, 0, products};
    compile(kernels::quantize_fp8(bf16, tiling), Device::open("cpu:0"))({x}, {q, scale});
    return std::vector<uint8_t>(q.data<uint8_t>(), q.data<uint8_t>() + q.count());
  };
  EXPECT_EQ(codes(true), codes(false));
}

/// The tilings of groups that GPUs use quantise as one group at a time does.
TEST(Quantise, SeveralGroupsAnInstance) {
  for (const char* name : {"quantize_int8", "quantize_int4", "quantize_nf4"}) {
    const kernels::KernelEntry& entry = kernels::kernel_named(name);
    check::Sweep sweep({.values = {check::Values::wide}, .layouts = {}, .whole = false});
    for (Problem p : entry.sweep()) {
      const Problem whole = complete(entry, p);
      if (p.extent("k") > 2000) continue;
      const Program program = entry.trace(whole, gpu_named("sm_80"));
      sweep.add(name + (" " + to_string(whole)),
                {.arguments = entry.arguments(whole),
                 .run = [&](const auto& in, const auto& out) { interpret(program, in, out); },
                 .reference =
                     [&](std::span<const TensorView> in) { return entry.reference(whole, in); }});
    }
    EXPECT_EQ(sweep.verdict(), "");
  }
}

}  // namespace tw
