#pragma once

#include <array>
#include <cstdint>

#include "tw/target/launch_spec.h"
#include "tw/tensor/tensor.h"

namespace tw::emu {

/// What the emulator puts into the 128 bytes of a tensor map: a tensor in global memory, fastest
/// axis first, and the box that a copy moves.
struct TensorMap {
  static constexpr int kRanks = 5;
  char* base;
  std::array<int64_t, kRanks> dims, strides;  ///< strides in bytes
  std::array<int32_t, kRanks> box;
  int32_t rank, element_bytes, swizzle;

  int row_bytes() const { return box[0] * element_bytes; }
  int rows() const;
};
constexpr size_t kTensorMapBytes = 128;
static_assert(sizeof(TensorMap) <= kTensorMapBytes);

/// The map of a spec for an argument whose element of index 0 lies at `base`. Throws UserError
/// where the tensor or the box is none that hardware takes.
TensorMap tensor_map(const LaunchSpec& spec, size_t index, const TensorView& v, char* base);

/// Where a byte of shared memory lies when rows of 32, 64 or 128 bytes are swizzled; 0: as it is.
constexpr uint32_t swizzled(uint32_t address, int row_bytes) {
  const uint32_t mask = row_bytes == 128 ? 7 : row_bytes == 64 ? 3 : row_bytes == 32 ? 1 : 0;
  return address ^ ((address >> 7 & mask) << 4);
}

}  // namespace tw::emu
