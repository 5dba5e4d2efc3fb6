#pragma once

#include <array>
#include <exception>
#include <mutex>
#include <span>

#include "tw/runtime/launch.h"

namespace tw {

/// What the instances of a call told.
class Told {
 public:
  explicit Told(const Messages& messages, size_t axes) : messages_(messages), axes_(axes) {}

  /// A check that failed or a print, as TwHost::tell gets it.
  void hear(int64_t number, const int64_t* at, int64_t element, const void* elements) noexcept;
  /// Throws what the function that hears prints threw, or UserError for the check that failed in
  /// the first instance.
  void rethrow() const;

 private:
  std::span<const int64_t> instance() const { return {instance_.data(), axes_}; }

  const Messages& messages_;
  const size_t axes_;
  std::mutex mutex_;
  const Message* failed_ = nullptr;
  std::array<int64_t, 3> instance_{};
  int64_t element_ = 0;
  std::exception_ptr thrown_;
};

}  // namespace tw
