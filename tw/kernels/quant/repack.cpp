#include "tw/kernels/quant/repack.h"

#include <fmt/format.h>
#include <functional>

#include "tw/base/error.h"

namespace tw::kernels {
namespace {

/// A 4-bit number by row and column.
using Nibble = std::function<int(int64_t row, int64_t column)>;

/// codes[N, G, group/2] of codes by (n, k).
Tensor pack_codes(int64_t n, int64_t groups, int64_t group, const Nibble& code) {
  const int64_t half = group / 2;
  Tensor out = host_tensor(u8, {n, groups, half});
  auto* at = out.data<uint8_t>();
  for (int64_t row = 0; row < n; ++row)
    for (int64_t g = 0; g < groups; ++g)
      for (int64_t i = 0; i < half; ++i)
        *at++ =
            static_cast<uint8_t>(code(row, g * group + i) | code(row, g * group + half + i) << 4);
  return out;
}

/// zero points[N, ceil(G/2)] of zero points by (n, g).
Tensor pack_zeros(int64_t n, int64_t groups, const Nibble& zero) {
  Tensor out = host_tensor(u8, {n, (groups + 1) / 2});
  auto* at = out.data<uint8_t>();
  for (int64_t row = 0; row < n; ++row)
    for (int64_t g = 0; g < groups; g += 2)
      *at++ = static_cast<uint8_t>(zero(row, g) | (g + 1 < groups ? zero(row, g + 1) << 4 : 0));
  return out;
}

Tensor scales_of(const TensorView& scales, int64_t n, int64_t groups,
                 const std::function<int64_t(int64_t, int64_t)>& index) {
  if ((scales.dtype != f32 && scales.dtype != f16) || scales.count() != n * groups)
    throw UserError(
        fmt::format("scales {}: wanted f32 or f16 of {} elements", to_string(scales), n * groups));
  Tensor out = host_tensor(scales.dtype, {n, groups});
  for (int64_t row = 0; row < n; ++row)
    for (int64_t g = 0; g < groups; ++g) set(out, row * groups + g, get(scales, index(row, g)));
  return out;
}

int nibble_of(const TensorView& bytes, int64_t index, bool high) {
  const int byte = static_cast<int>(get(bytes, index));
  return high ? byte >> 4 : byte & 15;
}

}  // namespace

Int4Weights repack_onnx(const TensorView& packed, const TensorView& scales,
                        const std::optional<TensorView>& zero_points) {
  if (packed.rank() != 3 || packed.dtype != u8)
    throw UserError("packed weights " + to_string(packed) + ": wanted u8[N, G, group/2]");
  const int64_t n = packed.dims[0], groups = packed.dims[1], half = packed.dims[2];
  const int64_t group = 2 * half, bytes = (groups + 1) / 2;
  if (zero_points && (zero_points->dtype != u8 || zero_points->count() != n * bytes))
    throw UserError(fmt::format("zero points {}: wanted u8 of {} elements, {} a row",
                                to_string(*zero_points), n * bytes, bytes));
  Int4Weights w{
      pack_codes(n, groups, group,
                 [&](int64_t row, int64_t k) {
                   const int64_t e = k % group;
                   return nibble_of(packed, (row * groups + k / group) * half + e / 2, e % 2 == 1);
                 }),
      scales_of(scales, n, groups, [&](int64_t row, int64_t g) { return row * groups + g; })};
  if (zero_points) {
    w.zero_points = pack_zeros(n, groups, [&](int64_t row, int64_t g) {
      return nibble_of(*zero_points, row * bytes + g / 2, g % 2 == 1);
    });
  }
  return w;
}

Int4Weights repack_awq(const TensorView& weights, const TensorView& zeros,
                       const TensorView& scales) {
  const bool fits = weights.rank() == 2 && zeros.rank() == 2 && weights.dtype == i32 &&
                    zeros.dtype == i32 && weights.dims[1] == zeros.dims[1] && zeros.dims[0] > 0 &&
                    weights.dims[0] % (2 * zeros.dims[0]) == 0;
  if (!fits)
    throw UserError("weights " + to_string(weights) + " and zeros " + to_string(zeros) +
                    ": wanted i32[K, N/8] and i32[G, N/8], K a multiple of 2 G");
  const int64_t groups = zeros.dims[0], words = weights.dims[1], n = 8 * words;
  const auto nibble = [words](const TensorView& t, int64_t row, int64_t column) {
    static constexpr int kPlace[] = {0, 4, 1, 5, 2, 6, 3, 7};
    const auto word = static_cast<uint32_t>(static_cast<int64_t>(get(t, row * words + column / 8)));
    return static_cast<int>(word >> (4 * kPlace[column % 8]) & 15);
  };
  return {pack_codes(n, groups, weights.dims[0] / groups,
                     [&](int64_t row, int64_t k) { return nibble(weights, k, row); }),
          scales_of(scales, n, groups, [&](int64_t row, int64_t g) { return g * n + row; }),
          pack_zeros(n, groups, [&](int64_t row, int64_t g) { return nibble(zeros, g, row); })};
}

Int4Weights repack_bitsandbytes(const TensorView& packed, const TensorView& scales, int64_t n,
                                int64_t k) {
  const int64_t groups = n > 0 && scales.count() % n == 0 ? scales.count() / n : 0;
  if (packed.dtype != u8 || packed.count() * 2 != n * k || groups == 0 || k % (2 * groups) != 0)
    throw UserError(fmt::format(
        "weights {} and scales {} of {} x {}: wanted u8 of N*K/2 elements, and scales of "
        "even blocks that end with the rows",
        to_string(packed), to_string(scales), n, k));
  return {pack_codes(n, groups, k / groups,
                     [&](int64_t row, int64_t t) {
                       return nibble_of(packed, (row * k + t) / 2, t % 2 == 0);
                     }),
          scales_of(scales, n, groups, [&](int64_t row, int64_t g) { return row * groups + g; })};
}

}  // namespace tw::kernels
