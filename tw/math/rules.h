#pragma once

#include <functional>
#include <span>

#include "tw/math/facts.h"

namespace tw {

/// One kind of step of simplify(): an expression equal to e under the facts, or nothing where the
/// rule does not apply to the root of e.
///
/// Why simplify() ends: a step is taken only where it lowers (nodes, nodes under a floordiv or
/// mod), compared in this order, or keeps both and the rule is a normal form. Those map everything
/// they apply to onto forms that they keep: sums, choices and remainders onto their own kind, known
/// values onto constants, where nothing applies.
struct SimplifyRule {
  std::string name;
  std::function<std::optional<Expr>(const Expr& e, const Facts& facts)> apply;
  bool normal_form = false;
};

/// All of them, in the order tried.
std::span<const SimplifyRule> simplify_rules();

/// simplify() with some of the rules only.
Expr simplify_with(std::span<const SimplifyRule> rules, const Expr& e, const Facts& facts);

}  // namespace tw
