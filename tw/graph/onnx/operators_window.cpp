#include <fmt/format.h>
#include <limits>

#include "tw/graph/onnx/operators.h"
#include "tw/graph/onnx/window.h"

namespace tw::graph::onnx {

namespace {

using Exprs = std::vector<Expr>;

/// A computation that folds what lies under a window: the window's axes come last.
Compute under_window(Context& c, const Window& w, Fold fold, const Number& pad,
                     const std::function<Term(const Term&)>& before) {
  Compute made;
  made.operands = {c.in(0)};
  made.axes = {c.info(0).dims[0], c.info(0).dims[1]};
  made.axes.insert(made.axes.end(), w.out.begin(), w.out.end());
  made.rank = static_cast<int>(made.axes.size());
  std::vector<Term> at = {axis(0), axis(1)};
  for (int k = 0; k < w.axes(); ++k) {
    made.axes.emplace_back(w.kernel[static_cast<size_t>(k)]);
    at.push_back(index(
        w.place(k, Expr::symbol(axis_symbol(2 + k)), Expr::symbol(axis_symbol(made.rank + k)))));
  }
  made.fold = fold;
  made.body = before(load(0, c.dtype(0), at, w.inside ? std::nullopt : std::optional(pad)));
  return made;
}

/// What loses against every element.
Number least_number(DType t) {
  if (is_float(t)) return {false, 0, -std::numeric_limits<double>::infinity()};
  return number_of(t, lowest(t));
}

/// For each window the flat place in its image of the largest element.
TensorId places_of_maxima(Context& c, const Window& w) {
  Compute made;
  made.operands = {c.in(0)};
  made.axes = {c.info(0).dims[0], c.info(0).dims[1]};
  made.axes.insert(made.axes.end(), w.out.begin(), w.out.end());
  made.rank = static_cast<int>(made.axes.size());
  made.axes.push_back(product_of_dims(Exprs(w.kernel.begin(), w.kernel.end())));
  // Which of the window's elements `e` names, along each axis.
  const auto within = [&](const Expr& e) {
    Exprs k(w.kernel.size());
    Expr rest = e;
    for (size_t a = k.size(); a-- > 0; rest = floordiv(rest, w.kernel[a]))
      k[a] = a == 0 ? rest : mod(rest, w.kernel[a]);
    return k;
  };
  const Exprs k = within(Expr::symbol(axis_symbol(made.rank)));
  std::vector<Term> at = {axis(0), axis(1)};
  for (int a = 0; a < w.axes(); ++a)
    at.push_back(index(w.place(a, Expr::symbol(axis_symbol(2 + a)), k[static_cast<size_t>(a)])));
  made.fold = Fold::argmax;
  made.body = load(0, c.dtype(0), at, least_number(c.dtype(0)));
  const TensorId best = c.g.compute(std::move(made), c.name());
  const bool columns_first = c.integer("storage_order", 0) != 0;
  return mapped(c, best, [&](const Term& e) {
    const Expr image =
        Expr::symbol(axis_symbol(0)) * c.info(0).dims[1] + Expr::symbol(axis_symbol(1));
    const Expr size = product_of_dims(w.in);
    // The place is linear in the element that was found: axis rank stands for it.
    const int found = 2 + w.axes();
    const Exprs j = within(Expr::symbol(axis_symbol(found)));
    Expr flat = 0;
    for (int i = 0; i < w.axes(); ++i) {
      const int a = columns_first ? w.axes() - 1 - i : i;
      flat = flat * w.in[static_cast<size_t>(a)] +
             w.place(a, Expr::symbol(axis_symbol(2 + a)), j[static_cast<size_t>(a)]);
    }
    std::vector<Term> axes(static_cast<size_t>(found) + 1);
    axes.back() = e;
    return substitute(index(image * size + flat), axes);
  });
}

std::vector<TensorId> max_pool(Context& c) {
  const Window w = window_of(c, c.integers("kernel_shape"), spatial_dims(c, 0));
  const DType t = c.dtype(0);
  std::vector<TensorId> out = {c.g.compute(
      under_window(c, w, Fold::max, least_number(t), [](const Term& x) { return x; }), c.name())};
  if (names_output(c, 1)) out.push_back(places_of_maxima(c, w));
  return out;
}

std::vector<TensorId> average_pool(Context& c) {
  const Window w = window_of(c, c.integers("kernel_shape"), spatial_dims(c, 0));
  const bool padding = c.integer("count_include_pad", 0) != 0;
  const DType t = c.dtype(0);
  Compute made = under_window(c, w, Fold::sum, number_of(t, 0),
                              [&](const Term& x) { return cast(x, accumulator(t)); });
  Expr n = 1;
  for (int k = 0; k < w.axes(); ++k) n = n * w.count(k, Expr::symbol(axis_symbol(2 + k)), padding);
  const Term sum = result(accumulator(t));
  made.finish = cast(op(Opcode::div, sum, cast(index(c.g.simple(n)), sum->dtype)), t);
  return {c.g.compute(std::move(made), c.name())};
}

std::vector<TensorId> lp_pool(Context& c) {
  const Window w = window_of(c, c.integers("kernel_shape"), spatial_dims(c, 0));
  const auto p = static_cast<double>(c.integer("p", 2));
  const DType t = c.dtype(0), sum = computed_in(t);
  Compute made = under_window(c, w, Fold::sum, number_of(t, 0), [&](const Term& x) {
    return root_or_power(op(Opcode::abs, cast(x, sum)), p);
  });
  made.finish = cast(root_or_power(result(sum), 1 / p), t);
  return {c.g.compute(std::move(made), c.name())};
}

}  // namespace

std::vector<Operator> window_operators() {
  const int64_t n = kLatestOpset;
  std::vector<Operator> all = {
      {"AveragePool", 1, n, average_pool},
      {"LpPool", 2, n, lp_pool},
      {"MaxPool", 1, n, max_pool},
  };
  for (const Operator& o : convolution_operators()) all.push_back(o);
  return all;
}

}  // namespace tw::graph::onnx
