#include <fmt/format.h>

#include "tw/base/error.h"
#include "tw/graph/onnx/operators.h"

namespace tw::graph::onnx {

namespace {

using Exprs = std::vector<Expr>;

/// Of a position in a shape that may count from the back, clamped.
int64_t clamped_axis(int64_t k, int rank) {
  return std::clamp<int64_t>(k < 0 ? k + rank : k, 0, rank);
}

std::vector<TensorId> shape_of(Context& c) {
  const Exprs dims = c.info(0).dims;
  const int rank = c.rank(0);
  const int64_t start = clamped_axis(c.integer("start", 0), rank);
  const int64_t end = std::max(start, clamped_axis(c.integer("end", rank), rank));
  return {c.g.shape_value(c.name(), i64, {dims.begin() + start, dims.begin() + end})};
}

std::vector<TensorId> size_of(Context& c) {
  return {c.g.shape_value(c.name(), i64, {c.g.simple(product_of_dims(c.info(0).dims))},
                          std::vector<Expr>{})};
}

/// The extents that a list with 0 for kept and -1 for the rest means.
Exprs resolved_shape(Context& c, const Exprs& from, Exprs wanted, bool zero_is_zero) {
  int rest = -1;
  for (size_t k = 0; k < wanted.size(); ++k) {
    if (wanted[k] == Expr(-1)) {
      if (rest >= 0) c.fail("leaves two extents open");
      rest = static_cast<int>(k);
    } else if (wanted[k] == Expr(0) && !zero_is_zero) {
      if (k >= from.size()) c.fail(fmt::format("keeps extent {} of {}", k, from.size()));
      wanted[k] = from[k];
    }
  }
  if (rest < 0) return wanted;
  Exprs others = wanted;
  others.erase(others.begin() + rest);
  wanted[static_cast<size_t>(rest)] = quotient_of_dims(c.g, from, others);
  return wanted;
}

std::vector<TensorId> reshape_of(Context& c) {
  Exprs wanted;
  if (c.opset() < 5)
    for (int64_t d : c.integers("shape")) wanted.emplace_back(d);
  else
    wanted = c.contents(1);
  const bool zero_is_zero = c.integer("allowzero", 0) != 0;
  return {reshape(c.g, c.name(), c.in(0),
                  resolved_shape(c, c.info(0).dims, std::move(wanted), zero_is_zero))};
}

std::vector<TensorId> flatten(Context& c) {
  const Exprs dims = c.info(0).dims;
  const int rank = c.rank(0);
  const int64_t axis = c.integer("axis", 1);
  if (axis < -rank || axis > rank)
    c.fail(fmt::format("flattens from axis {}, wanted -{} to {}", axis, rank, rank));
  const auto first = static_cast<size_t>(clamped_axis(axis, rank));
  const std::span<const Expr> all(dims);
  return {reshape(c.g, c.name(), c.in(0),
                  {c.g.simple(product_of_dims(all.first(first))),
                   c.g.simple(product_of_dims(all.subspan(first)))})};
}

std::vector<TensorId> squeeze(Context& c) {
  const Exprs dims = c.info(0).dims;
  std::vector<int> axes = named_axes(c, 1, "axes", c.rank(0));
  if (axes.empty() && !c.has(1) && !c.has_attribute("axes"))
    for (int a = 0; a < c.rank(0); ++a)
      if (c.g.number(dims[static_cast<size_t>(a)], "an extent that " + c.name() + " may remove") ==
          1)
        axes.push_back(a);
  Exprs left;
  for (int a = 0; a < c.rank(0); ++a) {
    const Expr& d = dims[static_cast<size_t>(a)];
    if (std::find(axes.begin(), axes.end(), a) == axes.end())
      left.push_back(d);
    else if (!c.g.same(d, 1, c.name()))
      c.fail(fmt::format("removes axis {} of extent {}, wanted 1", a, c.g.text(d)));
  }
  return {reshape(c.g, c.name(), c.in(0), left)};
}

std::vector<TensorId> unsqueeze(Context& c) {
  const auto given = c.has(1) ? c.numbers(1) : c.integers("axes");
  const int rank = c.rank(0) + static_cast<int>(given.size());
  const std::vector<int> axes = named_axes(c, 1, "axes", rank);
  Exprs dims = c.info(0).dims;
  for (int a : axes) dims.insert(dims.begin() + a, Expr(1));
  return {reshape(c.g, c.name(), c.in(0), dims)};
}

std::vector<TensorId> transpose_of(Context& c) {
  const int rank = c.rank(0);
  std::vector<int> perm;
  for (int64_t p : c.integers("perm")) perm.push_back(static_cast<int>(p));
  if (perm.empty() && !c.has_attribute("perm")) {
    perm = axes_from(0, rank);
    std::reverse(perm.begin(), perm.end());
  }
  std::vector<int> sorted = perm;
  std::sort(sorted.begin(), sorted.end());
  if (sorted != axes_from(0, rank)) c.fail("has a perm that is none of its axes");
  return {transpose(c.g, c.name(), c.in(0), perm)};
}

/// Tensors side by side along an axis: each is read where it lies.
TensorId joined_along(Context& c, const std::vector<TensorId>& xs, int axis) {
  constexpr size_t kAtOnce = 8;
  if (xs.size() == 1) return xs[0];
  if (xs.size() > kAtOnce) {
    std::vector<TensorId> groups;
    for (size_t i = 0; i < xs.size(); i += kAtOnce)
      groups.push_back(
          joined_along(c,
                       {xs.begin() + static_cast<ptrdiff_t>(i),
                        xs.begin() + static_cast<ptrdiff_t>(std::min(i + kAtOnce, xs.size()))},
                       axis));
    return joined_along(c, groups, axis);
  }
  const auto a = static_cast<size_t>(axis);
  Compute made;
  made.axes = c.g.tensor(xs[0]).dims;
  made.rank = static_cast<int>(made.axes.size());
  const DType t = c.g.tensor(xs[0]).dtype;
  std::vector<Expr> starts;
  Expr end = 0;
  for (TensorId x : xs) {
    const TensorInfo& info = c.g.tensor(x);
    if (info.dims.size() != made.axes.size() || info.dtype != t)
      c.fail("joins tensors of different ranks or types");
    for (size_t k = 0; k < info.dims.size(); ++k)
      if (k != a && !c.g.same(info.dims[k], made.axes[k], c.name()))
        c.fail(fmt::format("joins extents {} and {} of axis {}", c.g.text(made.axes[k]),
                           c.g.text(info.dims[k]), k));
    starts.push_back(end);
    end = c.g.simple(end + info.dims[a]);
  }
  made.axes[a] = end;
  Term all;
  for (size_t j = xs.size(); j-- > 0;) {
    std::vector<Term> at = axis_terms(made.rank);
    at[a] = index(Expr::symbol(axis_symbol(axis)) - starts[j]);
    const Term element = load(made.operand(xs[j]), t, at, number_of(t, 0));
    all = all ? where(op(Opcode::lt, tw::graph::axis(axis), index(starts[j + 1])), element, all)
              : element;
  }
  made.body = all;
  return c.g.compute(std::move(made), c.name());
}

std::vector<TensorId> concat(Context& c) {
  return {joined_along(c, all_inputs(c), axis_attribute(c, 1, c.rank(0)))};
}

/// The block of extents `dims` that starts at `start` along an axis, every `step`-th element.
TensorId block_along(Context& c, TensorId x, size_t axis, const Expr& start, const Expr& extent,
                     int64_t step = 1) {
  Exprs dims = c.g.tensor(x).dims;
  dims[axis] = extent;
  return view(c.g, c.name(), x, dims, [&](std::span<const Expr> at) {
    Exprs coordinates(at.begin(), at.end());
    coordinates[axis] = at[axis] * Expr(step) + start;
    return coordinates;
  });
}

std::vector<TensorId> split(Context& c) {
  const int axis = axis_attribute(c, 0, c.rank(0));
  const Expr whole = c.info(0).dims[static_cast<size_t>(axis)];
  Exprs parts;
  if (c.has(1)) {
    parts = c.contents(1);
  } else if (c.has_attribute("split")) {
    for (int64_t p : c.integers("split")) parts.emplace_back(p);
  } else {
    const auto n = c.integer("num_outputs", std::ssize(c.node().outputs));
    if (n != std::ssize(c.node().outputs))
      c.fail(fmt::format("has num_outputs = {}, wanted {}", n, c.node().outputs.size()));
    const Expr each = c.opset() >= 18 ? c.g.simple(cdiv(whole, n)) : c.g.simple(floordiv(whole, n));
    for (int64_t k = 0; k + 1 < n; ++k) parts.push_back(each);
    parts.push_back(c.g.simple(whole - each * Expr(n - 1)));
  }
  std::vector<TensorId> out;
  Expr start = 0;
  for (const Expr& p : parts) {
    if (p.is_constant() && p.constant() < 0)
      c.fail(fmt::format("has a part of {} elements", p.constant()));
    out.push_back(block_along(c, c.in(0), static_cast<size_t>(axis), start, p));
    start = c.g.simple(start + p);
  }
  if (!c.g.same(start, whole, c.name()))
    c.fail(fmt::format("splits {} elements into {}", c.g.text(whole), c.g.text(start)));
  return out;
}

/// Position e of an axis of n elements, counted from the back when negative, within [low, high].
Expr slice_position(Context& c, const Expr& e, const Expr& n, const Expr& low, const Expr& high) {
  constexpr int64_t kFar = 1'000'000;  // who means "all" writes more than that
  const Interval range = bounds(e, {});
  if (range.lo < 0 && range.hi >= 0)
    throw NeedsSizes(fmt::format("whether {} of {} counts from the back depends on sizes",
                                 c.g.text(e), c.node().title()));
  const Expr exact = c.g.simple(min(max(range.lo >= 0 ? e : e + n, low), high));
  if (!e.is_constant() || n.is_constant()) return exact;
  if (e.constant() > -kFar && e.constant() < kFar) return exact;
  const Expr& end = e.constant() > 0 ? high : low;  // where it lies but for very long axes
  return c.g.same(exact, end, c.name()) ? end : exact;
}

std::vector<TensorId> slice(Context& c) {
  Exprs starts, ends;
  std::vector<int64_t> axes, steps;
  if (c.opset() < 10) {
    for (int64_t s : c.integers("starts")) starts.emplace_back(s);
    for (int64_t e : c.integers("ends")) ends.emplace_back(e);
    axes = c.integers("axes");
  } else {
    starts = c.contents(1);
    ends = c.contents(2);
    if (c.has(3)) axes = c.numbers(3);
    if (c.has(4)) steps = c.numbers(4);
  }
  if (axes.empty())
    for (size_t k = 0; k < starts.size(); ++k) axes.push_back(static_cast<int64_t>(k));
  if (steps.empty()) steps.assign(starts.size(), 1);
  if (ends.size() != starts.size() || axes.size() != starts.size() || steps.size() != starts.size())
    c.fail("has starts, ends, axes and steps of different counts");
  TensorId x = c.in(0);
  for (size_t k = 0; k < starts.size(); ++k) {
    const auto a = static_cast<size_t>(normal_axis(axes[k], c.rank(0), "an axis of " + c.name()));
    const Expr n = c.g.tensor(x).dims[a];
    const int64_t step = steps[k];
    if (step == 0) c.fail("has a step of 0");
    const Expr low = step > 0 ? Expr(0) : Expr(-1), high = step > 0 ? n : n - Expr(1);
    const Expr from = slice_position(c, starts[k], n, step > 0 ? low : Expr(0), high);
    const Expr to = slice_position(c, ends[k], n, low, high);
    const Expr length = step > 0 ? to - from : from - to;
    const Expr extent = c.g.simple(max(cdiv(length, std::abs(step)), Expr(0)));
    if (extent == n && step == 1) continue;
    x = block_along(c, x, a, from, extent, step);
  }
  return {x};
}

std::vector<TensorId> expand_of(Context& c) {
  return {expand(c.g, c.name(), c.in(0), c.contents(1))};
}

std::vector<TensorId> tile_of(Context& c) {
  const Exprs from = c.info(0).dims, repeats = c.contents(1);
  if (repeats.size() != from.size()) c.fail("has not one repeat for each axis");
  Exprs dims;
  for (size_t k = 0; k < from.size(); ++k) dims.push_back(c.g.simple(from[k] * repeats[k]));
  return {view(c.g, c.name(), c.in(0), dims, [&](std::span<const Expr> at) {
    Exprs coordinates;
    for (size_t k = 0; k < from.size(); ++k)
      coordinates.push_back(repeats[k] == Expr(1) ? at[k]
                            : from[k] == Expr(1)  ? Expr(0)
                                                  : mod(at[k], from[k]));
    return coordinates;
  })};
}

/// Blocks of channels and pixels, by reshapes and a transpose.
TensorId rearranged(Context& c, const Exprs& split_dims, const std::vector<int>& perm,
                    const Exprs& dims) {
  const TensorId apart = reshape(c.g, c.name(), c.in(0), split_dims);
  return reshape(c.g, c.name(), transpose(c.g, c.name(), apart, perm), dims);
}

/// Whether channels come before the pixels of a block.
bool channels_first(Context& c) {
  const std::string mode = c.text("mode", "DCR");
  if (mode != "DCR" && mode != "CRD") c.fail("has mode '" + mode + "', wanted DCR or CRD");
  return mode == "CRD";
}

std::vector<TensorId> depth_to_space(Context& c) {
  const int64_t b = c.integer("blocksize", 0);
  if (b < 1 || c.rank(0) != 4) c.fail("wants four axes and a blocksize");
  const Exprs d = c.info(0).dims;
  const Expr depth = quotient_of_dims(c.g, std::vector{d[1]}, std::vector{Expr(b * b)});
  const Exprs dims = {d[0], depth, c.g.simple(d[2] * Expr(b)), c.g.simple(d[3] * Expr(b))};
  if (channels_first(c))
    return {rearranged(c, {d[0], depth, b, b, d[2], d[3]}, {0, 1, 4, 2, 5, 3}, dims)};
  return {rearranged(c, {d[0], b, b, depth, d[2], d[3]}, {0, 3, 4, 1, 5, 2}, dims)};
}

std::vector<TensorId> space_to_depth(Context& c) {
  const int64_t b = c.integer("blocksize", 0);
  if (b < 1 || c.rank(0) != 4) c.fail("wants four axes and a blocksize");
  const Exprs d = c.info(0).dims;
  const Expr h = quotient_of_dims(c.g, std::vector{d[2]}, std::vector{Expr(b)});
  const Expr w = quotient_of_dims(c.g, std::vector{d[3]}, std::vector{Expr(b)});
  const std::vector<int> perm =
      channels_first(c) ? std::vector{0, 1, 3, 5, 2, 4} : std::vector{0, 3, 5, 1, 2, 4};
  return {
      rearranged(c, {d[0], d[1], h, b, w, b}, perm, {d[0], c.g.simple(d[1] * Expr(b * b)), h, w})};
}

}  // namespace

std::vector<Operator> shape_operators() {
  const int64_t n = kLatestOpset;
  std::vector<Operator> all = {
      {"Concat", 4, n, concat},
      {"DepthToSpace", 1, n, depth_to_space},
      {"Expand", 8, n, expand_of},
      {"Flatten", 1, n, flatten},
      {"Reshape", 1, n, reshape_of},
      {"Shape", 1, n, shape_of},
      {"Size", 1, n, size_of},
      {"Slice", 1, n, slice},
      {"SpaceToDepth", 1, n, space_to_depth},
      {"Split", 2, n, split},
      {"Squeeze", 1, n, squeeze},
      {"Tile", 6, n, tile_of},
      {"Transpose", 1, n, transpose_of},
      {"Unsqueeze", 1, n, unsqueeze},
  };
  for (const auto& more : {filling_operators(), padding_operators()})
    all.insert(all.end(), more.begin(), more.end());
  return all;
}

}  // namespace tw::graph::onnx
