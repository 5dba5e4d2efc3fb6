#include <fmt/format.h>

#include "tw/num/codec.h"

#include "tests/micro/micro.h"

namespace tw::test {

namespace {

/// Which row lane l gives.
int64_t given_row(int64_t lane) { return lane * 5 % 32; }

/// Element k of 32 rows of 8, all different.
Tensor rows_of_eight() {
  return tensor_of(u16, {32, 8}, [](int64_t i) { return static_cast<double>(1000 + i * 7); });
}

uint64_t u16_at(const Tensor& t, int64_t row, int64_t k) {
  return load_bits(u16, t.view().data, row * 8 + k);
}

MicroKernel load_micro(bool transposed) {
  const std::string function = transposed ? "tw_ldmatrix_x4_trans" : "tw_ldmatrix_x4";
  const Tensor x = rows_of_eight();
  const Tensor want = tensor_of_bits(u32, {4, 32}, [&](int64_t i) {
    const int64_t m = i / 32, along = i % 4 * 2, across = i % 32 / 4;
    const auto element = [&](int64_t e) {
      return transposed ? u16_at(x, given_row(8 * m + along + e), across)
                        : u16_at(x, given_row(8 * m + across), along + e);
    };
    return element(0) | element(1) << 16;
  });
  return MicroMaker("matrices", function.substr(3), {function})
      .input(x)
      .output(want)
      .shared(512)
      .make(1, 32,
            fmt::format(R"(  u16* rows = (u16*)tw_shared();
  for (int i = t; i < 256; i += 32) rows[i] = x0[i];
  tw_sync();
  u32 r[4];
  {}(r, rows + t * 5 % 32 * 8);
  for (int m = 0; m < 4; ++m) x1[m * 32 + t] = r[m];
)",
                        function));
}

MicroKernel store_micro() {
  const Tensor x = tensor_of_bits(u32, {4, 32}, [](int64_t i) {
    return static_cast<uint64_t>(i * 2 + 1) | static_cast<uint64_t>(i * 2 + 2) << 16;
  });
  const Tensor want = zeros(u16, {32, 8});
  for (int64_t i = 0; i < 128; ++i) {
    const int64_t row = given_row(8 * (i / 32) + i % 32 / 4);
    for (int64_t e = 0; e < 2; ++e)
      store_bits(u16, want.view().data, row * 8 + i % 4 * 2 + e,
                 static_cast<uint64_t>(i * 2 + 1 + e));
  }
  return MicroMaker("matrices", "stmatrix_x4", {"tw_stmatrix_x4"})
      .input(x)
      .output(want)
      .shared(512)
      .make(1, 32, R"(  u16* rows = (u16*)tw_shared();
  tw_stmatrix_x4(rows + t * 5 % 32 * 8, x0[t], x0[32 + t], x0[64 + t], x0[96 + t]);
  tw_sync();
  for (int i = t; i < 256; i += 32) x1[i] = rows[i];
)");
}

// ---- products of a warp

/// d = c + a b of 16 x k and 8 x k (a row of b is a column of the product), in registers.
struct SmallProduct {
  std::string name;
  DType a, b, d;
  int64_t k;
};

double small_integer(int64_t i, int64_t of) {
  return static_cast<double>((i * 37 + of * 11) % 15 - (of == 2 ? 0 : 7));
}

/// Of bytes any; else few bits.
Tensor factors(DType t, int64_t rows, int64_t k) {
  return tensor_of(t, {rows, k}, [&](int64_t i) {
    if (t == u8) return static_cast<double>(i * 59 % 256);
    if (t == i8) return static_cast<double>(i * 59 % 256 - 128);
    return small_integer(i, rows == 16 ? 0 : 1);
  });
}

/// Sums wrap where they are integers.
Tensor sums(const Tensor& a, const Tensor& b, const Tensor& c, int64_t columns) {
  const int64_t k = a.dims()[1];
  return tensor_of(c.dtype(), c.dims(), [&](int64_t i) {
    double sum = get(c, i);
    for (int64_t j = 0; j < k; ++j)
      sum += get(a, i / columns * k + j) * get(b, i % columns * k + j);
    return is_int(c.dtype()) ? static_cast<double>(static_cast<int32_t>(static_cast<int64_t>(sum)))
                             : sum;
  });
}

MicroKernel product_micro(const SmallProduct& p) {
  const Tensor a = factors(p.a, 16, p.k), b = factors(p.b, 8, p.k);
  const Tensor c = tensor_of(p.d, {16, 8}, [&](int64_t i) {
    return is_int(p.d) ? (i % 3 == 0   ? 2147483000.0
                          : i % 3 == 1 ? -2147483000.0
                                       : 5.0 * double(i))
                       : small_integer(i, 2);
  });
  // A word holds so many elements of k; its second half of k is in the next register.
  const int64_t per = 4 / bytes(p.a);
  const std::string type = is_int(p.d) ? "i32" : "f32";
  return MicroMaker("matrices", p.name.substr(3), {p.name})
      .input(a)
      .input(b)
      .input(c)
      .output(sums(a, b, c, 8))
      .make(1, 32,
            fmt::format(R"(  const u32 *a = (const u32*)x0, *b = (const u32*)x1;
  const int row = t / 4, column = t % 4, words = {1};
  const u32 f[4] = {{a[row * words + column], a[(row + 8) * words + column],
                    a[row * words + column + 4], a[(row + 8) * words + column + 4]}};
  const u32 g[2] = {{b[row * words + column], b[row * words + column + 4]}};
  {2} d[4];
  for (int i = 0; i < 4; ++i) d[i] = x2[(row + i / 2 * 8) * 8 + column * 2 + i % 2];
  {0}(d, f, g);
  for (int i = 0; i < 4; ++i) x3[(row + i / 2 * 8) * 8 + column * 2 + i % 2] = d[i];
)",
                        p.name, p.k / per, type));
}

