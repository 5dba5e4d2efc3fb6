// O = softmax(Q K^T / sqrt(D)) V of [heads, sequence, D], D = 128, bf16. One warp brings blocks of K
// and V, NWG groups of four warps have 64 rows of Q each.
//   BNK  keys of a block    ST  stages    CAUSAL 0 1    PPG 1: groups take turns
//   OSEP 1: O has shared memory of its own, 0: it takes that of Q    HSEC  heads of a section
//   KVDIV  heads that share K and V    SCALE  log2(e) / sqrt(D)
struct Args { void* data[4]; i64 dims[3]; i64 strides[12]; TwTensorMap maps[4]; };
#define BMQ (64 * NWG)
#define D 128
#define THREADS (128 * (NWG + 1))
#define Q_BYTES (BMQ * D * 2)
#define KV_BYTES (BNK * D * 2)
#define OFF_Q 0
#define OFF_K Q_BYTES
#define OFF_V (OFF_K + ST * KV_BYTES)
#define OFF_O (OFF_V + ST * KV_BYTES)
#define OFF_BAR (OFF_O + (OSEP ? Q_BYTES : 0))
#define LEAST __builtin_bit_cast(f32, 0xff800000u)

__device__ __forceinline__ int smaller(int a, int b) { return a < b ? a : b; }
__device__ __forceinline__ int greater(int a, int b) { return a > b ? a : b; }
__device__ __forceinline__ f32 larger(f32 a, f32 b) { return a > b ? a : b; }
struct Work { int mb, bh, n; };
// Heavy blocks first in a section of heads, whose K and V then stay in the cache.
__device__ __forceinline__ Work work_of(int t, int mblocks, int heads, int Sq, int Sk) {
  const int per = HSEC * mblocks, sec = t / per, r = t - sec * per, h0 = sec * HSEC, hs = smaller(HSEC, heads - h0);
  const int q = r / hs;
  Work w;
  w.bh = h0 + (r - q * hs);
#if CAUSAL
  w.mb = mblocks - 1 - q;
  const int hi = smaller(Sk, (w.mb + 1) * BMQ + Sk - Sq);
  w.n = greater(1, (hi + BNK - 1) / BNK);
#else
  w.mb = q;
  w.n = (Sk + BNK - 1) / BNK;
#endif
  return w;
}

