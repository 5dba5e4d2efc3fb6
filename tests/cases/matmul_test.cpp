#include <limits>

#include "tw/jit/kernel.h"

#include "tests/cases/backends.h"

namespace tw::test {

using check::Guarded;

/// Runs the product on every backend (or only the CPU) and compares with plain loops in double.
static void expect_product(const TensorView& a, const TensorView& b, DType out,
                           const std::vector<Backend>& on = backends()) {
  const check::Reference want = matmul_reference(a, b, out);
  for (const Backend& backend : on) {
    SCOPED_TRACE(backend.name);
    Guarded c(out, {a.dims[0], b.dims[1]});
    backend.run(matmul(a.dtype, out, 32, 48, 32), {a, b}, {c});
    EXPECT_TRUE(matches(c, want));
    EXPECT_EQ(c.damage(), "");
  }
}

static Guarded transposed(DType t, int64_t rows, int64_t cols, uint64_t seed) {
  Guarded out(t, {rows, cols}, {1, rows});
  fill_normal(out, seed);
  return out;
}

// Half precision, column-major, odd M and K: exact integers.
TEST(Cases, MM_01) {
  Guarded a(f16, {2, 3}, {1, 2}), b(f16, {3, 4}, {1, 3});
  a.fill([](int64_t i) { return i; });
  b.fill([](int64_t i) { return i; });
  for (const Backend& backend : backends()) {
    SCOPED_TRACE(backend.name);
    Guarded c(f16, {2, 4}, {1, 2});
    backend.run(matmul(f16, f16, 16, 16, 16), {a, b}, {c});
    EXPECT_EQ(values(c), (std::vector<double>{20, 23, 26, 29, 56, 68, 80, 92}));
  }
}

// A row count that is no multiple of 8, off the contiguous axis.
TEST(Cases, MM_02) {
  Guarded a(f16, {1471, 512}), b(f16, {512, 256});
  fill_normal(a, 2);
  fill_normal(b, 2);
  expect_product(a, b, f16, {cpu()});
}

// Both transposed, K no multiple of a vector.
TEST(Cases, MM_03) {
  const int64_t shapes[][3] = {{128, 128, 133}, {128, 1024, 3}, {1024, 128, 1}};
  for (auto [m, n, k] : shapes) {
    SCOPED_TRACE(testing::Message() << m << " " << n << " " << k);
    expect_product(transposed(f16, m, k, 3), transposed(f16, k, n, 3), f16, {cpu()});
  }
}

// K = 0: zeros, or C as it was.
TEST(Cases, MM_04) {
  for (DType t : {f32, f16}) {
    Guarded a(t, {16, 0}), b(t, {0, 16});
    for (const Backend& backend : backends()) {
      SCOPED_TRACE(backend.name);
      Guarded c(t, {16, 16});
      backend.run(matmul(t, t, 32, 32, 32), {a, b}, {c});
      EXPECT_EQ(values(c), std::vector<double>(256, 0));
      c.fill([](int64_t i) { return i; });
      const std::vector<double> before = values(c);
      backend.run(matmul(t, t, 32, 32, 32, true), {a, b}, {c});
      EXPECT_EQ(values(c), before);
    }
  }
}

// A row pitch of 1022 bytes.
TEST(Cases, MM_05) {
  Guarded a(bf16, {64, 511}), b(bf16, {511, 64});
  fill_normal(a, 4);
  fill_normal(b, 4);
  expect_product(a, b, bf16);
}

// A batch of padded operands that are not K-major; the padding is NaN and must not be read.
TEST(Cases, MM_06) {
  const int64_t groups = 5, m = 3, n = 7, depth = 13;
  Trace k("grouped");
  TensorRef A = k.input("A", bf16, {groups, m, depth}), B = k.input("B", bf16, {groups, depth, n});
  TensorRef C = k.output("C", bf16, {groups, m, n});
  auto [g] = k.grid(groups);
  Tile a = load(A[g].tile({0, 0}, {m, depth})), b = load(B[g].tile({0, 0}, {depth, n}));
  store(C[g].tile({0, 0}, {m, n}), cast(dot(a, b, k.zeros(f32, {m, n})), bf16));
  const Program p = k.finish();

  auto padded = [&](int64_t used, uint64_t seed) {
    Tensor memory = host_tensor(bf16, {groups, depth, 8});
    for (int64_t i = 0; i < memory.count(); ++i)
      set(memory, i, std::numeric_limits<double>::quiet_NaN());
    Tensor inside = memory.slice(2, 0, used);
    fill_normal(inside, seed);
    return inside;
  };
  Tensor left = padded(m, 5).transpose(1, 2), right = padded(n, 6);
  for (const Backend& backend : backends()) {
    SCOPED_TRACE(backend.name);
    Guarded c(bf16, {groups, m, n});
    backend.run(p, {left, right}, {c});
    for (int64_t i = 0; i < groups; ++i) {
      auto matrix = [i](const Tensor& t) { return t.slice(0, i, i + 1).view(); };
      auto flat = [](TensorView v) {
        return TensorView{v.data, v.dtype, {v.dims[1], v.dims[2]}, {v.strides[1], v.strides[2]}};
      };
      TensorView got = c.view();
      got.data = static_cast<char*>(got.data) + i * m * n * bytes(bf16);
      const TensorView out{got.data, bf16, {m, n}, {n, 1}};
      EXPECT_TRUE(matches(out, matmul_reference(flat(matrix(left)), flat(matrix(right)), bf16)));
    }
  }
}

// A batched outer product of bytes with an activation on it: exact, all columns, all batches.
TEST(Cases, MM_07) {
  const int64_t batch = 3, m = 30, n = 20;
  Trace k("outer_leaky_relu");
  TensorRef A = k.input("A", i8, {batch, m, 1}), B = k.input("B", i8, {batch, 1, n});
  TensorRef C = k.output("C", f32, {batch, m, n});
  auto [g, i, j] = k.grid(batch, cdiv(m, 8), cdiv(n, 8));
  Tile a = load(A[g].tile({i, 0}, {8, 1})), b = load(B[g].tile({0, j}, {1, 8}));
  Tile y = cast(dot(a, b, k.zeros(i32, {8, 8})), f32);
  store(C[g].tile({i, j}, {8, 8}), where(y < 0.f, y * 0.5f, y));
  const Program p = k.finish();

  Guarded left(i8, {batch, m, 1}), right(i8, {batch, 1, n});
  left.fill([](int64_t e) { return (e * 37 + 7) % 255 - 127; });
  right.fill([](int64_t e) { return (e * 53 + 7) % 255 - 127; });
  for (const Backend& backend : backends()) {
    SCOPED_TRACE(backend.name);
    Guarded c(f32, {batch, m, n});
    backend.run(p, {left, right}, {c});
    for (int64_t e = 0; e < batch * m * n; ++e) {
      const double product = get(left, e / n) * get(right, e / (m * n) * n + e % n);
      ASSERT_EQ(get(c, e), product < 0 ? product / 2 : product) << e;
    }
  }
}

// A linear layer on zero rows.
TEST(Cases, MOE_03) {
  Guarded a(f32, {0, 1030}), b(f32, {1030, 768});
  fill_normal(b, 1);
  expect_product(a, b, f32);
}

// No part of a matrix of 100 rows lies outside it, whatever the tile.
TEST(Cases, LANG_03) {
  Guarded a(f32, {100, 100}), b(f32, {100, 100});
  fill_normal(a, 1);
  fill_normal(b, 2);
  const check::Reference want = matmul_reference(a, b, f32);
  for (const Backend& backend : backends()) {
    SCOPED_TRACE(backend.name);
    Guarded c(f32, {100, 100});
    backend.run(matmul(f32, f32, 16, 16, 16), {a, b}, {c});
    EXPECT_TRUE(matches(c, want));
    EXPECT_EQ(c.damage() + a.damage() + b.damage(), "");
  }
}

// A row's bits do not depend on the rows beside it.
TEST(Cases, NUM_02) {
  Guarded b(bf16, {2048, 2048}), many(bf16, {1024, 2048});
  fill_normal(b, 2);
  fill_normal(many, 2);
  const Kernel product = compile(matmul(bf16, bf16, 64, 128, 256), Device::open("cpu:0"),
                                 {.mode = Mode::batch_invariant});
  std::string first;
  for (int64_t m : {1, 2, 17, 33, 128, 257, 1024}) {
    const TensorView a{many.view().data, bf16, {m, 2048}, {2048, 1}};
    Guarded c(bf16, {m, 2048});
    product({a, b}, {c});
    const std::string row = c.contents().substr(0, 2048 * bytes(bf16));
    if (first.empty()) first = row;
    EXPECT_TRUE(row == first) << m << " rows";
  }
}

}  // namespace tw::test
