#include "tw/kernels/histogram/histogram.h"

#include <cmath>
#include <fmt/format.h>

#include "tw/base/error.h"
#include "tw/lang/lang.h"

namespace tw::kernels {

/// Bins for each 1 of x.
static float scale_of(const HistogramForm& form) {
  return static_cast<float>(form.bins) / (form.hi - form.lo);
}

static void check_form(const HistogramForm& form) {
  if (form.bins < 1)
    throw UserError(fmt::format("histogram of {} bins", form.bins), "wanted at least 1");
  if (!is_float(form.dtype)) return;
  if (form.dtype == f64)
    throw UserError("histogram of f64: bins are found in f32", "cast to f32 first");
  const float scale = scale_of(form);
  if (!(form.lo < form.hi) || !std::isfinite(scale) || scale == 0)
    throw UserError(fmt::format("histogram from {} to {}", form.lo, form.hi),
                    "wanted lo < hi, and bins / (hi - lo) a positive number of f32");
}

/// Adds the elements of a tile, where `inside`, to counts[bins].
static void count_tile(const HistogramForm& form, const Tile& tile, Tile inside,
                       const TensorRef& counts) {
  if (!is_float(form.dtype)) {
    Tile bin = bytes(form.dtype) < 4 ? cast(tile, i32) : tile;
    return atomic(counts, {bin}, 1, AtomicOp::add, {.mask = inside});
  }
  Tile x = cast(tile, f32);
  inside &= (x >= form.lo) & (x <= form.hi);
  Tile bin = min(cast((x - form.lo) * scale_of(form), i32), form.bins - 1);
  atomic(counts, {bin}, 1, AtomicOp::add, {.mask = inside});
}

Program histogram(const HistogramForm& form, const HistogramTiling& tile) {
  check_form(form);
  Trace k("histogram");
  Index M = k.dim("M"), N = k.dim("N");
  TensorRef X = k.input("X", form.dtype, {M, N}), Y = k.output("Y", i32, {M, form.bins});
  TensorRef counts = k.scratch("counts", i32, {form.bins});
  auto [m] = k.grid(M);
  for (Index n : k.range(cdiv(N, tile.cols))) {
    Tile x = load(X[m].tile({n}, {tile.cols}));
    count_tile(form, x, k.iota({tile.cols}, 0) + n * tile.cols < N, counts);
  }
  store(Y[m].tile({0}, {form.bins}), load(counts.tile({0}, {form.bins})));
  return k.finish();
}

Program histogram_add(const HistogramForm& form, const HistogramTiling& tile) {
  check_form(form);
  Trace k("histogram_add");
  Index N = k.dim("N");
  TensorRef X = k.input("X", form.dtype, {N}), Y = k.inout("Y", i32, {form.bins});
  TensorRef counts = k.scratch("counts", i32, {form.bins});
  auto [p] = k.grid(cdiv(N, tile.cols * tile.blocks));
  for (Index b : k.range(tile.blocks)) {
    const Index n = p * tile.blocks + b;
    Tile x = load(X.tile({n}, {tile.cols}));
    count_tile(form, x, k.iota({tile.cols}, 0) + n * tile.cols < N, counts);
  }
  atomic(Y, {k.iota({form.bins}, 0)}, load(counts.tile({0}, {form.bins})), AtomicOp::add);
  return k.finish();
}

}  // namespace tw::kernels
