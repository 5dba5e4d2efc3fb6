#include "tw/kernels/attention/merge.h"

#include <cmath>

#include "tw/lang/lang.h"

namespace tw::kernels {

Program attention_merge(DType t, int64_t head, int64_t rows) {
  Trace k("attention_merge");
  const std::vector<Index> states{k.dim("B"), k.dim("H"), k.dim("Sq")};
  const std::vector<Index> elements{states[0], states[1], states[2], head};
  TensorRef O1 = k.input("O1", t, elements), L1 = k.input("L1", f32, states);
  TensorRef O2 = k.input("O2", t, elements), L2 = k.input("L2", f32, states);
  TensorRef O = k.output("O", t, elements), L = k.output("L", f32, states);
  auto [b, h, i] = k.grid(states[0], states[1], cdiv(states[2], rows));

  Tile o1 = cast(load(O1[b][h].tile({i, 0}, {rows, head})), f32);
  Tile o2 = cast(load(O2[b][h].tile({i, 0}, {rows, head})), f32);
  Tile l1 = as_col(load(L1[b][h].tile({i}, {rows})));
  Tile l2 = as_col(load(L2[b][h].tile({i}, {rows})));

  Tile top = max(l1, l2);
  Tile w1 = exp(l1 - top);
  Tile w2 = exp(l2 - top);
  Tile sum = w1 + w2;
  Tile o = (o1 * w1 + o2 * w2) * (1.f / sum);
  Tile l = top + log(sum);

  Tile empty1 = eq(l1, -INFINITY);
  Tile empty2 = eq(l2, -INFINITY);
  o = where(empty1, where(empty2, 0.f, o2), where(empty2, o1, o));
  l = where(empty1, l2, where(empty2, l1, l));
  store(O[b][h].tile({i, 0}, {rows, head}), cast(o, t));
  store(L[b][h].tile({i}, {rows}), reshape(l, {rows}));
  return k.finish();
}

}  // namespace tw::kernels
