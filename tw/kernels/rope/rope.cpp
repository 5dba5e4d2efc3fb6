#include "tw/kernels/rope/rope.h"

#include <cmath>
#include <fmt/format.h>

#include "tw/base/error.h"
#include "tw/kernels/block_tile.h"
#include "tw/lang/lang.h"

namespace tw::kernels {
namespace {

/// First (second) elements of the pairs of a block of heads: where they lie, as a tile of the type
/// of sums. In f64 products are exact: whether they are contracted into sums changes no bit.
class Pairs {
 public:
  Pairs(Trace& k, const RopeForm& form, const Index& first_head, int64_t heads, DType sums = f64)
      : form_(form),
        head_(k.iota({heads, 1}, 0) + first_head),
        pair_(k.iota({1, form.pairs}, 1)),
        sums_(sums) {}

  Tile element(int which) const {
    return form_.interleaved ? pair_ * 2 + which : pair_ + which * form_.pairs;
  }
  Tile read(const TensorRef& x, int which) const {
    return cast(gather(x, {head_, element(which)}), sums_);
  }
  void write(const TensorRef& y, int which, const Tile& v) const {
    scatter(y, {head_, element(which)}, cast(v, form_.dtype));
  }

 private:
  RopeForm form_;
  Tile head_, pair_;
  DType sums_;
};

RopeForm rope_form(const Problem& p) {
  const int64_t d = p.extent("d");
  if (d < 2 || d % 2 != 0)
    throw UserError(fmt::format("rope of heads of {} elements: wanted pairs", d));
  return {p.dtype, d / 2, p.option("form") == "interleaved"};
}

Problem tokens_problem(int64_t s, int64_t h, int64_t d, DType t, const char* form) {
  return {{{"s", s}, {"h", h}, {"d", d}}, t, {{"form", form}}};
}

std::vector<Problem> rope_sweep() {
  std::vector<Problem> all;
  for (const char* form : {"half", "interleaved"}) {
    for (const DType t : {f32, bf16, f16}) all.push_back(tokens_problem(5, 3, 10, t, form));
    all.push_back(tokens_problem(1, 1, 2, f32, form));
    all.push_back(tokens_problem(3, 9, 64, f32, form));
    all.push_back(tokens_problem(0, 2, 8, f32, form));
    all.push_back(tokens_problem(4, 20, 34, f32, form));
  }
  return all;
}

std::vector<Problem> rope_bench() {
  return {tokens_problem(4096, 32, 128, f32, "half"), tokens_problem(4096, 32, 128, bf16, "half"),
          tokens_problem(4096, 32, 128, f32, "interleaved")};
}

std::vector<Argument> rope_arguments(const Problem& p) {
  const RopeForm f = rope_form(p);
  const std::vector<int64_t> x{p.extent("s"), p.extent("h"), 2 * f.pairs},
      table{p.extent("s"), f.pairs};
  return {{"X", p.dtype, x, false},
          {"cos", f32, table, false},
          {"sin", f32, table, false},
          {"Y", p.dtype, x, true}};
}

Program trace_rope(const Problem& p, const Target& target) {
  const RopeForm form = rope_form(p);
  if (target.gpu() == nullptr) return rope(form);
  return rope_block(form, extent_for(p.extent("h"), 1, std::max<int64_t>(2048 / form.pairs, 1)));
}

}  // namespace

Program rope(const RopeForm& form, int64_t heads) {
  Trace k("rope");
  Index S = k.dim("S"), H = k.dim("H");
  TensorRef X = k.input("X", form.dtype, {S, H, 2 * form.pairs});
  TensorRef cosine = k.input("cos", f32, {S, form.pairs});
  TensorRef sine = k.input("sin", f32, {S, form.pairs});
  TensorRef Y = k.output("Y", form.dtype, {S, H, 2 * form.pairs});

  auto [s, h] = k.grid(S, cdiv(H, heads));
  const Pairs pairs(k, form, h * heads, heads);
  const Tile a = pairs.read(X[s], 0), b = pairs.read(X[s], 1);
  const Tile c = cast(as_row(load(cosine[s].tile({0}, {form.pairs}))), f64);
  const Tile d = cast(as_row(load(sine[s].tile({0}, {form.pairs}))), f64);
  pairs.write(Y[s], 0, a * c - b * d);
  pairs.write(Y[s], 1, b * c + a * d);
  return k.finish();
}

Program rope_block(const RopeForm& form, int64_t heads) {
  Trace k("rope_block");
  Index S = k.dim("S"), H = k.dim("H");
  TensorRef X = k.input("X", form.dtype, {S, H, 2 * form.pairs});
  TensorRef cosine = k.input("cos", f32, {S, form.pairs});
  TensorRef sine = k.input("sin", f32, {S, form.pairs});
  TensorRef Y = k.output("Y", form.dtype, {S, H, 2 * form.pairs});

  const auto at = k.grid(S, cdiv(H, heads));
  const Index s = at[0], h = at[1];  // no bindings: lambdas may not capture those
  const Extents block{heads, form.pairs};
  const Pairs pairs(k, form, h * heads, heads, f32);
  const auto read = [&](int which) {
    if (form.interleaved) return pairs.read(X[s], which);
    return cast(load(X[s].tile({h, which}, block)), f32);
  };
  const auto write = [&](int which, const Tile& v) {
    if (form.interleaved) return pairs.write(Y[s], which, v);
    store(Y[s].tile({h, which}, block), cast(v, form.dtype));
  };
  const Tile a = read(0), b = read(1);
  const Tile c = load(cosine.tile({s, 0}, {1, form.pairs}));
  const Tile d = load(sine.tile({s, 0}, {1, form.pairs}));
  write(0, a * c - b * d);
  write(1, b * c + a * d);
  return k.finish();
}

check::Reference rope_reference(const Problem& p, std::span<const TensorView> in) {
  const int64_t s = p.extent("s"), h = p.extent("h"), d = p.extent("d"), half = d / 2;
  const bool interleaved = p.option("form") == "interleaved";
  const std::vector<double> x = to_doubles(in[0]), c = to_doubles(in[1]), w = to_doubles(in[2]);
  check::ReferenceOutput y{std::vector<double>(x.size()), std::vector<double>(x.size())};
  for (int64_t token = 0; token < s * h; ++token)
    for (int64_t j = 0; j < half; ++j) {
      const int64_t table = token / h * half + j;
      const int64_t first = token * d + (interleaved ? 2 * j : j);
      const int64_t second = first + (interleaved ? 1 : half);
      const double ac = x[first] * c[table], bs = x[second] * w[table];
      const double bc = x[second] * c[table], as = x[first] * w[table];
      y.value[first] = ac - bs;
      y.sum_abs[first] = std::abs(ac) + std::abs(bs);
      y.value[second] = bc + as;
      y.sum_abs[second] = std::abs(bc) + std::abs(as);
    }
  return {{.family = check::Family::gemm, .out = p.dtype, .terms = 2}, {std::move(y)}};
}

std::vector<KernelEntry> rope_entries() {
  return {{"rope",
           "rotary embedding of X[s, h, d] by tables cos, sin[s, d / 2]",
           check::Family::gemm,
           {{"s", 4096, "tokens"}, {"h", 32, "heads"}, {"d", 128, "elements of a head"}},
           {{"form", {"half", "interleaved"}, "pairs are (j, j + d / 2), or (2 j, 2 j + 1)"}},
           {f32, bf16, f16},
           rope_arguments,
           trace_rope,
           rope_reference,
           rope_sweep,
           rope_bench}};
}

}  // namespace tw::kernels
