// scale_rows, ejected by tilewright for sm_90a, cuda1. It is yours.
#include "kernel.h"

#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 900
#error "this kernel was ejected for sm_90a"
#endif
#if defined(__USE_FAST_MATH__)
#error "this kernel keeps NaN, infinities and small numbers: build it without -use_fast_math"
#endif
#if defined(__CUDACC__)
#pragma nv_diag_suppress 177, 550  // names that nothing reads
#endif
static_assert(sizeof(long) == 8, "long has 64 bits here, as it has under Linux");

namespace {

namespace aligned {

typedef signed char i8;
typedef unsigned char u8;
typedef short i16;
typedef unsigned short u16;
typedef int i32;
typedef unsigned u32;
typedef long i64;
typedef unsigned long u64;
typedef float f32;
typedef double f64;
template <class T, int N> struct alignas(sizeof(T) * N) Pack { T v[N]; };
template <class P> __device__ __forceinline__ void tw_store_run(void* p, P v) {
  union { P run; u32 word[sizeof(P) / 4]; } w = {v};
  const size_t at = __cvta_generic_to_global(p);
  if (sizeof(P) == 4) asm volatile("st.global.b32 [%0], %1;" ::"l"(at), "r"(w.word[0]) : "memory");
  if constexpr (sizeof(P) == 8) {
    asm volatile("st.global.v2.b32 [%0], {%1, %2};" ::"l"(at), "r"(w.word[0]), "r"(w.word[1])
                 : "memory");
  }
  if constexpr (sizeof(P) == 16) {
    asm volatile("st.global.v4.b32 [%0], {%1, %2, %3, %4};" ::"l"(at), "r"(w.word[0]),
                 "r"(w.word[1]), "r"(w.word[2]), "r"(w.word[3]) : "memory");
  }
}
template <class P> __device__ __forceinline__ P tw_load_run(const void* p) {
  return *(const P*)p;
}
__device__ __forceinline__ int tw_thread() { return (int)threadIdx.x; }
__device__ __forceinline__ i64 tw_block() { return (i64)blockIdx.x; }
__device__ __forceinline__ i64 tw_blocks() { return (i64)gridDim.x; }
extern __shared__ __align__(16) u8 tw_shared_memory[];
__device__ __forceinline__ u8* tw_shared() { return tw_shared_memory; }
__device__ __forceinline__ void tw_sync() { __syncthreads(); }

__device__ __forceinline__ void tw_grid_dependency_sync() {
  asm volatile("griddepcontrol.launch_dependents;\n\tgriddepcontrol.wait;" ::: "memory");
}

typedef signed char i8;
typedef unsigned char u8;
typedef short i16;
typedef unsigned short u16;
typedef int i32;
typedef unsigned u32;
typedef long i64;
typedef unsigned long u64;
typedef float f32;
typedef double f64;


#define TW_INLINE static __device__ __forceinline__
#define min tw_least_index
#define max tw_most_index
#define __builtin_inff() __builtin_bit_cast(f32, 0x7f800000)
#define __builtin_inf() __builtin_bit_cast(f64, 0x7ff0000000000000)
#define __builtin_nanf(text) __builtin_bit_cast(f32, 0x7fc00000)
#define __builtin_nan(text) __builtin_bit_cast(f64, 0x7ff8000000000000)
#define __builtin_memset memset
TW_INLINE i64 min(i64 a, i64 b) { return a < b ? a : b; }
TW_INLINE i64 max(i64 a, i64 b) { return a > b ? a : b; }
TW_INLINE i64 floordiv(i64 a, i64 b) {
  return b == 0 ? 0 : a / b - (a % b != 0 && (a ^ b) < 0);
}
TW_INLINE i64 mod(i64 a, i64 b) { return b == 0 ? 0 : a - floordiv(a, b) * b; }
TW_INLINE i64 cdiv(i64 a, i64 b) { return floordiv(a + b - 1, b); }


TW_INLINE int tw_clamp_high(i64 n) { return n > 0x40000000 ? 0x40000000 : (int)n; }

TW_INLINE f32 tw_unpack_f32(f32 b) { return b; }

TW_INLINE i32 tw_bits(f32 x) { return __builtin_bit_cast(i32, x); }

TW_INLINE f32 tw_real(i32 x) { return __builtin_bit_cast(f32, x); }

TW_INLINE f32 tw_unpack_bf16(u16 b) { return tw_real((i32)((u32)b << 16)); }

TW_INLINE f32 tw_load_bf16x1(const u16* p) { return tw_unpack_bf16(*p); }

TW_INLINE f32 tw_pack_f32(f32 x) { return x; }

TW_INLINE void tw_store_f32x1(f32* p, f32 v) { *p = tw_pack_f32(v); }

struct Args {
  void* data[3];
  i64 dims[3];
  i64 strides[6];
  u8* workspace;
};

__device__ __forceinline__ void body(const Args& args, i64 instance, u8* shared, u8* workspace) {
  const f32* const __restrict__ x_ = (const f32*)args.data[0];
  const i64 x__s0 = args.strides[0];
  const u16* const __restrict__ w_ = (const u16*)args.data[1];
  const i64 w__s0 = args.strides[2];
  f32* const __restrict__ y_ = (f32*)args.data[2];
  const i64 y__s0 = args.strides[4];
  const i64 M = args.dims[0];
  const i64 N = args.dims[1];
  const i64 add_ = args.dims[2];
  const i64 pid1 = instance % (cdiv(N, 64));
  const i64 rest1 = instance / (cdiv(N, 64));
  const i64 pid0 = rest1;
  const int at = tw_thread() * 2;

  Pack<f32, 2> raw[1];
  raw[0] = at + 1 < tw_clamp_high(N - pid1*64) ? tw_load_run<Pack<f32, 2>>(x_ + (pid0) * x__s0 + pid1*64 + at) : Pack<f32, 2>{};
  if (!(at + 1 < tw_clamp_high(N - pid1*64))) {
    const f32* const p = x_ + (pid0) * x__s0 + pid1*64 + at;
#pragma unroll
    for (int v = 0; v < 2; ++v) {
      raw[0].v[v] = (at + v < tw_clamp_high(N - pid1*64) ? *(p + v) : 0.0f);
    }
  }
  f32 v_load[2];  // f32[1,64]
#pragma unroll
  for (int r = 0; r < 2; ++r) {
    v_load[r] = tw_unpack_f32(raw[0].v[r]);
  }

  f32 v_load_2;  // bf16[1,1]
  const f32 x = tw_load_bf16x1(w_ + (pid0) * w__s0);
  v_load_2 = x;

  f32 v_mul[2];  // f32[1,64]
#pragma unroll
  for (int r_2 = 0; r_2 < 2; ++r_2) {
    const f32 x_2 = v_load[r_2] * v_load_2;
    v_mul[r_2] = x_2;
  }

  if (add_ != 0) {

    Pack<f32, 2> raw_2[1];
    raw_2[0] = at + 1 < tw_clamp_high(N - pid1*64) ? tw_load_run<Pack<f32, 2>>(y_ + (pid0) * y__s0 + pid1*64 + at) : Pack<f32, 2>{};
    if (!(at + 1 < tw_clamp_high(N - pid1*64))) {
      f32* const p_2 = y_ + (pid0) * y__s0 + pid1*64 + at;
#pragma unroll
      for (int v_2 = 0; v_2 < 2; ++v_2) {
        raw_2[0].v[v_2] = (at + v_2 < tw_clamp_high(N - pid1*64) ? *(p_2 + v_2) : 0.0f);
      }
    }
    f32 v_load_3[2];  // f32[1,64]
#pragma unroll
    for (int r_3 = 0; r_3 < 2; ++r_3) {
      v_load_3[r_3] = tw_unpack_f32(raw_2[0].v[r_3]);
    }

    tw_sync();
    Pack<f32, 2> raw_3[1];
#pragma unroll
    for (int r_4 = 0; r_4 < 2; ++r_4) {
      const f32 x_3 = v_mul[r_4] + v_load_3[r_4];
      tw_store_f32x1(&raw_3[0].v[r_4], x_3);
    }
    if (at + 1 < tw_clamp_high(N - pid1*64)) tw_store_run(y_ + (pid0) * y__s0 + pid1*64 + at, raw_3[0]);
    if (!(at + 1 < tw_clamp_high(N - pid1*64))) {
      f32* const p_3 = y_ + (pid0) * y__s0 + pid1*64 + at;
#pragma unroll
      for (int v_3 = 0; v_3 < 2; ++v_3) {
        if (at + v_3 < tw_clamp_high(N - pid1*64)) {
          *(p_3 + v_3) = raw_3[0].v[v_3];
        }
      }
    }
  } else {

    Pack<f32, 2> raw_4[1];
#pragma unroll
    for (int r_5 = 0; r_5 < 2; ++r_5) {
      tw_store_f32x1(&raw_4[0].v[r_5], v_mul[r_5]);
    }
    if (at + 1 < tw_clamp_high(N - pid1*64)) tw_store_run(y_ + (pid0) * y__s0 + pid1*64 + at, raw_4[0]);
    if (!(at + 1 < tw_clamp_high(N - pid1*64))) {
      f32* const p_4 = y_ + (pid0) * y__s0 + pid1*64 + at;
#pragma unroll
      for (int v_4 = 0; v_4 < 2; ++v_4) {
        if (at + v_4 < tw_clamp_high(N - pid1*64)) {
          *(p_4 + v_4) = raw_4[0].v[v_4];
        }
      }
    }
  }
}

// how many blocks of a multiprocessor: they share its registers
#ifndef TW_BLOCKS
#define TW_BLOCKS 48
#endif
extern "C" __global__ void __launch_bounds__(32, TW_BLOCKS) scale_rows_aligned_kernel(const __grid_constant__ Args args) {
  tw_grid_dependency_sync();
  const i64 M = args.dims[0];
  const i64 N = args.dims[1];
  const i64 instances = max(M, 0) * max(cdiv(N, 64), 0);
  for (i64 instance = tw_block(); instance < instances; instance += tw_blocks()) {
    body(args, instance, tw_shared(), nullptr);
  }
}

}  // namespace aligned
#undef TW_BLOCKS

namespace any {

typedef signed char i8;
typedef unsigned char u8;
typedef short i16;
typedef unsigned short u16;
typedef int i32;
typedef unsigned u32;
typedef long i64;
typedef unsigned long u64;
typedef float f32;
typedef double f64;
__device__ __forceinline__ int tw_thread() { return (int)threadIdx.x; }
__device__ __forceinline__ i64 tw_block() { return (i64)blockIdx.x; }
__device__ __forceinline__ i64 tw_blocks() { return (i64)gridDim.x; }
extern __shared__ __align__(16) u8 tw_shared_memory[];
__device__ __forceinline__ u8* tw_shared() { return tw_shared_memory; }
__device__ __forceinline__ void tw_sync() { __syncthreads(); }

__device__ __forceinline__ void tw_grid_dependency_sync() {
  asm volatile("griddepcontrol.launch_dependents;\n\tgriddepcontrol.wait;" ::: "memory");
}

typedef signed char i8;
typedef unsigned char u8;
typedef short i16;
typedef unsigned short u16;
typedef int i32;
typedef unsigned u32;
typedef long i64;
typedef unsigned long u64;
typedef float f32;
typedef double f64;


#define TW_INLINE static __device__ __forceinline__
#define min tw_least_index
#define max tw_most_index
#define __builtin_inff() __builtin_bit_cast(f32, 0x7f800000)
#define __builtin_inf() __builtin_bit_cast(f64, 0x7ff0000000000000)
#define __builtin_nanf(text) __builtin_bit_cast(f32, 0x7fc00000)
#define __builtin_nan(text) __builtin_bit_cast(f64, 0x7ff8000000000000)
#define __builtin_memset memset
TW_INLINE i64 min(i64 a, i64 b) { return a < b ? a : b; }
TW_INLINE i64 max(i64 a, i64 b) { return a > b ? a : b; }
TW_INLINE i64 floordiv(i64 a, i64 b) {
  return b == 0 ? 0 : a / b - (a % b != 0 && (a ^ b) < 0);
}
TW_INLINE i64 mod(i64 a, i64 b) { return b == 0 ? 0 : a - floordiv(a, b) * b; }
TW_INLINE i64 cdiv(i64 a, i64 b) { return floordiv(a + b - 1, b); }


TW_INLINE f32 tw_unpack_f32(f32 b) { return b; }

TW_INLINE f32 tw_load_f32x1(const f32* p) { return tw_unpack_f32(*p); }

TW_INLINE int tw_clamp_high(i64 n) { return n > 0x40000000 ? 0x40000000 : (int)n; }

TW_INLINE i32 tw_bits(f32 x) { return __builtin_bit_cast(i32, x); }

TW_INLINE f32 tw_real(i32 x) { return __builtin_bit_cast(f32, x); }

TW_INLINE f32 tw_unpack_bf16(u16 b) { return tw_real((i32)((u32)b << 16)); }

TW_INLINE f32 tw_load_bf16x1(const u16* p) { return tw_unpack_bf16(*p); }

TW_INLINE f32 tw_pack_f32(f32 x) { return x; }

TW_INLINE void tw_store_f32x1(f32* p, f32 v) { *p = tw_pack_f32(v); }

struct Args {
  void* data[3];
  i64 dims[3];
  i64 strides[6];
  u8* workspace;
};

__device__ __forceinline__ void body(const Args& args, i64 instance, u8* shared, u8* workspace) {
  const f32* const __restrict__ x_ = (const f32*)args.data[0];
  const i64 x__s0 = args.strides[0];
  const u16* const __restrict__ w_ = (const u16*)args.data[1];
  const i64 w__s0 = args.strides[2];
  f32* const __restrict__ y_ = (f32*)args.data[2];
  const i64 y__s0 = args.strides[4];
  const i64 M = args.dims[0];
  const i64 N = args.dims[1];
  const i64 add_ = args.dims[2];
  const i64 pid1 = instance % (cdiv(N, 64));
  const i64 rest1 = instance / (cdiv(N, 64));
  const i64 pid0 = rest1;
  const int at = tw_thread() * 2;

  f32 v_load[2];  // f32[1,64]
  const f32* const p = x_ + (pid0) * x__s0 + pid1*64 + at;
#pragma unroll
  for (int r = 0; r < 2; ++r) {
    const f32 x = at + r < tw_clamp_high(N - pid1*64) ? tw_load_f32x1(p + r) : 0.0f;
    v_load[r] = x;
  }

  f32 v_load_2;  // bf16[1,1]
  const f32 x_2 = tw_load_bf16x1(w_ + (pid0) * w__s0);
  v_load_2 = x_2;

  f32 v_mul[2];  // f32[1,64]
#pragma unroll
  for (int r_2 = 0; r_2 < 2; ++r_2) {
    const f32 x_3 = v_load[r_2] * v_load_2;
    v_mul[r_2] = x_3;
  }

  if (add_ != 0) {

    f32 v_load_3[2];  // f32[1,64]
    f32* const p_2 = y_ + (pid0) * y__s0 + pid1*64 + at;
#pragma unroll
    for (int r_3 = 0; r_3 < 2; ++r_3) {
      const f32 x_4 = at + r_3 < tw_clamp_high(N - pid1*64) ? tw_load_f32x1(p_2 + r_3) : 0.0f;
      v_load_3[r_3] = x_4;
    }

    tw_sync();
    f32* const p_3 = y_ + (pid0) * y__s0 + pid1*64 + at;
#pragma unroll
    for (int r_4 = 0; r_4 < 2; ++r_4) {
      if (at + r_4 < tw_clamp_high(N - pid1*64)) {
        const f32 x_5 = v_mul[r_4] + v_load_3[r_4];
        tw_store_f32x1(p_3 + r_4, x_5);
      }
    }
  } else {

    f32* const p_4 = y_ + (pid0) * y__s0 + pid1*64 + at;
#pragma unroll
    for (int r_5 = 0; r_5 < 2; ++r_5) {
      if (at + r_5 < tw_clamp_high(N - pid1*64)) {
        tw_store_f32x1(p_4 + r_5, v_mul[r_5]);
      }
    }
  }
}

// how many blocks of a multiprocessor: they share its registers
#ifndef TW_BLOCKS
#define TW_BLOCKS 48
#endif
extern "C" __global__ void __launch_bounds__(32, TW_BLOCKS) scale_rows_kernel(const __grid_constant__ Args args) {
  tw_grid_dependency_sync();
  const i64 M = args.dims[0];
  const i64 N = args.dims[1];
  const i64 instances = max(M, 0) * max(cdiv(N, 64), 0);
  for (i64 instance = tw_block(); instance < instances; instance += tw_blocks()) {
    body(args, instance, tw_shared(), nullptr);
  }
}

}  // namespace any
#undef TW_BLOCKS

#undef min
#undef max

namespace host {

typedef long i64;
inline i64 min(i64 a, i64 b) { return a < b ? a : b; }
inline i64 max(i64 a, i64 b) { return a > b ? a : b; }
inline i64 floordiv(i64 a, i64 b) { return b == 0 ? 0 : a / b - (a % b != 0 && (a ^ b) < 0); }
inline i64 mod(i64 a, i64 b) { return b == 0 ? 0 : a - floordiv(a, b) * b; }
inline i64 cdiv(i64 a, i64 b) { return floordiv(a + b - 1, b); }

i64 count(const int64_t* dims) {
  (void)dims;
  const i64 M = dims[0];
  const i64 N = dims[1];
  const i64 instances = max(M, 0) * max(cdiv(N, 64), 0);
  return instances;
}

}  // namespace host

// One parameter: the words of Args.
cudaError_t launch(const void* kernel, int64_t blocks, int threads, int shared_bytes, void* args,
                   cudaStream_t stream) {
  constexpr int kWithoutAsking = 48 << 10;
  if (shared_bytes > kWithoutAsking) {
    const cudaError_t code = cudaFuncSetAttribute(
        kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, shared_bytes);
    if (code != cudaSuccess) return code;
  }
  void* parameters[] = {args};
  return cudaLaunchKernel(kernel, dim3((unsigned)blocks), dim3((unsigned)threads), parameters,
                          (size_t)shared_bytes, stream);
}

}  // namespace

