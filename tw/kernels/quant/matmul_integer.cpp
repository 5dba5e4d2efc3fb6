#include "tw/kernels/quant/quant.h"
#include "tw/lang/lang.h"

namespace tw::kernels {

Program matmul_integer(DType a_type, DType b_type, const IntegerTiling& t) {
  const auto [bm, bn, bk] = t;
  Trace k("matmul_integer");
  Index M = k.dim("M"), N = k.dim("N"), K = k.dim("K");
  TensorRef A = k.input("A", a_type, {M, K}), B = k.input("B", b_type, {K, N});
  TensorRef ZA = k.input("za", a_type, {1}), ZB = k.input("zb", b_type, {N});
  TensorRef C = k.output("C", i32, {M, N});

  auto [m, n] = k.grid(cdiv(M, bm), cdiv(N, bn));
  Tile acc = k.zeros(i32, {bm, bn}).named("acc");
  Tile rows = k.zeros(i32, {bm, 1}), cols = k.zeros(i32, {1, bn});
  for (Index i : k.range(cdiv(K, bk))) {
    Tile a = load(A.tile({m, i}, {bm, bk})), b = load(B.tile({i, n}, {bk, bn}));
    acc = dot(a, b, acc);
    rows += row_sum(cast(a, i32));
    cols += col_sum(cast(b, i32));
  }
  // (a - za)(b - zb), multiplied out; elements past K are 0 in all three sums.
  Tile za = as_row(cast(load(ZA.tile({0}, {1})), i32));
  Tile zb = as_row(cast(load(ZB.tile({n}, {bn})), i32));
  store(C.tile({m, n}, {bm, bn}), acc - rows * zb - za * cols + za * zb * K);
  return k.finish();
}

}  // namespace tw::kernels
