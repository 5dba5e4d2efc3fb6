#include <cmath>

#include "tw/kernels/block_tile.h"
#include "tw/kernels/loss/loss.h"
#include "tw/lang/lang.h"

namespace tw::kernels {
namespace {

/// What PyTorch ignores when nothing is said.
constexpr int32_t kIgnored = -100;

int64_t chunk_columns(int64_t columns) {
  for (const int64_t cols : {64, 256, 1024})
    if (columns <= cols) return cols;
  return 4096;
}

Problem logits_problem(int64_t m, int64_t n, DType t) { return {{{"m", m}, {"n", n}}, t, {}}; }

std::vector<Problem> logits_sweep() {
  std::vector<Problem> all;
  for (const DType t : {f32, bf16})
    for (const auto& [m, n] : {std::pair<int64_t, int64_t>{1, 1},
                               {5, 3},
                               {40, 31},
                               {7, 64},
                               {9, 100},
                               {3, 1025},
                               {2, 4097},
                               {0, 8},
                               {3, 0},
                               {12, 30}})
      all.push_back(logits_problem(m, n, t));
  return all;
}

std::vector<Problem> logits_bench() {
  return {logits_problem(4096, 8192, f32), logits_problem(4096, 32000, bf16)};
}

std::vector<Argument> logits_arguments(const Problem& p) {
  const int64_t m = p.extent("m"), n = p.extent("n");
  return {{"X", p.dtype, {m, n}, false},
          {"labels", i32, {m}, false},
          {"loss", f32, {m}, true},
          {"LSE", f32, {m}, true}};
}

Program trace_cross_entropy(const Problem& p, const Target& target) {
  if (const GpuMachine* gpu = target.gpu()) {
    const BlockTile t = rows_tile(p.extent("m"), p.extent("n"), *gpu, 8192);
    return cross_entropy(p.dtype, kIgnored, {t.rows, t.cols, true});
  }
  return cross_entropy(p.dtype, kIgnored, {.cols = chunk_columns(p.extent("n"))});
}

/// What exponents are relative to: inf - inf would be NaN.
Tile base_of(const Tile& largest) { return where(eq(abs(largest), INFINITY), 0, largest); }

/// Logarithm of the sum of exponentials of rows whose chunk j is chunk(j).
template <class Chunk>
Tile log_sum(Trace& k, const Index& chunks, const LossTiling& t, const Chunk& chunk) {
  Tile largest = k.full(f32, {t.rows, 1}, -INFINITY).named("largest");
  Tile sum = k.zeros(f32, {t.rows, 1}).named("sum");
  if (t.few_reads) {
    for (Index j : k.range(chunks)) {
      Tile x = chunk(j);
      Tile top = max(largest, row_max(x));
      Tile base = base_of(top);
      sum = sum * exp(largest - base) + row_sum(exp(x - base));
      largest = top;
    }
    return base_of(largest) + log(sum);
  }
  for (Index j : k.range(chunks)) largest = max(largest, row_max(chunk(j)));
  Tile base = base_of(largest);
  for (Index j : k.range(chunks)) sum = sum + row_sum(exp(chunk(j) - base));
  return base + log(sum);
}

}  // namespace

Program cross_entropy(DType t, int32_t ignored, const LossTiling& tiling) {
  const int64_t rows = tiling.rows, cols = tiling.cols;
  Trace k("cross_entropy");
  Index M = k.dim("M"), N = k.dim("N");
  TensorRef X = k.input("X", t, {M, N}), labels = k.input("labels", i32, {M});
  TensorRef loss = k.output("loss", f32, {M}), LSE = k.output("LSE", f32, {M});

  const Index r = k.grid(cdiv(M, rows))[0];
  const auto chunk = [&](const Index& j) {
    return cast(load(X.tile({r, j}, {rows, cols}), {.pad = -INFINITY}), f32);
  };
  Tile lse = reshape(log_sum(k, cdiv(N, cols), tiling, chunk), {rows});
  Tile label = load(labels.tile({r}, {rows}));
  Tile x = cast(gather(X, {k.iota({rows}, 0) + r * rows, label}, {.pad = NAN}), f32);
  store(LSE.tile({r}, {rows}), lse);
  store(loss.tile({r}, {rows}), where(eq(label, ignored), 0.f, lse - x));
  return k.finish();
}

check::Reference cross_entropy_reference(const Problem& p, std::span<const TensorView> in) {
  const int64_t m = p.extent("m"), n = p.extent("n");
  const std::vector<double> x = to_doubles(in[0]), labels = to_doubles(in[1]);
  check::ReferenceOutput loss, lse;
  for (int64_t i = 0; i < m; ++i) {
    const double* row = x.data() + i * n;
    double largest = -INFINITY, sum = 0, spread = 0;
    for (int64_t j = 0; j < n; ++j) largest = std::fmax(largest, row[j]);
    const double base = std::isinf(largest) ? 0 : largest;
    for (int64_t j = 0; j < n; ++j) {
      const double weight = std::exp(row[j] - base);
      sum += weight;
      if (weight > 0) spread += weight * std::fabs(row[j] - base);  // exponents round
    }
    lse.value.push_back(base + std::log(sum));
    lse.sum_abs.push_back(1 + spread / sum + std::fabs(std::log(sum)) + std::fabs(base));
    const double label = labels[i];
    const bool inside = label >= 0 && label < static_cast<double>(n);
    const double at_label = inside ? row[static_cast<int64_t>(label)] : NAN;
    const bool skipped = label == kIgnored;
    loss.value.push_back(skipped ? 0 : lse.value[i] - at_label);
    loss.sum_abs.push_back(skipped ? 0 : lse.sum_abs[i] + std::fabs(at_label));
  }
  return {{.family = check::Family::softmax,
           .out = f32,
           .terms = n,
           .function_ulps = stated_ulps(Opcode::log, f32)},
          {std::move(loss), std::move(lse)}};
}

std::vector<KernelEntry> loss_entries() {
  return {{"cross_entropy",
           "loss of each row of logits[m, n] against its label, and the logarithm of its sum",
           check::Family::softmax,
           {{"m", 4096, "rows"}, {"n", 8192, "classes"}},
           {},
           {f32, bf16},
           logits_arguments,
           trace_cross_entropy,
           cross_entropy_reference,
           logits_sweep,
           logits_bench}};
}

}  // namespace tw::kernels
