#pragma once

#include <functional>

namespace tw::capi {

/// Runs the body of a call: TW_OK, or the code of what it throws, whose text is kept for the
/// thread.
int guarded(const std::function<void()>& body) noexcept;

/// UserError naming the argument where it is null.
void need(const void* p, const char* argument);

}  // namespace tw::capi
