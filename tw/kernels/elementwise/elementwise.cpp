#include "tw/kernels/elementwise/elementwise.h"

#include <cmath>
#include <limits>
#include <optional>

#include "tw/base/error.h"
#include "tw/kernels/block_tile.h"

namespace tw::kernels {

Program elementwise(const std::string& name, const ElementwiseOp& op, bool binary, Broadcast b,
                    DType type, const ElementwiseTiling& t) {
  Trace k(name);
  Index M = k.dim("M"), N = k.dim("N");
  TensorRef A = k.input("A", type, {M, N});
  const bool one_row = b == Broadcast::row || b == Broadcast::scalar;
  const bool one_column = b == Broadcast::column || b == Broadcast::scalar;
  std::optional<TensorRef> B;
  if (binary) B = k.input("B", type, {one_row ? Index(1) : M, one_column ? Index(1) : N});
  TensorRef Y = k.output("Y", type, {M, N});

  auto [i, j] = k.grid(cdiv(M, t.rows), cdiv(N, t.cols));
  Tile a = cast(load(A.tile({i, j}, {t.rows, t.cols})), f32);
  Tile y = a;
  if (binary) {
    Index bi = one_row ? Index(0) : i, bj = one_column ? Index(0) : j;
    Extents extents = {one_row ? 1 : t.rows, one_column ? 1 : t.cols};
    y = op(a, cast(load(B->tile({bi, bj}, extents)), f32));
  } else {
    y = op(a, a);
  }
  store(Y.tile({i, j}, {t.rows, t.cols}), cast(y, type));
  return k.finish();
}

// ---- the ops

/// One function of the family: how it is traced, and what it is in double.
struct Function {
  const char* name;
  bool binary;
  Tile (*traced)(const Tile& a, const Tile& b);
  double (*reference)(double a, double b);
  double ulps = 0;       ///< stated ulps of the functions used, and of roundings around them
  bool exact = false;    ///< picks one of its operands
  bool cancels = false;  ///< a/2 + a/2 * s with |s| <= 1: two terms of opposite sign
};

/// NaN propagates, -0 < +0.
static double reference_max(double a, double b) {
  if (std::isnan(a) || std::isnan(b)) return a + b;
  if (a == b) return std::signbit(a) ? b : a;
  return a > b ? a : b;
}
static double reference_min(double a, double b) { return -reference_max(-a, -b); }

/// Below -88.7 e^-a exceeds f32 and the result is -0, as in PyTorch.
static double reference_silu(double a, double) {
  const double e = std::exp(-a);
  return a / (1 + (e > largest(f32) ? std::numeric_limits<double>::infinity() : e));
}

static const Function kFunctions[] = {
    {"add", true, [](const Tile& a, const Tile& b) { return a + b; },
     [](double a, double b) { return a + b; }},
    {"sub", true, [](const Tile& a, const Tile& b) { return a - b; },
     [](double a, double b) { return a - b; }},
    {"mul", true, [](const Tile& a, const Tile& b) { return a * b; },
     [](double a, double b) { return a * b; }},
    {"div", true, [](const Tile& a, const Tile& b) { return a / b; },
     [](double a, double b) { return a / b; }},
    {"max", true, [](const Tile& a, const Tile& b) { return max(a, b); }, reference_max, 0, true},
    {"min", true, [](const Tile& a, const Tile& b) { return min(a, b); }, reference_min, 0, true},
    {"swiglu", true, [](const Tile& a, const Tile& b) { return silu(a) * b; },
     [](double a, double b) { return reference_silu(a, 0) * b; },
     stated_ulps(Opcode::exp, f32) + 3},
    {"relu", false, [](const Tile& a, const Tile&) { return relu(a); },
     [](double a, double) { return reference_max(a, 0.0); }, 0, true},
    {"exp", false, [](const Tile& a, const Tile&) { return exp(a); },
     [](double a, double) { return std::exp(a); }, stated_ulps(Opcode::exp, f32)},
    {"log", false, [](const Tile& a, const Tile&) { return log(a); },
     [](double a, double) { return std::log(a); }, stated_ulps(Opcode::log, f32)},
    {"sqrt", false, [](const Tile& a, const Tile&) { return sqrt(a); },
     [](double a, double) { return std::sqrt(a); }},
    {"sin", false, [](const Tile& a, const Tile&) { return sin(a); },
     [](double a, double) { return std::sin(a); }, stated_ulps(Opcode::sin, f32)},
    {"cos", false, [](const Tile& a, const Tile&) { return cos(a); },
     [](double a, double) { return std::cos(a); }, stated_ulps(Opcode::cos, f32)},
    {"tanh", false, [](const Tile& a, const Tile&) { return tanh(a); },
     [](double a, double) { return std::tanh(a); }, stated_ulps(Opcode::tanh, f32)},
    {"erf", false, [](const Tile& a, const Tile&) { return erf(a); },
     [](double a, double) { return std::erf(a); }, stated_ulps(Opcode::erf, f32)},
    {"tanh_fast", false, [](const Tile& a, const Tile&) { return tanh_fast(a); },
     [](double a, double) { return std::tanh(a); }, stated_ulps(Opcode::tanh_fast, f32)},
    {"erf_fast", false, [](const Tile& a, const Tile&) { return erf_fast(a); },
     [](double a, double) { return std::erf(a); }, stated_ulps(Opcode::erf_fast, f32)},
    {"silu", false, [](const Tile& a, const Tile&) { return silu(a); }, reference_silu,
     stated_ulps(Opcode::exp, f32) + 2},
    {"gelu", false, [](const Tile& a, const Tile&) { return gelu_erf(a); },
     [](double a, double) { return 0.5 * a * (1 + std::erf(a / std::sqrt(2.0))); },
     stated_ulps(Opcode::erf_fast, f32) + 4, false, true},
    {"gelu_tanh", false, [](const Tile& a, const Tile&) { return gelu_tanh(a); },
     [](double a, double) {
       return 0.5 * a * (1 + std::tanh(0.7978845608028654 * (a + 0.044715 * a * a * a)));
     },
     stated_ulps(Opcode::tanh_fast, f32) + 4, false, true},
};

static const Function& function_of(const Problem& p) {
  for (const Function& f : kFunctions)
    if (p.option("op") == f.name) return f;
  throw UserError("unknown elementwise op '" + p.option("op") + "'");
}

static Broadcast broadcast_of(const Problem& p) {
  std::string b = p.option("b");
  return b == "row"      ? Broadcast::row
         : b == "column" ? Broadcast::column
         : b == "scalar" ? Broadcast::scalar
                         : Broadcast::none;
}

static std::vector<int64_t> b_dims(const Problem& p) {
  Broadcast b = broadcast_of(p);
  return {b == Broadcast::row || b == Broadcast::scalar ? 1 : p.extent("m"),
          b == Broadcast::column || b == Broadcast::scalar ? 1 : p.extent("n")};
}

static std::vector<Argument> arguments(const Problem& p) {
  std::vector<int64_t> mn = {p.extent("m"), p.extent("n")};
  std::vector<Argument> all = {{"A", p.dtype, mn, false}};
  if (function_of(p).binary) all.push_back({"B", p.dtype, b_dims(p), false});
  all.push_back({"Y", p.dtype, mn, true});
  return all;
}

static Program trace(const Problem& p, const Target& target) {
  const Function& f = function_of(p);
  ElementwiseTiling tiling;
  if (const GpuMachine* gpu = target.gpu()) {
    const int64_t n = p.extent("n");
    const BlockTile t = along_rows(elements_tile(p.extent("m"), n, *gpu), n);
    tiling = {t.rows, t.cols};
  }
  return elementwise(f.name, f.traced, f.binary, broadcast_of(p), p.dtype, tiling);
}

static check::Reference reference(const Problem& p, std::span<const TensorView> in) {
  const Function& f = function_of(p);
  std::vector<double> a = to_doubles(in[0]),
                      b = f.binary ? to_doubles(in[1]) : std::vector<double>{0};
  const int64_t n = p.extent("n");
  const std::vector<int64_t> dims = f.binary ? b_dims(p) : std::vector<int64_t>{1, 1};
  check::Reference ref{{.family = f.exact ? check::Family::exact : check::Family::elementwise,
                        .out = p.dtype,
                        .function_ulps = f.ulps},
                       {{std::vector<double>(a.size()), std::vector<double>(a.size())}}};
  for (int64_t i = 0; i < std::ssize(a); ++i) {
    int64_t row = dims[0] == 1 ? 0 : i / n, column = dims[1] == 1 ? 0 : i % n;
    double other = b[row * dims[1] + column];
    ref.outputs[0].value[i] = f.reference(a[i], other);
    ref.outputs[0].sum_abs[i] = f.cancels ? std::abs(a[i]) : std::abs(ref.outputs[0].value[i]);
  }
  return ref;
}

static Problem problem(const char* op, const char* b, DType t, int64_t m, int64_t n) {
  return {{{"m", m}, {"n", n}}, t, {{"op", op}, {"b", b}}};
}

static std::vector<Problem> sweep() {
  std::vector<Problem> all;
  for (const Function& f : kFunctions) {
    all.push_back(problem(f.name, "full", f32, 9, 257));
    all.push_back(problem(f.name, "full", bf16, 9, 257));
  }
  for (auto [m, n] : {std::pair{1, 1}, {17, 1000}})
    all.push_back(problem("add", "full", f32, m, n));
  for (const char* b : {"row", "column", "scalar"})
    for (auto [m, n] : {std::pair{3, 5}, {8, 256}, {9, 257}})
      all.push_back(problem("div", b, f32, m, n));
  for (auto [m, n] : {std::pair{0, 4}, {4, 0}}) all.push_back(problem("add", "full", f32, m, n));
  return all;
}

static std::vector<Problem> bench() {
  std::vector<Problem> all;
  for (const char* op : {"add", "mul", "relu", "gelu_tanh", "silu", "swiglu"})
    for (auto [m, n] : {std::pair{128, 1024}, {8192, 4096}})
      all.push_back({{{"m", m}, {"n", n}}, f32, {{"op", op}}});
  return all;
}

std::vector<KernelEntry> elementwise_entries() {
  KernelEntry::Option op = {"op", {}, "the function"};
  for (const Function& f : kFunctions) op.values.push_back(f.name);
  return {
      {"elementwise",
       "Y = op(A) or op(A, B), element by element",
       check::Family::elementwise,
       {{"m", 8192, "rows"}, {"n", 4096, "columns"}},
       {op,
        {"b", {"full", "row", "column", "scalar"}, "extent of B: full, or which one stretches"}},
       {f32, bf16},
       arguments,
       trace,
       reference,
       sweep,
       bench}};
}

}  // namespace tw::kernels
