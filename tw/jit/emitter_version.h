#pragma once

namespace tw {

/// A hash of the sources that decide what kernels become, from cmake/emitter_version.cmake.
const char* emitter_version();

}  // namespace tw