cudaError_t scale_rows(const float* x, const int64_t (&x_dims)[2], const int64_t (&x_strides)[2],
                       const uint16_t* w, const int64_t (&w_dims)[2], const int64_t (&w_strides)[2],
                       float* y, const int64_t (&y_dims)[2], const int64_t (&y_strides)[2],
                       int64_t add,
                       cudaStream_t stream) {
  if (x_dims[0] < 0) return cudaErrorInvalidValue;
  if (x_dims[1] < 0) return cudaErrorInvalidValue;
  if (x_dims[1] % 8 != 0) return cudaErrorInvalidValue;
  if (add < 0) return cudaErrorInvalidValue;
  if (w_dims[0] != x_dims[0]) return cudaErrorInvalidValue;
  if (w_dims[1] != 1) return cudaErrorInvalidValue;
  if (y_dims[0] != x_dims[0]) return cudaErrorInvalidValue;
  if (y_dims[1] != x_dims[1]) return cudaErrorInvalidValue;
  if (x_dims[1] > 1 && x_strides[1] != 1) return cudaErrorInvalidValue;
  if (w_dims[1] > 1 && w_strides[1] != 1) return cudaErrorInvalidValue;
  if (y_dims[1] > 1 && y_strides[1] != 1) return cudaErrorInvalidValue;
  const int64_t dims[] = {x_dims[0], x_dims[1], add};
  const int64_t instances = host::count(dims);
  if (instances == 0) return cudaSuccess;
  if ((uintptr_t)x % 16 == 0 && x_strides[0] % 4 == 0 &&
      (uintptr_t)w % 16 == 0 && w_strides[0] % 8 == 0 &&
      (uintptr_t)y % 16 == 0 && y_strides[0] % 4 == 0) {
    aligned::Args args = {{(void*)x, (void*)w, y},
        {x_dims[0], x_dims[1], add},
        {x_strides[0], x_strides[1], w_strides[0], w_strides[1], y_strides[0], y_strides[1]},
        nullptr};
    const int64_t blocks = instances < 2147483647 ? instances : 2147483647;
    return launch((const void*)aligned::scale_rows_aligned_kernel, blocks, 32, 0, &args, stream);
  }
  any::Args args = {{(void*)x, (void*)w, y},
      {x_dims[0], x_dims[1], add},
      {x_strides[0], x_strides[1], w_strides[0], w_strides[1], y_strides[0], y_strides[1]},
      nullptr};
  const int64_t blocks = instances < 2147483647 ? instances : 2147483647;
  return launch((const void*)any::scale_rows_kernel, blocks, 32, 0, &args, stream);
}
