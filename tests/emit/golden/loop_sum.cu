// 32 threads, 0 bytes of shared memory
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
  const int at = tw_thread() * 4;

  f32 v_for[32];  // f32[8,128]
#pragma unroll
  for (int r = 0; r < 8; ++r) {
#pragma unroll
    for (int r_2 = 0; r_2 < 4; ++r_2) {
      v_for[r*4 + r_2] = 0.0f;
    }
  }
  const i64 i0_end = cdiv(N, 128);
#pragma unroll 1
  for (i64 i0 = 0; i0 < i0_end; i0 += 1) {

    Pack<f32, 4> raw[8];
    const f32* const p = x_ + (pid0*8) * x__s0 + i0*128 + at;
#pragma unroll
    for (int r_5 = 0; r_5 < 8; ++r_5) {
      raw[r_5] = r_5 < tw_clamp_high(M - pid0*8) && at + 3 < tw_clamp_high(N - i0*128) ? tw_load_run<Pack<f32, 4>>(p + (r_5) * x__s0) : Pack<f32, 4>{};
    }
    const f32* const p_2 = x_ + (pid0*8) * x__s0 + i0*128 + at;
#pragma unroll
    for (int r_6 = 0; r_6 < 8; ++r_6) {
      if (!(r_6 < tw_clamp_high(M - pid0*8) && at + 3 < tw_clamp_high(N - i0*128))) {
        const f32* const p_3 = p_2 + (r_6) * x__s0;
#pragma unroll
        for (int v = 0; v < 4; ++v) {
          raw[r_6].v[v] = (r_6 < tw_clamp_high(M - pid0*8) && at + v < tw_clamp_high(N - i0*128) ? *(p_3 + v) : 0.0f);
        }
      }
    }
    f32 v_load[32];  // f32[8,128]
#pragma unroll
    for (int r_7 = 0; r_7 < 8; ++r_7) {
#pragma unroll
      for (int r_8 = 0; r_8 < 4; ++r_8) {
        v_load[r_7*4 + r_8] = tw_unpack_f32(raw[r_7].v[r_8]);
      }
    }
#pragma unroll
    for (int r_9 = 0; r_9 < 8; ++r_9) {
#pragma unroll
      for (int r_10 = 0; r_10 < 4; ++r_10) {
        const f32 x = v_for[r_9*4 + r_10] + v_load[r_9*4 + r_10];
        v_for[r_9*4 + r_10] = x;
      }
    }
  }

  f32 acc[8];
#pragma unroll
  for (int r_11 = 0; r_11 < 8; ++r_11) {
    acc[r_11] = -0.0f;
  }
#pragma unroll
  for (int r_12 = 0; r_12 < 8; ++r_12) {
#pragma unroll
    for (int r_13 = 0; r_13 < 4; ++r_13) {
      const f32 x_2 = acc[r_12] + v_for[r_12*4 + r_13];
      acc[r_12] = x_2;
    }
  }
#pragma unroll
  for (int r_14 = 0; r_14 < 8; ++r_14) {
    const f32 x_3 = tw_shuffle_xor(acc[r_14], 1);
    const f32 x_4 = acc[r_14] + x_3;
    acc[r_14] = x_4;
  }
#pragma unroll
  for (int r_15 = 0; r_15 < 8; ++r_15) {
    const f32 x_5 = tw_shuffle_xor(acc[r_15], 2);
    const f32 x_6 = acc[r_15] + x_5;
    acc[r_15] = x_6;
  }
#pragma unroll
  for (int r_16 = 0; r_16 < 8; ++r_16) {
    const f32 x_7 = tw_shuffle_xor(acc[r_16], 4);
    const f32 x_8 = acc[r_16] + x_7;
    acc[r_16] = x_8;
  }
#pragma unroll
  for (int r_17 = 0; r_17 < 8; ++r_17) {
    const f32 x_9 = tw_shuffle_xor(acc[r_17], 8);
    const f32 x_10 = acc[r_17] + x_9;
    acc[r_17] = x_10;
  }
#pragma unroll
  for (int r_18 = 0; r_18 < 8; ++r_18) {
    const f32 x_11 = tw_shuffle_xor(acc[r_18], 16);
    const f32 x_12 = acc[r_18] + x_11;
    acc[r_18] = x_12;
  }
  f32 v_reduce[8];  // f32[8,1]
#pragma unroll
  for (int r_19 = 0; r_19 < 8; ++r_19) {
    v_reduce[r_19] = acc[r_19];
  }

  if (tw_thread() == 0) {
    f32* const p_4 = y_ + (pid0*8) * y__s0;
#pragma unroll
    for (int r_20 = 0; r_20 < 8; ++r_20) {
      if (r_20 < tw_clamp_high(M - pid0*8)) {
        tw_store_f32x1(p_4 + (r_20) * y__s0, v_reduce[r_20]);
      }
    }
  }
}

// how many blocks of a multiprocessor: they share its registers
#ifndef TW_BLOCKS
#define TW_BLOCKS 32
#endif
extern "C" __global__ void __launch_bounds__(32, TW_BLOCKS) tw_loop_sum_fdbaba4c(const __grid_constant__ Args args) {
  tw_grid_dependency_sync();
  const i64 M = args.dims[0];
  const i64 instances = max(cdiv(M, 8), 0);
  for (i64 instance = tw_block(); instance < instances; instance += tw_blocks()) {
    body(args, instance, tw_shared(), nullptr);
  }
}
