#include <gtest/gtest.h>

#include "tw/interp/interpreter.h"
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
