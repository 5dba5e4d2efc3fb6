// C[M, N] = ALPHA A[M, K] B: one warp brings stages of A and B, groups of four warps multiply them.
//   EB  bytes of an element (2 bf16, 1 e4m3)    BM BN BKB  tile; BKB bytes of K a stage (128 k)
//   ST  stages    CWG consumer groups    CM CN  cluster along M, N    GRP  raster: tiles of a group
//   TB  1: B is [K, N], 0: B is [N, K]    EPW  columns of a chunk of the epilogue    EPB  its buffers
//   PP  ping-pong: 0 all groups share a tile, 1 each has a tile of its own, 2 without the order of
//       groups that this needs    SK  blocks of a cluster that share K
struct Args { void* data[3]; i64 dims[3]; i64 strides[6]; TwTensorMap maps[3]; };
#define MI (PP ? BM / 64 : BM / (64 * CWG))
#define CHUNKS (BKB / 128)
#define CHUNK (128 / EB)  // elements of K
#define BK (BKB / EB)
#define A_STAGE (BM * BKB)
#define B_STAGE (BN * BKB)
#define THREADS (128 * (CWG + 1))
#define CL (CM * CN)
#define EP_BYTES (64 * EPW * 2)
#define OFF_A 0
#define OFF_B (ST * A_STAGE)
#define OFF_C (OFF_B + ST * B_STAGE)
#define OFF_BAR (OFF_C + CWG * EPB * EP_BYTES)
#define SWM (EPW == 64 ? 7 : EPW == 32 ? 3 : 1)

struct Tile { int m, n; };
__device__ __forceinline__ int smaller(int a, int b) { return a < b ? a : b; }
__device__ __forceinline__ Tile tile_of(int t, int tiles_m, int tiles_n) {
  const int span = GRP * tiles_n, g = t / span, r = t - g * span, first = g * GRP;
  const int size = smaller(tiles_m - first, GRP), q = r / size;
  return Tile{first + (r - q * size), q};
}

