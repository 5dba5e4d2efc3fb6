#include "tw/kernels/gemm/gemm.h"
#include "tw/kernels/gemm/reference.h"

namespace tw::kernels {

static Epilogue epilogue_named(const std::string& name, DType t) {
  if (name == "bias") return bias();
  if (name == "bias_relu") return then(bias(), activation(relu));
  if (name == "bias_silu") return then(bias(), activation(silu));
  if (name == "bias_gelu") return bias_gelu();
  if (name == "bias_gelu_erf") return then(bias(), activation(gelu_erf));
  if (name == "residual") return residual(t);
  if (name == "row_scale") return row_scale();
  return {};
}

Precision gemm_precision(const Problem& p) {
  const std::string name = p.option("precision");
  if (name == "tf32") return Precision::tf32;
  return name == "tf32x3" ? Precision::tf32x3 : Precision::ieee;
}

static GemmForm form_of(const Problem& p, bool batched) {
  const DType out = p.option("out") == "f32" ? f32 : p.dtype;
  return {p.dtype, out, batched, epilogue_named(p.option("epilogue"), p.dtype), gemm_precision(p)};
}

static std::vector<Argument> arguments(const Problem& p, bool batched) {
  const GemmForm form = form_of(p, batched);
  const auto shape = [&](const char* rows, const char* cols) {
    std::vector<int64_t> dims{p.extent(rows), p.extent(cols)};
    if (batched) dims.insert(dims.begin(), p.extent("batch"));
    return dims;
  };
  // An infinity times what tf32 rounds to 0 is NaN.
  const bool ieee = form.precision == Precision::ieee;
  const check::Domain domain = ieee ? check::Domain::any : check::Domain::finite;
  std::vector<Argument> all{{"A", form.in, shape("m", "k"), false, domain},
                            {"B", form.in, shape("k", "n"), false, domain}};
  for (const EpilogueOperand& o : form.epilogue.operands) {
    std::vector<int64_t> dims = shape("m", "n");
    if (o.along == Along::columns) dims = {p.extent("n")};
    if (o.along == Along::rows) dims = {p.extent("m")};
    all.push_back({o.name, o.dtype, dims, false});
  }
  all.push_back({"C", form.out, shape("m", "n"), true});
  return all;
}

static std::vector<Argument> gemm_arguments(const Problem& p) { return arguments(p, false); }
static std::vector<Argument> batched_arguments(const Problem& p) { return arguments(p, true); }

static Program trace_gemm(const Problem& p, const Target& target) {
  const bool large = target.gpu() == nullptr && p.option("tile") == "528x1024";
  const GemmForm form = form_of(p, false);
  return gemm(form, large ? GemmTiling{528, 1024, 256} : gemm_tiling(form, target));
}
static Program trace_batched(const Problem& p, const Target& target) {
  const GemmForm form = form_of(p, true);
  return gemm(form, gemm_tiling(form, target));
}

static Problem problem(int64_t m, int64_t n, int64_t k, DType t, const char* epilogue = "none",
                       const char* out = "same") {
  return {{{"m", m}, {"n", n}, {"k", k}}, t, {{"epilogue", epilogue}, {"out", out}}};
}

static Problem with(Problem p, const char* precision) {
  p.options["precision"] = precision;
  return p;
}

/// Odd, empty and thin shapes; ends of every height of the register tile; several blocks of every
/// axis; every epilogue and type.
static std::vector<Problem> gemm_sweep() {
  std::vector<Problem> all;
  for (auto [m, n, k] : {std::array{1, 1, 1},
                         {7, 9, 11},
                         {13, 33, 5},
                         {16, 16, 0},
                         {0, 5, 3},
                         {5, 0, 3},
                         {64, 64, 64},
                         {65, 97, 129},
                         {1, 300, 70},
                         {300, 1, 70},
                         {129, 70, 513},
                         {150, 130, 560}})
    all.push_back(problem(m, n, k, f32));
  for (const char* epilogue :
       {"bias", "bias_relu", "bias_silu", "bias_gelu", "bias_gelu_erf", "residual", "row_scale"}) {
    all.push_back(problem(37, 65, 530, f32, epilogue));
    all.push_back(problem(33, 50, 31, bf16, epilogue));
  }
  for (const DType t : {bf16, f16}) {
    all.push_back(problem(64, 64, 511, t));
    all.push_back(problem(31, 33, 35, t, "none", "f32"));
    all.push_back(problem(7, 9, 11, t, "bias"));
  }
  for (const char* precision : {"tf32", "tf32x3"}) {
    all.push_back(with(problem(33, 40, 77, f32), precision));
    all.push_back(with(problem(5, 3, 1, f32), precision));
    all.push_back(with(problem(64, 64, 64, f32, "bias_gelu"), precision));
  }
  return all;
}

static std::vector<Problem> gemm_bench() {
  std::vector<Problem> all;
  for (const int64_t n : {64, 96, 128, 192, 256, 384, 512, 768, 1024, 1536, 2048})
    all.push_back(problem(n, n, n, f32));
  all.push_back(problem(1024, 1024, 1024, f32, "bias_gelu"));
  all.push_back(problem(1024, 1024, 1024, bf16));
  return all;
}

static Problem batch(int64_t b, Problem p) {
  p.shape["batch"] = b;
  return p;
}

static std::vector<Problem> batched_sweep() {
  return {batch(5, problem(3, 7, 13, f32)),
          batch(5, problem(3, 7, 13, bf16)),
          batch(3, problem(30, 20, 1, f32, "bias")),
          batch(2, problem(65, 40, 70, f32, "residual")),
          batch(0, problem(3, 4, 5, f32)),
          batch(1, problem(17, 19, 23, f16)),
          batch(3, with(problem(20, 9, 17, f32), "tf32x3"))};
}

static std::vector<Problem> batched_bench() { return {batch(16, problem(256, 256, 64, f32))}; }

std::vector<KernelEntry> gemm_entries() {
  const std::vector<KernelEntry::Axis> axes = {
      {"m", 1024, "rows of A and C"}, {"n", 1024, "columns of B and C"}, {"k", 1024, "terms"}};
  std::vector<KernelEntry::Axis> batched_axes = axes;
  batched_axes.push_back({"batch", 8, "matrices"});
  const std::vector<KernelEntry::Option> options = {
      {"epilogue",
       {"none", "bias", "bias_relu", "bias_silu", "bias_gelu", "bias_gelu_erf", "residual",
        "row_scale"},
       "what is done with each sum"},
      {"out", {"same", "f32"}, "type of C: that of A and B, or f32"},
      {"precision", {"ieee", "tf32", "tf32x3"}, "of products of f32"}};
  std::vector<KernelEntry::Option> gemm_options = options;
  gemm_options.push_back(
      {"tile", {"64x64", "528x1024"}, "of C in the program; a CPU cuts pieces of its own"});
  const std::vector<DType> types = {f32, bf16, f16};
  return {
      {"gemm", "C = epilogue(A B) of matrices A[m, k], B[k, n]", check::Family::gemm, axes,
       gemm_options, types, gemm_arguments, trace_gemm, gemm_reference, gemm_sweep, gemm_bench},
      {"batched_gemm", "the same for each of a batch", check::Family::gemm, batched_axes, options,
       types, batched_arguments, trace_batched, gemm_reference, batched_sweep, batched_bench}};
}

}  // namespace tw::kernels
