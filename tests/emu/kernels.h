#pragma once

#include <string>

namespace tw::test {

/// Bodies of kernels as emitted text has them, for the emulator's tests.
inline const char* const kSoftmaxText = R"(
struct Args { void* data[2]; i64 dims[2]; i64 strides[4]; };
__device__ __forceinline__ f32 larger(f32 a, f32 b) { return a > b ? a : b; }
__device__ __forceinline__ void body(const Args& args, i64 instance, u8* shared) {
  const f32* x = (const f32*)args.data[0] + instance * args.strides[0];
  f32* y = (f32*)args.data[1] + instance * args.strides[2];
  const i64 n = args.dims[1];
  f32* part = (f32*)shared;
  f32 most = -1e30f;
  for (i64 i = tw_thread(); i < n; i += 256) most = larger(most, x[i]);
  for (int by = 16; by > 0; by /= 2) {
    most = larger(most, tw_shuffle_xor(most, by));
  }
  if (tw_thread() % 32 == 0) {
    part[tw_thread() / 32] = most;
  }
  tw_sync();  // maxima are there
  for (int w = 0; w < 8; ++w) {
    most = larger(most, part[w]);
  }
  f32 sum = 0;
  for (i64 i = tw_thread(); i < n; i += 256) {
    const f32 e = __builtin_expf(x[i] - most);
    y[i] = e;
    sum += e;
  }
  for (int by = 16; by > 0; by /= 2) sum += tw_shuffle_xor(sum, by);
  tw_sync();  // maxima are read
  if (tw_thread() % 32 == 0) part[tw_thread() / 32] = sum;
  tw_sync();  // sums are there
  sum = 0;
  for (int w = 0; w < 8; ++w) sum += part[w];
  for (i64 i = tw_thread(); i < n; i += 256) y[i] /= sum;
}
extern "C" __global__ void __launch_bounds__(256) tw_k(const __grid_constant__ Args args) {
  for (i64 instance = tw_block(); instance < args.dims[0]; instance += tw_blocks()) {
    body(args, instance, tw_shared());
    tw_sync();  // sums are read
  }
}
)";

inline const char* const kTransposeText = R"(
struct Args { void* data[2]; i64 dims[2]; i64 strides[4]; };
extern "C" __global__ void __launch_bounds__(128) tw_k(const __grid_constant__ Args args) {
  const u16* x = (const u16*)args.data[0];
  u16* y = (u16*)args.data[1];
  u16* tile = (u16*)tw_shared();
  const i64 m = args.dims[0], n = args.dims[1], tiles = (n + 31) / 32;
  const i64 row0 = tw_block() / tiles * 32, col0 = tw_block() % tiles * 32;
  const int lane = tw_thread() % 32, warp = tw_thread() / 32;
  #pragma unroll
  for (int r = warp; r < 32; r += 4) {
    if (row0 + r < m && col0 + lane < n) {
      tile[r * 33 + lane] = x[(row0 + r) * args.strides[0] + col0 + lane];
    }
  }
  tw_sync();
  for (int c = warp; c < 32; c += 4) {
    if (row0 + lane < m && col0 + c < n) {
      y[(col0 + c) * args.strides[2] + row0 + lane] = tile[lane * 33 + c];
    }
  }
}
)";

/// C[m, n] = A[m, k] B[n, k]: tiles of 32 x 8, two warps, two stages of 16 deep.
inline const char* const kMatmulText = R"(
struct Args { void* data[3]; i64 dims[3]; i64 strides[6]; };
__device__ __forceinline__ void fetch(const Args& args, i64 row0, i64 col0, i64 k, u16* stage) {
  const int t = tw_thread();
  const u16* a = (const u16*)args.data[0] + (row0 + t / 2) * args.strides[0] + k + t % 2 * 8;
  tw_copy_async_16(stage + t * 8, a, 16);
  if (t < 16) {
    const u16* b = (const u16*)args.data[1] + (col0 + t / 2) * args.strides[2] + k + t % 2 * 8;
    tw_copy_async_16(stage + 512 + t * 8, b, 16);
  }
}
extern "C" __global__ void __launch_bounds__(64) tw_k(const __grid_constant__ Args args) {
  u16* shared = (u16*)tw_shared();
  const i64 tiles = args.dims[1] / 8, depth = args.dims[2] / 16;
  const i64 row0 = tw_block() / tiles * 32, col0 = tw_block() % tiles * 8;
  const int lane = tw_thread() % 32, warp = tw_thread() / 32;
  f32 d[4] = {0, 0, 0, 0};
  fetch(args, row0, col0, 0, shared);
  tw_copy_async_commit();
  for (i64 k = 0; k < depth; ++k) {
    if (k + 1 < depth) fetch(args, row0, col0, (k + 1) * 16, shared + (k + 1) % 2 * 640);
    tw_copy_async_commit();
    tw_copy_async_wait<1>();
    tw_sync();  // the stage is there
    const u16* stage = shared + k % 2 * 640;
    u32 a[4];
    tw_ldmatrix_x4(a, stage + (warp * 16 + lane % 16) * 16 + lane / 16 * 8);
    const u16* row = stage + 512 + lane / 4 * 16 + lane % 4 * 2;
    const u32 b[2] = {*(const u32*)row, *(const u32*)(row + 8)};
    tw_mma_m16n8k16_f32_bf16(d, a, b);
    tw_sync();  // the stage is read
  }
  f32* c = (f32*)args.data[2] + (row0 + warp * 16 + lane / 4) * args.strides[4] + col0;
  typedef Pack<f32, 2> Pair;
  *(Pair*)(c + lane % 4 * 2) = Pair{{d[0], d[1]}};
  *(Pair*)(c + 8 * args.strides[4] + lane % 4 * 2) = Pair{{d[2], d[3]}};
}
)";

inline const char* const kHistogramText = R"(
struct Args { void* data[2]; i64 dims[2]; i64 strides[2]; };
extern "C" __global__ void __launch_bounds__(64) tw_k(const __grid_constant__ Args args) {
  const i32* x = (const i32*)args.data[0];
  i32* counts = (i32*)args.data[1];
  i32* own = (i32*)tw_shared();
  const i64 n = args.dims[0], bins = args.dims[1];
  for (i64 b = tw_thread(); b < bins; b += 64) own[b] = 0;
  tw_sync();  // zeros are there
  const i64 i = tw_block() * 64 + tw_thread();
  if (i < n) {
    tw_atomic_add_relaxed_block(own + x[i], 1);
  }
  tw_sync();  // counts are there
  for (i64 b = tw_thread(); b < bins; b += 64) {
    tw_atomic_add_relaxed_device(counts + b, own[b]);
  }
}
)";

/// y = running sums of x by blocks that take tickets and wait for the one before.
inline const char* const kChainText = R"(
struct Args { void* data[3]; i64 dims[1]; i64 strides[3]; };
extern "C" __global__ void __launch_bounds__(32) tw_k(const __grid_constant__ Args args) {
  const i32* x = (const i32*)args.data[0];
  i32* y = (i32*)args.data[1];
  i32* flags = (i32*)args.data[2];
  if (tw_thread() == 0) {
    const i32 ticket = tw_atomic_add_relaxed_device(flags + args.dims[0], 1);
    i32 sum = x[ticket];
    if (ticket > 0) {
      while (tw_atomic_or_acquire_device(flags + ticket - 1, 0) == 0) {
      }
      sum += y[ticket - 1];
    }
    y[ticket] = sum;
    tw_atomic_exch_release_device(flags + ticket, 1);
  }
}
)";

}  // namespace tw::test
