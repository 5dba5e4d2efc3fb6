// 64 threads, 4224 bytes of shared memory
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
  const i64 pid1 = instance % (cdiv(N, 32));
  const i64 rest1 = instance / (cdiv(N, 32));
  const i64 pid0 = rest1;
  const int at = tw_thread() / 8;
  const int at_2 = tw_thread() % 8 * 4;

  Pack<f32, 4> raw[4];
  const f32* const p = x_ + (pid0*32) * x__s0 + pid1*32 + (at) * x__s0 + at_2;
#pragma unroll
  for (int r_2 = 0; r_2 < 4; ++r_2) {
    raw[r_2] = at + r_2*8 < tw_clamp_high(M - pid0*32) && at_2 + 3 < tw_clamp_high(N - pid1*32) ? tw_load_run<Pack<f32, 4>>(p + (r_2*8) * x__s0) : Pack<f32, 4>{};
  }
  const f32* const p_2 = x_ + (pid0*32) * x__s0 + pid1*32 + (at) * x__s0 + at_2;
#pragma unroll
  for (int r_3 = 0; r_3 < 4; ++r_3) {
    if (!(at + r_3*8 < tw_clamp_high(M - pid0*32) && at_2 + 3 < tw_clamp_high(N - pid1*32))) {
      const f32* const p_3 = p_2 + (r_3*8) * x__s0;
#pragma unroll
      for (int v = 0; v < 4; ++v) {
        raw[r_3].v[v] = (at + r_3*8 < tw_clamp_high(M - pid0*32) && at_2 + v < tw_clamp_high(N - pid1*32) ? *(p_3 + v) : 0.0f);
      }
    }
  }
  f32 v_load[16];  // f32[32,32]
#pragma unroll
  for (int r_4 = 0; r_4 < 4; ++r_4) {
#pragma unroll
    for (int r_5 = 0; r_5 < 4; ++r_5) {
      v_load[r_4*4 + r_5] = tw_unpack_f32(raw[r_4].v[r_5]);
    }
  }
  f32* const v_load_2_all = (f32*)(shared + 0);  // f32[32,32]
  f32* const p_4 = v_load_2_all + at*33 + at_2;
#pragma unroll
  for (int r_6 = 0; r_6 < 4; ++r_6) {
    f32* const p_5 = p_4 + r_6*264;
#pragma unroll
    for (int r_7 = 0; r_7 < 4; ++r_7) {
      tw_store_f32x1(p_5 + r_7, v_load[r_6*4 + r_7]);
    }
  }

  tw_sync();
  Pack<f32, 4> raw_2[4];
  f32* const p_6 = v_load_2_all + at + at_2*33;
#pragma unroll
  for (int r_9 = 0; r_9 < 4; ++r_9) {
    f32* const p_7 = p_6 + r_9*8;
#pragma unroll
    for (int r_10 = 0; r_10 < 4; ++r_10) {
      const f32 x = tw_load_f32x1(p_7 + r_10*33);
      tw_store_f32x1(&raw_2[r_9].v[r_10], x);
    }
  }
  f32* const p_8 = y_ + (pid1*32) * y__s0 + pid0*32 + (at) * y__s0 + at_2;
#pragma unroll
  for (int r_11 = 0; r_11 < 4; ++r_11) {
    if (at + r_11*8 < tw_clamp_high(N - pid1*32) && at_2 + 3 < tw_clamp_high(M - pid0*32)) tw_store_run(p_8 + (r_11*8) * y__s0, raw_2[r_11]);
  }
  f32* const p_9 = y_ + (pid1*32) * y__s0 + pid0*32 + (at) * y__s0 + at_2;
#pragma unroll
  for (int r_12 = 0; r_12 < 4; ++r_12) {
    if (!(at + r_12*8 < tw_clamp_high(N - pid1*32) && at_2 + 3 < tw_clamp_high(M - pid0*32))) {
      f32* const p_10 = p_9 + (r_12*8) * y__s0;
#pragma unroll
      for (int v_2 = 0; v_2 < 4; ++v_2) {
        if (at + r_12*8 < tw_clamp_high(N - pid1*32) && at_2 + v_2 < tw_clamp_high(M - pid0*32)) {
          *(p_10 + v_2) = raw_2[r_12].v[v_2];
        }
      }
    }
  }
}

// how many blocks of a multiprocessor: they share its registers
#ifndef TW_BLOCKS
#define TW_BLOCKS 16
#endif
extern "C" __global__ void __launch_bounds__(64, TW_BLOCKS) tw_transpose_2869f852(const __grid_constant__ Args args) {
  tw_grid_dependency_sync();
  const i64 M = args.dims[0];
  const i64 N = args.dims[1];
  const i64 instances = max(cdiv(M, 32), 0) * max(cdiv(N, 32), 0);
  for (i64 instance = tw_block(); instance < instances; instance += tw_blocks()) {
    body(args, instance, tw_shared(), nullptr);
    tw_sync();
  }
}
