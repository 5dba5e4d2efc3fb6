#include "tw/kernels/attention/backward.h"

#include <cmath>

#include "tw/lang/lang.h"

namespace tw::kernels {
namespace {

/// What both programs read, whole or of one head.
struct BackwardInputs {
  TensorRef Q, K, V, O, dO, L;
};

/// What an instance knows of its call.
struct BackwardContext {
  Trace& k;
  const AttentionBackwardForm& form;
  const AttentionTiling& t;
  Index Sq, Skv;

  float scale() const { return 1 / std::sqrt(static_cast<float>(form.head)); }
  Tile rows(const TensorRef& x, const Index& block, int64_t n) const {
    return cast(load(x.tile({block, 0}, {n, form.head})), f32);
  }
  /// L of a block of queries: +inf, so that all weights are 0, where a row sees no key or is none.
  Tile log_sums(const TensorRef& L, const Index& block) const {
    Tile l = load(L.tile({block}, {t.queries}), {.pad = INFINITY});
    return where(eq(l, -INFINITY), INFINITY, l);
  }
};

/// The terms of delta, in f64: exact, so that it is all one whether a compiler contracts them into
/// their sum.
Tile products(const Tile& g, const Tile& o) { return cast(g, f64) * cast(o, f64); }

/// dQ of a block of queries. Keys or elements of a head run along rows and queries along columns,
/// as in the forward pass.
class QueryGradient {
 public:
  QueryGradient(const BackwardContext& c, const BackwardInputs& x, const Index& block)
      : c_(c),
        x_(x),
        block_(block),
        queries_(transpose(c.rows(x.Q, block, c.t.queries)) * c.scale()),
        gradients_(transpose(c.rows(x.dO, block, c.t.queries))),
        log_sum_(as_row(c.log_sums(x.L, block))),
        delta_(
            cast(col_sum(products(gradients_, transpose(c.rows(x.O, block, c.t.queries)))), f32)),
        out_(c.k.zeros(f32, {c.form.head, c.t.queries}).named("dQ")) {}

  /// Blocks that all queries see whole, then those at the edge of what is seen.
  void walk() {
    const Index first = block_ * c_.t.queries + c_.Skv - c_.Sq;  // last key of the first query
    const Index keys = c_.t.keys, whole = c_.Skv / keys, all = cdiv(c_.Skv, keys);
    if (c_.form.causal) {
      walk(min(whole, max((first + 1) / keys, 0)),
           min(all, max(cdiv(first + c_.t.queries, keys), 0)));
    } else {
      walk(whole, all);
    }
  }

  Tile output() const { return cast(transpose(out_ * c_.scale()), c_.form.dtype); }

 private:
  void walk(const Index& whole, const Index& all) {
    for (Index j : c_.k.range(whole)) add(c_.rows(x_.K, j, c_.t.keys), score_gradient(j));
    for (Index j : c_.k.range(whole, all))
      add(c_.rows(x_.K, j, c_.t.keys), where(seen(j), score_gradient(j), 0.f));
  }

  void add(const Tile& keys, const Tile& ds) { out_ = dot(transpose(keys), ds, out_); }

  Tile score_gradient(const Index& j) const {
    Tile none = c_.k.zeros(f32, {c_.t.keys, c_.t.queries});
    Tile p = exp(dot(c_.rows(x_.K, j, c_.t.keys), queries_, none) - log_sum_);
    return p * (dot(c_.rows(x_.V, j, c_.t.keys), gradients_, none) - delta_);
  }

  Tile seen(const Index& j) const {
    Tile key = c_.k.iota({c_.t.keys, 1}, 0) + j * c_.t.keys;
    Tile inside = key < c_.Skv;
    if (!c_.form.causal) return inside;
    Tile last = c_.k.iota({1, c_.t.queries}, 1) + (block_ * c_.t.queries + c_.Skv - c_.Sq);
    return inside & (key <= last);
  }

  const BackwardContext& c_;
  const BackwardInputs& x_;
  const Index block_;
  Tile queries_, gradients_, log_sum_, delta_, out_;
};

/// dK and dV of a block of keys of one key head. Queries or elements of a head run along rows and
/// keys along columns.
class KeyGradients {
 public:
  KeyGradients(const BackwardContext& c, const TensorRef& K, const TensorRef& V, const Index& block)
      : c_(c),
        block_(block),
        keys_(transpose(c.rows(K, block, c.t.keys)) * c.scale()),
        values_(transpose(c.rows(V, block, c.t.keys))),
        dk_(c.k.zeros(f32, {c.form.head, c.t.keys}).named("dK")),
        dv_(c.k.zeros(f32, {c.form.head, c.t.keys}).named("dV")) {}

