#include "tw/kernels/scan/scan.h"
#include "tw/lang/lang.h"

namespace tw::kernels {

Program cumsum(const CumsumForm& form, const CumsumTiling& t) {
  Trace k("cumsum");
  Index M = k.dim("M"), N = k.dim("N");
  TensorRef X = k.input("X", form.dtype, {M, N}), Y = k.output("Y", form.dtype, {M, N});

  auto [i] = k.grid(cdiv(M, t.rows));
  const Index blocks = cdiv(N, t.cols), row = i * t.rows;
  Tile carry = k.zeros(f32, {t.rows, 1}).named("carry");
  for (Index n : k.range(blocks)) {
    const Index j = form.reverse ? blocks - 1 - n : n;
    Tile x = cast(load(X.tile({i, j}, {t.rows, t.cols})), f32);
    Tile sum = scan(x, 1, Combiner::sum, {.reverse = form.reverse}) + carry;
    const Index first = j * t.cols + (form.exclusive ? (form.reverse ? -1 : 1) : 0);
    store(Y.window({row, first}, {t.rows, t.cols}), cast(sum, form.dtype));
    carry = slice(sum, {0, form.reverse ? 0 : t.cols - 1}, {t.rows, 1});
  }
  if (form.exclusive) {
    const Index start = form.reverse ? N - 1 : Index(0);
    store(Y.window({row, start}, {t.rows, 1}), k.zeros(form.dtype, {t.rows, 1}));
  }
  return k.finish();
}

}  // namespace tw::kernels
