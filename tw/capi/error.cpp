#include "tw/capi/error.h"

#include <fmt/format.h>
#include <new>
#include <string>

#include "tw/base/error.h"
#include "tw/capi/tilewright.h"

namespace tw::capi {

namespace {

struct LastError {
  std::string what, hint;
};

LastError& last_error() {
  thread_local LastError error;
  return error;
}

int keep(int code, const std::string& what, const std::string& hint) noexcept {
  LastError& last = last_error();
  try {
    last = {what, hint};
  } catch (...) {  // no memory for the text; the code says enough
    last.what.clear();
    last.hint.clear();
  }
  return code;
}

}  // namespace

int guarded(const std::function<void()>& body) noexcept {
  try {
    body();
    return TW_OK;
  } catch (const Error& e) {
    return keep(e.exit_code(), e.message(), e.hint());
  } catch (const std::bad_alloc&) {
    return keep(TW_ENV_ERROR, "memory is used up", "");
  } catch (const std::exception& e) {
    return keep(TW_INTERNAL_ERROR, e.what(), "");
  } catch (...) {
    return keep(TW_INTERNAL_ERROR, "something unknown was thrown", "");
  }
}

void need(const void* p, const char* argument) {
  if (p == nullptr) throw UserError(fmt::format("argument '{}' is NULL", argument));
}

}  // namespace tw::capi

int tw_abi_version() { return TW_ABI_VERSION; }
const char* tw_version() { return TW_VERSION; }
const char* tw_last_error() { return tw::capi::last_error().what.c_str(); }
const char* tw_last_error_hint() { return tw::capi::last_error().hint.c_str(); }
