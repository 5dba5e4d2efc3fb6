#include "tw/runtime/impl/told.h"

#include <algorithm>
#include <cstring>

namespace tw {

/// Of elements as registers hold them.
static std::string text_of(DType t, const void* elements, int64_t e) {
  if (is_float(t)) {
    const DType held = t == f64 ? f64 : f32;
    return element_text(t, get({const_cast<void*>(elements), held, {e + 1}, {1}}, e), 0);
  }
  const auto size = static_cast<size_t>(bytes(t));
  uint64_t bits = 0;
  std::memcpy(&bits, static_cast<const char*>(elements) + e * bytes(t), size);
  const int unused = 64 - 8 * static_cast<int>(size);
  const auto top = static_cast<int64_t>(bits << unused);
  return element_text(t, 0, is_signed_int(t) ? top >> unused : static_cast<int64_t>(bits));
}

void Told::hear(int64_t number, const int64_t* at, int64_t element, const void* elements) noexcept {
  const std::lock_guard lock(mutex_);
  const Message& m = messages_.all[static_cast<size_t>(number)];
  const std::span<const int64_t> instance(at, axes_);
  if (m.check) {
    if (failed_ && !std::ranges::lexicographical_compare(instance, this->instance())) return;
    failed_ = &m;
    element_ = element;
    std::ranges::copy(instance, instance_.begin());
    return;
  }
  try {
    print_lines(messages_.print,
                printed(m, instance, [&](int64_t e) { return text_of(m.dtype, elements, e); }));
  } catch (...) {  // of the user's function; text cannot be left by exceptions
    if (!thrown_) thrown_ = std::current_exception();
  }
}

void Told::rethrow() const {
  if (thrown_) std::rethrow_exception(thrown_);
  if (failed_) throw failed_check(*failed_, instance(), element_);
}

}  // namespace tw
