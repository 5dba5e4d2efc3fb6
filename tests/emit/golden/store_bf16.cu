// 64 threads, 0 bytes of shared memory
struct Args {
  void* data[2];
  i64 dims[1];
  i64 strides[2];
  u8* workspace;
};

__device__ __forceinline__ void body(const Args& args, i64 instance, u8* shared, u8* workspace) {
  const f32* const __restrict__ x_ = (const f32*)args.data[0];
  u16* const __restrict__ y_ = (u16*)args.data[1];
  const i64 N = args.dims[0];
  const i64 pid0 = instance;
  const int at = tw_thread() * 8;

  Pack<f32, 4> raw[4];
  const f32* const p = x_ + pid0*1024 + at;
#pragma unroll
  for (int r_2 = 0; r_2 < 2; ++r_2) {
    const f32* const p_2 = p + r_2*512;
#pragma unroll
    for (int piece = 0; piece < 2; ++piece) {
      raw[r_2*2 + piece] = at + r_2*512 + piece*4 + 3 < tw_clamp_high(N - pid0*1024) ? tw_load_run<Pack<f32, 4>>(p_2 + piece*4) : Pack<f32, 4>{};
    }
  }
  const f32* const p_3 = x_ + pid0*1024 + at;
#pragma unroll
  for (int r_3 = 0; r_3 < 2; ++r_3) {
    const f32* const p_4 = p_3 + r_3*512;
#pragma unroll
    for (int piece_2 = 0; piece_2 < 2; ++piece_2) {
      if (!(at + r_3*512 + piece_2*4 + 3 < tw_clamp_high(N - pid0*1024))) {
        const f32* const p_5 = p_4 + piece_2*4;
#pragma unroll
        for (int v = 0; v < 4; ++v) {
          raw[r_3*2 + piece_2].v[v] = (at + r_3*512 + piece_2*4 + v < tw_clamp_high(N - pid0*1024) ? *(p_5 + v) : 0.0f);
        }
      }
    }
  }
  f32 v_load[16];  // f32[1024]
#pragma unroll
  for (int r_4 = 0; r_4 < 2; ++r_4) {
#pragma unroll
    for (int r_5 = 0; r_5 < 8; ++r_5) {
      v_load[r_4*8 + r_5] = tw_unpack_f32(raw[(r_4*8 + r_5) / 4].v[(r_4*8 + r_5) % 4]);
    }
  }

  Pack<u32, 4> raw_2[2];
  f32 wide[16];
#pragma unroll
  for (int r_7 = 0; r_7 < 2; ++r_7) {
#pragma unroll
    for (int r_8 = 0; r_8 < 8; ++r_8) {
      wide[r_7*8 + r_8] = v_load[r_7*8 + r_8];
    }
  }
#pragma unroll
  for (int word = 0; word < 8; ++word) {
    raw_2[(word) / 4].v[(word) % 4] = tw_narrow_bf16x1(wide + word*2);
  }
  u16* const p_6 = y_ + pid0*1024 + at;
#pragma unroll
  for (int r_9 = 0; r_9 < 2; ++r_9) {
    if (at + r_9*512 + 7 < tw_clamp_high(N - pid0*1024)) tw_store_run(p_6 + r_9*512, raw_2[r_9]);
  }
  u16* const p_7 = y_ + pid0*1024 + at;
#pragma unroll
  for (int r_10 = 0; r_10 < 2; ++r_10) {
    if (!(at + r_10*512 + 7 < tw_clamp_high(N - pid0*1024))) {
      u16* const p_8 = p_7 + r_10*512;
#pragma unroll
      for (int v_2 = 0; v_2 < 8; ++v_2) {
        if (at + r_10*512 + v_2 < tw_clamp_high(N - pid0*1024)) {
          *(p_8 + v_2) = tw_part<u16>(raw_2[r_10].v[(v_2) / 2], (r_10*8 + v_2) % 2);
        }
      }
    }
  }
}

// how many blocks of a multiprocessor: they share its registers
#ifndef TW_BLOCKS
#define TW_BLOCKS 24
#endif
extern "C" __global__ void __launch_bounds__(64, TW_BLOCKS) tw_store_bf16_27741230(const __grid_constant__ Args args) {
  tw_grid_dependency_sync();
  const i64 N = args.dims[0];
  const i64 instances = max(cdiv(N, 1024), 0);
  for (i64 instance = tw_block(); instance < instances; instance += tw_blocks()) {
    body(args, instance, tw_shared(), nullptr);
  }
}
