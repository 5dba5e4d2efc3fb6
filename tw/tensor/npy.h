#pragma once

#include <optional>
#include <string>

#include "tw/tensor/tensor.h"

namespace tw {

/// Reads a NumPy .npy file (format versions 1 to 3, little endian). The elements must be of type
/// `as` when it is given; bf16, e4m3 and e5m2 are kept as unsigned integers of their size, because
/// NumPy lacks them, and packed types as the u8 of their bytes: a last axis of n bytes holds the
/// elements that fit whole. Fortran order becomes strides. Throws as fail_file() does when it
/// cannot be read, UserError "FILE: byte OFFSET: what; wanted" when it is damaged or of a type we
/// lack.
Tensor read_npy(const std::string& path, std::optional<DType> as = {});

/// Writes a .npy file (version 1.0, C order), whole or not at all. Throws as
/// write_file() does.
void write_npy(const std::string& path, const TensorView& t);

}  // namespace tw
