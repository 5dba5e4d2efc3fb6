#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "tw/check/guarded.h"
#include "tw/target/specialisation.h"
#include "tw/tensor/tensor.h"

namespace tw::test {

using Views = std::vector<TensorView>;

/// The views with strides for a text of these facts: its unit axis innermost and rows longer by as
/// much as nobody else's, in steps that keep what the text may rely on. Their data is not made for
/// such strides. The first of them is the text's parameter of that number.
Views with_own_strides(Views some, const Specialisation& facts, size_t first);

/// Tensors of a call, copied to others of such strides whose gaps are poison, and back.
class OwnStrides {
 public:
  OwnStrides(const Views& all, const Specialisation& facts);
  Views views(size_t begin, size_t end) const;
  /// Also what was written beside the tensors.
  void take_back() const;

 private:
  Views host_;
  std::vector<std::unique_ptr<check::Guarded>> copies_;
};

}  // namespace tw::test
