// 64 threads, 0 bytes of shared memory
struct Args {
  void* data[2];
  i64 dims[1];
  i64 strides[2];
  u8* workspace;
};

__device__ __forceinline__ void body(const Args& args, i64 instance, u8* shared, u8* workspace) {
  const f32* const __restrict__ x_ = (const f32*)args.data[0];
  f32* const __restrict__ y_ = (f32*)args.data[1];
  const i64 N = args.dims[0];
  const i64 pid0 = instance;
  const int at = tw_thread() * 4;

  Pack<f32, 4> raw[4];
  const f32* const p = x_ + pid0*1024 + at;
#pragma unroll
  for (int r_2 = 0; r_2 < 4; ++r_2) {
    raw[r_2] = at + r_2*256 + 3 < tw_clamp_high(N - pid0*1024) ? tw_load_run<Pack<f32, 4>>(p + r_2*256) : Pack<f32, 4>{};
  }
  const f32* const p_2 = x_ + pid0*1024 + at;
#pragma unroll
  for (int r_3 = 0; r_3 < 4; ++r_3) {
    if (!(at + r_3*256 + 3 < tw_clamp_high(N - pid0*1024))) {
      const f32* const p_3 = p_2 + r_3*256;
#pragma unroll
      for (int v = 0; v < 4; ++v) {
        raw[r_3].v[v] = (at + r_3*256 + v < tw_clamp_high(N - pid0*1024) ? *(p_3 + v) : 0.0f);
      }
    }
  }
  f32 v_load[16];  // f32[1024]
#pragma unroll
  for (int r_4 = 0; r_4 < 4; ++r_4) {
#pragma unroll
    for (int r_5 = 0; r_5 < 4; ++r_5) {
      v_load[r_4*4 + r_5] = tw_unpack_f32(raw[r_4].v[r_5]);
    }
  }

  Pack<f32, 4> raw_2[4];
#pragma unroll
  for (int r_7 = 0; r_7 < 4; ++r_7) {
#pragma unroll
    for (int r_8 = 0; r_8 < 4; ++r_8) {
      tw_store_f32x1(&raw_2[r_7].v[r_8], v_load[r_7*4 + r_8]);
    }
  }
  f32* const p_4 = y_ + pid0*1024 + at;
#pragma unroll
  for (int r_9 = 0; r_9 < 4; ++r_9) {
    if (at + r_9*256 + 3 < tw_clamp_high(N - pid0*1024)) tw_store_run(p_4 + r_9*256, raw_2[r_9]);
  }
  f32* const p_5 = y_ + pid0*1024 + at;
#pragma unroll
  for (int r_10 = 0; r_10 < 4; ++r_10) {
    if (!(at + r_10*256 + 3 < tw_clamp_high(N - pid0*1024))) {
      f32* const p_6 = p_5 + r_10*256;
#pragma unroll
      for (int v_2 = 0; v_2 < 4; ++v_2) {
        if (at + r_10*256 + v_2 < tw_clamp_high(N - pid0*1024)) {
          *(p_6 + v_2) = raw_2[r_10].v[v_2];
        }
      }
    }
  }
}

// how many blocks of a multiprocessor: they share its registers
#ifndef TW_BLOCKS
#define TW_BLOCKS 16
#endif
extern "C" __global__ void __launch_bounds__(64, TW_BLOCKS) tw_copy_2dfe84ef(const __grid_constant__ Args args) {
  tw_grid_dependency_sync();
  const i64 N = args.dims[0];
  const i64 instances = max(cdiv(N, 1024), 0);
  for (i64 instance = tw_block(); instance < instances; instance += tw_blocks()) {
    body(args, instance, tw_shared(), nullptr);
  }
}
