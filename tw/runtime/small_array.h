#pragma once

#include <cstddef>
#include <memory>
#include <type_traits>

namespace tw {

/// An array of a size known when made: in place up to N elements, on the heap beyond. Elements
/// start at zero; those in place past the size are never touched.
template <class T, size_t N>
class SmallArray {
 public:
  explicit SmallArray(size_t size) : size_(size) {
    if (size > N) {
      heap_ = std::make_unique<T[]>(size);
    } else {
      std::uninitialized_value_construct_n(local_, size);
    }
  }
  SmallArray(const SmallArray&) = delete;
  SmallArray& operator=(const SmallArray&) = delete;

  size_t size() const { return size_; }
  T* data() { return size_ > N ? heap_.get() : local_; }
  const T* data() const { return size_ > N ? heap_.get() : local_; }
  T& operator[](size_t i) { return data()[i]; }
  const T& operator[](size_t i) const { return data()[i]; }
  const T* begin() const { return data(); }
  const T* end() const { return data() + size_; }

 private:
  static_assert(std::is_trivially_destructible_v<T>);
  size_t size_;
  union {
    T local_[N];
  };
  std::unique_ptr<T[]> heap_;
};

}  // namespace tw