// s[4j + 0, 1] are row 0, columns 8j + 0, 1; s[4j + 2, 3] row 1. Limits are keys of the block that
// the rows see.
template <bool MASK, bool FIRST>
__device__ __forceinline__ void softmax_step(f32 (&s)[BNK / 2], f32 (&m)[2], f32 (&l)[2], f32 (&sc)[2], int col0, int lim0, int lim1) {
  if (MASK) {
#pragma unroll
    for (int j = 0; j < BNK / 8; ++j) {
      const int c = col0 + 8 * j;
      if (c >= lim0) s[4 * j] = LEAST;
      if (c + 1 >= lim0) s[4 * j + 1] = LEAST;
      if (c >= lim1) s[4 * j + 2] = LEAST;
      if (c + 1 >= lim1) s[4 * j + 3] = LEAST;
    }
  }
#pragma unroll
  for (int r = 0; r < 2; ++r) {
    f32 mx = larger(s[2 * r], s[2 * r + 1]);
#pragma unroll
    for (int j = 1; j < BNK / 8; ++j) mx = larger(mx, larger(s[4 * j + 2 * r], s[4 * j + 2 * r + 1]));
    mx = larger(mx, tw_shuffle_xor(mx, 1));
    mx = larger(mx, tw_shuffle_xor(mx, 2));
    if (!FIRST) mx = larger(mx, m[r]);
    const f32 use = (MASK && mx == LEAST) ? 0 : mx;
    const f32 ms = use * SCALE;
    sc[r] = FIRST ? 1 : tw_exp2_approx(m[r] * SCALE - ms);
    m[r] = mx;
    f32 sum = 0;
#pragma unroll
    for (int j = 0; j < BNK / 8; ++j) {
      s[4 * j + 2 * r] = tw_exp2_approx(s[4 * j + 2 * r] * SCALE - ms);
      s[4 * j + 2 * r + 1] = tw_exp2_approx(s[4 * j + 2 * r + 1] * SCALE - ms);
      sum += s[4 * j + 2 * r] + s[4 * j + 2 * r + 1];
    }
    l[r] = FIRST ? sum : l[r] * sc[r] + sum;
  }
}
__device__ __forceinline__ void to_p(const f32 (&s)[BNK / 2], u32 (&p)[BNK / 4]) {
#pragma unroll
  for (int i = 0; i < BNK / 4; ++i) p[i] = tw_pack_bf16(s[2 * i], s[2 * i + 1]);
}
__device__ __forceinline__ void gemm_qk(f32 (&s)[BNK / 2], u64 dq, const u8* k0) {
  const u64 dk = tw_wgmma_descriptor<128>(k0, 0, 1024);
  tw_wgmma_keep(s);
  tw_wgmma_fence();
#pragma unroll
  for (int k = 0; k < D / 16; ++k)
    WGMMA_QK(s, dq + (((k / 4) * BMQ * 128 + (k % 4) * 32) >> 4), dk + (((k / 4) * BNK * 128 + (k % 4) * 32) >> 4), k > 0);
  tw_wgmma_commit();
  tw_wgmma_keep(s);
}
__device__ __forceinline__ void gemm_pv(f32 (&o)[D / 2], u32 (&p)[BNK / 4], const u8* v0) {
  const u64 dv = tw_wgmma_descriptor<128>(v0, BNK * 128, 1024);
  tw_wgmma_keep(p);
  tw_wgmma_keep(o);
  tw_wgmma_fence();
#pragma unroll
  for (int k = 0; k < BNK / 16; ++k)
    WGMMA_PV(o, p[4 * k], p[4 * k + 1], p[4 * k + 2], p[4 * k + 3], dv + ((k * 16 * 128) >> 4), true);
  tw_wgmma_commit();
  tw_wgmma_keep(o);
}
#if PPG
#define SCHED_SYNC() tw_named_sync(1 + w, 256)
#define SCHED_NEXT() tw_named_arrive(1 + (w + 1 == NWG ? 0 : w + 1), 256)
#else
#define SCHED_SYNC()
#define SCHED_NEXT()
#endif

