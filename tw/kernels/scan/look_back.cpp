#include "tw/kernels/scan/scan.h"
#include "tw/lang/lang.h"

namespace tw::kernels {
namespace {

/// A sum of one element and the mark that it is there are one word, which one atomic publishes: no
/// order among several words is asked for.
Tile word_of(const Tile& sum) {
  return cast(bitcast(reshape(sum, {}), u32), u64) | uint64_t{1} << 32;
}
Tile is_there(const Tile& word) { return ne(word, 0); }
Tile sum_of(const Tile& word) { return bitcast(cast(word, u32), f32); }

/// Waits for words of `from`, those of the mask; others are 0.
Tile awaited(Trace& k, const TensorRef& from, const std::vector<Arg>& at, const Tile& mask,
             const Extents& extents) {
  Tile words = k.zeros(u64, extents);
  While waiting(k);
  while (waiting(any(mask & ~is_there(words))))
    words = atomic_fetch(from, at, 0, AtomicOp::or_, {.mask = mask});
  return words;
}

}  // namespace

Program cumsum_shared_rows(const CumsumForm& form, const CumsumChunks& t) {
  Trace k("cumsum");
  Index M = k.dim("M"), N = k.dim("N");
  TensorRef X = k.input("X", form.dtype, {M, N}), Y = k.output("Y", form.dtype, {M, N});
  TensorRef sums = k.workspace("sums", u64, {M, cdiv(N, t.cols)});
  TensorRef starts = k.workspace("starts", u64, {M, cdiv(N, t.cols * t.group)});
  const Index chunks = cdiv(N, t.cols);
  const auto at = k.grid(M, chunks);
  const Index row = at[0], c = at[1];
  k.in_order();

  const Index j = form.reverse ? chunks - 1 - c : c, group = c / t.group;
  Tile x = cast(load(X.tile({row, j}, {1, t.cols})), f32);
  Tile inner = scan(x, 1, Combiner::sum, {.reverse = form.reverse});
  Tile total = slice(inner, {0, form.reverse ? 0 : t.cols - 1}, {1, 1});
  atomic(sums, {row, c}, word_of(total), AtomicOp::exch);

  Tile other = k.iota({1, t.group}, 1) + group * t.group;
  Tile words = awaited(k, sums, {row, other}, other < c, {1, t.group});
  Tile before = row_sum(sum_of(words)).named("before");
  Tile start = awaited(k, starts, {row, group}, k.full(i64, {}, 0) < group, {});
  before += reshape(sum_of(start), {1, 1});
  k.when(eq(c % t.group, t.group - 1), [&] {
    atomic(starts, {row, group + 1}, word_of(before + total), AtomicOp::exch);
  });

  const Index first = j * t.cols + (form.exclusive ? (form.reverse ? -1 : 1) : 0);
  store(Y.window({row, first}, {1, t.cols}), cast(inner + before, form.dtype));
  if (form.exclusive) {
    k.when(eq(c, 0), [&] {
      const Index edge = form.reverse ? N - 1 : Index(0);
      store(Y.window({row, edge}, {1, 1}), k.zeros(form.dtype, {1, 1}));
    });
  }
  return k.finish();
}

}  // namespace tw::kernels
