#pragma once

#include <string>

#include "tw/num/dtype.h"

namespace tw::test {

struct ProductText {
  DType in = f32, sum = f32, out = f32;
  bool epilogue = false;  ///< max(sum + bias, 0), and the plain sum to a second output, D
  int64_t bm = 64, bn = 64, bk = 16;
};
/// The program "gemm", C[M, N] = A[M, K] B[K, N], as ir text.
std::string product_text(const ProductText& p = {});

}  // namespace tw::test
