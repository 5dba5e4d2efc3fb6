#include "tw/capi/tensors.h"

#include <fmt/format.h>
#include <memory>
#include <utility>

#include "tw/base/error.h"

namespace tw::capi {

namespace {

constexpr int32_t kMostAxes = 32;

/// Those that have a code of their own.
constexpr std::pair<DType, uint8_t> kFloats[] = {{bf16, TW_BFLOAT},      {e4m3, TW_FLOAT8_E4M3FN},
                                                 {e5m2, TW_FLOAT8_E5M2}, {e8m0, TW_FLOAT8_E8M0},
                                                 {e2m3, TW_FLOAT6_E2M3}, {e3m2, TW_FLOAT6_E3M2},
                                                 {e2m1, TW_FLOAT4_E2M1}};

uint8_t float_code(DType t) {
  for (const auto& [known, code] : kFloats)
    if (known == t) return code;
  return TW_FLOAT;
}

void check_place(const TensorView& v, const std::string& what) {
  if (v.data == nullptr && v.count() != 0) throw UserError(fmt::format("{} has no data", what));
  if (const auto at = reinterpret_cast<uintptr_t>(v.data);
      at % static_cast<uintptr_t>(bytes(v.dtype)) != 0)
    throw UserError(
        fmt::format("{} lies at {}, wanted a multiple of {} bytes", what, v.data, bytes(v.dtype)),
        "copy it first");
  if (const std::string fault = packing_fault(v); !fault.empty())
    throw UserError(fmt::format("{} is {}: {}", what, to_string(v), fault));
}

}  // namespace

tw_dtype c_dtype(DType t) {
  uint8_t code = 0;
  switch (info(t).cls) {
    case DTypeClass::boolean:
      code = TW_BOOL;
      break;
    case DTypeClass::signed_int:
      code = TW_INT;
      break;
    case DTypeClass::unsigned_int:
      code = TW_UINT;
      break;
    case DTypeClass::floating:
      code = float_code(t);
      break;
  }
  return {code, static_cast<uint8_t>(bits(t)), 1};
}

DType dtype_of(const tw_dtype& d, const std::string& what) {
  for (int i = 0; i < kDTypeCount; ++i) {
    const auto t = static_cast<DType>(i);
    const tw_dtype c = c_dtype(t);
    if (c.code == d.code && c.bits == d.bits && c.lanes == d.lanes) return t;
  }
  throw UserError(fmt::format("{} has type code {} of {} bits and {} lanes, which is no dtype",
                              what, d.code, d.bits, d.lanes),
                  "f32 is {TW_FLOAT, 32, 1}");
}

TensorView view_of(const tw_tensor& t, const std::string& what) {
  if (t.rank < 0 || t.rank > kMostAxes)
    throw UserError(fmt::format("{} has rank {}, wanted 0 to {}", what, t.rank, kMostAxes));
  if (t.rank > 0 && t.dims == nullptr) throw UserError(fmt::format("{} has no dims", what));
  TensorView v{t.data, dtype_of(t.dtype, what), {}, {}};
  if (t.rank > 0) v.dims.assign(t.dims, t.dims + t.rank);
  try {
    byte_count(v.dtype, v.dims);
    v.strides = contiguous_strides(v.dims, v.dtype);
    if (t.strides != nullptr && t.rank > 0) v.strides.assign(t.strides, t.strides + t.rank);
    byte_range(v);
  } catch (const UserError& e) {
    throw UserError(fmt::format("{}: {}", what, e.message()), e.hint());
  }
  check_place(v, what);
  return v;
}

tw_tensor give(Tensor t) {
  auto owner = std::make_unique<Tensor>(std::move(t));
  const TensorView& v = owner->view();
  return {v.data, c_dtype(v.dtype), v.rank(), v.dims.data(), v.strides.data(), owner.release()};
}

}  // namespace tw::capi

void tw_tensor_release(tw_tensor* tensor) {
  if (tensor == nullptr || tensor->owner == nullptr) return;
  delete static_cast<tw::Tensor*>(tensor->owner);
  *tensor = {};
}
