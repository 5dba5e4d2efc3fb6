// 32 threads, 0 bytes of shared memory
struct Args {
  void* data[2];
  i64 dims[2];
  i64 strides[2];
  u8* workspace;
};

__device__ __forceinline__ void body(const Args& args, i64 instance, u8* shared, u8* workspace) {
  const i32* const __restrict__ i_ = (const i32*)args.data[0];
  i32* const __restrict__ y_ = (i32*)args.data[1];
  const i64 N = args.dims[0];
  const i64 K = args.dims[1];
  const i64 pid0 = instance;
  const int at = tw_thread() * 4;

  Pack<i32, 4> raw[2];
  const i32* const p = i_ + pid0*256 + at;
#pragma unroll
  for (int r_2 = 0; r_2 < 2; ++r_2) {
    raw[r_2] = pid0*256 + at + r_2*128 + 3 < N ? *(const Pack<i32, 4>*)(p + r_2*128) : Pack<i32, 4>{};
  }
  i32 v_load[8];  // i32[256]
#pragma unroll
  for (int r_3 = 0; r_3 < 2; ++r_3) {
#pragma unroll
    for (int r_4 = 0; r_4 < 4; ++r_4) {
      v_load[r_3*4 + r_4] = tw_load_i32x1(&raw[r_3].v[r_4]);
    }
  }
  const i32* const p_2 = i_ + pid0*256 + at;
#pragma unroll
  for (int r_5 = 0; r_5 < 2; ++r_5) {
    if (!(pid0*256 + at + r_5*128 + 3 < N)) {
      const i32* const p_3 = p_2 + r_5*128;
#pragma unroll
      for (int v = 0; v < 4; ++v) {
        const i32 x = pid0*256 + at + r_5*128 + v < N ? tw_load_i32x1(p_3 + v) : (i32)(-1);
        v_load[r_5*4 + v] = x;
      }
    }
  }

#pragma unroll
  for (int r_6 = 0; r_6 < 2; ++r_6) {
#pragma unroll
    for (int r_7 = 0; r_7 < 4; ++r_7) {
      const bool x_2 = v_load[r_6*4 + r_7] >= 0 && v_load[r_6*4 + r_7] < K;
      const i64 x_3 = x_2 ? v_load[r_6*4 + r_7] : 0;
      if (x_2) tw_atomic_add_relaxed_device(y_ + (x_3), (i32)1);
    }
  }
}

// how many blocks of a multiprocessor: they share its registers
#ifndef TW_BLOCKS
#define TW_BLOCKS 32
#endif
extern "C" __global__ void __launch_bounds__(32, TW_BLOCKS) tw_atomic_add_fe7e3b2e(const __grid_constant__ Args args) {
  const i64 N = args.dims[0];
  const i64 instances = max(cdiv(N, 256), 0);
  for (i64 instance = tw_block(); instance < instances; instance += tw_blocks()) {
    body(args, instance, tw_shared(), nullptr);
  }
}
