#include "tw/kernels/conv/conv.h"

namespace tw::kernels {
namespace {

/// Tensors and sizes, with h of extent 1 where there is one axis only.
struct Tensors {
  TensorRef X, F, Y;
  std::optional<TensorRef> bias;
  Index N, OH, OW, C, channels;  ///< C: input channels of a group; channels: of the output
};

Tensors declare(Trace& k, const ConvForm& form) {
  const bool two = form.axes == 2;
  const Index N = k.dim("N"), W = k.dim("W"), C = k.dim("C"), OW = k.dim("OW"), K = k.dim("K");
  const Index H = two ? k.dim("H") : Index(1), OH = two ? k.dim("OH") : Index(1);
  const Index group = form.groups == 1 ? C : k.dim("Cg");
  const auto image = [&](const Index& h, const Index& w, const Index& c) {
    return two ? std::vector<Index>{N, h, w, c} : std::vector<Index>{N, w, c};
  };
  std::vector<Index> weights;
  if (two) weights.push_back(form.h.kernel);
  for (const Index& extent : {Index(form.w.kernel), group, K}) weights.push_back(extent);
  TensorRef X = k.input("X", form.dtype, image(H, W, C));
  TensorRef F = k.input("F", form.dtype, weights);
  std::optional<TensorRef> bias;
  if (form.bias) bias = k.input("bias", form.dtype, {K});
  TensorRef Y = k.output("Y", form.dtype, image(OH, OW, K));
  return {X, F, Y, bias, N, OH, OW, group, K};
}

/// Output pixels of a tile: a column of their places along h and w.
struct Pixels {
  Tile h, w;
};

Pixels pixels_of(Trace& k, const ConvForm& form, const Tensors& x, const Index& tile, int64_t n) {
  const Tile p = k.iota({n, 1}, 0) + tile * n;
  if (form.axes == 1) return {k.zeros(i64, {1, 1}), p};
  return {p / x.OW, p % x.OW};
}

/// A block of terms: elements of the window and channels, as a row (for A) or a column (for B).
struct Terms {
  Tile h, w, c, inside;
};

/// Term q * n + i is element (h, w) of the window and channel c.
Terms flat_terms(Trace& k, const ConvForm& form, const Tensors& x, const Index& q, const Extents& e,
                 int axis) {
  const Tile term = k.iota(e, axis) + q * e[static_cast<size_t>(axis)];
  const Tile element = term / x.C;
  return {element / form.w.kernel, element % form.w.kernel, term % x.C,
          term < x.C * (form.h.kernel * form.w.kernel)};
}

/// Step q is one element of the window and a block of its channels.
Terms walked_terms(Trace& k, const ConvForm& form, const Tensors& x, const Index& q, int64_t n) {
  const Index blocks = cdiv(x.C, n);
  const Index h = q / (blocks * form.w.kernel), w = q / blocks % form.w.kernel;
  const Tile none = k.zeros(i64, {1, 1});
  const Tile c = k.iota({1, n}, 1) + q % blocks * n;
  return {none + h, none + w, c, c < x.C};
}

Tile gathered_image(const ConvForm& form, const Tensors& x, const Index& n, const Index& group,
                    const Pixels& at, const Terms& t) {
  const Tile iw = along(form.w, at.w, t.w), c = t.c + group * x.C;
  const bool masked = form.groups > 1 || form.flat;
  const GatherOptions options{.mask = masked ? std::optional(t.inside) : std::nullopt};
  if (form.axes == 1) return gather(x.X[n], {iw, c}, options);
  const Tile ih = along(form.h, at.h, t.h);
  return gather(x.X[n], {ih, iw, c}, options);
}

struct Step {
  Tile a, b;
};

/// Operands of step q: A [pixels, terms], B [terms, channels] from channel `first`.
Step operands(Trace& k, const ConvForm& form, const ConvTiling& t, const Tensors& x, const Index& n,
              const Index& group, const Index& first, const Pixels& at, const Index& q) {
  if (form.flat) {
    const Terms row = flat_terms(k, form, x, q, {1, t.terms}, 1);
    const Terms column = flat_terms(k, form, x, q, {t.terms, 1}, 0);
    const Tile o = k.iota({1, t.channels}, 1) + first;
    const Tile a = gathered_image(form, x, n, group, at, row);
    const GatherOptions inside{.mask = column.inside};
    if (form.axes == 1) return {a, gather(x.F, {column.w, column.c, o}, inside)};
    return {a, gather(x.F, {column.h, column.w, column.c, o}, inside)};
  }
  const Terms row = walked_terms(k, form, x, q, t.terms);
  const Tile a = gathered_image(form, x, n, group, at, row);
  const Index blocks = cdiv(x.C, t.terms);
  const Index h = q / (blocks * form.w.kernel), w = q / blocks % form.w.kernel;
  const TensorRef f = form.axes == 1 ? x.F[w] : x.F[h][w];
  return {a, load(f.window({q % blocks * t.terms, first}, {t.terms, t.channels}))};
}

void store_pixels(const ConvForm& form, const Tensors& x, const Index& n, const Pixels& at,
                  const Tile& channel, const Tile& y, const std::optional<Tile>& mask) {
  const Tile value = cast(y, form.dtype);
  if (form.axes == 1)
    scatter(x.Y[n], {at.w, channel}, value, {.mask = mask});
  else
    scatter(x.Y[n], {at.h, at.w, channel}, value, {.mask = mask});
}

Tile with_bias(const Tensors& x, const Tile& acc, const Index& first, int64_t channels) {
  if (!x.bias) return acc;
  return acc + as_row(cast(load(x.bias->window({first}, {channels})), f32));
}

void product(Trace& k, const ConvForm& form, const ConvTiling& t, const Tensors& x) {
  const Index per_group = x.channels / form.groups, blocks = cdiv(per_group, t.channels);
  auto [n, tile, block] = k.grid(x.N, cdiv(x.OH * x.OW, t.pixels), blocks * form.groups);
  const Index group = block / blocks, column0 = block % blocks * t.channels;
  const Index first = group * per_group + column0;
  const Pixels at = pixels_of(k, form, x, tile, t.pixels);
  const int64_t window = form.h.kernel * form.w.kernel;
  const Index steps = form.flat ? cdiv(x.C * window, t.terms) : cdiv(x.C, t.terms) * window;

  Tile acc = k.zeros(f32, {t.pixels, t.channels}).named("acc");
  for (Index q : k.range(steps)) {
    const Step s = operands(k, form, t, x, n, group, first, at, q);
    acc = dot(s.a, s.b, acc);
  }
  const Tile column = k.iota({1, t.channels}, 1);
  std::optional<Tile> mask;
  if (form.groups > 1) mask = column + column0 < per_group;
  const Tile y = with_bias(x, acc, first, t.channels);
  store_pixels(form, x, n, at, column + first, y, mask);
}

void depthwise(Trace& k, const ConvForm& form, const ConvTiling& t, const Tensors& x) {
  auto [n, tile, block] = k.grid(x.N, cdiv(x.OH * x.OW, t.pixels), cdiv(x.channels, t.channels));
  const Index first = block * t.channels, image = n;
  const Pixels at = pixels_of(k, form, x, tile, t.pixels);
  const Tile c = k.iota({1, t.channels}, 1) + first;
  Tile acc = k.zeros(f32, {t.pixels, t.channels}).named("acc");
  for_each_tap(k, form.h, form.w, [&](const Index& th, const Index& tw) {
    const Tile iw = along(form.w, at.w, tw);
    const bool one = form.axes == 1;
    const Tile a =
        one ? gather(x.X[image], {iw, c}) : gather(x.X[image], {along(form.h, at.h, th), iw, c});
    const TensorRef f = one ? x.F[tw][0] : x.F[th][tw][0];
    const Tile weight = as_row(load(f.window({first}, {t.channels})));
    const Tile term = cast(a, f32) * cast(weight, f32);
    acc = acc + term;
  });
  const Tile y = with_bias(x, acc, first, t.channels);
  store_pixels(form, x, n, at, c, y, {});
}

}  // namespace

Program conv(const ConvForm& form, const ConvTiling& t) {
  Trace k(form.axes == 2 ? "conv2d" : "conv1d");
  const Tensors x = declare(k, form);
  if (form.depthwise)
    depthwise(k, form, t, x);
  else
    product(k, form, t, x);
  return k.finish();
}

}  // namespace tw::kernels
