#pragma once

#include <string>
#include <vector>

namespace tw::test {

/// Whether NVRTC is here: in the folder of the Python tools, in that of a CUDA toolkit, or where
/// the loader finds it.
bool has_nvrtc();

/// What NVRTC says of a text, nothing when it compiles; warnings count, but for those of names that
/// are never read and of comparisons that are always true. Archs are "sm_80", ..;
/// `more` are further options.
std::string nvrtc_complaints(const std::string& text, const std::string& arch,
                             const std::vector<const char*>& more = {});

}  // namespace tw::test
