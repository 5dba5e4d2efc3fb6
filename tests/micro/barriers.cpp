#include <fmt/format.h>

#include "tests/micro/micro.h"

namespace tw::test {

namespace {

Tensor counted(const std::vector<int64_t>& dims) {
  return tensor_of(u32, dims, [](int64_t i) { return static_cast<double>(i * 2654435 % 1000003); });
}

uint64_t word_at(const Tensor& t, int64_t i) { return load_bits(u32, t.view().data, i); }

/// Rounds of a block whose threads write for one another behind a barrier in shared memory.
MicroKernel arrive_micro() {
  const Tensor x = counted({4, 64});
  return MicroMaker("barriers", "mbarrier_arrive",
                    {"tw_mbarrier_init", "tw_mbarrier_fence_init", "tw_mbarrier_arrive",
                     "tw_mbarrier_wait"})
      .input(x)
      .output(tensor_of_bits(u32, {4, 64},
                             [&](int64_t i) { return word_at(x, i / 64 * 64 + 63 - i % 64); }),
              {"round 0", "round 1", "round 2", "round 3"})
      .shared(16 + 2 * 256)
      .make(1, 64, R"(  u64* barrier = (u64*)tw_shared();
  u32* all = (u32*)(barrier + 2);
  if (t == 0) {
    tw_mbarrier_init(barrier, 64);
    tw_mbarrier_fence_init();
  }
  tw_sync();
  for (int i = 0; i < 4; ++i) {
    u32* half = all + i % 2 * 64;
    half[t] = x0[i * 64 + t];
    tw_mbarrier_arrive(barrier);
    tw_mbarrier_wait(barrier, i % 2);
    x1[i * 64 + t] = half[63 - t];
  }
)");
}

/// Runs of bytes come and go.
MicroKernel bulk_micro() {
  const Tensor x = counted({3, 1024});
  const int64_t sizes[] = {16, 48, 4096};
  const Tensor want = tensor_of_bits(u32, {3, 1024}, [&](int64_t i) {
    return i % 1024 * 4 < sizes[i / 1024] ? word_at(x, i) + 1 : 0xa5a5a5a5;
  });
  return MicroMaker(
             "barriers", "bulk",
             {"tw_mbarrier_expect", "tw_mbarrier_arrive_expect", "tw_bulk_load", "tw_bulk_store",
              "tw_bulk_commit", "tw_bulk_wait", "tw_bulk_wait_read", "tw_fence_async"})
      .input(x)
      .output(want, {"16 bytes", "48 bytes", "4096 bytes"})
      .shared(3 * 4096 + 32)
      .make(1, 64, R"(  u32* all = (u32*)tw_shared();
  u64* full = (u64*)(all + 3072);
  if (t == 0) {
    for (int i = 0; i < 3; ++i) tw_mbarrier_init(full + i, 1);
    tw_mbarrier_fence_init();
  }
  tw_sync();
  if (t == 0) {
    for (int i = 0; i < 3; ++i) {
      const u32 bytes = i == 0 ? 16 : i == 1 ? 48 : 4096;
      if (i == 1) {
        tw_mbarrier_expect(full + i, bytes);
        tw_mbarrier_arrive(full + i);
      } else {
        tw_mbarrier_arrive_expect(full + i, bytes);
      }
      tw_bulk_load(all + i * 1024, x0 + i * 1024, bytes, full + i);
    }
  }
  for (int i = 0; i < 3; ++i) {
    const int words = i == 0 ? 4 : i == 1 ? 12 : 1024;
    tw_mbarrier_wait(full + i, 0);
    for (int k = t; k < words; k += 64) all[i * 1024 + k] += 1;
  }
  tw_fence_async();
  tw_sync();
  if (t == 0) {
    for (int i = 0; i < 3; ++i) {
      tw_bulk_store(x1 + i * 1024, all + i * 1024, i == 0 ? 16 : i == 1 ? 48 : 4096);
      tw_bulk_commit();
    }
    tw_bulk_wait_read<1>();
    all[0] = 7;
    tw_bulk_wait<0>();
  }
)");
}

/// Two warps give, two take and meet.
MicroKernel named_micro() {
  const Tensor x = counted({64});
  return MicroMaker("barriers", "named", {"tw_named_arrive", "tw_named_sync"})
      .input(x)
      .output(tensor_of_bits(u32, {64},
                             [&](int64_t i) { return word_at(x, 63 - i) + word_at(x, i ^ 33); }))
      .shared(512)
      .make(1, 128, R"(  u32* all = (u32*)tw_shared();
  if (t < 64) {
    all[t] = x0[t];
    tw_named_arrive(3, 128);
  } else {
    tw_named_sync(3, 128);
    const u32 got = all[127 - t];
    all[t] = all[t - 64];
    tw_named_sync(15, 64);
    x1[t - 64] = got + all[t ^ 33];
  }
)");
}

/// Groups of four warps whose values survive when registers change hands, of the 168 that a thread
/// has at first.
MicroKernel registers_micro() {
  const Tensor x = counted({384});
  const Tensor want = tensor_of_bits(u32, {384}, [&](int64_t i) {
    uint32_t sum = 0;
    for (int64_t k = 0; k < 16; ++k)
      sum = sum * 31 + static_cast<uint32_t>(word_at(x, (i + k * 24) % 384));
    return uint64_t{sum};
  });
  return MicroMaker("barriers", "setmaxnreg", {"tw_setmaxnreg_dec", "tw_setmaxnreg_inc"})
      .input(x)
      .output(want)
      .make(1, 384, R"(  u32 own[16], sum = 0;
#pragma unroll
  for (int k = 0; k < 16; ++k) own[k] = x0[(t + k * 24) % 384];
  if (t < 128) {
    tw_setmaxnreg_dec<40>();
#pragma unroll
    for (int k = 0; k < 16; ++k) sum = sum * 31 + own[k];
  } else {
    tw_setmaxnreg_inc<232>();
#pragma unroll
    for (int k = 0; k < 16; ++k) sum = sum * 31 + own[k];
  }
  x1[t] = sum;
)");
}

}  // namespace

std::vector<MicroKernel> barrier_micros() {
  return {arrive_micro(), bulk_micro(), named_micro(), registers_micro()};
}

// ---- clusters

namespace {

constexpr int64_t kBlocks = 4, kGrid = 8;

MicroKernel rank_micro() {
  return MicroMaker("clusters", "cluster_rank", {"tw_cluster_rank"})
      .output(tensor_of(i32, {kGrid, 32},
                        [](int64_t i) { return static_cast<double>(i / 32 % kBlocks); }))
      .cluster(kBlocks)
      .make(kGrid, 32, "  x0[tw_block() * 32 + t] = tw_cluster_rank();\n");
}

/// Each block writes to the memory of all others, and reads that of the next.
MicroKernel peers_micro() {
  const auto value = [](int64_t block, int64_t thread) { return block * 1000 + thread; };
  const Tensor got = tensor_of(u32, {kGrid, kBlocks, 32}, [&](int64_t i) {
    const int64_t block = i / 128, from = i / 32 % kBlocks;
    return static_cast<double>(value(block / kBlocks * kBlocks + from, i % 32));
  });
  const Tensor next = tensor_of(u32, {kGrid, 32}, [&](int64_t i) {
    const int64_t block = i / 32, first = block / kBlocks * kBlocks;
    return static_cast<double>(value(first + (block + 1) % kBlocks, 31 - i % 32) * 3);
  });
  return MicroMaker(
             "clusters", "cluster_shared",
             {"tw_cluster_shared", "tw_cluster_arrive", "tw_cluster_wait", "tw_cluster_sync"})
      .output(got)
      .output(next)
      .cluster(kBlocks)
      .shared(5 * 128)
      .make(kGrid, 32, R"(  u32* all = (u32*)tw_shared();
  const u32 rank = tw_cluster_rank();
  const u32 value = (u32)tw_block() * 1000 + t;
  all[128 + t] = value * 3;
  tw_cluster_sync();  // the blocks are there
  for (u32 r = 0; r < 4; ++r) *tw_cluster_shared(all + rank * 32 + t, r) = value;
  x1[tw_block() * 32 + t] = *tw_cluster_shared(all + 128 + 31 - t, (rank + 1) % 4);
  tw_cluster_arrive();
  tw_cluster_wait();
  for (int r = 0; r < 4; ++r) x0[(tw_block() * 4 + r) * 32 + t] = all[r * 32 + t];
)");
}

/// Arrivals at the barrier of the block before.
MicroKernel remote_micro() {
  const Tensor want = tensor_of(u32, {kGrid, 32}, [](int64_t i) {
    const int64_t block = i / 32, first = block / kBlocks * kBlocks;
    return static_cast<double>((first + (block + 1) % kBlocks) * 100 + i % 32);
  });
  return MicroMaker("clusters", "mbarrier_arrive_remote", {"tw_mbarrier_arrive_remote"})
      .output(want)
      .cluster(kBlocks)
      .shared(16 + 128)
      .make(kGrid, 32, R"(  u64* barrier = (u64*)tw_shared();
  u32* all = (u32*)(barrier + 2);
  const u32 before = (tw_cluster_rank() + 3) % 4;
  if (t == 0) {
    tw_mbarrier_init(barrier, 32);
    tw_mbarrier_fence_init();
  }
  tw_cluster_sync();  // barriers are there
  *tw_cluster_shared(all + t, before) = (u32)tw_block() * 100 + t;
  tw_mbarrier_arrive_remote(barrier, before);
  tw_mbarrier_wait(barrier, 0);
  x0[tw_block() * 32 + t] = all[t];
  tw_cluster_sync();  // nobody comes to this block's memory any more
)");
}

}  // namespace

std::vector<MicroKernel> cluster_micros() { return {rank_micro(), peers_micro(), remote_micro()}; }

}  // namespace tw::test
