// Rows of bf16: y = softmax(x), or y = x / rms(x) w. One pass of 16-byte loads.
//   COLS  TPR threads a row  RPB rows a block
struct Args { void* data[3]; i64 dims[2]; i64 strides[5]; };
#ifdef __CUDACC__
#define SQRT sqrtf
#else
#define SQRT __builtin_sqrtf
#endif
#define PER (COLS / (TPR * 8))  // 16-byte words of a thread
#define THREADS (TPR * RPB)
typedef Pack<u32, 4> Word;
__device__ __forceinline__ f32 low(u32 x) { return __builtin_bit_cast(f32, x << 16); }
__device__ __forceinline__ f32 high(u32 x) { return __builtin_bit_cast(f32, x & 0xffff0000u); }
__device__ __forceinline__ f32 larger(f32 a, f32 b) { return a > b ? a : b; }
template <bool Max> __device__ __forceinline__ f32 of_row(f32 x, f32* part, int row, int t) {
#pragma unroll
  for (int by = (TPR < 32 ? TPR : 32) / 2; by > 0; by /= 2) {
    const f32 y = tw_shuffle_xor(x, by);
    x = Max ? larger(x, y) : x + y;
  }
  if (TPR > 32) {
    if (t % 32 == 0) part[row * (TPR / 32) + t / 32] = x;
    tw_sync();
    x = part[row * (TPR / 32)];
#pragma unroll
    for (int i = 1; i < TPR / 32; ++i) {
      const f32 y = part[row * (TPR / 32) + i];
      x = Max ? larger(x, y) : x + y;
    }
    tw_sync();
  }
  return x;
}
__device__ __forceinline__ void load(const u16* x, bool on, int t, Word (&v)[PER]) {
#pragma unroll
  for (int i = 0; i < PER; ++i) {
    v[i] = on ? *(const Word*)(x + (i * TPR + t) * 8) : Word{{0, 0, 0, 0}};
  }
}
extern "C" __global__ void __launch_bounds__(THREADS) tw_softmax(const __grid_constant__ Args args) {
  f32* part = (f32*)tw_shared();
  const int row = tw_thread() / TPR, t = tw_thread() % TPR;
  const i64 rows = args.dims[0];
  for (i64 r0 = tw_block() * RPB; r0 < rows; r0 += tw_blocks() * RPB) {
    const i64 r = r0 + row;
    const bool on = r < rows;
    Word v[PER];
    f32 f[PER * 8];
    load((const u16*)args.data[0] + r * COLS, on, t, v);
    f32 most = -3e38f;
#pragma unroll
    for (int i = 0; i < PER * 4; ++i) {
      f[2 * i] = low(v[i / 4].v[i % 4]);
      f[2 * i + 1] = high(v[i / 4].v[i % 4]);
      most = larger(most, larger(f[2 * i], f[2 * i + 1]));
    }
    most = of_row<true>(most, part, row, t);
    const f32 shift = most * 1.4426950408889634f;
    f32 sum = 0;
#pragma unroll
    for (int i = 0; i < PER * 8; ++i) {
      f[i] = tw_exp2_approx(f[i] * 1.4426950408889634f - shift);
      sum += f[i];
    }
    sum = of_row<false>(sum, part, row, t);
    const f32 by = 1 / sum;
#pragma unroll
    for (int i = 0; i < PER; ++i) {
#pragma unroll
      for (int j = 0; j < 4; ++j)
        v[i].v[j] = tw_pack_bf16(f[i * 8 + 2 * j] * by, f[i * 8 + 2 * j + 1] * by);
      if (on) *(Word*)((u16*)args.data[1] + r * COLS + (i * TPR + t) * 8) = v[i];
    }
  }
}
extern "C" __global__ void __launch_bounds__(THREADS) tw_rmsnorm(const __grid_constant__ Args args) {
  f32* part = (f32*)tw_shared();
  const int row = tw_thread() / TPR, t = tw_thread() % TPR;
  const i64 rows = args.dims[0];
  Word w[PER];
  load((const u16*)args.data[2], true, t, w);
  for (i64 r0 = tw_block() * RPB; r0 < rows; r0 += tw_blocks() * RPB) {
    const i64 r = r0 + row;
    const bool on = r < rows;
    Word v[PER];
    load((const u16*)args.data[0] + r * COLS, on, t, v);
    f32 sum = 0;
#pragma unroll
    for (int i = 0; i < PER * 4; ++i) {
      const f32 a = low(v[i / 4].v[i % 4]), b = high(v[i / 4].v[i % 4]);
      sum += a * a + b * b;
    }
    sum = of_row<false>(sum, part, row, t);
    const f32 by = 1 / SQRT(sum / COLS + 1e-5f);
#pragma unroll
    for (int i = 0; i < PER; ++i) {
#pragma unroll
      for (int j = 0; j < 4; ++j)
        v[i].v[j] = tw_pack_bf16(low(v[i].v[j]) * by * low(w[i].v[j]),
                                 high(v[i].v[j]) * by * high(w[i].v[j]));
      if (on) *(Word*)((u16*)args.data[1] + r * COLS + (i * TPR + t) * 8) = v[i];
    }
  }
}
