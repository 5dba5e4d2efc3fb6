#pragma once

#include <string>

#include "tw/capi/tilewright.h"
#include "tw/tensor/tensor.h"

namespace tw::capi {

tw_dtype c_dtype(DType t);
/// UserError that begins with `what` for what is no dtype.
DType dtype_of(const tw_dtype& d, const std::string& what);

/// What the caller's struct describes. UserError that begins with `what` ("input 'x'") where that
/// is no tensor.
TensorView view_of(const tw_tensor& t, const std::string& what);

/// A struct that owns its tensor until tw_tensor_release().
tw_tensor give(Tensor t);

}  // namespace tw::capi
