#include "tw/kernels/random/dropout.h"

#include <cmath>
#include <cstring>

#include "tw/kernels/block_tile.h"
#include "tw/lang/lang.h"
#include "tw/num/codec.h"

namespace tw::kernels {

Program dropout(DType t, const DropoutTiling& tiling) {
  Trace k("dropout");
  Index M = k.dim("M"), N = k.dim("N");
  TensorRef X = k.input("X", t, {M, N}), P = k.input("P", f32, {1}),
            Seed = k.input("Seed", i64, {1});
  TensorRef Y = k.output("Y", t, {M, N});

  auto [i, j] = k.grid(cdiv(M, tiling.rows), cdiv(N, tiling.cols));
  const Extents shape = {tiling.rows, tiling.cols};
  Tile p = as_row(load(P.tile({0}, {1}))), seed = as_row(load(Seed.tile({0}, {1})));
  Tile row = (k.iota(shape, 0) + i * tiling.rows) * N;
  Tile place = row + (k.iota(shape, 1) + j * tiling.cols);
  Tile kept = uniform(place, seed) >= p;
  Tile scaled = cast(load(X.tile({i, j}, shape)), f32) * (1 / (1 - p));
  store(Y.tile({i, j}, shape), cast(where(kept, scaled, 0), t));
  return k.finish();
}

namespace {

std::vector<Argument> dropout_arguments(const Problem& p) {
  const std::vector<int64_t> mn = {p.extent("m"), p.extent("n")};
  return {{"X", p.dtype, mn, false},
          {"P", f32, {1}, false},
          {"Seed", i64, {1}, false},
          {"Y", p.dtype, mn, true}};
}

Program trace_dropout(const Problem& p, const Target& target) {
  if (const GpuMachine* gpu = target.gpu()) {
    const BlockTile t = elements_tile(p.extent("m"), p.extent("n"), *gpu);
    return dropout(p.dtype, {t.rows, t.cols});
  }
  return dropout(p.dtype, {.rows = 1, .cols = p.extent("n") <= 64 ? 64 : 1024});
}

check::Reference dropout_reference(const Problem& p, std::span<const TensorView> in) {
  const std::vector<double> x = to_doubles(in[0]);
  const double drop = to_doubles(in[1])[0];
  uint64_t seed = 0;
  std::memcpy(&seed, in[2].data, sizeof seed);
  check::ReferenceOutput y{std::vector<double>(x.size()), std::vector<double>(x.size())};
  for (size_t i = 0; i < x.size(); ++i) {
    const double draw = std::ldexp(philox(seed, 0, i).word[0] >> 8, -24);
    y.value[i] = draw >= drop ? x[i] / (1 - drop) : 0;
    y.sum_abs[i] = std::abs(y.value[i]);
  }
  return {{.family = check::Family::elementwise, .out = p.dtype}, {std::move(y)}};
}

Problem dropout_shape(int64_t m, int64_t n, DType t) { return {{{"m", m}, {"n", n}}, t, {}}; }

std::vector<Problem> dropout_sweep() {
  std::vector<Problem> all;
  for (const DType t : {f32, bf16})
    for (const auto& [m, n] :
         {std::pair{1, 1}, {3, 5}, {5, 64}, {2, 65}, {3, 1025}, {0, 8}, {8, 0}})
      all.push_back(dropout_shape(m, n, t));
  return all;
}

std::vector<Problem> dropout_bench() {
  return {dropout_shape(128, 1024, f32), dropout_shape(8192, 4096, f32)};
}

}  // namespace

std::vector<KernelEntry> random_entries() {
  return {{"dropout",
           "X[m, n] scaled by 1 / (1 - p) where a random draw keeps it, else 0",
           check::Family::elementwise,
           {{"m", 8192, "rows"}, {"n", 4096, "columns"}},
           {},
           {f32, bf16},
           dropout_arguments,
           trace_dropout,
           dropout_reference,
           dropout_sweep,
           dropout_bench}};
}

}  // namespace tw::kernels
