#pragma once

#include <span>

#include "tw/kernels/conv/window.h"

namespace tw::kernels {

struct ConvForm {
  DType dtype = f32;  ///< of X, the weights, the bias and Y: f32, bf16 or f16
  int axes = 2;       ///< spatial axes: 2 (h and w) or 1 (w)
  Window h = {}, w = {};
  int64_t groups = 1;  ///< output channel o of group g sees the input channels of group g
  bool bias = false;
  bool flat = false;       ///< terms (h, w, channel) of a window as one axis: for few channels
  bool depthwise = false;  ///< one input and one output channel a group; no products of matrices
};

/// Extents of an instance's tile: output pixels, output channels, terms of a sum at a time.
struct ConvTiling {
  int64_t pixels = 64;
  int64_t channels = 64;
  int64_t terms = 64;
};

/// Convolution (cross-correlation, as in PyTorch and ONNX), channels last, any strides:
///   Y[n, oh, ow, o] = bias[o] + sum over (th, tw, c) of X[n, ih, iw, g C/G + c] F[th, tw, c, o]
///   ih = oh stride + th dilation - before   g = o / (Cout / groups)
/// X [N, H, W, C]   F [KH, KW, C / groups, Cout]   bias [Cout]   Y [N, OH, OW, Cout]; without h for
/// one axis. Padding is zeros, which multiply weights as other zeros do (0 times inf is NaN).
/// Products of f16 and bf16 are exact, sums are f32. Implicit matrix product: a tile of A is
/// gathered at the coordinates of its windows (Chetlur et al., cuDNN: Efficient primitives for deep
/// learning, 2014). Error bound check::bound(gemm) with terms = KH KW C / groups (+ 1 for a bias).
Program conv(const ConvForm& form, const ConvTiling& tiling = {});

/// Plain loops in double.
check::Reference conv_reference(const Problem& p, std::span<const TensorView> inputs);

enum class Pooling { max, average, average_valid };
struct PoolForm {
  DType dtype = f32;  ///< of X and Y: f32, bf16 or f16
  Pooling op = Pooling::max;
  Window h = {}, w = {};
};
struct PoolTiling {
  int64_t pixels = 16;
  int64_t channels = 64;
};

/// Y[n, oh, ow, c] over the window of X[N, H, W, C]. max: NaN wins, padding is -inf; exact.
/// average: padding counts as zeros. average_valid: padding does not count, a window of nothing
/// else gives 0. Averages: bound check::bound(reduction) with terms = elements of a window; sums
/// are f32.
Program pool2d(const PoolForm& form, const PoolTiling& tiling = {});

check::Reference pool2d_reference(const Problem& p, std::span<const TensorView> inputs);

std::vector<KernelEntry> conv_entries();
std::vector<KernelEntry> pool_entries();

}  // namespace tw::kernels
