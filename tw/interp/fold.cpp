#include "tw/interp/fold.h"

#include "tw/base/error.h"
#include "tw/interp/bounded.h"
#include "tw/ir/program.h"

namespace tw {

namespace {

Scalar fold_in_order(InterpretMode mode, Opcode code, DType t, std::span<const Scalar> terms) {
  Scalar r = terms[0];
  for (const Scalar& x : terms.subspan(1))
    r = mode == InterpretMode::bounded ? bounded_binary(code, t, r, x, false)
                                       : exact_binary(code, t, r, x);
  return r;
}

Scalar exact_dot(DType t, std::span<const Scalar> a, std::span<const Scalar> b, Scalar acc) {
  for (size_t k = 0; k < a.size(); ++k) {
    if (!is_float(t)) {
      acc.i = wrap(t, acc.i + a[k].i * b[k].i);
      acc.undecided = acc.undecided || a[k].undecided || b[k].undecided;
    } else {
      const Scalar product = exact_binary(Opcode::mul, t, a[k], b[k]);
      acc = exact_binary(Opcode::add, t, acc, product);
    }
  }
  return acc;
}

}  // namespace

Scalar fold(InterpretMode mode, Combiner combiner, DType t, std::span<const Scalar> terms) {
  const Opcode code = opcode_of(combiner);
  const bool rounds = is_float(t) && (code == Opcode::add || code == Opcode::mul);
  if (!rounds) return fold_in_order(mode, code, t, terms);
  if (mode == InterpretMode::bounded)
    return code == Opcode::add ? bounded_sum(t, terms) : bounded_product(t, terms);
  const Scalar wide = fold_in_order(mode, code, compute_type(t), terms);
  return Scalar::of_float(round_to(t, wide.f));
}

std::vector<Scalar> scan(InterpretMode mode, Combiner combiner, DType t,
                         std::span<const Scalar> terms) {
  std::vector<Scalar> r;
  if (mode == InterpretMode::bounded) {
    for (size_t n = 1; n <= terms.size(); ++n) r.push_back(fold(mode, combiner, t, terms.first(n)));
    return r;
  }
  // Exact: as fold() does, in order and in the accumulator's type, which is rounded for each.
  const Opcode code = opcode_of(combiner);
  const bool rounds = is_float(t) && (code == Opcode::add || code == Opcode::mul);
  Scalar acc = terms[0];
  for (size_t n = 0; n < terms.size(); ++n) {
    if (n > 0) acc = exact_binary(code, rounds ? compute_type(t) : t, acc, terms[n]);
    r.push_back(rounds ? Scalar::of_float(round_to(t, acc.f)) : acc);
  }
  return r;
}

TileData dot(InterpretMode mode, Precision precision, const TileData& a, const TileData& b,
             const TileData& acc) {
  const DType t = acc.type.dtype;
  TileData r = make_tile(acc.type);
  size_t at = 0;
  for_each_index(acc.type.shape, [&](const Extents& i) {
    const std::vector<Scalar> row = line(a, 1, {i[0], 0}), column = line(b, 0, {0, i[1]});
    const bool bounded = mode == InterpretMode::bounded && is_float(t);
    const Scalar& start = acc.data[at];
    r.data[at++] =
        bounded ? bounded_dot(t, precision, row, column, start) : exact_dot(t, row, column, start);
  });
  return r;
}

}  // namespace tw
