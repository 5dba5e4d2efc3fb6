// y[b, n] = sum over k of x[b, k] (q[n, k] - 8) s[n, k / 128]: q of 4 bits, b < NB <= 8.
// q is packed [n / 16][k / 64][32 lanes][4 words]; of lane 4 g + c word w holds, for
// k = 64 block + 16 c + 4 w + e, in nibbles 0, 4: row g, e = 0, 1; 1, 5: row g + 8, e = 0, 1;
// 2, 6: row g, e = 2, 3; 3, 7: row g + 8, e = 2, 3.
// A block has 16 rows, its WPB warps share K.
struct Args { void* data[4]; i64 dims[3]; i64 strides[10]; };
#define KPW (K / WPB)  // multiple of 128
#define STEPS (KPW / 64)
typedef Pack<u32, 4> Word;
__device__ __forceinline__ f32 low(u32 x) { return __builtin_bit_cast(f32, x << 16); }
/// Two nibbles 16 bits apart less 8: with 0x43 in front of them they are 128 + q.
__device__ __forceinline__ u32 less_8(u32 x) {
  const u32 both = (x & 0x000f000f) | 0x43004300;
  return tw_pack_bf16(low(both) - 136.0f, __builtin_bit_cast(f32, both & 0xffff0000u) - 136.0f);
}
__device__ __forceinline__ void multiply(f32 (&d)[4], u32 q, u32 x0, u32 x1) {
  const u32 a[4] = {less_8(q), less_8(q >> 4), less_8(q >> 8), less_8(q >> 12)}, b[2] = {x0, x1};
  tw_mma_m16n8k16_f32_bf16(d, a, b);
}
extern "C" __global__ void __launch_bounds__(WPB * 32) tw_gemv(const __grid_constant__ Args args) {
  f32* part = (f32*)tw_shared();  // [WPB][16][NB]
  const int lane = tw_thread() % 32, warp = tw_thread() / 32, g = lane / 4, c = lane % 4;
  const i64 tile = tw_block(), n = args.dims[1];
  const Word* q = (const Word*)args.data[0] + (tile * (K / 64) + warp * STEPS) * 32 + lane;
  const u16* s = (const u16*)args.data[1];
  const u16* x = (const u16*)args.data[2];
  u16* y = (u16*)args.data[3];
  Word v[STEPS];
#pragma unroll
  for (int i = 0; i < STEPS; ++i) v[i] = q[i * 32];
  f32 out[4] = {0, 0, 0, 0};
#pragma unroll
  for (int group = 0; group < STEPS / 2; ++group) {  // of 128 that have a scale
    f32 d[4] = {0, 0, 0, 0};
    const int at = warp * (KPW / 128) + group;
    const f32 s0 = low(s[(tile * 16 + g) * (K / 128) + at]);
    const f32 s1 = low(s[(tile * 16 + g + 8) * (K / 128) + at]);
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      const int i = group * 2 + h;
      Word x0 = {{0, 0, 0, 0}}, x1 = {{0, 0, 0, 0}};
      if (NB == 8 || g < NB) {
        const Word* from = (const Word*)(x + (i64)g * K + warp * KPW + i * 64 + c * 16);
        x0 = from[0];
        x1 = from[1];
      }
      multiply(d, v[i].v[0], x0.v[0], x0.v[1]);
      multiply(d, v[i].v[1], x0.v[2], x0.v[3]);
      multiply(d, v[i].v[2], x1.v[0], x1.v[1]);
      multiply(d, v[i].v[3], x1.v[2], x1.v[3]);
    }
    out[0] += s0 * d[0];
    out[1] += s0 * d[1];
    out[2] += s1 * d[2];
    out[3] += s1 * d[3];
  }
#pragma unroll
  for (int j = 0; j < 2; ++j) {
    if (2 * c + j >= NB) continue;
    part[(warp * 16 + g) * NB + 2 * c + j] = out[j];
    part[(warp * 16 + g + 8) * NB + 2 * c + j] = out[2 + j];
  }
  tw_sync();
  for (int t = tw_thread(); t < 16 * NB; t += WPB * 32) {
    const int r = t % 16, b = t / 16;
    f32 sum = 0;
#pragma unroll
    for (int w = 0; w < WPB; ++w) sum += part[(w * 16 + r) * NB + b];
    y[(i64)b * n + tile * 16 + r] = (u16)tw_pack_bf16(sum, 0);
  }
}
