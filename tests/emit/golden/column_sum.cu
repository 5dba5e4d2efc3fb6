// 128 threads, 512 bytes of shared memory
struct Args {
  void* data[2];
  i64 dims[2];
  i64 strides[4];
  u8* workspace;
};

__device__ __forceinline__ void body(const Args& args, i64 instance, u8* shared, u8* workspace) {
  const f32* const __restrict__ x_ = (const f32*)args.data[0];
  const i64 x__s0 = args.strides[0];
  f32* const __restrict__ y_ = (f32*)args.data[1];
  const i64 y__s0 = args.strides[2];
  const i64 M = args.dims[0];
  const i64 N = args.dims[1];
  const i64 pid0 = instance;
  const int at = tw_thread() / 8;
  const int at_2 = tw_thread() % 8 * 4;

  Pack<f32, 4> raw[4];
  const f32* const p = x_ + pid0*32 + (at) * x__s0 + at_2;
#pragma unroll
  for (int r_2 = 0; r_2 < 4; ++r_2) {
    raw[r_2] = at + r_2*16 < tw_clamp_high(M) && at_2 + 3 < tw_clamp_high(N - pid0*32) ? tw_load_run<Pack<f32, 4>>(p + (r_2*16) * x__s0) : Pack<f32, 4>{};
  }
  const f32* const p_2 = x_ + pid0*32 + (at) * x__s0 + at_2;
#pragma unroll
  for (int r_3 = 0; r_3 < 4; ++r_3) {
    if (!(at + r_3*16 < tw_clamp_high(M) && at_2 + 3 < tw_clamp_high(N - pid0*32))) {
      const f32* const p_3 = p_2 + (r_3*16) * x__s0;
#pragma unroll
      for (int v = 0; v < 4; ++v) {
        raw[r_3].v[v] = (at + r_3*16 < tw_clamp_high(M) && at_2 + v < tw_clamp_high(N - pid0*32) ? *(p_3 + v) : 0.0f);
      }
    }
  }
  f32 v_load[16];  // f32[64,32]
#pragma unroll
  for (int r_4 = 0; r_4 < 4; ++r_4) {
#pragma unroll
    for (int r_5 = 0; r_5 < 4; ++r_5) {
      v_load[r_4*4 + r_5] = tw_unpack_f32(raw[r_4].v[r_5]);
    }
  }

  f32 acc[4];
#pragma unroll
  for (int r_6 = 0; r_6 < 4; ++r_6) {
    acc[r_6] = -0.0f;
  }
#pragma unroll
  for (int r_7 = 0; r_7 < 4; ++r_7) {
#pragma unroll
    for (int r_8 = 0; r_8 < 4; ++r_8) {
      const f32 x = acc[r_7] + v_load[r_7 + r_8*4];
      acc[r_7] = x;
    }
  }
#pragma unroll
  for (int r_9 = 0; r_9 < 4; ++r_9) {
    const f32 x_2 = tw_shuffle_xor(acc[r_9], 8);
    const f32 x_3 = acc[r_9] + x_2;
    acc[r_9] = x_3;
  }
#pragma unroll
  for (int r_10 = 0; r_10 < 4; ++r_10) {
    const f32 x_4 = tw_shuffle_xor(acc[r_10], 16);
    const f32 x_5 = acc[r_10] + x_4;
    acc[r_10] = x_5;
  }
  f32* const part = (f32*)(shared + 0);
  if (tw_thread() / 8 % 4 == 0) {
#pragma unroll
    for (int r_11 = 0; r_11 < 4; ++r_11) {
      part[(tw_thread() / 32) * 32 + at_2 + r_11] = acc[r_11];
    }
  }
  tw_sync();
#pragma unroll
  for (int r_12 = 0; r_12 < 4; ++r_12) {
    acc[r_12] = part[at_2 + r_12];
  }
#pragma unroll
  for (int r_13 = 0; r_13 < 4; ++r_13) {
#pragma unroll
    for (int w = 0; w < 3; ++w) {
      const f32 x_6 = part[at_2 + r_13 + w*32 + 32];
      const f32 x_7 = acc[r_13] + x_6;
      acc[r_13] = x_7;
    }
  }
  f32 v_reduce[4];  // f32[1,32]
#pragma unroll
  for (int r_14 = 0; r_14 < 4; ++r_14) {
    v_reduce[r_14] = acc[r_14];
  }

  Pack<f32, 4> raw_2[1];
#pragma unroll
  for (int r_15 = 0; r_15 < 4; ++r_15) {
    tw_store_f32x1(&raw_2[0].v[r_15], v_reduce[r_15]);
  }
  if (tw_thread() / 8 == 0) {
    if (at_2 + 3 < tw_clamp_high(N - pid0*32)) tw_store_run(y_ + pid0*32 + at_2, raw_2[0]);
  }
  if (tw_thread() / 8 == 0 && !(at_2 + 3 < tw_clamp_high(N - pid0*32))) {
    f32* const p_4 = y_ + pid0*32 + at_2;
#pragma unroll
    for (int v_2 = 0; v_2 < 4; ++v_2) {
      if (at_2 + v_2 < tw_clamp_high(N - pid0*32)) {
        *(p_4 + v_2) = raw_2[0].v[v_2];
      }
    }
  }
}

// how many blocks of a multiprocessor: they share its registers
#ifndef TW_BLOCKS
#define TW_BLOCKS 8
#endif
extern "C" __global__ void __launch_bounds__(128, TW_BLOCKS) tw_column_sum_b549f92d(const __grid_constant__ Args args) {
  tw_grid_dependency_sync();
  const i64 N = args.dims[1];
  const i64 instances = max(cdiv(N, 32), 0);
  for (i64 instance = tw_block(); instance < instances; instance += tw_blocks()) {
    body(args, instance, tw_shared(), nullptr);
    tw_sync();
  }
}
