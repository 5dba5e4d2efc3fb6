#include "tw/kernels/gemm/gemm.h"

#include <algorithm>

#include "tw/base/error.h"
#include "tw/jit/kernel.h"
#include "tw/runtime/thread_pool.h"

namespace tw::kernels {

GemmTiling gemm_tiling(const GemmForm& form, const Target& target) {
  if (target.gpu() == nullptr) return {};
  return form.in == f32 && form.precision == Precision::ieee ? GemmTiling{64, 64, 16}
                                                             : GemmTiling{128, 128, 32};
}

/// Tile of an epilogue's operand for the tile of C at (m, n).
static Tile operand_tile(const TensorRef& x, Along along, const Index& m, const Index& n,
                         const GemmTiling& t) {
  switch (along) {
    case Along::columns:
      return cast(as_row(load(x.tile({n}, {t.bn}))), f32);
    case Along::rows:
      return cast(as_col(load(x.tile({m}, {t.bm}))), f32);
    case Along::both:
      return cast(load(x.tile({m, n}, {t.bm, t.bn})), f32);
  }
  throw InternalError("an epilogue's operand runs along nothing");
}

/// What an instance works on: matrices, and the place of its tile.
struct Matrices {
  TensorRef A, B, C;
  std::vector<TensorRef> operands;
  Index m, n, K;
};

static void product(Trace& k, const GemmForm& form, const GemmTiling& t, const Matrices& x) {
  Tile acc = k.zeros(f32, {t.bm, t.bn}).named("acc");
  for (Index i : k.range(cdiv(x.K, t.bk))) {
    Tile a = load(x.A.tile({x.m, i}, {t.bm, t.bk}));
    Tile b = load(x.B.tile({i, x.n}, {t.bk, t.bn}));
    acc = dot(a, b, acc, {form.precision});
  }
  std::vector<Tile> operands;
  for (size_t o = 0; o < x.operands.size(); ++o)
    operands.push_back(operand_tile(x.operands[o], form.epilogue.operands[o].along, x.m, x.n, t));
  Tile y = form.epilogue.apply ? form.epilogue.apply(acc, operands) : acc;
  store(x.C.tile({x.m, x.n}, {t.bm, t.bn}), cast(y, form.out));
}

static std::vector<Index> operand_dims(Along along, const std::vector<Index>& c) {
  const Index &M = c[c.size() - 2], &N = c.back();
  if (along == Along::columns) return {N};
  if (along == Along::rows) return {M};
  return c;
}

Program gemm(const GemmForm& form, const GemmTiling& t) {
  Trace k("gemm");
  Index M = k.dim("M"), N = k.dim("N"), K = k.dim("K");
  std::vector<Index> lead;
  if (form.batched) lead.push_back(k.dim("batch"));
  const auto shape = [&](const Index& rows, const Index& cols) {
    std::vector<Index> dims = lead;
    dims.push_back(rows);
    dims.push_back(cols);
    return dims;
  };
  TensorRef A = k.input("A", form.in, shape(M, K));
  TensorRef B = k.input("B", form.in, shape(K, N));
  std::vector<TensorRef> operands;
  for (const EpilogueOperand& o : form.epilogue.operands)
    operands.push_back(k.input(o.name, o.dtype, operand_dims(o.along, shape(M, N))));
  TensorRef C = k.output("C", form.out, shape(M, N));

  if (!form.batched) {
    auto [m, n] = k.grid(cdiv(M, t.bm), cdiv(N, t.bn));
    product(k, form, t, {A, B, C, operands, m, n, K});
    return k.finish();
  }
  auto [b, m, n] = k.grid(lead[0], cdiv(M, t.bm), cdiv(N, t.bn));
  for (size_t o = 0; o < operands.size(); ++o)
    if (form.epilogue.operands[o].along == Along::both) operands[o] = operands[o][b];
  product(k, form, t, {A[b], B[b], C[b], operands, m, n, K});
  return k.finish();
}

Tensor gemm(const TensorView& a, const TensorView& b, const GemmOptions& options) {
  const size_t rank = a.dims.size();
  const bool fits = (rank == 2 || rank == 3) && b.dims.size() == rank && a.dtype == b.dtype &&
                    a.dims[rank - 1] == b.dims[rank - 2] && (rank == 2 || a.dims[0] == b.dims[0]);
  if (!fits)
    throw UserError("gemm of " + to_string(a) + " and " + to_string(b) +
                        ": wanted [M,K] and [K,N] of one type, or batches of them",
                    "transpose(), slice() and expand() of a Tensor give such views without a copy");
  const Device device = options.device ? *options.device : Device::open("cpu:0");
  const GemmForm form{a.dtype, options.out.value_or(a.dtype), rank == 3, options.epilogue,
                      options.precision};
  std::vector<TensorView> inputs{a, b};
  for (const EpilogueOperand& o : options.epilogue.operands) inputs.push_back(o.tensor);
  std::vector<int64_t> dims(a.dims.begin(), a.dims.end() - 1);
  dims.push_back(b.dims[rank - 1]);
  Tensor c = empty(device, form.out, dims);
  compile(gemm(form, gemm_tiling(form, device.target())), device)(inputs, {c});
  return c;
}

}  // namespace tw::kernels
