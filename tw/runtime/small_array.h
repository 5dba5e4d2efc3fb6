#pragma once

#include <cstddef>
#include <memory>

namespace tw {

/// An array of a size known when made: in place up to N elements, on the heap beyond. Elements
/// start at zero.
template <class T, size_t N>
class SmallArray {
 public:
  explicit SmallArray(size_t size) : size_(size) {
    if (size > N) heap_ = std::make_unique<T[]>(size);
  }
  SmallArray(const SmallArray&) = delete;
  SmallArray& operator=(const SmallArray&) = delete;

  size_t size() const { return size_; }
  T* data() { return heap_ ? heap_.get() : local_; }
  const T* data() const { return heap_ ? heap_.get() : local_; }
  T& operator[](size_t i) { return data()[i]; }
  const T& operator[](size_t i) const { return data()[i]; }
  const T* begin() const { return data(); }
  const T* end() const { return data() + size_; }

 private:
  size_t size_;
  T local_[N] = {};
  std::unique_ptr<T[]> heap_;
};

}  // namespace tw
