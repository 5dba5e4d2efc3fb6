// 64 threads, 32 bytes of shared memory
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

  Pack<f32, 4> raw[8];
  const f32* const p = x_ + (pid0) * x__s0 + at;
#pragma unroll
  for (int r_2 = 0; r_2 < 8; ++r_2) {
    raw[r_2] = at + r_2*256 + 3 < tw_clamp_high(N) ? tw_load_run<Pack<f32, 4>>(p + r_2*256) : Pack<f32, 4>{};
  }
  const f32* const p_2 = x_ + (pid0) * x__s0 + at;
#pragma unroll
  for (int r_3 = 0; r_3 < 8; ++r_3) {
    if (!(at + r_3*256 + 3 < tw_clamp_high(N))) {
      const f32* const p_3 = p_2 + r_3*256;
#pragma unroll
      for (int v = 0; v < 4; ++v) {
        raw[r_3].v[v] = (at + r_3*256 + v < tw_clamp_high(N) ? *(p_3 + v) : -__builtin_inff());
      }
    }
  }
  f32 v_load[32];  // f32[1,2048]
#pragma unroll
  for (int r_4 = 0; r_4 < 8; ++r_4) {
#pragma unroll
    for (int r_5 = 0; r_5 < 4; ++r_5) {
      v_load[r_4*4 + r_5] = tw_unpack_f32(raw[r_4].v[r_5]);
    }
  }

  f32 acc;
  acc = -__builtin_inff();
#pragma unroll
  for (int r_6 = 0; r_6 < 8; ++r_6) {
#pragma unroll
    for (int r_7 = 0; r_7 < 4; ++r_7) {
      const f32 x = tw_max(acc, v_load[r_6*4 + r_7]);
      acc = x;
    }
  }
  const f32 x_2 = tw_shuffle_xor(acc, 1);
  const f32 x_3 = tw_max(acc, x_2);
  acc = x_3;
  const f32 x_4 = tw_shuffle_xor(acc, 2);
  const f32 x_5 = tw_max(acc, x_4);
  acc = x_5;
  const f32 x_6 = tw_shuffle_xor(acc, 4);
  const f32 x_7 = tw_max(acc, x_6);
  acc = x_7;
  const f32 x_8 = tw_shuffle_xor(acc, 8);
  const f32 x_9 = tw_max(acc, x_8);
  acc = x_9;
  const f32 x_10 = tw_shuffle_xor(acc, 16);
  const f32 x_11 = tw_max(acc, x_10);
  acc = x_11;
  f32* const part = (f32*)(shared + 0);
  if (tw_thread() % 32 == 0) {
    part[(tw_thread() / 32)] = acc;
  }
  tw_sync();
  acc = part[0];
#pragma unroll
  for (int w = 0; w < 1; ++w) {
    const f32 x_12 = part[1];
    const f32 x_13 = tw_max(acc, x_12);
    acc = x_13;
  }
  f32 v_reduce;  // f32[1,1]
  v_reduce = acc;

  f32 v_exp[32];  // f32[1,2048]
#pragma unroll
  for (int r_8 = 0; r_8 < 8; ++r_8) {
#pragma unroll
    for (int r_9 = 0; r_9 < 4; ++r_9) {
      const f32 x_14 = v_load[r_8*4 + r_9] - v_reduce;
      const f32 x_15 = tw_exp(x_14);
      v_exp[r_8*4 + r_9] = x_15;
    }
  }

  f32 acc_2;
  acc_2 = -0.0f;
#pragma unroll
  for (int r_10 = 0; r_10 < 8; ++r_10) {
#pragma unroll
    for (int r_11 = 0; r_11 < 4; ++r_11) {
      const f32 x_16 = acc_2 + v_exp[r_10*4 + r_11];
      acc_2 = x_16;
    }
  }
  const f32 x_17 = tw_shuffle_xor(acc_2, 1);
  const f32 x_18 = acc_2 + x_17;
  acc_2 = x_18;
  const f32 x_19 = tw_shuffle_xor(acc_2, 2);
  const f32 x_20 = acc_2 + x_19;
  acc_2 = x_20;
  const f32 x_21 = tw_shuffle_xor(acc_2, 4);
  const f32 x_22 = acc_2 + x_21;
  acc_2 = x_22;
  const f32 x_23 = tw_shuffle_xor(acc_2, 8);
  const f32 x_24 = acc_2 + x_23;
  acc_2 = x_24;
  const f32 x_25 = tw_shuffle_xor(acc_2, 16);
  const f32 x_26 = acc_2 + x_25;
  acc_2 = x_26;
  f32* const part_2 = (f32*)(shared + 16);
  if (tw_thread() % 32 == 0) {
    part_2[(tw_thread() / 32)] = acc_2;
  }
  tw_sync();
  acc_2 = part_2[0];
#pragma unroll
  for (int w_2 = 0; w_2 < 1; ++w_2) {
    const f32 x_27 = part_2[1];
    const f32 x_28 = acc_2 + x_27;
    acc_2 = x_28;
  }
  f32 v_reduce_2;  // f32[1,1]
  v_reduce_2 = acc_2;

  Pack<f32, 4> raw_2[8];
#pragma unroll
  for (int r_13 = 0; r_13 < 8; ++r_13) {
#pragma unroll
    for (int r_14 = 0; r_14 < 4; ++r_14) {
      const f32 x_29 = v_exp[r_13*4 + r_14] / v_reduce_2;
      tw_store_f32x1(&raw_2[r_13].v[r_14], x_29);
    }
  }
  f32* const p_4 = y_ + (pid0) * y__s0 + at;
#pragma unroll
  for (int r_15 = 0; r_15 < 8; ++r_15) {
    if (at + r_15*256 + 3 < tw_clamp_high(N)) tw_store_run(p_4 + r_15*256, raw_2[r_15]);
  }
  f32* const p_5 = y_ + (pid0) * y__s0 + at;
#pragma unroll
  for (int r_16 = 0; r_16 < 8; ++r_16) {
    if (!(at + r_16*256 + 3 < tw_clamp_high(N))) {
      f32* const p_6 = p_5 + r_16*256;
#pragma unroll
      for (int v_2 = 0; v_2 < 4; ++v_2) {
        if (at + r_16*256 + v_2 < tw_clamp_high(N)) {
          *(p_6 + v_2) = raw_2[r_16].v[v_2];
        }
      }
    }
  }
}

// how many blocks of a multiprocessor: they share its registers
#ifndef TW_BLOCKS
#define TW_BLOCKS 16
#endif
extern "C" __global__ void __launch_bounds__(64, TW_BLOCKS) tw_softmax_row_d72bdcaa(const __grid_constant__ Args args) {
  tw_grid_dependency_sync();
  const i64 M = args.dims[0];
  const i64 instances = max(M, 0);
  for (i64 instance = tw_block(); instance < instances; instance += tw_blocks()) {
    body(args, instance, tw_shared(), nullptr);
    tw_sync();
  }
}
