#pragma once

#include "tw/kernels/entry.h"
#include "tw/lang/lang.h"

namespace tw::kernels {

/// Y[M, N] = op(A[M, N], B) element by element, f32 or bf16, any strides. B is [M, N], or has an
/// extent of 1 and stretches. bf16 is computed in f32 and rounded once. Error bound
/// check::bound(elementwise) with the ulps of the function; exact (one rounding) for add, sub, mul,
/// div, max, min, relu.
struct ElementwiseTiling {
  int64_t rows = 8;
  int64_t cols = 256;
};
/// op: a C++ callable run while tracing; gets f32 tiles.
using ElementwiseOp = std::function<Tile(const Tile& a, const Tile& b)>;
enum class Broadcast { none, row, column, scalar };
Program elementwise(const std::string& name, const ElementwiseOp& op, bool binary, Broadcast b,
                    DType type, const ElementwiseTiling& tiling);

std::vector<KernelEntry> elementwise_entries();

}  // namespace tw::kernels
