#include "tw/graph/products.h"

#include <utility>

#include "tw/graph/loops.h"

namespace tw::graph {

namespace {

/// Summed axes with fewer elements are short.
constexpr int64_t kShortDepth = 32;

/// What a factor is converted from, when a dot takes that.
Term factor(const Term& t) {
  if (t->kind != TermKind::cast) return t;
  const DType from = t->in[0]->dtype;
  const bool narrow_float = t->dtype == f32 && (from == f16 || from == bf16);
  const bool byte = t->dtype == i32 && (from == i8 || from == u8);
  return narrow_float || byte ? t->in[0] : t;
}

bool has(uint64_t axes, int k) { return axes >> k & 1; }

}  // namespace

std::optional<Product> product_of(const Compute& c) {
  if (c.fold != Fold::sum || c.body->kind != TermKind::op || c.body->code != Opcode::mul)
    return std::nullopt;
  Product p{factor(c.body->in[0]), factor(c.body->in[1]), c.body->dtype, {}, {}, {}, {}};
  const bool narrow = p.a->dtype != p.sum && p.b->dtype != p.sum;
  const bool floats = p.sum == f32 || p.sum == f64;
  if (p.sum == f32 && p.a->dtype != p.b->dtype) p.a = c.body->in[0], p.b = c.body->in[1];
  if (!floats && !(p.sum == i32 && narrow)) return std::nullopt;
  uint64_t a = axes_of(p.a), b = axes_of(p.b);
  int last = c.rank - 1;  // that has several elements
  while (last > 0 && c.axes[static_cast<size_t>(last)] == Expr(1)) --last;
  if (has(a, last) && !has(b, last)) {
    std::swap(p.a, p.b);
    std::swap(a, b);
  }
  for (int k = 0; k < c.rank; ++k) {
    const bool both = has(a, k) == has(b, k);
    (both ? p.batch : has(a, k) ? p.rows : p.columns).push_back(k);
  }
  for (int k = c.rank; k < static_cast<int>(c.axes.size()); ++k) {
    if (c.axes[static_cast<size_t>(k)] == Expr(1) && !has(a, k) && !has(b, k)) continue;
    if (!has(a, k) || !has(b, k)) return std::nullopt;
    p.summed.push_back(k);
  }
  const bool matrix = !p.rows.empty() && !p.columns.empty() && p.columns.back() == last;
  return matrix && !p.summed.empty() ? std::optional(p) : std::nullopt;
}

std::optional<int> walked_axis(const Compute& c, const Product& p) {
  for (int k : p.summed) {
    const Expr& e = c.axes[static_cast<size_t>(k)];
    if (!e.is_constant() || e.constant() >= kShortDepth) return k;
  }
  return std::nullopt;
}

bool zero_outside(const Loops& l, const Term& t, const std::vector<int>& summed) {
  const Term load = t->kind == TermKind::cast ? t->in[0] : t;
  if (load->kind != TermKind::load) return false;
  if (load->pad && load->pad->as_double() != 0) return false;
  const std::vector<Expr>& dims = l.operand_dims[static_cast<size_t>(load->operand)];
  for (int k : summed) {
    bool whole = false;
    for (size_t j = 0; j < load->in.size(); ++j) {
      whole |= axis_at(load->in[j]) == k && dims[j] == l.compute.axes[static_cast<size_t>(k)];
    }
    if (!whole) return false;
  }
  return true;
}

}  // namespace tw::graph
