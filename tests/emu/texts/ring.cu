// y = 2 x of f32 rows: boxes of ROWS x COLS go through a ring of STAGES stages, one warp brings
// them, four warps double them in place and send them back. The blocks of a cluster of CL take
// turns: each brings its boxes into the shared memory of all, and each stores its share of rows.
//   RANK 2 boxes of a matrix, 1 runs of bytes (then x is one row of a block after the other)
struct Args { void* data[2]; i64 dims[2]; i64 strides[4]; TwTensorMap maps[2]; };
#define BOX (ROWS * COLS)
#define SHARE (ROWS / CL)
extern "C" __global__ void __launch_bounds__(160) CLUSTER tw_ring(const __grid_constant__ Args args) {
  u8* shared = (u8*)(((u64)tw_shared() + 1023) & ~1023ul);
  f32* box = (f32*)shared;
  u64* full = (u64*)(shared + STAGES * BOX * 4);
  u64* empty = full + STAGES;
  const int thread = tw_thread(), warp = thread / 32;
  const u32 rank = CL > 1 ? tw_cluster_rank() : 0;
  if (thread == 0) {
    for (int i = 0; i < STAGES; ++i) {
      tw_mbarrier_init(full + i, 1);
      tw_mbarrier_init(empty + i, CL);
    }
    tw_mbarrier_fence_init();
  }
  if (CL > 1) {
    tw_cluster_arrive();
    tw_cluster_wait();
  } else {
    tw_sync();  // barriers are there
  }
  const i64 wide = args.dims[1] / COLS, boxes = (args.dims[0] + ROWS - 1) / ROWS * wide;
  const i64 first = tw_block() / CL, step = tw_blocks() / CL;
  int stage = 0;
  u32 phase = 0;
  if (warp == 4) {
    if (tw_elect()) {
      for (i64 i = first; i < boxes; i += step) {
        tw_mbarrier_wait(empty + stage, phase ^ 1);
        tw_mbarrier_arrive_expect(full + stage, BOX * 4);
        f32* to = box + stage * BOX + rank * SHARE * COLS;
        const i32 row = (i32)(i / wide) * ROWS + rank * SHARE, column = (i32)(i % wide) * COLS;
#if CL > 1
        tw_tma_load_2d_multicast(to, &args.maps[0], full + stage, column, row, (1 << CL) - 1);
#elif RANK == 2
        tw_tma_load_2d(to, &args.maps[0], full + stage, column, row);
#else
        tw_bulk_load(to, (const f32*)args.data[0] + i * BOX, BOX * 4, full + stage);
#endif
        if (++stage == STAGES) {
          stage = 0;
          phase ^= 1;
        }
      }
    }
  } else {
    for (i64 i = first; i < boxes; i += step) {
      f32* from = box + stage * BOX;
      tw_mbarrier_wait(full + stage, phase);
      for (int k = thread; k < SHARE * COLS; k += 128) from[rank * SHARE * COLS + k] *= 2;
      tw_fence_async();
      tw_named_sync(1, 128);  // the box is doubled
      if (thread == 0) {
        from += rank * SHARE * COLS;
#if RANK == 2
        tw_tma_store_2d(&args.maps[1], from, (i32)(i % wide) * COLS,
                        (i32)(i / wide) * ROWS + rank * SHARE);
#else
        tw_bulk_store((f32*)args.data[1] + i * BOX, from, BOX * 4);
#endif
        tw_bulk_commit();
        tw_bulk_wait_read<0>();
      }
      if (CL > 1 && thread == 0) {
        for (int r = 0; r < CL; ++r) tw_mbarrier_arrive_remote(empty + stage, r);
      }
      if (CL == 1 && thread == 0) tw_mbarrier_arrive(empty + stage);
      if (++stage == STAGES) {
        stage = 0;
        phase ^= 1;
      }
    }
  }
#if CL > 1
  tw_cluster_arrive();
  tw_cluster_wait();  // nobody comes to this block's memory any more
#endif
}