  /// The queries of one head: those that see some of the keys, those that see all, and a last block
  /// that is not full.
  void walk(const BackwardInputs& x) {
    const Index queries = c_.t.queries, full = c_.Sq / queries, all = cdiv(c_.Sq, queries);
    if (!c_.form.causal) {
      for (Index i : c_.k.range(full)) step(x, i, false);
      for (Index i : c_.k.range(full, all)) step(x, i, true);
      return;
    }
    const Index first = block_ * c_.t.keys + c_.Sq - c_.Skv;  // first query of the first key
    const Index some = max(first / queries, 0);
    const Index whole = max(cdiv(first + c_.t.keys - 1, queries), 0);
    for (Index i : c_.k.range(some, min(whole, full))) step(x, i, true);
    for (Index i : c_.k.range(whole, full)) step(x, i, false);
    for (Index i : c_.k.range(max(some, full), all)) step(x, i, true);
  }

  Tile key_gradient() const { return cast(transpose(dk_ * c_.scale()), c_.form.dtype); }
  Tile value_gradient() const { return cast(transpose(dv_), c_.form.dtype); }

 private:
  void step(const BackwardInputs& x, const Index& i, bool edge) {
    Tile q = c_.rows(x.Q, i, c_.t.queries);
    Tile g = c_.rows(x.dO, i, c_.t.queries);
    Tile none = c_.k.zeros(f32, {c_.t.queries, c_.t.keys});
    Tile p = exp(dot(q, keys_, none) - as_col(c_.log_sums(x.L, i)));
    Tile delta = cast(row_sum(products(g, c_.rows(x.O, i, c_.t.queries))), f32);
    Tile ds = p * (dot(g, values_, none) - delta);
    if (edge) {
      Tile keep = seen(i);
      p = where(keep, p, 0.f);
      ds = where(keep, ds, 0.f);
    }
    dv_ = dot(transpose(g), p, dv_);
    dk_ = dot(transpose(q), ds, dk_);
  }

  Tile seen(const Index& i) const {
    Tile query = c_.k.iota({c_.t.queries, 1}, 0) + i * c_.t.queries;
    Tile inside = query < c_.Sq;
    if (!c_.form.causal) return inside;
    Tile first = c_.k.iota({1, c_.t.keys}, 1) + (block_ * c_.t.keys + c_.Sq - c_.Skv);
    return inside & (first <= query);
  }

  const BackwardContext& c_;
  const Index block_;
  Tile keys_, values_, dk_, dv_;
};

/// The parameters of either program, and its dims.
struct BackwardProgram {
  explicit BackwardProgram(const char* name, const AttentionBackwardForm& f)
      : k(name),
        B(k.dim("B")),
        H(k.dim("H")),
        Hkv(k.dim("Hkv")),
        Sq(k.dim("Sq")),
        Skv(k.dim("Skv")),
        queries{B, H, Sq, f.head},
        keys{B, Hkv, Skv, f.head},
        in{k.input("Q", f.dtype, queries),  k.input("K", f.dtype, keys),
           k.input("V", f.dtype, keys),     k.input("O", f.dtype, queries),
           k.input("dO", f.dtype, queries), k.input("L", f32, {B, H, Sq})} {}

  BackwardInputs of_head(const Index& b, const Index& h, const Index& shared) const {
    return {in.Q[b][h], in.K[b][shared], in.V[b][shared], in.O[b][h], in.dO[b][h], in.L[b][h]};
  }

  Trace k;
  Index B, H, Hkv, Sq, Skv;
  std::vector<Index> queries, keys;
  BackwardInputs in;
};

}  // namespace

Program attention_backward_queries(const AttentionBackwardForm& form, const AttentionTiling& t) {
  BackwardProgram p("attention_backward_queries", form);
  TensorRef dQ = p.k.output("dQ", form.dtype, p.queries);
  const std::array<Index, 3> at = p.k.grid(p.B, p.H, cdiv(p.Sq, t.queries));
  const Index &b = at[0], &h = at[1], &i = at[2];
  const BackwardContext c{p.k, form, t, p.Sq, p.Skv};
  const BackwardInputs x = p.of_head(b, h, h / (p.H / p.Hkv));
  QueryGradient gradient(c, x, i);
  gradient.walk();
  store(dQ[b][h].tile({i, 0}, {t.queries, form.head}), gradient.output());
  return p.k.finish();
}

Program attention_backward_keys(const AttentionBackwardForm& form, const AttentionTiling& t) {
  BackwardProgram p("attention_backward_keys", form);
  TensorRef dK = p.k.output("dK", form.dtype, p.keys), dV = p.k.output("dV", form.dtype, p.keys);
  const std::array<Index, 3> at = p.k.grid(p.B, p.Hkv, cdiv(p.Skv, t.keys));
  const Index &b = at[0], &shared = at[1], &j = at[2];
  const BackwardContext c{p.k, form, t, p.Sq, p.Skv};
  KeyGradients gradients(c, p.in.K[b][shared], p.in.V[b][shared], j);
  const Index group = p.H / p.Hkv;
  for (Index h : p.k.range(group)) gradients.walk(p.of_head(b, shared * group + h, shared));
  store(dK[b][shared].tile({j, 0}, {t.keys, form.head}), gradients.key_gradient());
  store(dV[b][shared].tile({j, 0}, {t.keys, form.head}), gradients.value_gradient());
  return p.k.finish();
}

}  // namespace tw::kernels
