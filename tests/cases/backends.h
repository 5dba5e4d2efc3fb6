#pragma once

#include <functional>
#include <gtest/gtest.h>
#include <string>
#include <vector>

#include "tw/check/guarded.h"
#include "tw/check/reference.h"
#include "tw/lang/lang.h"

#include "tests/support/normal.h"

namespace tw::test {

/// Something that runs a program: the interpreter in exact mode, or the CPU.
struct Backend {
  std::string name;
  std::function<void(const Program&, const std::vector<TensorView>& inputs,
                     const std::vector<TensorView>& outputs)>
      run;
};
std::vector<Backend> backends();
const Backend& cpu();

/// acc + A B for A [M,K] and B [K,N] of type t, stored as `out`; acc is what C held when `beta`.
Program matmul(DType t, DType out, int64_t bm, int64_t bn, int64_t bk, bool beta = false);

/// Plain loops in double over the matrices as they lie.
check::Reference matmul_reference(const TensorView& a, const TensorView& b, DType out);

/// Every element of `got` is within check::bound of the reference.
testing::AssertionResult matches(const TensorView& got, const check::Reference& want);

/// Elements as doubles, in row-major order.
std::vector<double> values(const TensorView& t);
/// A contiguous tensor with these elements.
check::Guarded tensor(DType t, std::vector<int64_t> dims, const std::vector<double>& elements);

}  // namespace tw::test
