// 32 threads, 0 bytes of shared memory
struct Args {
  void* data[2];
  i64 dims[1];
  i64 strides[4];
  u8* workspace;
};

__device__ __forceinline__ void body(const Args& args, i64 instance, u8* shared, u8* workspace) {
  const f32* const __restrict__ x_ = (const f32*)args.data[0];
  const i64 x__s0 = args.strides[0];
  f32* const __restrict__ y_ = (f32*)args.data[1];
  const i64 y__s0 = args.strides[2];
  const i64 M = args.dims[0];
  const i64 pid0 = instance;
  const int at = tw_thread() * 4;

  Pack<f32, 4> raw[8];
  const f32* const p = x_ + (pid0*8) * x__s0 + at;
#pragma unroll
  for (int r_2 = 0; r_2 < 8; ++r_2) {
    raw[r_2] = r_2 < tw_clamp_high(M - pid0*8) ? tw_load_run<Pack<f32, 4>>(p + (r_2) * x__s0) : Pack<f32, 4>{};
  }
  const f32* const p_2 = x_ + (pid0*8) * x__s0 + at;
#pragma unroll
  for (int r_3 = 0; r_3 < 8; ++r_3) {
    if (!(r_3 < tw_clamp_high(M - pid0*8))) {
      const f32* const p_3 = p_2 + (r_3) * x__s0;
#pragma unroll
      for (int v = 0; v < 4; ++v) {
        raw[r_3].v[v] = (r_3 < tw_clamp_high(M - pid0*8) ? *(p_3 + v) : 0.0f);
      }
    }
  }
  f32 v_load[32];  // f32[8,128]
#pragma unroll
  for (int r_4 = 0; r_4 < 8; ++r_4) {
#pragma unroll
    for (int r_5 = 0; r_5 < 4; ++r_5) {
      v_load[r_4*4 + r_5] = tw_unpack_f32(raw[r_4].v[r_5]);
    }
  }

  f32 acc[8];
#pragma unroll
  for (int r_6 = 0; r_6 < 8; ++r_6) {
    acc[r_6] = -0.0f;
  }
#pragma unroll
  for (int r_7 = 0; r_7 < 8; ++r_7) {
#pragma unroll
    for (int r_8 = 0; r_8 < 4; ++r_8) {
      const f32 x = acc[r_7] + v_load[r_7*4 + r_8];
      acc[r_7] = x;
    }
  }
#pragma unroll
  for (int r_9 = 0; r_9 < 8; ++r_9) {
    const f32 x_2 = tw_shuffle_xor(acc[r_9], 1);
    const f32 x_3 = acc[r_9] + x_2;
    acc[r_9] = x_3;
  }
#pragma unroll
  for (int r_10 = 0; r_10 < 8; ++r_10) {
    const f32 x_4 = tw_shuffle_xor(acc[r_10], 2);
    const f32 x_5 = acc[r_10] + x_4;
    acc[r_10] = x_5;
  }
#pragma unroll
  for (int r_11 = 0; r_11 < 8; ++r_11) {
    const f32 x_6 = tw_shuffle_xor(acc[r_11], 4);
    const f32 x_7 = acc[r_11] + x_6;
    acc[r_11] = x_7;
  }
#pragma unroll
  for (int r_12 = 0; r_12 < 8; ++r_12) {
    const f32 x_8 = tw_shuffle_xor(acc[r_12], 8);
    const f32 x_9 = acc[r_12] + x_8;
    acc[r_12] = x_9;
  }
#pragma unroll
  for (int r_13 = 0; r_13 < 8; ++r_13) {
    const f32 x_10 = tw_shuffle_xor(acc[r_13], 16);
    const f32 x_11 = acc[r_13] + x_10;
    acc[r_13] = x_11;
  }
  f32 v_reduce[8];  // f32[8,1]
#pragma unroll
  for (int r_14 = 0; r_14 < 8; ++r_14) {
    v_reduce[r_14] = acc[r_14];
  }

  if (tw_thread() == 0) {
    f32* const p_4 = y_ + (pid0*8) * y__s0;
#pragma unroll
    for (int r_15 = 0; r_15 < 8; ++r_15) {
      if (r_15 < tw_clamp_high(M - pid0*8)) {
        tw_store_f32x1(p_4 + (r_15) * y__s0, v_reduce[r_15]);
      }
    }
  }
}

// how many blocks of a multiprocessor: they share its registers
#ifndef TW_BLOCKS
#define TW_BLOCKS 32
#endif
extern "C" __global__ void __launch_bounds__(32, TW_BLOCKS) tw_row_sum_544e9bb6(const __grid_constant__ Args args) {
  tw_grid_dependency_sync();
  const i64 M = args.dims[0];
  const i64 instances = max(cdiv(M, 8), 0);
  for (i64 instance = tw_block(); instance < instances; instance += tw_blocks()) {
    body(args, instance, tw_shared(), nullptr);
  }
}
