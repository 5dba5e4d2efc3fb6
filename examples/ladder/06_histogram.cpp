// 6. Atomics, and memory of an instance's own: it counts there, then adds what it counted to the
// totals that all share. Elements past the end are masked.
#include "examples/ladder/ladder.h"

using namespace tw;

static Program histogram_program(int64_t block, int64_t blocks, int64_t bins) {
  Trace k("histogram");
  Index N = k.dim("N");
  TensorRef X = k.input("X", i32, {N}), total = k.inout("total", i32, {bins});
  TensorRef counts = k.scratch("counts", i32, {bins});
  auto [p] = k.grid(cdiv(N, block * blocks));
  for (Index j : k.range(blocks)) {
    const Index at = p * blocks + j;
    Tile inside = k.iota({block}, 0) + at * block < N;
    atomic(counts, {load(X.tile({at}, {block}))}, 1, AtomicOp::add, {.mask = inside});
  }
  atomic(total, {k.iota({bins}, 0)}, load(counts.tile({0}, {bins})), AtomicOp::add);
  return k.finish();
}

int ladder::histogram(Bench& b) {
  constexpr int64_t kBins = 256;
  const int64_t n = b.size(20'000'003, 5003);
  const Tensor X = b.integers({n}, kBins), total = b.zeros(i32, {kBins});
  b.run(histogram_program(1024, 4, kBins), {X}, {total}, 4. * static_cast<double>(n), "byte");
  std::vector<double> count(kBins);
  for (int64_t i = 0; i < n; ++i) count[static_cast<size_t>(X.data<int32_t>()[i])] += 1;
  return b.check(
      total, [&](int64_t i) { return count[static_cast<size_t>(i)]; }, [](int64_t) { return 0; });
}