extern "C" __global__ void __launch_bounds__(THREADS, 1) tw_fa(const __grid_constant__ Args args) {
  u8* sm = (u8*)(((u64)tw_shared() + 1023u) & ~1023ul);
  u64 *bQf = (u64*)(sm + OFF_BAR), *bQe = bQf + 1, *bKf = bQf + 2, *bKe = bKf + ST, *bVf = bKe + ST, *bVe = bVf + ST;
  const int heads = (int)args.dims[0], Sq = (int)args.dims[1], Sk = (int)args.dims[2];
  const TwTensorMap *tQ = &args.maps[0], *tK = &args.maps[1], *tV = &args.maps[2], *tO = &args.maps[3];
  const int tid = tw_thread(), wg = tid / 128, warp = tw_shuffle(tid / 32, 0);
  if (tid == 0) {
    tw_tma_prefetch(tQ); tw_tma_prefetch(tK); tw_tma_prefetch(tV); tw_tma_prefetch(tO);
    tw_mbarrier_init(bQf, 1);
    tw_mbarrier_init(bQe, NWG);
    for (int i = 0; i < ST; ++i) {
      tw_mbarrier_init(bKf + i, 1);
      tw_mbarrier_init(bKe + i, NWG);
      tw_mbarrier_init(bVf + i, 1);
      tw_mbarrier_init(bVe + i, NWG);
    }
    tw_mbarrier_fence_init();
  }
  tw_sync();
  const int mblocks = (Sq + BMQ - 1) / BMQ, total = mblocks * heads;

  if (wg == 0) {  // ---- producer
    tw_setmaxnreg_dec<(NWG == 3 ? 32 : 24)>();
    if (warp == 0 && tw_elect()) {
      int sk = 0, sv = 0;
      u32 pk = 1, pv = 1, pq = 1;
      for (int t = (int)tw_block(); t < total; t += (int)tw_blocks()) {
        const Work w = work_of(t, mblocks, heads, Sq, Sk);
        const int kvh = w.bh / KVDIV;
        tw_mbarrier_wait(bQe, pq);
        pq ^= 1;  // producer
        tw_mbarrier_arrive_expect(bQf, Q_BYTES);
        tw_tma_load_3d(sm + OFF_Q, tQ, bQf, 0, w.mb * BMQ, w.bh);
        tw_tma_load_3d(sm + OFF_Q + BMQ * 128, tQ, bQf, 64, w.mb * BMQ, w.bh);
#pragma unroll 1
        for (int j = w.n - 1; j >= -1; --j) {
          if (j >= 0) {
            u8* k = sm + OFF_K + sk * KV_BYTES;
            tw_mbarrier_wait(bKe + sk, pk);
            tw_mbarrier_arrive_expect(bKf + sk, KV_BYTES);
            tw_tma_load_3d(k, tK, bKf + sk, 0, j * BNK, kvh);
            tw_tma_load_3d(k + BNK * 128, tK, bKf + sk, 64, j * BNK, kvh);
            if (++sk == ST) { sk = 0; pk ^= 1; }
          }
          if (j < w.n - 1) {  // V is one block behind K
            u8* v = sm + OFF_V + sv * KV_BYTES;
            tw_mbarrier_wait(bVe + sv, pv);
            tw_mbarrier_arrive_expect(bVf + sv, KV_BYTES);
            tw_tma_load_3d(v, tV, bVf + sv, 0, (j + 1) * BNK, kvh);
            tw_tma_load_3d(v + BNK * 128, tV, bVf + sv, 64, (j + 1) * BNK, kvh);
            if (++sv == ST) { sv = 0; pv ^= 1; }
          }
        }
      }
    }
  } else {  // ---- consumers
    tw_setmaxnreg_inc<(NWG == 3 ? 160 : 240)>();
    const int w = wg - 1, lt = tid % 128, lane = tid % 32, w4 = tid / 32 % 4;
    int sk = 0, sv = 0;
    u32 pk = 0, pv = 0, pq = 0;
    const int row_in = w * 64 + w4 * 16 + lane / 4, col0 = lane % 4 * 2;
    const int srow = w * 64 + w4 * 16 + lane / 8 % 2 * 8 + lane % 8, scol = lane / 16 * 16;
    const u64 dq = tw_wgmma_descriptor<128>(sm + OFF_Q + w * 64 * 128, 0, 1024);
#if PPG
    if (w == 0) tw_named_arrive(1, 256);
#endif
    f32 s[BNK / 2], o[D / 2], m[2], l[2], sc[2];
    u32 p[BNK / 4];

    for (int t = (int)tw_block(); t < total; t += (int)tw_blocks()) {
      const Work wk = work_of(t, mblocks, heads, Sq, Sk);
      const int row0 = wk.mb * BMQ + row_in;
#if CAUSAL
      const int lim0 = smaller(Sk, row0 + 1 + Sk - Sq), lim1 = smaller(Sk, row0 + 9 + Sk - Sq);
      const int whole = greater(0, smaller(Sk, wk.mb * BMQ + 1 + Sk - Sq)) / BNK;  // blocks that all rows see
#else
      const int lim0 = Sk, lim1 = Sk;
#endif
      tw_mbarrier_wait(bQf, pq);
      pq ^= 1;  // consumer
      // the first block
      int j = wk.n - 1;
      tw_mbarrier_wait(bKf + sk, pk);  // the first
      gemm_qk(s, dq, sm + OFF_K + sk * KV_BYTES);
      tw_wgmma_wait<0>();  // the first
      tw_wgmma_keep(s);
      if (lt == 0) tw_mbarrier_arrive(bKe + sk);  // the first
      if (++sk == ST) { sk = 0; pk ^= 1; }
      softmax_step<true, true>(s, m, l, sc, col0, lim0 - j * BNK, lim1 - j * BNK);
      to_p(s, p);
#pragma unroll
      for (int i = 0; i < D / 2; ++i) o[i] = 0;
      --j;
#pragma unroll 1
      for (; j >= 0; --j) {
        tw_mbarrier_wait(bKf + sk, pk);  // in the loop
        SCHED_SYNC();
        gemm_qk(s, dq, sm + OFF_K + sk * KV_BYTES);
        tw_mbarrier_wait(bVf + sv, pv);  // in the loop
        gemm_pv(o, p, sm + OFF_V + sv * KV_BYTES);
        SCHED_NEXT();
        tw_wgmma_wait<1>();
        tw_wgmma_keep(s);
        if (lt == 0) tw_mbarrier_arrive(bKe + sk);  // in the loop
        if (++sk == ST) { sk = 0; pk ^= 1; }
#if CAUSAL
        if (j >= whole) {
          softmax_step<true, false>(s, m, l, sc, col0, lim0 - j * BNK, lim1 - j * BNK);
        } else
#endif
        softmax_step<false, false>(s, m, l, sc, col0, lim0 - j * BNK, lim1 - j * BNK);
        tw_wgmma_wait<0>();  // in the loop
        tw_wgmma_keep(o);
        tw_wgmma_keep(p);
        if (lt == 0) tw_mbarrier_arrive(bVe + sv);  // in the loop
        if (++sv == ST) { sv = 0; pv ^= 1; }
        to_p(s, p);
#pragma unroll
        for (int i = 0; i < D / 8; ++i) {
          o[4 * i] *= sc[0];
          o[4 * i + 1] *= sc[0];
          o[4 * i + 2] *= sc[1];
          o[4 * i + 3] *= sc[1];
        }
      }
#if OSEP
      if (lt == 0) tw_mbarrier_arrive(bQe);  // Q is read: the producer may load the next tile's
#endif
      // the last product with V
      tw_mbarrier_wait(bVf + sv, pv);  // the last
      gemm_pv(o, p, sm + OFF_V + sv * KV_BYTES);
#pragma unroll
      for (int r = 0; r < 2; ++r) {
        l[r] += tw_shuffle_xor(l[r], 1);
        l[r] += tw_shuffle_xor(l[r], 2);
        sc[r] = l[r] > 0 ? 1 / l[r] : 0;
      }
      tw_wgmma_wait<0>();  // the last
      tw_wgmma_keep(o);
      tw_wgmma_keep(p);
      if (lt == 0) tw_mbarrier_arrive(bVe + sv);  // the last
      if (++sv == ST) { sv = 0; pv ^= 1; }  // the last
      // epilogue: each group stores its rows
      u8* ob = sm + (OSEP ? OFF_O : OFF_Q);
#if OSEP
      if (lt == 0) tw_bulk_wait_read<0>();  // the store before
      tw_named_sync(5 + w, 128);  // O is free
#endif
#pragma unroll
      for (int i = 0; i < D / 16; ++i) {
        const f32* d = &o[8 * i];
        u32 off = srow * 128 + (i % 4) * 32 + scol;
        off ^= ((off >> 7) & 7) << 4;
        tw_stmatrix_x4(ob + (i / 4) * BMQ * 128 + off, tw_pack_bf16(d[0] * sc[0], d[1] * sc[0]), tw_pack_bf16(d[2] * sc[1], d[3] * sc[1]),
                       tw_pack_bf16(d[4] * sc[0], d[5] * sc[0]), tw_pack_bf16(d[6] * sc[1], d[7] * sc[1]));
      }
      tw_fence_async();
      tw_named_sync(5 + w, 128);  // O is there
      if (lt == 0) {
        tw_tma_store_3d(tO, ob + w * 64 * 128, 0, wk.mb * BMQ + w * 64, wk.bh);
        tw_tma_store_3d(tO, ob + BMQ * 128 + w * 64 * 128, 64, wk.mb * BMQ + w * 64, wk.bh);
        tw_bulk_commit();
#if !OSEP
        tw_bulk_wait_read<0>();
        tw_mbarrier_arrive(bQe);
#endif
      }
    }
    if (lt == 0) tw_bulk_wait<0>();
  }
}
