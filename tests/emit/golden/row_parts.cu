// 64 threads, 32 bytes of shared memory
struct Args {
  void* data[2];
  i64 dims[2];
  i64 strides[4];
  u8* workspace;
};

__device__ __forceinline__ void body(const Args& args, i64 instance, u8* shared, u8* workspace) {
  const u16* const __restrict__ x_ = (const u16*)args.data[0];
  const i64 x__s0 = args.strides[0];
  f32* const __restrict__ y_ = (f32*)args.data[1];
  const i64 y__s0 = args.strides[2];
  const i64 M = args.dims[0];
  const i64 N = args.dims[1];
  const i64 pid0 = instance;
  const int at = tw_thread() * 8;

  f32 v_for;  // f32[1,1]
  v_for = 0.0f;
  f32 v_for_2;  // f32[1,1]
  v_for_2 = -__builtin_inff();
  const i64 i0_end = cdiv(N, 2048);
  Pack<u32, 4> raw[4] = {};
  {
    const i64 ahead = 0;
    if (ahead < i0_end) {
      const u16* const p = x_ + (pid0) * x__s0 + ahead*2048 + at;
#pragma unroll
      for (int r_2 = 0; r_2 < 4; ++r_2) {
        raw[r_2] = at + r_2*512 + 7 < tw_clamp_high(N - ahead*2048) ? tw_load_run<Pack<u32, 4>>(p + r_2*512) : Pack<u32, 4>{};
      }
    }
  }
#pragma unroll 1
  for (i64 i0 = 0; i0 < i0_end; i0 += 1) {
    const u16* const p_2 = x_ + (pid0) * x__s0 + i0*2048 + at;
#pragma unroll
    for (int r_3 = 0; r_3 < 4; ++r_3) {
      if (!(at + r_3*512 + 7 < tw_clamp_high(N - i0*2048))) {
        const u16* const p_3 = p_2 + r_3*512;
#pragma unroll
        for (int v = 0; v < 8; ++v) {
          raw[r_3].v[(v) / 2] |= (u32)(u16)(at + r_3*512 + v < tw_clamp_high(N - i0*2048) ? *(p_3 + v) : (u16)0xff80) << 16 * ((r_3*8 + v) % 2);
        }
      }
    }
    f32 v_load[32];  // bf16[1,2048]
#pragma unroll
    for (int r_4 = 0; r_4 < 4; ++r_4) {
#pragma unroll
      for (int r_5 = 0; r_5 < 8; ++r_5) {
        v_load[r_4*8 + r_5] = tw_unpack_bf16(tw_part<u16>(raw[r_4].v[(r_5) / 2], (r_4*8 + r_5) % 2));
      }
    }
    {
      const i64 ahead_2 = i0 + 1;
      if (ahead_2 < i0_end) {
        const u16* const p_4 = x_ + (pid0) * x__s0 + ahead_2*2048 + at;
#pragma unroll
        for (int r_6 = 0; r_6 < 4; ++r_6) {
          raw[r_6] = at + r_6*512 + 7 < tw_clamp_high(N - ahead_2*2048) ? tw_load_run<Pack<u32, 4>>(p_4 + r_6*512) : Pack<u32, 4>{};
        }
      }
    }

    f32 v_cast[32];  // f32[1,2048]
#pragma unroll
    for (int r_7 = 0; r_7 < 4; ++r_7) {
#pragma unroll
      for (int r_8 = 0; r_8 < 8; ++r_8) {
        v_cast[r_7*8 + r_8] = v_load[r_7*8 + r_8];
      }
    }

    f32 acc;
    acc = -__builtin_inff();
#pragma unroll
    for (int r_9 = 0; r_9 < 4; ++r_9) {
#pragma unroll
      for (int r_10 = 0; r_10 < 8; ++r_10) {
        const f32 x = tw_max(acc, v_cast[r_9*8 + r_10]);
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

    f32 v_max;  // f32[1,1]
    const f32 x_14 = tw_max(v_for_2, v_reduce);
    v_max = x_14;

    f32 acc_2;
    acc_2 = -0.0f;
#pragma unroll
    for (int r_11 = 0; r_11 < 4; ++r_11) {
#pragma unroll
      for (int r_12 = 0; r_12 < 8; ++r_12) {
        const f32 x_15 = v_cast[r_11*8 + r_12] - v_max;
        const f32 x_16 = tw_exp(x_15);
        const f32 x_17 = acc_2 + x_16;
        acc_2 = x_17;
      }
    }
    const f32 x_18 = tw_shuffle_xor(acc_2, 1);
    const f32 x_19 = acc_2 + x_18;
    acc_2 = x_19;
    const f32 x_20 = tw_shuffle_xor(acc_2, 2);
    const f32 x_21 = acc_2 + x_20;
    acc_2 = x_21;
    const f32 x_22 = tw_shuffle_xor(acc_2, 4);
    const f32 x_23 = acc_2 + x_22;
    acc_2 = x_23;
    const f32 x_24 = tw_shuffle_xor(acc_2, 8);
    const f32 x_25 = acc_2 + x_24;
    acc_2 = x_25;
    const f32 x_26 = tw_shuffle_xor(acc_2, 16);
    const f32 x_27 = acc_2 + x_26;
    acc_2 = x_27;
    f32* const part_2 = (f32*)(shared + 16);
    if (tw_thread() % 32 == 0) {
      part_2[(tw_thread() / 32)] = acc_2;
    }
    tw_sync();
    acc_2 = part_2[0];
#pragma unroll
    for (int w_2 = 0; w_2 < 1; ++w_2) {
      const f32 x_28 = part_2[1];
      const f32 x_29 = acc_2 + x_28;
      acc_2 = x_29;
    }
    f32 v_reduce_2;  // f32[1,1]
    v_reduce_2 = acc_2;
    f32 v_carried;  // f32[1,1]
    const f32 x_30 = tw_exp(v_for_2);
    const f32 x_31 = v_for * x_30;
    const f32 x_32 = x_31 + v_reduce_2;
    v_carried = x_32;
    f32 v_carried_2;  // f32[1,1]
    v_carried_2 = v_max;
    v_for = v_carried;
    v_for_2 = v_carried_2;
  }

  if (tw_thread() == 0) {
    const f32 x_33 = v_for + v_for_2;
    tw_store_f32x1(y_ + (pid0) * y__s0, x_33);
  }
}

// how many blocks of a multiprocessor: they share its registers
#ifndef TW_BLOCKS
#define TW_BLOCKS 16
#endif
extern "C" __global__ void __launch_bounds__(64, TW_BLOCKS) tw_row_parts_6617968e(const __grid_constant__ Args args) {
  tw_grid_dependency_sync();
  const i64 M = args.dims[0];
  const i64 instances = max(M, 0);
  for (i64 instance = tw_block(); instance < instances; instance += tw_blocks()) {
    body(args, instance, tw_shared(), nullptr);
    tw_sync();
  }
}
