#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace tw::kernels {

/// What an error of a subnormal product of f32, half the least subnormal, counts as in the terms of
/// check::bound: that over f32's unit roundoff, which is its least normal number.
constexpr double kSubnormalTerm = 0x1p-126;

/// A matrix of doubles for references, stored as panels of kLanes columns with zeros past the last
/// column: products of rows with it read it in order, and their lanes vectorise.
class Panels {
 public:
  /// `at(row, column)` gives the elements.
  template <class At>
  Panels(int64_t rows, int64_t columns, At&& at)
      : rows_(rows), data_((columns + kLanes - 1) / kLanes * kLanes * rows) {
    for (int64_t c = 0; c < columns; ++c)
      for (int64_t r = 0; r < rows; ++r)
        data_[(c / kLanes * rows + r) * kLanes + c % kLanes] = at(r, c);
  }

  /// sum[c] = sum_r a[r] m(r, c), and sum_abs[c] = kSubnormalTerm + sum_r a_abs[r] |m(r, c)|,
  /// for the first sum.size() columns, over the first a.size() rows.
  void multiply(std::span<const double> a, std::span<const double> a_abs, std::span<double> sum,
                std::span<double> sum_abs) const;

 private:
  static constexpr int64_t kLanes = 8;
  int64_t rows_;
  std::vector<double> data_;
};

}  // namespace tw::kernels
