#pragma once

#include "tw/check/judge.h"

namespace tw::check {

/// Collects what a callable gives for independent inputs, output by output.
class ErrorSample {
 public:
  void add(const Reference& want, std::span<const TensorView> outputs);
  std::vector<OutputErrors> found() const;

 private:
  struct Output {
    std::vector<std::vector<double>> want, error;  // of each input; 0 where none is told
    double allowed = 0;                            // sum of the squares of what errors may be
    int64_t count = 0;
  };
  std::vector<Output> outputs_;
};

}  // namespace tw::check
