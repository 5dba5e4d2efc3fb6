#include "tw/kernels/scaled/scaled.h"

#include <cmath>
#include <numeric>

#include "tw/base/error.h"
#include "tw/lang/lang.h"

namespace tw::kernels {

ScaledOperands operands_named(const std::string& name) {
  const auto both = [](const ScaledFormat& f) { return ScaledOperands{f, f}; };
  if (name == "mxfp8_e4m3") return both(mx(e4m3));
  if (name == "mxfp8_e5m2") return both(mx(e5m2));
  if (name == "mxfp6_e3m2") return both(mx(e3m2));
  if (name == "mxfp6_e2m3") return both(mx(e2m3));
  if (name == "mxfp4") return both(mx(e2m1));
  if (name == "nvfp4") return both(nvfp4());
  if (name == "fp8") return {{e4m3, f32, {1, 128}}, {e4m3, f32, {128, 128}}};
  if (name == "fp8_rows") return both({e4m3, f32, {1, 128}});
  throw UserError("no scaled format '" + name + "'");
}

Program gemm_scaled(const ScaledOperands& formats, DType out, const ScaledTiling& t) {
  Trace k("gemm_scaled");
  Index M = k.dim("M"), N = k.dim("N"), K = k.dim("K");
  ScaledRef A = k.input_scaled("A", formats.a, {M, K});
  ScaledRef B = k.input_scaled("B", formats.b, {N, K});
  TensorRef C = k.output("C", out, {M, N});
  const int64_t bk = std::gcd(formats.a.block[1], formats.b.block[1]);

  auto [m, n] = k.grid(cdiv(M, t.bm), cdiv(N, t.bn));
  Tile acc = k.zeros(f32, {t.bm, t.bn}).named("acc");
  for (Index i : k.range(cdiv(K, bk))) {
    Tile a = load(A.tile({m, i}, {t.bm, bk}));
    Tile b = load(B.tile({n, i}, {t.bn, bk}));
    acc = dot(a, transpose(b), acc);
  }
  store(C.tile({m, n}, {t.bm, t.bn}), cast(acc, out));
  return k.finish();
}

/// The exponent of the largest power of two that a format has.
static int top_exponent(DType t) { return std::ilogb(largest(t)); }

Program quantize_mx(DType in, DType element, int64_t rows) {
  constexpr int64_t kBlock = 32, kBlocks = 8, kFraction = 23, kSpecial = 255;
  Trace k("quantize_mx");
  Index M = k.dim("M"), K = k.dim("K");
  TensorRef X = k.input("X", in, {M, K});
  ScaledRef E = k.output_scaled("E", mx(element), {M, K});

  auto [m, j] = k.grid(cdiv(M, rows), cdiv(K, kBlock * kBlocks));
  ScaledView out = E.tile({m, j}, {rows, kBlock * kBlocks});
  Tile x =
      reshape(cast(load(X.tile({m, j}, {rows, kBlock * kBlocks})), f32), {rows, kBlocks, kBlock});
  // The exponent of the largest is that of its bits; where it is subnormal the scale is the least.
  Tile bits = bitcast(abs(x), i32);
  Tile most = reduce(bits, 2, Combiner::max) >> kFraction;
  Tile special = eq(most, kSpecial);
  Tile code = where(special, kSpecial, max(most - top_exponent(element), 0)).named("code");
  store(out.scales, bitcast(cast(reshape(code, {rows, kBlocks}), u8), e8m0));

  Tile inverse = bitcast((2 * 127 - code) << kFraction, f32);
  const double top = largest(element);
  Tile scaled = where(special, 0, max(min(x * inverse, top), -top));
  store(out.elements, cast(reshape(scaled, {rows, kBlock * kBlocks}), element));
  return k.finish();
}

}  // namespace tw::kernels
