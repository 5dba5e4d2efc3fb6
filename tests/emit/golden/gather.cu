// 32 threads, 0 bytes of shared memory
struct Args {
  void* data[3];
  i64 dims[2];
  i64 strides[3];
  u8* workspace;
};

__device__ __forceinline__ void body(const Args& args, i64 instance, u8* shared, u8* workspace) {
  const f32* const __restrict__ x_ = (const f32*)args.data[0];
  const i32* const __restrict__ i_ = (const i32*)args.data[1];
  f32* const __restrict__ y_ = (f32*)args.data[2];
  const i64 N = args.dims[0];
  const i64 K = args.dims[1];
  const i64 pid0 = instance;
  const int at = tw_thread() * 4;

  Pack<i32, 4> raw[2];
  const i32* const p = i_ + pid0*256 + at;
#pragma unroll
  for (int r_2 = 0; r_2 < 2; ++r_2) {
    raw[r_2] = at + r_2*128 + 3 < tw_clamp_high(N - pid0*256) ? tw_load_run<Pack<i32, 4>>(p + r_2*128) : Pack<i32, 4>{};
  }
  const i32* const p_2 = i_ + pid0*256 + at;
#pragma unroll
  for (int r_3 = 0; r_3 < 2; ++r_3) {
    if (!(at + r_3*128 + 3 < tw_clamp_high(N - pid0*256))) {
      const i32* const p_3 = p_2 + r_3*128;
#pragma unroll
      for (int v = 0; v < 4; ++v) {
        raw[r_3].v[v] = (at + r_3*128 + v < tw_clamp_high(N - pid0*256) ? *(p_3 + v) : (i32)0);
      }
    }
  }
  i32 v_load[8];  // i32[256]
#pragma unroll
  for (int r_4 = 0; r_4 < 2; ++r_4) {
#pragma unroll
    for (int r_5 = 0; r_5 < 4; ++r_5) {
      v_load[r_4*4 + r_5] = tw_unpack_i32(raw[r_4].v[r_5]);
    }
  }

  f32 v_gather[8];  // f32[256]
#pragma unroll
  for (int r_6 = 0; r_6 < 2; ++r_6) {
#pragma unroll
    for (int r_7 = 0; r_7 < 4; ++r_7) {
      const bool x = v_load[r_6*4 + r_7] >= 0 && v_load[r_6*4 + r_7] < K;
      const i64 x_2 = x ? v_load[r_6*4 + r_7] : 0;
      const f32 x_3 = x ? tw_load_f32x1(x_ + x_2) : 0.0f;
      v_gather[r_6*4 + r_7] = x_3;
    }
  }

  Pack<f32, 4> raw_2[2];
#pragma unroll
  for (int r_9 = 0; r_9 < 2; ++r_9) {
#pragma unroll
    for (int r_10 = 0; r_10 < 4; ++r_10) {
      tw_store_f32x1(&raw_2[r_9].v[r_10], v_gather[r_9*4 + r_10]);
    }
  }
  f32* const p_4 = y_ + pid0*256 + at;
#pragma unroll
  for (int r_11 = 0; r_11 < 2; ++r_11) {
    if (at + r_11*128 + 3 < tw_clamp_high(N - pid0*256)) tw_store_run(p_4 + r_11*128, raw_2[r_11]);
  }
  f32* const p_5 = y_ + pid0*256 + at;
#pragma unroll
  for (int r_12 = 0; r_12 < 2; ++r_12) {
    if (!(at + r_12*128 + 3 < tw_clamp_high(N - pid0*256))) {
      f32* const p_6 = p_5 + r_12*128;
#pragma unroll
      for (int v_2 = 0; v_2 < 4; ++v_2) {
        if (at + r_12*128 + v_2 < tw_clamp_high(N - pid0*256)) {
          *(p_6 + v_2) = raw_2[r_12].v[v_2];
        }
      }
    }
  }
}

// how many blocks of a multiprocessor: they share its registers
#ifndef TW_BLOCKS
#define TW_BLOCKS 32
#endif
extern "C" __global__ void __launch_bounds__(32, TW_BLOCKS) tw_gather_04c5db4a(const __grid_constant__ Args args) {
  tw_grid_dependency_sync();
  const i64 N = args.dims[0];
  const i64 instances = max(cdiv(N, 256), 0);
  for (i64 instance = tw_block(); instance < instances; instance += tw_blocks()) {
    body(args, instance, tw_shared(), nullptr);
  }
}
