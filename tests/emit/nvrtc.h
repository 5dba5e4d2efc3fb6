#pragma once

#include <string>

namespace tw::test {

/// Whether NVRTC is here: in the folder of the Python tools, in that of a CUDA toolkit, or where
/// the loader finds it.
bool has_nvrtc();

/// What NVRTC says of a text, nothing when it compiles; warnings count. Archs are "sm_80", ..
std::string nvrtc_complaints(const std::string& text, const std::string& arch);

}  // namespace tw::test
