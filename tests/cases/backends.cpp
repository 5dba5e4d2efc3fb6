#include "tests/cases/backends.h"

#include <cmath>

#include "tw/check/bound.h"
#include "tw/interp/interpreter.h"
#include "tw/jit/kernel.h"

namespace tw::test {

using Tensors = std::vector<TensorView>;

const Backend& cpu() {
  static const Backend backend{"cpu:0",
                               [](const Program& p, const Tensors& inputs, const Tensors& outputs) {
                                 compile(p, Device::open("cpu:0"))(inputs, outputs);
                               }};
  return backend;
}

std::vector<Backend> backends() {
  auto interp = [](const Program& p, const Tensors& inputs, const Tensors& outputs) {
    interpret(p, inputs, outputs);
  };
  return {{"interp", interp}, cpu()};
}

Program matmul(DType t, DType out, int64_t bm, int64_t bn, int64_t bk, bool beta) {
  Trace k("matmul");
  Index M = k.dim("M"), N = k.dim("N"), K = k.dim("K");
  TensorRef A = k.input("A", t, {M, K});
  TensorRef B = k.input("B", t, {K, N});
  TensorRef C = beta ? k.inout("C", out, {M, N}) : k.output("C", out, {M, N});
  auto [m, n] = k.grid(cdiv(M, bm), cdiv(N, bn));

  Tile acc = k.zeros(f32, {bm, bn});
  if (beta) acc = cast(load(C.tile({m, n}, {bm, bn})), f32);
  for (Index i : k.range(cdiv(K, bk))) {
    Tile a = load(A.tile({m, i}, {bm, bk}));
    Tile b = load(B.tile({i, n}, {bk, bn}));
    acc = dot(a, b, acc);
  }
  store(C.tile({m, n}, {bm, bn}), cast(acc, out));
  return k.finish();
}

check::Reference matmul_reference(const TensorView& a, const TensorView& b, DType out) {
  const int64_t m = a.dims[0], depth = a.dims[1], n = b.dims[1];
  const std::vector<double> left = values(a), right = values(b);
  check::Reference want;
  want.accuracy = {.family = check::Family::gemm, .out = out, .terms = depth};
  check::ReferenceOutput& c = want.outputs.emplace_back();
  c.value.assign(m * n, 0);
  c.sum_abs.assign(m * n, 0);
  for (int64_t i = 0; i < m; ++i) {
    for (int64_t l = 0; l < depth; ++l) {
      for (int64_t j = 0; j < n; ++j) {
        const double term = left[i * depth + l] * right[l * n + j];
        c.value[i * n + j] += term;
        c.sum_abs[i * n + j] += std::abs(term);
      }
    }
  }
  return want;
}

testing::AssertionResult matches(const TensorView& got, const check::Reference& want) {
  const check::ReferenceOutput& c = want.outputs.at(0);
  for (int64_t i = 0; i < got.count(); ++i) {
    const double bound = check::bound(want.accuracy, c.value[i], c.sum_abs[i]);
    const double ratio = check::error_ratio(got.dtype, get(got, i), c.value[i], bound);
    if (ratio > 1) {
      return testing::AssertionFailure() << "element " << i << " is " << get(got, i) << ", wanted "
                                         << c.value[i] << ", error " << ratio << " bounds";
    }
  }
  return testing::AssertionSuccess();
}

std::vector<double> values(const TensorView& t) {
  std::vector<double> out(t.count());
  for (int64_t i = 0; i < t.count(); ++i) out[i] = get(t, i);
  return out;
}

check::Guarded tensor(DType t, std::vector<int64_t> dims, const std::vector<double>& elements) {
  check::Guarded out(t, std::move(dims));
  out.fill([&](int64_t i) { return elements.at(i); });
  return out;
}

}  // namespace tw::test
