#include <fmt/format.h>
#include <map>

#include "tw/graph/onnx/operators.h"

namespace tw::graph::onnx {

namespace {

/// An index of an equation: a letter, or '0' + k for axis k of the ellipsis, counted from its end.
using Letters = std::string;

/// The letters of operands and of the result, with the ellipsis written out.
struct Equation {
  std::vector<Letters> operands;
  Letters result;
};

/// "..." as letters for so many axes; others stay.
Letters with_ellipsis(Context& c, const std::string& text, int axes) {
  const size_t at = text.find("...");
  std::string letters = text, written;
  if (at != std::string::npos) {
    for (int k = axes; k-- > 0;) written += static_cast<char>('0' + k);
    letters = text.substr(0, at) + written + text.substr(at + 3);
  }
  for (char l : letters)
    if (!std::isalpha(static_cast<unsigned char>(l)) && written.find(l) == std::string::npos)
      c.fail(fmt::format("has '{}' in its equation", l));
  return letters;
}

/// Letters that occur once, in order: the result where an equation has no arrow.
Letters implied_result(const std::vector<std::string>& operands, bool ellipsis) {
  std::map<char, int> counts;
  for (const std::string& o : operands)
    for (char l : o) ++counts[l];
  std::string once = ellipsis ? "..." : "";
  for (const auto& [l, n] : counts)
    if (n == 1 && l != '.') once += l;
  return once;
}

Equation parse_equation(Context& c) {
  std::string text = c.text("equation", "");
  std::erase(text, ' ');
  const size_t arrow = text.find("->");
  std::vector<std::string> operands(1);
  for (char l : text.substr(0, arrow)) {
    if (l == ',')
      operands.emplace_back();
    else
      operands.back() += l;
  }
  if (operands.size() != c.count())
    c.fail(fmt::format("has {} operands in its equation, got {}", operands.size(), c.count()));
  const bool ellipsis = text.find("...") != std::string::npos;
  int most = 0;
  Equation e;
  for (size_t j = 0; j < operands.size(); ++j) {
    const bool here = operands[j].find("...") != std::string::npos;
    const int axes = c.rank(j) - static_cast<int>(operands[j].size()) + (here ? 3 : 0);
    if (axes < 0 || axes > 9 || (!here && axes != 0))
      c.fail(fmt::format("has '{}' for a tensor of {} axes", operands[j], c.rank(j)));
    most = std::max(most, axes);
    e.operands.push_back(with_ellipsis(c, operands[j], axes));
  }
  const std::string result =
      arrow == std::string::npos ? implied_result(operands, ellipsis) : text.substr(arrow + 2);
  e.result = with_ellipsis(c, result, most);
  return e;
}

/// The extent of each letter; 1 stretches.
std::map<char, Expr> letter_extents(Context& c, const Equation& e) {
  std::map<char, Expr> extents;
  for (size_t j = 0; j < e.operands.size(); ++j)
    for (size_t k = 0; k < e.operands[j].size(); ++k) {
      const Expr& d = c.info(j).dims[k];
      Expr& known = extents.emplace(e.operands[j][k], d).first->second;
      if (d == Expr(1)) continue;
      if (!(known == Expr(1)) && !c.g.same(known, d, c.name()))
        c.fail(fmt::format("has extents {} and {} for '{}'", c.g.text(known), c.g.text(d),
                           e.operands[j][k]));
      if (!known.is_constant() || known == Expr(1)) known = d;
    }
  return extents;
}

std::vector<TensorId> einsum(Context& c) {
  const Equation e = parse_equation(c);
  if (e.operands.size() > 2) c.fail("multiplies more than two tensors", "split its equation");
  const std::map<char, Expr> extents = letter_extents(c, e);
  Letters axes = e.result;
  for (const auto& [l, extent] : extents)
    if (axes.find(l) == std::string::npos) axes += l;
  Compute made;
  for (char l : axes) {
    if (!extents.contains(l)) c.fail(fmt::format("has '{}' in its result alone", l));
    made.axes.push_back(extents.at(l));
  }
  made.rank = static_cast<int>(e.result.size());
  const DType t = c.dtype(0), sum = accumulator(t);
  for (size_t j = 0; j < e.operands.size(); ++j) {
    std::vector<Term> at;
    for (size_t k = 0; k < e.operands[j].size(); ++k) {
      const auto place = static_cast<int>(axes.find(e.operands[j][k]));
      at.push_back(c.info(j).dims[k] == Expr(1) ? index(0) : axis(place));
    }
    const Term x = cast(load(made.operand(c.in(j)), t, at), sum);
    made.body = made.body ? op(Opcode::mul, made.body, x) : x;
  }
  if (made.reduced() > 0) {
    made.fold = Fold::sum;
    if (sum != t) made.finish = cast(result(sum), t);
  } else {
    made.body = cast(made.body, t);
  }
  return {c.g.compute(std::move(made), c.name())};
}

}  // namespace

std::vector<Operator> einsum_operators() { return {{"Einsum", 12, kLatestOpset, einsum}}; }

}  // namespace tw::graph::onnx