/// The last 13 bits of a tf32 mean nothing.
MicroKernel tf32_micro() {
  MicroKernel k = product_micro({"tw_mma_m16n8k8_f32_tf32", f32, f32, f32, 8});
  for (size_t arg = 0; arg < 2; ++arg) {
    const Tensor& x = k.tensors[arg];
    for (int64_t i = 0; i < x.count(); ++i)
      store_bits(f32, x.view().data, i, load_bits(f32, x.view().data, i) | (i * 977 & 0x1fff));
  }
  return k;
}

MicroKernel f64_micro() {
  const auto fraction = [](int64_t i) { return static_cast<double>(i * 37 % 101 - 50) / 8; };
  const Tensor a = tensor_of(f64, {8, 4}, fraction), b = tensor_of(f64, {8, 4}, fraction),
               c = tensor_of(f64, {8, 8}, fraction);
  return MicroMaker("matrices", "mma_m8n8k4_f64", {"tw_mma_m8n8k4_f64"})
      .input(a)
      .input(b)
      .input(c)
      .output(sums(a, b, c, 8))
      .make(1, 32, R"(  const int at = t / 4 * 8 + t % 4 * 2;
  f64 d[2] = {x2[at], x2[at + 1]};
  tw_mma_m8n8k4_f64(d, x0[t], x1[t]);
  x3[at] = d[0];
  x3[at + 1] = d[1];
)");
}

}  // namespace

std::vector<MicroKernel> matrix_micros() {
  std::vector<MicroKernel> all = {load_micro(false),
                                  load_micro(true),
                                  store_micro(),
                                  product_micro({"tw_mma_m16n8k16_f32_bf16", bf16, bf16, f32, 16}),
                                  product_micro({"tw_mma_m16n8k16_f32_f16", f16, f16, f32, 16}),
                                  tf32_micro(),
                                  f64_micro()};
  for (const DType a : {i8, u8}) {
    for (const DType b : {i8, u8}) {
      const auto letter = [](DType t) { return t == i8 ? "s8" : "u8"; };
      all.push_back(product_micro(
          {fmt::format("tw_mma_m16n8k32_i32_{}_{}", letter(a), letter(b)), a, b, i32, 32}));
    }
  }
  return all;
}

}  // namespace tw::test
