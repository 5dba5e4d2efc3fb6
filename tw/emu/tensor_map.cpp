#include "tw/emu/impl/tensor_map.h"

#include <fmt/format.h>

#include "tw/base/error.h"

namespace tw::emu {

int TensorMap::rows() const {
  int n = 1;
  for (int i = 1; i < rank; ++i) n *= box[static_cast<size_t>(i)];
  return n;
}

/// What hardware does not take of it; empty: nothing.
static std::string refusal(const TensorMap& m) {
  constexpr int kAlignment = 16, kMostOfBox = 256;
  for (int i = 0; i < m.rank; ++i) {
    const auto k = static_cast<size_t>(i);
    if (m.box[k] < 1 || m.box[k] > kMostOfBox)
      return fmt::format("a box of {} along an axis: wanted 1 to 256", m.box[k]);
    if (i > 0 && m.strides[k] % kAlignment != 0)
      return fmt::format("a stride of {} bytes: wanted a multiple of 16", m.strides[k]);
  }
  if (m.strides[0] != m.element_bytes) return "a fastest axis whose elements do not touch";
  if (reinterpret_cast<uintptr_t>(m.base) % kAlignment != 0)
    return "an address that is no multiple of 16";
  if (m.row_bytes() % kAlignment != 0)
    return fmt::format("a box of {} bytes along the fastest axis: wanted a multiple of 16",
                       m.row_bytes());
  const bool known = m.swizzle == 0 || m.swizzle == 32 || m.swizzle == 64 || m.swizzle == 128;
  if (!known || (m.swizzle != 0 && m.swizzle != m.row_bytes()))
    return fmt::format("a swizzle of {} bytes of rows of {}", m.swizzle, m.row_bytes());
  return "";
}

TensorMap tensor_map(const LaunchSpec& spec, size_t index, const TensorView& v, char* base) {
  const LaunchSpec::TensorMap& of = spec.tensor_maps[index];
  TensorMap m{};
  m.base = base;
  m.rank = v.rank();
  m.element_bytes = static_cast<int32_t>(bytes(v.dtype));
  m.swizzle = of.swizzle;
  m.dims.fill(1);
  m.box.fill(1);
  const bool fits = m.rank >= 1 && m.rank <= TensorMap::kRanks &&
                    of.box.size() == static_cast<size_t>(m.rank) && !is_packed(v.dtype);
  std::string refused = fits ? "" : fmt::format("a box of {} axes", of.box.size());
  for (int i = 0; fits && i < m.rank; ++i) {
    const auto k = static_cast<size_t>(i), axis = static_cast<size_t>(m.rank - 1 - i);
    m.dims[k] = v.dims[axis];
    m.strides[k] = v.strides[axis] * m.element_bytes;
    m.box[k] = of.box[k];
  }
  if (fits) refused = refusal(m);
  if (!refused.empty())
    throw UserError(
        fmt::format("argument '{}' has no tensor map: {}", spec.args[of.arg].name, refused));
  return m;
}

}  // namespace tw::emu
