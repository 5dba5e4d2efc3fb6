#pragma once

#include "tw/graph/onnx/importer.h"

namespace tw::graph::onnx {

/// How a window moves over the spatial axes of a tensor [N, C, ..].
struct Window {
  std::vector<int64_t> kernel, stride, dilation;
  std::vector<Expr> before, after;  ///< elements of padding
  std::vector<Expr> in, out;        ///< spatial extents

  bool inside = false;  ///< all of every window lies in the tensor

  int axes() const { return static_cast<int>(kernel.size()); }
  /// The coordinate of element k of the window at position o of an axis; may be outside.
  Expr place(int axis, const Expr& o, const Expr& k) const;
  /// Elements from the first to the last of a window.
  int64_t span(int axis) const;
  /// How many elements a window at position o has inside the tensor, or inside it and its padding.
  Expr count(int axis, const Expr& o, bool padding) const;
};

/// Of a node with the attributes of Conv and of pools: kernel_shape (or `kernel`), strides,
/// dilations, pads, auto_pad, ceil_mode.
Window window_of(Context& c, std::vector<int64_t> kernel, const std::vector<Expr>& in);
/// Its kernel, strides and dilations alone.
Window steps_of(const Context& c, std::vector<int64_t> kernel, size_t axes);
/// An attribute with one number for each axis; `otherwise` when absent.
std::vector<int64_t> per_axis(const Context& c, const char* attribute, size_t count,
                              int64_t otherwise);
/// The spatial extents of a tensor [N, C, ..].
std::vector<Expr> spatial_dims(const Context& c, size_t input);

}  // namespace tw::graph::onnx
