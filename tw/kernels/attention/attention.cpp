#include "tw/kernels/attention/attention.h"

#include <cmath>
#include <optional>

#include "tw/lang/lang.h"

namespace tw::kernels {
namespace {

/// One instance: a block of queries of one head. Scores, weights and sums have keys or elements of
/// a head along their rows and queries along their columns, so that what belongs to one query lies
/// in one lane; or the other way round, as matrix units have it.
class QueryBlock {
 public:
  struct Operands {
    TensorRef K, V;  ///< of the head
    std::optional<TensorRef> bias;
    Index block, Sq, Skv;
  };

  QueryBlock(Trace& k, const AttentionForm& form, const AttentionTiling& t, const TensorRef& Q,
             Operands x)
      : k_(k),
        form_(form),
        t_(t),
        x_(std::move(x)),
        scale_(1 / std::sqrt(static_cast<float>(form.head))),
        queries_(queries(load(Q.tile({x_.block, 0}, {t.queries, form.head})))),
        top_(k.full(f32, by_query(1), -INFINITY).named("top")),
        sum_(k.zeros(f32, by_query(1)).named("sum")),
        out_(k.zeros(f32, by_query(form.head)).named("out")) {}

  /// Blocks that all queries see whole, then those at the edge of what is seen.
  void walk() {
    const Index first = x_.block * t_.queries + x_.Skv - x_.Sq;  // last key of the first query
    Index whole = x_.Skv / t_.keys, all = cdiv(x_.Skv, t_.keys);
    if (form_.causal) {
      walk(min(whole, max((first + 1) / t_.keys, 0)),
           min(all, max(cdiv(first + t_.queries, t_.keys), 0)));
    } else {
      walk(whole, all);
    }
  }

  Tile output() const {
    Tile inverse = where(eq(sum_, 0.f), 0.f, 1.f / sum_);
    return cast(turned(out_ * inverse), form_.dtype);
  }
  Tile log_sum() const {
    return reshape(where(eq(top_, -INFINITY), top_, top_ + log(sum_)), {t_.queries});
  }

 private:
  /// The extents of n elements for each query.
  Extents by_query(int64_t n) const {
    return t_.narrow ? Extents{t_.queries, n} : Extents{n, t_.queries};
  }
  /// A tile by query as a tensor has it, and back.
  Tile turned(const Tile& x) const { return t_.narrow ? x : transpose(x); }
  int queries_axis() const { return t_.narrow ? 0 : 1; }
  Tile queries(const Tile& q) const { return t_.narrow ? q : transpose(cast(q, f32)) * scale_; }

  void walk(const Index& whole, const Index& all) {
    for (Index j : k_.range(whole)) step(j, scores(j));
    for (Index j : k_.range(whole, all)) step(j, where(seen(j), scores(j), -INFINITY));
  }

  Tile block(const TensorRef& x, const Index& j) const {
    Tile all = load(x.tile({j, 0}, {t_.keys, form_.head}));
    return t_.narrow ? all : cast(all, f32);
  }

  Tile scores(const Index& j) const {
    Tile keys = block(x_.K, j), none = k_.zeros(f32, by_query(t_.keys));
    Tile s = t_.narrow ? dot(queries_, transpose(keys), none) * scale_ : dot(keys, queries_, none);
    if (form_.softcap > 0) s = tanh_fast(s / form_.softcap) * form_.softcap;
    if (!x_.bias) return s;
    return s + turned(cast(load(x_.bias->tile({x_.block, j}, {t_.queries, t_.keys})), f32));
  }

  Tile seen(const Index& j) const {
    const int keys_axis = 1 - queries_axis();
    const Extents keys = t_.narrow ? Extents{1, t_.keys} : Extents{t_.keys, 1};
    Tile key = k_.iota(keys, keys_axis) + j * t_.keys;
    Tile inside = key < x_.Skv;
    if (!form_.causal) return inside;
    Tile last = k_.iota(by_query(1), queries_axis()) + (x_.block * t_.queries + x_.Skv - x_.Sq);
    return inside & (key <= last);
  }

  void step(const Index& j, const Tile& s) {
    Tile top = max(top_, t_.narrow ? row_max(s) : col_max(s));
    Tile base = where(eq(top, -INFINITY), 0.f, top);  // nothing seen yet: all weights are 0
    Tile weights = exp(s - base);
    Tile shrink = exp(top_ - base);
    sum_ = sum_ * shrink + (t_.narrow ? row_sum(weights) : col_sum(weights));
    Tile values = block(x_.V, j), before = out_ * shrink;
    out_ = t_.narrow ? dot(cast(weights, form_.dtype), values, before)
                     : dot(transpose(values), weights, before);
    top_ = top;
  }

  Trace& k_;
  const AttentionForm& form_;
  const AttentionTiling& t_;
  const Operands x_;
  const float scale_;
  Tile queries_, top_, sum_, out_;
};

}  // namespace

AttentionTiling attention_tiling(const AttentionForm& form, const Target& target) {
  if (target.gpu() == nullptr || form.dtype == f32) return {};
  return {128, 64, true};
}

Program attention(const AttentionForm& form, const AttentionTiling& t) {
  Trace k("attention");
  Index B = k.dim("B"), H = k.dim("H"), Hkv = k.dim("Hkv"), Sq = k.dim("Sq"), Skv = k.dim("Skv");
  TensorRef Q = k.input("Q", form.dtype, {B, H, Sq, form.head});
  TensorRef K = k.input("K", form.dtype, {B, Hkv, Skv, form.head});
  TensorRef V = k.input("V", form.dtype, {B, Hkv, Skv, form.head});
  std::optional<TensorRef> bias;
  if (form.bias) bias = k.input("bias", form.dtype, {B, H, Sq, Skv});
  TensorRef O = k.output("O", form.dtype, {B, H, Sq, form.head});
  TensorRef L = k.output("L", f32, {B, H, Sq});

  const std::array<Index, 3> at = k.grid(B, H, cdiv(Sq, t.queries));
  const Index &b = at[0], &h = at[1], &i = at[2];
  const Index shared = h / (H / Hkv);
  if (bias) bias = (*bias)[b][h];
  QueryBlock block(k, form, t, Q[b][h], {K[b][shared], V[b][shared], bias, i, Sq, Skv});
  block.walk();
  store(O[b][h].tile({i, 0}, {t.queries, form.head}), block.output());
  store(L[b][h].tile({i}, {t.queries}), block.log_sum());
  return k.finish();
}

}  // namespace tw::kernels
