#include <algorithm>
#include <fmt/format.h>

#include "tw/base/error.h"
#include "tw/kernels/block_tile.h"
#include "tw/kernels/conv/conv.h"

namespace tw::kernels {
namespace {

/// Fewer channels are summed with the window as one axis: a block of a tile would be mostly empty.
constexpr int64_t kFewChannels = 16;

ConvForm conv_form(const Problem& p, int axes) {
  ConvForm f{.dtype = p.dtype, .axes = axes};
  if (axes == 2) f.h = window_of(p, "h", p.extent("h"));
  f.w = window_of(p, "w", p.extent("w"));
  f.groups = p.extent("groups");
  const int64_t c = p.extent("c"), k = p.extent("k");
  if (f.groups < 1 || c % f.groups != 0 || k % f.groups != 0)
    throw UserError(fmt::format("{} groups of {} input and {} output channels: wanted multiples",
                                f.groups, c, k));
  f.bias = p.option("bias") == "yes";
  f.depthwise = f.groups > 1 && c == f.groups && k == f.groups;
  f.flat = c / f.groups < kFewChannels;
  return f;
}

/// The smallest power of two from 16 that holds them, at most 64.
int64_t block_of(int64_t extent) { return extent_for(extent, 16, 64); }

std::vector<Argument> conv_arguments(const Problem& p, int axes) {
  const ConvForm f = conv_form(p, axes);
  const int64_t c = p.extent("c"), k = p.extent("k"), w = p.extent("w");
  std::vector<int64_t> x{p.extent("n"), w, c}, weights{f.w.kernel, c / f.groups, k};
  std::vector<int64_t> y{p.extent("n"), f.w.places(w), k};
  if (axes == 2) {
    x.insert(x.begin() + 1, p.extent("h"));
    weights.insert(weights.begin(), f.h.kernel);
    y.insert(y.begin() + 1, f.h.places(p.extent("h")));
  }
  std::vector<Argument> all{{"X", p.dtype, x, false}, {"F", p.dtype, weights, false}};
  if (f.bias) all.push_back({"bias", p.dtype, {k}, false});
  all.push_back({"Y", p.dtype, y, true});
  return all;
}
std::vector<Argument> conv1d_arguments(const Problem& p) { return conv_arguments(p, 1); }
std::vector<Argument> conv2d_arguments(const Problem& p) { return conv_arguments(p, 2); }

ConvTiling conv_tiling_gpu(const ConvForm& f, int64_t channels, int64_t terms) {
  if (f.depthwise) {
    const int64_t wide = extent_for(channels, 8, 64);
    return {.pixels = 2048 / wide, .channels = wide};
  }
  const int64_t most = f.dtype == f32 ? 64 : 128, deep = f.dtype == f32 ? 16 : 32;
  return {most, extent_for(channels, 16, most), extent_for(terms, 16, deep)};
}

Program trace_conv(const Problem& p, const Target& target, int axes) {
  const ConvForm f = conv_form(p, axes);
  const int64_t c = p.extent("c") / f.groups, k = p.extent("k") / f.groups;
  const int64_t terms = f.flat ? c * f.h.kernel * f.w.kernel : c;
  const int64_t channels = f.depthwise ? p.extent("k") : k;
  if (target.gpu() != nullptr) return conv(f, conv_tiling_gpu(f, channels, terms));
  return conv(
      f,
      {.pixels = f.depthwise ? 16 : 64, .channels = block_of(channels), .terms = block_of(terms)});
}
Program trace_conv1d(const Problem& p, const Target& t) { return trace_conv(p, t, 1); }
Program trace_conv2d(const Problem& p, const Target& t) { return trace_conv(p, t, 2); }

using Shape = std::map<std::string, int64_t>;

Problem conv_problem(Shape shape, DType t, std::map<std::string, std::string> options = {}) {
  return {std::move(shape), t, std::move(options)};
}

/// One axis or both the same.
Shape square(int axes, int64_t size, int64_t kernel, int64_t stride, int64_t dilation,
             int64_t before, int64_t after) {
  Shape s;
  for (const char* axis : {"w", "h"}) {
    if (*axis == 'h' && axes == 1) continue;
    const std::string a = axis;
    s[a] = size;
    s["kernel_" + a] = kernel;
    s["stride_" + a] = stride;
    s["dilation_" + a] = dilation;
    s["before_" + a] = before;
    s["after_" + a] = after;
  }
  return s;
}

Shape with(Shape s, int64_t n, int64_t c, int64_t k, int64_t groups = 1) {
  s["n"] = n;
  s["c"] = c;
  s["k"] = k;
  s["groups"] = groups;
  return s;
}

/// Few and many channels; strides, dilations and paddings of both kinds; groups and depthwise; a
/// window larger than the image; no images.
std::vector<Problem> conv_sweep(int axes) {
  const auto sq = [&](int64_t size, int64_t kernel, int64_t stride, int64_t dilation,
                      int64_t before, int64_t after) {
    return square(axes, size, kernel, stride, dilation, before, after);
  };
  std::vector<Problem> all;
  for (const Shape& s :
       {with(sq(1, 1, 1, 1, 0, 0), 1, 1, 1), with(sq(5, 3, 1, 1, 1, 1), 1, 3, 4),
        with(sq(7, 3, 2, 1, 0, 1), 2, 3, 5), with(sq(9, 1, 1, 1, 0, 0), 1, 20, 17),
        with(sq(9, 3, 1, 1, 1, 1), 1, 33, 20), with(sq(11, 3, 2, 1, 1, 1), 1, 65, 70),
        with(sq(13, 4, 3, 2, 2, 5), 1, 17, 3), with(sq(6, 3, 1, 1, 1, 1), 2, 8, 8, 8),
        with(sq(6, 3, 2, 2, 2, 1), 1, 4, 8, 4), with(sq(7, 3, 1, 1, 1, 0), 1, 36, 34, 2),
        with(sq(2, 5, 1, 1, 0, 0), 1, 3, 4), with(sq(5, 3, 1, 1, 0, 0), 0, 3, 4),
        with(sq(8, 3, 1, 1, 1, 1), 3, 3, 3)})
    all.push_back(conv_problem(s, f32));
  for (const DType t : {f32, bf16, f16})
    all.push_back(conv_problem(with(sq(6, 3, 1, 1, 1, 1), 1, 18, 5), t, {{"bias", "yes"}}));
  all.push_back(conv_problem(with(sq(6, 3, 2, 1, 0, 0), 1, 6, 6, 6), bf16,
                             {{"bias", "yes"}, {"padding", "same"}}));
  all.push_back(conv_problem(with(sq(5, 9, 1, 1, 4, 4), 1, 4, 4, 4), f32));
  return all;
}
std::vector<Problem> conv1d_sweep() { return conv_sweep(1); }
std::vector<Problem> conv2d_sweep() { return conv_sweep(2); }

std::vector<Problem> conv1d_bench() {
  return {conv_problem(with(square(1, 4096, 3, 1, 1, 1, 1), 1, 128, 128), f32)};
}
/// Layers of ResNet-50 and MobileNet.
std::vector<Problem> conv2d_bench() {
  std::vector<Problem> all;
  for (const Shape& s : {with(square(2, 224, 7, 2, 1, 3, 3), 1, 3, 64),
                         with(square(2, 56, 3, 1, 1, 1, 1), 1, 64, 64),
                         with(square(2, 28, 3, 1, 1, 1, 1), 1, 128, 128),
                         with(square(2, 14, 3, 1, 1, 1, 1), 1, 256, 256),
                         with(square(2, 56, 1, 1, 1, 0, 0), 1, 64, 256),
                         with(square(2, 56, 3, 1, 1, 1, 1), 1, 144, 144, 144)})
    all.push_back(conv_problem(s, f32));
  return all;
}

std::vector<KernelEntry::Axis> conv_axes(int axes) {
  std::vector<KernelEntry::Axis> all = {
      {"n", 1, "images"},
      {"w", axes == 2 ? 56 : 4096, "elements of an image along w"},
      {"c", 64, "input channels"},
      {"k", 64, "output channels"},
      {"groups", 1, "of channels; divides c and k"}};
  if (axes == 2) all.push_back({"h", 56, "elements of an image along h"});
  const std::vector<KernelEntry::Axis> windows = window_axes(axes == 2);
  all.insert(all.end(), windows.begin(), windows.end());
  return all;
}

const KernelEntry::Option kPadding = {
    "padding", {"given", "same"}, "same: as much as ceil(extent / stride) places need"};

// ---- pooling

PoolForm pool_form(const Problem& p) {
  const std::string op = p.option("op");
  return {.dtype = p.dtype,
          .op = op == "max"       ? Pooling::max
                : op == "average" ? Pooling::average
                                  : Pooling::average_valid,
          .h = window_of(p, "h", p.extent("h")),
          .w = window_of(p, "w", p.extent("w"))};
}

std::vector<Argument> pool_arguments(const Problem& p) {
  const PoolForm f = pool_form(p);
  const int64_t n = p.extent("n"), h = p.extent("h"), w = p.extent("w"), c = p.extent("c");
  return {{"X", p.dtype, {n, h, w, c}, false},
          {"Y", p.dtype, {n, f.h.places(h), f.w.places(w), c}, true}};
}

Program trace_pool(const Problem& p, const Target& target) {
  if (target.gpu() != nullptr) {
    const int64_t wide = extent_for(p.extent("c"), 8, 64);
    return pool2d(pool_form(p), {.pixels = 2048 / wide, .channels = wide});
  }
  return pool2d(pool_form(p), {.channels = block_of(p.extent("c"))});
}

Shape image(Shape s, int64_t n, int64_t c) {
  s["n"] = n;
  s["c"] = c;
  return s;
}

std::vector<Problem> pool_sweep() {
  std::vector<Problem> all;
  for (const char* op : {"max", "average", "average_valid"}) {
    for (const Shape& s :
         {image(square(2, 1, 1, 1, 1, 0, 0), 1, 1), image(square(2, 6, 2, 2, 1, 0, 0), 2, 5),
          image(square(2, 9, 3, 2, 1, 1, 1), 1, 17), image(square(2, 7, 3, 1, 2, 2, 1), 3, 3),
          image(square(2, 5, 2, 3, 1, 4, 4), 1, 3), image(square(2, 9, 9, 1, 1, 0, 0), 1, 70),
          image(square(2, 4, 2, 2, 1, 0, 0), 0, 3)})
      all.push_back(conv_problem(s, f32, {{"op", op}}));
    all.push_back(conv_problem(image(square(2, 8, 3, 2, 1, 1, 1), 3, 20), bf16, {{"op", op}}));
  }
  return all;
}

std::vector<Problem> pool_bench() {
  return {conv_problem(image(square(2, 112, 3, 2, 1, 1, 1), 8, 64), f32, {{"op", "max"}}),
          conv_problem(image(square(2, 56, 2, 2, 1, 0, 0), 8, 128), f32, {{"op", "average"}})};
}

}  // namespace

std::vector<KernelEntry> conv_entries() {
  const std::vector<KernelEntry::Option> options = {
      {"bias", {"no", "yes"}, "add bias[k] to the channels of Y"}, kPadding};
  const std::vector<DType> types = {f32, bf16, f16};
  return {{"conv1d", "convolution of X[n, w, c] with F[kernel_w, c / groups, k]",
           check::Family::gemm, conv_axes(1), options, types, conv1d_arguments, trace_conv1d,
           conv_reference, conv1d_sweep, conv1d_bench},
          {"conv2d", "convolution of X[n, h, w, c] with F[kernel_h, kernel_w, c / groups, k]",
           check::Family::gemm, conv_axes(2), options, types, conv2d_arguments, trace_conv2d,
           conv_reference, conv2d_sweep, conv2d_bench}};
}

std::vector<KernelEntry> pool_entries() {
  std::vector<KernelEntry::Axis> axes = {{"n", 8, "images"},
                                         {"h", 56, "elements of an image along h"},
                                         {"w", 56, "elements of an image along w"},
                                         {"c", 64, "channels"}};
  const std::vector<KernelEntry::Axis> windows = window_axes(true);
  axes.insert(axes.end(), windows.begin(), windows.end());
  return {{"pool2d",
           "largest or mean element of each window of X[n, h, w, c]",
           check::Family::reduction,
           axes,
           {{"op", {"max", "average", "average_valid"}, "average_valid: padding does not count"},
            kPadding},
           {f32, bf16, f16},
           pool_arguments,
           trace_pool,
           pool2d_reference,
           pool_sweep,
           pool_bench}};
}

}  // namespace tw::kernels
