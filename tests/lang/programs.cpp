#include "tests/lang/programs.h"

#include <cmath>
#include <limits>

#include "tw/lang/lang.h"

namespace tw::test {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kLog2e = 1.44269504f;

struct GemmTiling {
  int bm = 128, bn = 128, bk = 64;
};

Program gemm_bias_gelu(const GemmTiling& t) {
  Trace k("gemm_bias_gelu");
  Index M = k.dim("M"), N = k.dim("N"), K = k.dim("K");
  TensorRef A = k.input("A", f16, {M, K});
  TensorRef B = k.input("B", f16, {K, N});
  TensorRef bias = k.input("bias", f32, {N});
  TensorRef C = k.output("C", f16, {M, N});

  auto [m, n] = k.grid(cdiv(M, t.bm), cdiv(N, t.bn));

  Tile acc = k.zeros(f32, {t.bm, t.bn}).named("acc");
  for (Index i : k.range(cdiv(K, t.bk))) {
    Tile a = load(A.tile({m, i}, {t.bm, t.bk}));
    Tile b = load(B.tile({i, n}, {t.bk, t.bn}));
    acc = dot(a, b, acc);
  }

  Tile row = load(bias.tile({n}, {t.bn}));
  Tile y = gelu_tanh(acc + as_row(row));
  store(C.tile({m, n}, {t.bm, t.bn}), cast(y, f16));
  return k.finish();
}

Program row_softmax(int rows, int cols) {
  Trace k("row_softmax");
  Index M = k.dim("M"), N = k.dim("N");
  TensorRef X = k.input("X", f32, {M, N});
  TensorRef Y = k.output("Y", f32, {M, N});

  auto [r] = k.grid(cdiv(M, rows));

  Tile m = k.full(f32, {rows, 1}, -kInf).named("m");
  Tile l = k.zeros(f32, {rows, 1}).named("l");
  for (Index j : k.range(cdiv(N, cols))) {  // one pass for the running max and sum
    Tile x = load(X.tile({r, j}, {rows, cols}), {.pad = -kInf}) * kLog2e;
    Tile m_new = max(m, row_max(x));
    Tile base = where(eq(m_new, -kInf), 0.f, m_new);  // a slice of only -inf must not make NaN
    l = l * exp2(m - base) + row_sum(exp2(x - base));
    m = m_new;
  }
  for (Index j : k.range(cdiv(N, cols))) {
    Tile x = load(X.tile({r, j}, {rows, cols}), {.pad = -kInf}) * kLog2e;
    store(Y.tile({r, j}, {rows, cols}), exp2(x - m) / l);
  }
  return k.finish();
}

Program flash_forward(int bq, int bk, int D, bool causal) {
  Trace k(causal ? "flash_forward_causal" : "flash_forward");
  Index H = k.dim("H"), Sq = k.dim("Sq"), Sk = k.dim("Sk");
  TensorRef Q = k.input("Q", f16, {H, Sq, D}), K = k.input("K", f16, {H, Sk, D});
  TensorRef V = k.input("V", f16, {H, Sk, D}), O = k.output("O", f16, {H, Sq, D});

  auto [i, h] = k.grid(cdiv(Sq, bq), H);
  const float scale = kLog2e / std::sqrt(static_cast<float>(D));

  Tile q = load(Q[h].tile({i, 0}, {bq, D})).named("q");
  Tile m = k.full(f32, {bq, 1}, -kInf).named("m");
  Tile l = k.zeros(f32, {bq, 1}).named("l");
  Tile o = k.zeros(f32, {bq, D}).named("o");
  Tile q_row = k.iota({bq, 1}, 0) + i * bq;

  Index last = causal ? min((i + 1) * bq + (Sk - Sq), Sk) : Sk;
  for (Index j : k.range(cdiv(last, bk))) {
    Tile kt = load(K[h].tile({j, 0}, {bk, D}));
    Tile s = dot(q, transpose(kt), k.zeros(f32, {bq, bk})) * scale;

    Tile k_col = k.iota({1, bk}, 1) + j * bk;
    Tile inside = k_col < Sk;
    Tile keep = causal ? inside & (k_col <= q_row + (Sk - Sq)) : inside;  // decided while tracing
    s = where(keep, s, -kInf);

    Tile m_new = max(m, row_max(s));
    Tile base = where(eq(m_new, -kInf), 0.f, m_new);
    Tile p = exp2(s - base);
    Tile alpha = exp2(m - base);
    l = l * alpha + row_sum(p);
    m = m_new;

    Tile v = load(V[h].tile({j, 0}, {bk, D}));
    o = dot(cast(p, f16), v, o * alpha);
  }
  o = where(l > 0.f, o / l, 0.f);  // a row that sees no key gives 0
  store(O[h].tile({i, 0}, {bq, D}), cast(o, f16));
  return k.finish();
}

Program carried_through_when() {
  Trace k("carried_through_when");
  Index N = k.dim("N");
  TensorRef X = k.input("X", f32, {N}), Y = k.output("Y", f32, {N});
  auto [p] = k.grid(1);
  Tile acc = k.zeros(f32, {256}).named("acc");
  Tile unchanged = k.full(f32, {256}, 2).named("two");
  for (Index i : k.range(cdiv(N, 256))) {
    Tile x = load(X.tile({i}, {256})) * unchanged;
    k.when(
        i < 4, [&] { acc = acc + x; }, [&] { acc = acc - x; });
  }
  store(Y.tile({p}, {256}), acc);
  return k.finish();
}

// Index and value of the largest element of each row, blocks of columns at a time.
Program row_argmax(int rows, int cols) {
  Trace k("row_argmax");
  Index M = k.dim("M"), N = k.dim("N");
  TensorRef X = k.input("X", f32, {M, N});
  TensorRef I = k.output("I", i64, {M}), V = k.output("V", f32, {M});
  auto [r] = k.grid(cdiv(M, rows));
  Tile value = k.full(f32, {rows, 1}, -kInf), index = k.zeros(i64, {rows, 1});
  for (Index j : k.range(cdiv(N, cols))) {
    Tile x = load(X.tile({r, j}, {rows, cols}), {.pad = -kInf});
    Tile at = broadcast(k.iota({1, cols}, 1) + j * cols, {rows, cols});
    auto [v, i] = argmax_pair({value, index}, reduce({x, at}, 1, argmax_pair));
    value = v;
    index = i;
  }
  store(I.tile({r}, {rows}), reshape(index, {rows}));
  store(V.tile({r}, {rows}), reshape(value, {rows}));
  return k.finish();
}

// Operands of one expression are evaluated in any order; by-value parameters are made in any order.
Tile mix(Tile a, Tile b, Trace& k, const Index& n) {
  for (Index i : k.range(n)) {
    b = b * 2 + i;
    a = a + b;
  }
  return a - b;
}

Program operand_order() {
  Trace k("operand_order");
  Index N = k.dim("N");
  TensorRef X = k.input("X", f32, {N}), Y = k.inout("Y", f32, {N});
  auto [p] = k.grid(cdiv(N, 48));
  Tile x = exp(load(X.tile({p}, {48}))) - tanh(load(X.window({p * 48 - 1}, {48}), {.pad = 1}));
  Tile y = mix(sqrt(x) / erf(x), max(x, p) * min(2.5, x), k, N % 7);
  store(Y.tile({p}, {48}), y + load(Y.tile({p}, {48})) * where(x < y, y, 0.5));
  return k.finish();
}

Program integers() {
  Trace k("integers");
  Index N = k.dim("N", {.multiple_of = 8}), shift = k.dim("shift");
  TensorRef X = k.input("X", u32, {3, N}), Y = k.output("Y", u32, {3, N}),
            Z = k.output("Z", e4m3, {N});
  auto [row, p, q] = k.grid(3, cdiv(N, 96), 2);
  Tile x = load(X[row].tile({p}, {96}));
  x ^= x >> shift;
  x = ((x % 10 + 1) << 2 | (x / 3 & 0xff)) - q;
  x += ~x;
  store(Y[row].tile({p}, {96}), where(ne(x & 1, 0), x, 4000000000u));
  Tile f = sigmoid(cast(x, f32)) - rsqrt(bitcast(x, f32));
  store(Z.tile({p}, {96}), cast(f, e4m3, {.rounding = Rounding::SR, .saturate = true, .seed = p}));
  return k.finish();
}

}  // namespace

std::vector<NamedProgram> programs() {
  std::vector<NamedProgram> all;
  for (Program p : {gemm_bias_gelu({}), row_softmax(4, 1024), flash_forward(128, 96, 64, false),
                    flash_forward(128, 96, 64, true), carried_through_when(), row_argmax(16, 80),
                    operand_order(), integers()})
    all.push_back({p.name, p});
  return all;
}

}  // namespace tw::test
