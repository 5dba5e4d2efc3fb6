#include <fmt/format.h>

#include "tw/graph/onnx/operators.h"

namespace tw::graph::onnx {

namespace {

/// Updates of elements of input 0, which each element looks for: of `count` updates it takes those
/// that hit it, the last one where there is no reduction.
struct Scattering {
  TensorId indices = 0, updates = 0;
  Expr count = {};
  std::function<Term(int, const Term&)> hit = {};     ///< of the operand of indices and an update
  std::function<Term(int, const Term&)> update = {};  ///< its value, of the operand of updates
};

/// A computation of each element of input 0, that folds updates when there is a fold.
Compute of_each_element(const Context& c, const Scattering& s, Fold fold) {
  Compute made;
  made.axes = c.info(0).dims;
  made.rank = c.rank(0);
  made.fold = fold;
  if (fold != Fold::none) made.axes.push_back(s.count);
  return made;
}

/// The last update of each element, -1 where there is none.
TensorId last_update(Context& c, const Scattering& s) {
  Compute made = of_each_element(c, s, Fold::max);
  const Term update = axis(made.rank);
  made.body = where(s.hit(made.operand(s.indices), update), update, constant_int(i64, -1));
  return c.g.compute(std::move(made), c.name());
}

struct ScatterReduction {
  const char* name;
  Fold fold;
  Opcode code;
};
constexpr ScatterReduction kScatterReductions[] = {{"add", Fold::sum, Opcode::add},
                                                   {"mul", Fold::prod, Opcode::mul},
                                                   {"min", Fold::min, Opcode::min},
                                                   {"max", Fold::max, Opcode::max}};

/// What the updates of each element come to; the element itself has no weight in it.
TensorId folded_updates(Context& c, const Scattering& s, const ScatterReduction& r) {
  Compute made = of_each_element(c, s, r.fold);
  const Term update = axis(made.rank);
  const DType t = accumulator(c.dtype(0));
  const int indices = made.operand(s.indices), updates = made.operand(s.updates);
  Term otherwise = constant(t, r.fold == Fold::prod ? 1.0 : 0.0);
  if (r.fold == Fold::min || r.fold == Fold::max)
    otherwise = cast(load(made.operand(c.in(0)), c.dtype(0), axis_terms(c.rank(0))), t);
  made.body = where(s.hit(indices, update), cast(s.update(updates, update), t), otherwise);
  return c.g.compute(std::move(made), c.name());
}

std::vector<TensorId> scattered(Context& c, const Scattering& s) {
  const std::string reduction = c.text("reduction", "none");
  const auto* r = std::find_if(std::begin(kScatterReductions), std::end(kScatterReductions),
                               [&](const ScatterReduction& k) { return reduction == k.name; });
  const bool reduces = r != std::end(kScatterReductions);
  if (!reduces && reduction != "none")
    c.fail(fmt::format("has reduction '{}', wanted none, add, mul, min or max", reduction));
  const TensorId last = last_update(c, s);
  const TensorId folded = reduces ? folded_updates(c, s, *r) : s.updates;
  Compute made = of_each_element(c, s, Fold::none);
  const std::vector<Term> at = axis_terms(c.rank(0));
  const Term x = load(made.operand(c.in(0)), c.dtype(0), at);
  const Term update = load(made.operand(last), i64, at);
  Term y;
  if (reduces) {
    const DType t = accumulator(x->dtype);
    y = cast(op(r->code, cast(x, t), load(made.operand(folded), t, at)), x->dtype);
  } else {
    y = s.update(made.operand(folded), update);
  }
  made.body = where(op(Opcode::le, constant_int(i64, 0), update), y, x);
  return {c.g.compute(std::move(made), c.name())};
}

/// Indices may cover a part of the axes that they do not place.
std::vector<TensorId> scatter_elements(Context& c) {
  const auto a = static_cast<size_t>(axis_attribute(c, 0, c.rank(0)));
  wants_rank(c, 1, c.rank(0));
  wants_rank(c, 2, c.rank(0));
  const std::vector<Expr> data = c.info(0).dims, places = c.info(1).dims;
  for (size_t k = 0; k < data.size(); ++k) {
    wants_extent(c, 2, k, places[k]);
    if (k != a) wants_extent(c, 1, k, min(places[k], data[k]));
  }
  Term covered;
  for (size_t k = 0; k < data.size(); ++k) {
    if (k == a || c.g.simple(data[k] - places[k]) == Expr(0)) continue;
    const Term inside = op(Opcode::lt, axis(static_cast<int>(k)), index(places[k]));
    covered = covered ? op(Opcode::and_, covered, inside) : inside;
  }
  const auto element = [=, &c](size_t input, int operand, const Term& update) {
    std::vector<Term> at = axis_terms(c.rank(0));
    at[a] = update;
    const DType t = c.dtype(input);
    return load(operand, t, at, covered ? std::optional(number_of(t, 0)) : std::nullopt);
  };
  Scattering s{.indices = c.in(1), .updates = c.in(2), .count = places[a]};
  s.hit = [=](int operand, const Term& update) {
    const Term place = counted_from_back(element(1, operand, update), data[a]);
    const Term here = op(Opcode::eq, place, axis(static_cast<int>(a)));
    return covered ? op(Opcode::and_, covered, here) : here;
  };
  s.update = [=](int operand, const Term& update) { return element(2, operand, update); };
  return scattered(c, s);
}

std::vector<TensorId> scatter_nd(Context& c) {
  const std::vector<Expr> data = c.info(0).dims, places = c.info(1).dims;
  if (places.empty()) c.fail("has scalar indices");
  const int64_t depth = c.g.number(places.back(), "the last extent of indices of " + c.name());
  if (depth < 1 || depth > c.rank(0))
    c.fail(fmt::format("places {} axes of {}, wanted 1 or more of them", depth, c.rank(0)));
  const int batch = c.rank(1) - 1;
  wants_rank(c, 2, batch + c.rank(0) - static_cast<int>(depth));
  std::vector<Expr> rows(data.begin() + depth, data.end());
  for (size_t k = 0; k < c.info(2).dims.size(); ++k) {
    const auto b = static_cast<size_t>(batch);
    wants_extent(c, 2, k, k < b ? places[k] : rows[k - b]);
  }
  Scattering s;
  s.count = c.g.simple(product_of_dims(std::span(places).first(static_cast<size_t>(batch))));
  rows.insert(rows.begin(), s.count);
  s.indices = reshape(c.g, c.name(), c.in(1), {s.count, depth});
  s.updates = reshape(c.g, c.name(), c.in(2), rows);
  s.hit = [=, &c](int operand, const Term& update) {
    Term all;
    for (int d = 0; d < depth; ++d) {
      const Term given = load(operand, c.dtype(1), {update, index(d)});
      const Term place = counted_from_back(given, data[static_cast<size_t>(d)]);
      const Term here = op(Opcode::eq, place, axis(d));
      all = all ? op(Opcode::and_, all, here) : here;
    }
    return all;
  };
  s.update = [=, &c](int operand, const Term& update) {
    std::vector<Term> at = {update};
    for (int k = static_cast<int>(depth); k < c.rank(0); ++k) at.push_back(axis(k));
    return load(operand, c.dtype(2), at);
  };
  return scattered(c, s);
}

}  // namespace

std::vector<Operator> scatter_operators() {
  const int64_t n = kLatestOpset;
  return {
      {"Scatter", 9, 10, scatter_elements},
      {"ScatterElements", 11, n, scatter_elements},
      {"ScatterND", 11, n, scatter_nd},
  };
}

}  // namespace tw::graph::onnx
