#include <algorithm>
#include <fmt/format.h>
#include <numeric>
#include <optional>

#include "tw/base/error.h"
#include "tw/base/round.h"
#include "tw/runtime/cuda/cuda.h"
#include "tw/runtime/impl/cuda_gpu.h"

namespace tw::cuda {

// Numbers of the driver's enums CUtensorMapL2promotion and of those that have a single use.
static constexpr int kPromote256 = 3, kNotInterleaved = 0, kZerosOutside = 0;

/// CUtensorMapDataType. Bits are copied as they are, so that the size is what matters.
static std::optional<int> map_type(DType t) {
  if (t == f16) return 6;
  if (t == f32) return 7;
  if (t == f64) return 8;
  if (t == bf16) return 9;
  switch (bits(t)) {
    case 8:
      return 0;
    case 16:
      return 1;
    case 32:
      return 2;
    case 64:
      return 4;
  }
  return std::nullopt;
}

/// Why there is no map for this; empty when there is one. The bounds are the driver's (CUDA Driver
/// API Reference, cuTensorMapEncodeTiled).
static std::string map_fault(const TensorView& t, std::span<const int> box, int swizzle) {
  const int64_t size = bytes(t.dtype);
  if (t.rank() < 1 || t.rank() > 5) return "wanted rank 1 to 5";
  if (box.size() != t.dims.size()) return fmt::format("the box has {} extents", box.size());
  if (reinterpret_cast<uintptr_t>(t.data) % 16 != 0) return "wanted an address of 16 bytes";
  if (t.strides.back() != 1) return "wanted stride 1 along the last axis";
  for (int k = 0; k < t.rank(); ++k) {
    if (t.dims[k] < 1 || t.dims[k] > int64_t{1} << 32) return "wanted extents in 1..2^32";
    if (box[k] < 1 || box[k] > 256) return "wanted extents of the box in 1..256";
    const bool last = k == t.rank() - 1;
    if (!last && (t.strides[k] * size % 16 != 0 || t.strides[k] < 0 ||
                  t.strides[k] >= (int64_t{1} << 40) / size))
      return "wanted strides of multiples of 16 bytes, below 2^40";
  }
  const int64_t row = box.back() * size;
  if (row % 16 != 0)
    return fmt::format("a row of the box has {} bytes: wanted a multiple of 16", row);
  if (swizzle != 0 && swizzle != 32 && swizzle != 64 && swizzle != 128)
    return fmt::format("swizzle {}: wanted 0, 32, 64 or 128", swizzle);
  if (swizzle > 0 && row > swizzle)
    return fmt::format("a row of the box has {} bytes: wanted at most the {} of its swizzle", row,
                       swizzle);
  return "";
}

TensorMap tensor_map(const Device& d, const TensorView& t, std::span<const int> box,
                     int swizzle_bytes) {
  const std::optional<int> type = is_packed(t.dtype) ? std::nullopt : map_type(t.dtype);
  std::string fault = type ? map_fault(t, box, swizzle_bytes) : "no map has such elements";
  if (fault.empty()) fault = memory_fault(d, t.data);
  if (!fault.empty()) throw UserError(fmt::format("tensor map of {}: {}", to_string(t), fault));
  // The driver counts axes from the last one, whose stride it knows.
  const int rank = t.rank();
  uint64_t dims[5], strides[5];
  unsigned boxes[5], steps[5];
  for (int k = 0; k < rank; ++k) {
    const int axis = rank - 1 - k;
    dims[k] = static_cast<uint64_t>(t.dims[axis]);
    boxes[k] = static_cast<unsigned>(box[axis]);
    steps[k] = 1;
    if (k > 0) strides[k - 1] = static_cast<uint64_t>(t.strides[axis] * bytes(t.dtype));
  }
  int swizzle = 0;  // CUtensorMapSwizzle
  while (swizzle_bytes >> swizzle >= 32) ++swizzle;
  const Gpu& gpu = d.cuda();
  const Current current(gpu);
  TensorMap map{};
  gpu.check(
      gpu.api().tensor_map(&map, *type, static_cast<unsigned>(rank), t.data, dims, strides, boxes,
                           steps, kNotInterleaved, swizzle, kPromote256, kZerosOutside),
      "to make a tensor map");
  return map;
}

void add_tensor_maps(const Device& d, const LaunchSpec& spec, std::span<const TensorView> args,
                     std::vector<uint64_t>& words) {
  constexpr size_t kBoundary = alignof(TensorMap) / sizeof(uint64_t);
  for (const LaunchSpec::TensorMap& m : spec.tensor_maps) {
    const std::vector<int> box(m.box.rbegin(), m.box.rend());
    words.resize(round_up(words.size(), kBoundary));
    try {
      const TensorMap map = tensor_map(d, args[m.arg], box, m.swizzle);
      words.insert(words.end(), std::begin(map.words), std::end(map.words));
    } catch (const UserError& e) {
      throw UserError(
          fmt::format("argument '{}' has no tensor map: {}", spec.args[m.arg].name, e.message()));
    }
  }
}

}  // namespace tw::cuda
