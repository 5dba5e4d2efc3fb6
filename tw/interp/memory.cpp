#include "tw/interp/memory.h"

#include <cstring>

namespace tw {

ParamMemory::ParamMemory(TensorView view, bool written)
    : view_(std::move(view)), written_(written) {
  if (!written_) return;
  for_each_index(view_.dims, [&](const Extents& at) {
    uint64_t bits = 0;
    std::memcpy(&bits, address(at), static_cast<size_t>(bytes(view_.dtype)));
    elements_.push_back(from_bits(view_.dtype, bits));
  });
}

uint8_t* ParamMemory::address(const Extents& at) const {
  int64_t offset = 0;
  for (size_t k = 0; k < at.size(); ++k) offset += at[k] * view_.strides[k];
  return static_cast<uint8_t*>(view_.data) + offset * bytes(view_.dtype);
}

bool ParamMemory::inside(const Extents& at) const {
  for (size_t k = 0; k < at.size(); ++k)
    if (at[k] < 0 || at[k] >= view_.dims[k]) return false;
  return true;
}

Scalar ParamMemory::read(const Extents& at) const {
  if (written_) return elements_[static_cast<size_t>(position(view_.dims, at))];
  uint64_t bits = 0;
  std::memcpy(&bits, address(at), static_cast<size_t>(bytes(view_.dtype)));
  return from_bits(view_.dtype, bits);
}

void ParamMemory::write(const Extents& at, const Scalar& value) {
  elements_[static_cast<size_t>(position(view_.dims, at))] = value;
  const uint64_t bits = to_bits(view_.dtype, value);
  std::memcpy(address(at), &bits, static_cast<size_t>(bytes(view_.dtype)));
}

}  // namespace tw
