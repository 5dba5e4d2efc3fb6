#include <cmath>

#include "tw/kernels/conv/conv.h"

namespace tw::kernels {

/// 1 where the window's element lies in the image.
static Tile counted(const Tile& ih, const Tile& iw, const Index& H, const Index& W) {
  const Tile rows = (ih >= 0) & (ih < H);
  const Tile there = rows & (iw >= 0) & (iw < W);
  return cast(there, f32);
}

Program pool2d(const PoolForm& form, const PoolTiling& t) {
  Trace k("pool2d");
  Index N = k.dim("N"), H = k.dim("H"), W = k.dim("W"), C = k.dim("C");
  Index OH = k.dim("OH"), OW = k.dim("OW");
  TensorRef X = k.input("X", form.dtype, {N, H, W, C});
  TensorRef Y = k.output("Y", form.dtype, {N, OH, OW, C});
  const bool largest = form.op == Pooling::max;
  const float pad = largest ? -INFINITY : 0.f;

  const auto at = k.grid(N, cdiv(OH * OW, t.pixels), cdiv(C, t.channels));
  const TensorRef image = X[at[0]];
  const Tile p = k.iota({t.pixels, 1}, 0) + at[1] * t.pixels;
  const Tile oh = p / OW, ow = p % OW;
  const Tile c = k.iota({1, t.channels}, 1) + at[2] * t.channels;
  Tile acc = k.full(f32, {t.pixels, t.channels}, pad).named("acc");
  Tile count = k.zeros(f32, {t.pixels, 1}).named("count");
  for_each_tap(k, form.h, form.w, [&](const Index& th, const Index& tw) {
    const Tile ih = along(form.h, oh, th), iw = along(form.w, ow, tw);
    const Tile x = cast(gather(image, {ih, iw, c}, {.pad = pad}), f32);
    acc = largest ? max(acc, x) : acc + x;
    count = count + counted(ih, iw, H, W);
  });
  if (form.op == Pooling::average) acc = acc / static_cast<double>(form.h.kernel * form.w.kernel);
  if (form.op == Pooling::average_valid) acc = where(count > 0, acc / count, 0);
  scatter(Y[at[0]], {oh, ow, c}, cast(acc, form.dtype));
  return k.finish();
}

}  // namespace tw::kernels