extern "C" __global__ void __launch_bounds__(THREADS, 1) CLUSTER tw_gemm(const __grid_constant__ Args args) {
  u8* sm = (u8*)(((u64)tw_shared() + 1023u) & ~1023ul);
  u64* full = (u64*)(sm + OFF_BAR);
  u64* empty = full + ST;
  const int M = (int)args.dims[0], N = (int)args.dims[1], K = (int)args.dims[2];
  const TwTensorMap *tA = &args.maps[0], *tB = &args.maps[1], *tC = &args.maps[2];
  const int tid = tw_thread(), wg = tid / 128, warp = tw_shuffle(tid / 32, 0);
  const u32 rank = CL * SK > 1 ? tw_cluster_rank() : 0;
  if (tid == 0) {
    tw_tma_prefetch(tA); tw_tma_prefetch(tB); tw_tma_prefetch(tC);
    for (int i = 0; i < ST; ++i) {
      tw_mbarrier_init(full + i, 1);
      tw_mbarrier_init(empty + i, (PP ? 1 : CWG) * CL);
    }
    tw_mbarrier_fence_init();
  }
#if CL * SK > 1
  tw_cluster_arrive(); tw_cluster_wait();  // barriers are there
#else
  tw_sync();  // barriers are there
#endif
  const int tiles_m = ((M + BM - 1) / BM + CM - 1) / CM, tiles_n = ((N + BN - 1) / BN + CN - 1) / CN;
  const int total = tiles_m * tiles_n;
  const int cm = CM > 1 ? rank : 0, cn = CN > 1 ? rank : 0;
  const int first = (int)tw_block() / (CL * SK), step = (int)tw_blocks() / (CL * SK);
  const int all_k = (K + BK - 1) / BK;
#if SK > 1
  const int per_k = (all_k + SK - 1) / SK, k_begin = rank * per_k;
  const int rest_k = smaller(per_k, all_k - k_begin), KT = rest_k > 0 ? rest_k : 0;
#else
  const int k_begin = 0, KT = all_k;
#endif

  if (wg == 0) {  // ---- producer
#if CWG >= 2
    tw_setmaxnreg_dec<(CWG == 3 ? 32 : 40)>();
#endif
    if (warp == 0 && tw_elect()) {
      int s = 0;
      u32 ph = 1;
      for (int t = first; t < total; t += step) {
        const Tile tl = tile_of(t, tiles_m, tiles_n);
        const int m0 = (tl.m * CM + cm) * BM, n0 = (tl.n * CN + cn) * BN;
#pragma unroll 1
        for (int kt = 0; kt < KT; ++kt) {
          u64* fb = full + s;
          u8 *a = sm + OFF_A + s * A_STAGE, *b = sm + OFF_B + s * B_STAGE;
          const int k0 = (k_begin + kt) * BK;
          tw_mbarrier_wait(empty + s, ph);
          tw_mbarrier_arrive_expect(fb, A_STAGE + B_STAGE);
#pragma unroll
          for (int c = 0; c < CHUNKS; ++c) {
#if CN > 1
            tw_tma_load_2d_multicast(a + c * BM * 128 + cn * (BM / CN) * 128, tA, fb, k0 + c * CHUNK, m0 + cn * (BM / CN), (1 << CN) - 1);
#else
            tw_tma_load_2d(a + c * BM * 128, tA, fb, k0 + c * CHUNK, m0);
#endif
#if !TB
#if CM > 1
            tw_tma_load_2d_multicast(b + c * BN * 128 + cm * (BN / CM) * 128, tB, fb, k0 + c * CHUNK, n0 + cm * (BN / CM), (1 << CM) - 1);
#else
            tw_tma_load_2d(b + c * BN * 128, tB, fb, k0 + c * CHUNK, n0);
#endif
#endif
          }
#if TB
#pragma unroll
          for (int c = 0; c < BN / 64 / CM; ++c) {
            const int cc = c + cm * (BN / 64 / CM);
#if CM > 1
            tw_tma_load_2d_multicast(b + cc * BK * 128, tB, fb, n0 + cc * 64, k0, (1 << CM) - 1);
#else
            tw_tma_load_2d(b + cc * BK * 128, tB, fb, n0 + cc * 64, k0);
#endif
          }
#endif
          if (++s == ST) { s = 0; ph ^= 1; }  // producer
        }
      }
    }
  } else {  // ---- consumers
#if CWG == 2
    tw_setmaxnreg_inc<232>();
#elif CWG == 3
    tw_setmaxnreg_inc<160>();
#endif
    const int w = wg - 1, lt = tid % 128, lane = tid % 32, w4 = tid / 32 % 4;
    f32 acc[MI][BN / 2];
    int s = 0;
    u32 ph = 0;  // consumer
    int chunk_no = 0;
    u8* ep = sm + OFF_C + w * EPB * EP_BYTES;
    // matrix lane / 8 of a chunk, row lane % 8 of it; the column is in bytes
    const int srow = w4 * 16 + lane / 8 % 2 * 8 + lane % 8, scol = lane / 16 * 16;
#if PP
    int it = 0;
#endif
#if PP == 1
    if (w == 1) tw_named_arrive(3, 256);
#endif
    for (int t = first; t < total; t += step) {
      const Tile tl = tile_of(t, tiles_m, tiles_n);
      const int m0 = (tl.m * CM + cm) * BM, n0 = (tl.n * CN + cn) * BN;
#if PP
      if (it++ % 2 != w) {  // the other group's tile: its stages are not ours
        s += KT;
        ph ^= (u32)(s / ST) & 1;
        s %= ST;
        continue;
      }
#endif
#if PP == 1
      tw_named_sync(3 + w, 256);  // the other group has passed all waits of the tile before
#endif
      int prev = 0;
#pragma unroll 1
      for (int kt = 0; kt < KT; ++kt) {
        tw_mbarrier_wait(full + s, ph);
        const u8 *a = sm + OFF_A + s * A_STAGE + (PP ? 0 : w * MI * 64 * 128), *b = sm + OFF_B + s * B_STAGE;
        const u64 da = tw_wgmma_descriptor<128>(a, 0, 1024);
        const u64 db = tw_wgmma_descriptor<128>(b, TB ? BK * 128 : 0, 1024);
#pragma unroll
        for (int mi = 0; mi < MI; ++mi) tw_wgmma_keep(acc[mi]);
        tw_wgmma_fence();
#pragma unroll
        for (int k = 0; k < BKB / 32; ++k) {
#pragma unroll
          for (int mi = 0; mi < MI; ++mi)
            WGMMA(acc[mi], da + (((k / 4) * BM * 128 + mi * 64 * 128 + (k % 4) * 32) >> 4),
                  db + (TB ? (k * 16 * 128) >> 4 : ((k / 4) * BN * 128 + (k % 4) * 32) >> 4), k > 0 || kt > 0);
        }
        tw_wgmma_commit();
#pragma unroll
        for (int mi = 0; mi < MI; ++mi) tw_wgmma_keep(acc[mi]);
        tw_wgmma_wait<1>();
        if (kt > 0) {
#if CL > 1
          if (lt < CL) tw_mbarrier_arrive_remote(empty + prev, lt);  // in the loop
#else
          if (lt == 0) tw_mbarrier_arrive(empty + prev);  // in the loop
#endif
        }
        prev = s;
        if (++s == ST) { s = 0; ph ^= 1; }  // consumer
      }
      tw_wgmma_wait<0>();
#pragma unroll
      for (int mi = 0; mi < MI; ++mi) tw_wgmma_keep(acc[mi]);
#if CL > 1
      if (lt < CL) tw_mbarrier_arrive_remote(empty + prev, lt);  // behind the loop
#else
      if (lt == 0) tw_mbarrier_arrive(empty + prev);  // behind the loop
#endif
#if PP == 1
      tw_named_arrive(3 + (w ^ 1), 256);
#endif
#if SK == 1
      // ---- epilogue: registers, swizzled chunks in shared memory, stores
#pragma unroll
      for (int mi = 0; mi < MI; ++mi) {
#pragma unroll
        for (int c = 0; c < BN / EPW; ++c) {
          u8* buf = ep + (chunk_no % EPB) * EP_BYTES;
          ++chunk_no;
          if (lt == 0) tw_bulk_wait_read<EPB - 1>();
          tw_named_sync(1 + w, 128);  // the chunk is free
#pragma unroll
          for (int j = 0; j < EPW / 16; ++j) {
            const f32* d = &acc[mi][c * (EPW / 2) + j * 8];
            u32 off = srow * (EPW * 2) + j * 32 + scol;
            off ^= ((off >> 7) & SWM) << 4;
            tw_stmatrix_x4(buf + off, tw_pack_bf16(d[0] * ALPHA, d[1] * ALPHA), tw_pack_bf16(d[2] * ALPHA, d[3] * ALPHA),
                           tw_pack_bf16(d[4] * ALPHA, d[5] * ALPHA), tw_pack_bf16(d[6] * ALPHA, d[7] * ALPHA));
          }
          tw_fence_async();
          tw_named_sync(1 + w, 128);  // the chunk is full
          if (lt == 0) {
            tw_tma_store_2d(tC, buf, n0 + c * EPW, m0 + (PP ? 0 : w * MI * 64) + mi * 64);
            tw_bulk_commit();
          }
        }
      }
#endif
    }
#if SK == 1
    if (lt == 0) tw_bulk_wait<0>();
#endif
#if SK > 1
    // ---- the cluster shares K: sums go to shared memory, whose stages are done with
    if (KT == 0) {
#pragma unroll
      for (int mi = 0; mi < MI; ++mi)
#pragma unroll
        for (int i = 0; i < BN / 2; ++i) acc[mi][i] = 0;
    }
    tw_named_sync(1, 128 * CWG);  // all consumers are done with the stages
    const int ct = tid - 128;
#pragma unroll
    for (int mi = 0; mi < MI; ++mi)
#pragma unroll
      for (int i = 0; i < BN / 4; ++i)
        *(Pack<f32, 2>*)(sm + ((mi * (BN / 4) + i) * (128 * CWG) + ct) * 8) = Pack<f32, 2>{{acc[mi][2 * i], acc[mi][2 * i + 1]}};
#endif
  }
#if SK > 1
  tw_sync();
  tw_cluster_arrive(); tw_cluster_wait();  // sums are there
  if (wg > 0) {
    const int w = wg - 1, lane = tid % 32, w4 = tid / 32 % 4, ct = tid - 128;
    const Tile tl = tile_of(first, tiles_m, tiles_n);
    constexpr int NP = MI * (BN / 4), PER = NP / SK;  // pairs, and those of a block
    const u8* peer[SK];
#pragma unroll
    for (int r = 0; r < SK; ++r) peer[r] = tw_cluster_shared(sm, r);
#pragma unroll 4
    for (int i = 0; i < PER; ++i) {
      const int p = rank * PER + i, mi = p / (BN / 4), q = p % (BN / 4);
      f32 x = 0, y = 0;
#pragma unroll
      for (int r = 0; r < SK; ++r) {
        const Pack<f32, 2> v = *(const Pack<f32, 2>*)(peer[r] + (p * (128 * CWG) + ct) * 8);
        x += v.v[0];
        y += v.v[1];
      }
      const int row = tl.m * BM + w * MI * 64 + mi * 64 + w4 * 16 + lane / 4 + q % 2 * 8;
      const int col = tl.n * BN + q / 2 * 8 + lane % 4 * 2;
      if (row < M && col < N) *(u32*)((u16*)args.data[2] + (i64)row * N + col) = tw_pack_bf16(x * ALPHA, y * ALPHA);
    }
  }
#endif
#if CL * SK > 1
  tw_sync();
  tw_cluster_arrive(); tw_cluster_wait();  // nobody comes to this block's memory any more
#endif
}
