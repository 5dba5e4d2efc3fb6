#include "tw/graph/onnx/window.h"

#include <fmt/format.h>

#include "tw/graph/onnx/operators.h"

namespace tw::graph::onnx {

namespace {

/// Padding by which there is an output for each stride of the input.
void pad_same(Context& c, Window& w, bool more_after) {
  for (int k = 0; k < w.axes(); ++k) {
    const auto a = static_cast<size_t>(k);
    const Expr out = cdiv(w.in[a], w.stride[a]);
    const Expr covered = (out - Expr(1)) * Expr(w.stride[a]) + Expr(w.span(k));
    const Expr all = c.g.simple(max(covered - w.in[a], Expr(0)));
    const Expr less = c.g.simple(floordiv(all, 2)), more = c.g.simple(all - less);
    w.before[a] = more_after ? less : more;
    w.after[a] = more_after ? more : less;
  }
}

void pad_as_said(Context& c, Window& w) {
  const std::string how = c.text("auto_pad", "NOTSET");
  if (how == "SAME_UPPER" || how == "SAME_LOWER") return pad_same(c, w, how == "SAME_UPPER");
  if (how != "NOTSET" && how != "VALID") c.fail("has auto_pad '" + how + "'");
  const auto n = static_cast<size_t>(w.axes());
  const std::vector<int64_t> pads = per_axis(c, "pads", 2 * n, 0);
  for (size_t a = 0; a < n && how == "NOTSET"; ++a) {
    w.before[a] = pads[a];
    w.after[a] = pads[a + n];
  }
}

}  // namespace

Expr Window::place(int axis, const Expr& o, const Expr& k) const {
  const auto a = static_cast<size_t>(axis);
  return o * Expr(stride[a]) + k * Expr(dilation[a]) - before[a];
}

int64_t Window::span(int axis) const {
  const auto a = static_cast<size_t>(axis);
  return (kernel[a] - 1) * dilation[a] + 1;
}

Expr Window::count(int axis, const Expr& o, bool padding) const {
  const auto a = static_cast<size_t>(axis);
  const Expr d = dilation[a], start = o * Expr(stride[a]) - before[a];
  const Expr end = padding ? in[a] + after[a] : in[a];
  const Expr first = padding ? Expr(0) : max(Expr(0), cdiv(Expr(0) - start, d));
  return max(min(Expr(kernel[a]), cdiv(end - start, d)) - first, Expr(0));
}

std::vector<int64_t> per_axis(const Context& c, const char* attribute, size_t count,
                              int64_t otherwise) {
  std::vector<int64_t> values = c.integers(attribute);
  if (values.empty()) values.assign(count, otherwise);
  if (values.size() != count)
    c.fail(fmt::format("has {} {}, wanted {}", values.size(), attribute, count));
  return values;
}

std::vector<Expr> spatial_dims(const Context& c, size_t input) {
  const std::vector<Expr>& dims = c.info(input).dims;
  if (dims.size() < 3)
    c.fail(fmt::format("has a tensor of {} axes, wanted 3 or more", dims.size()));
  return {dims.begin() + 2, dims.end()};
}

Window steps_of(const Context& c, std::vector<int64_t> kernel, size_t axes) {
  if (kernel.size() != axes)
    c.fail(fmt::format("has a window of {} axes, wanted {}", kernel.size(), axes));
  Window w;
  w.kernel = std::move(kernel);
  w.stride = per_axis(c, "strides", axes, 1);
  w.dilation = per_axis(c, "dilations", axes, 1);
  for (size_t a = 0; a < axes; ++a)
    if (w.kernel[a] < 1 || w.stride[a] < 1 || w.dilation[a] < 1)
      c.fail("has a window, stride or dilation below 1");
  return w;
}

Window window_of(Context& c, std::vector<int64_t> kernel, const std::vector<Expr>& in) {
  const size_t n = in.size();
  Window w = steps_of(c, std::move(kernel), n);
  w.in = in;
  w.before.resize(n);
  w.after.resize(n);
  pad_as_said(c, w);
  const bool up = c.integer("ceil_mode", 0) != 0;
  const auto is_zero = [](const Expr& e) { return e == Expr(0); };
  w.inside = !up && std::all_of(w.before.begin(), w.before.end(), is_zero) &&
             std::all_of(w.after.begin(), w.after.end(), is_zero);
  for (size_t a = 0; a < n; ++a) {
    const Expr padded = w.in[a] + w.before[a] + w.after[a];
    const Expr room = padded - Expr(w.span(static_cast<int>(a))), s = w.stride[a];
    // A window that begins past the elements and the padding before them counts for nothing.
    const Expr last = cdiv(w.in[a] + w.before[a], s);
    const Expr steps = up ? min(cdiv(room, s) + Expr(1), last) : floordiv(room, s) + Expr(1);
    w.out.push_back(c.g.simple(max(steps, Expr(0))));
  }
  return w;
}

}  // namespace tw::graph::onnx
