#include <algorithm>
#include <cstring>
#include <fmt/format.h>

#include "tests/micro/micro.h"

namespace tw::test {

namespace {

constexpr int64_t kLanes = 32;

/// Bits that look like any.
uint64_t mixed(int64_t i) {
  uint64_t x = static_cast<uint64_t>(i + 1) * 0x9e3779b97f4a7c15;
  x = (x ^ x >> 29) * 0xbf58476d1ce4e5b9;
  return x ^ x >> 32;
}

Tensor mixed_bits(DType t, const std::vector<int64_t>& dims) {
  return tensor_of_bits(t, dims, [t](int64_t i) {
    return t == b1 ? mixed(i) & 1 : bits(t) == 64 ? mixed(i) : mixed(i) & ((1ull << bits(t)) - 1);
  });
}

uint64_t bits_at(const Tensor& t, int64_t i) { return load_bits(t.dtype(), t.view().data, i); }

MicroKernel numbers_micro() {
  const int64_t threads = 64, blocks = 3;
  const Tensor want = tensor_of(i64, {3, blocks * threads}, [&](int64_t i) {
    const int64_t which = i / (blocks * threads), at = i % (blocks * threads);
    return static_cast<double>(which == 0 ? at % threads : which == 1 ? at / threads : blocks);
  });
  return MicroMaker("threads", "numbers", {"tw_thread", "tw_block", "tw_blocks"})
      .output(want, {"tw_thread", "tw_block", "tw_blocks"})
      .make(3, 64, R"(  const i64 at = tw_block() * 64 + t;
  x0[at] = tw_thread();
  x0[192 + at] = tw_block();
  x0[384 + at] = tw_blocks();
)");
}

MicroKernel shared_micro() {
  const Tensor x = mixed_bits(u32, {128});
  return MicroMaker("threads", "shared", {"tw_shared", "tw_sync"})
      .input(x)
      .output(tensor_of_bits(u32, {128}, [&](int64_t i) { return bits_at(x, 127 - i); }))
      .shared(512)
      .make(1, 128, R"(  u32* all = (u32*)tw_shared();
  all[t] = x0[t];
  tw_sync();
  x1[t] = all[127 - t];
)");
}

MicroKernel sync_or_micro() {
  return MicroMaker("threads", "sync_or", {"tw_sync_or"})
      .output(tensor_of(i32, {3, 96}, [](int64_t i) { return i / 96 == 1 ? 0.0 : 1.0; }))
      .make(1, 96, R"(  x0[t] = tw_sync_or(t == 70) != 0;
  x0[96 + t] = tw_sync_or(0) != 0;
  x0[192 + t] = tw_sync_or(t + 1) != 0;
)");
}

MicroKernel sync_warp_micro() {
  const Tensor x = mixed_bits(u64, {64});
  return MicroMaker("threads", "sync_warp", {"tw_sync_warp"})
      .input(x)
      .output(tensor_of_bits(u64, {64}, [&](int64_t i) { return bits_at(x, i ^ 21); }))
      .shared(512)
      .make(1, 64, R"(  u64* all = (u64*)tw_shared();
  all[t] = x0[t];
  tw_sync_warp();
  x1[t] = all[t ^ 21];
)");
}

/// Runs of 4, 8 and 16 bytes, backwards.
MicroKernel runs_micro() {
  const Tensor x = mixed_bits(u32, {3, 128});
  const Tensor want = tensor_of_bits(u32, {3, 128}, [&](int64_t i) {
    const int64_t which = i / 128, words = 1 << which, run = i % 128 / words;
    const int64_t from = run < 32 ? 31 - run : run;
    return run < 32 ? bits_at(x, which * 128 + from * words + i % words) : 0xa5a5a5a5;
  });
  std::string body;
  for (int which = 0; which < 3; ++which) {
    body += fmt::format(
        "  tw_store_run(x1 + {0} + t * {1}, tw_load_run<Pack<u32, {1}>>(x0 + {0} + (31 - t) * "
        "{1}));\n",
        which * 128, 1 << which);
  }
  return MicroMaker("threads", "runs", {"tw_load_run", "tw_store_run"})
      .input(x)
      .output(want, {"of 4 bytes", "of 8 bytes", "of 16 bytes"})
      .make(1, 32, body);
}

/// Parts of words, and words of parts.
MicroKernel parts_micro() {
  const Tensor x = mixed_bits(u32, {32});
  const Tensor parts = tensor_of(i32, {4, 4, 32}, [&](int64_t i) {
    const int64_t type = i / 128, k = i / 32 % 4;
    const uint64_t word = bits_at(x, i % 32);
    if (type < 2)
      return static_cast<double>(static_cast<int64_t>(word >> 8 * k & 255) -
                                 (type == 1 && (word >> (8 * k + 7) & 1) ? 256 : 0));
    return static_cast<double>(static_cast<int64_t>(word >> 16 * (k % 2) & 65535) -
                               (type == 3 && (word >> (16 * (k % 2) + 15) & 1) ? 65536 : 0));
  });
  std::string body;
  for (int type = 0; type < 4; ++type) {
    const char* const names[] = {"u8", "i8", "u16", "i16"};
    body += fmt::format(
        "  {{\n    {0} part[4];\n    for (int k = 0; k < 4; ++k) {{\n"
        "      part[k] = tw_part<{0}>(x0[t], k % {1});\n"
        "      x1[{2} + k * 32 + t] = part[k];\n    }}\n"
        "    x2[{3} + t] = tw_join(part);\n  }}\n",
        names[type], type < 2 ? 4 : 2, type * 128, type * 32);
  }
  return MicroMaker("threads", "parts", {"tw_part", "tw_join"})
      .input(x)
      .output(parts, {"tw_part u8", "tw_part i8", "tw_part u16", "tw_part i16"})
      .output(tensor_of_bits(u32, {4, 32}, [&](int64_t i) { return bits_at(x, i % 32); }),
              {"tw_join u8", "tw_join i8", "tw_join u16", "tw_join i16"})
      .make(1, 32, body);
}

/// Three records of which the last finds no room.
MicroKernel tell_micro() {
  constexpr int64_t kBytes = 256, kWords = kBytes / 8;
  const Tensor before = zeros(u64, {kWords}), after = zeros(u64, {kWords});
  auto *b = before.data<uint64_t>(), *a = after.data<uint64_t>();
  b[0] = sizeof(MessagePart);
  b[1] = kBytes;
  const int64_t first[] = {64, 1, 2, 3, 4, 5}, second[] = {96, 6, 7, 8, 9, -1};
  a[0] = 32 + 64 + 96 + 80;
  a[1] = kBytes;
  a[2] = 1;
  for (size_t i = 0; i < 6; ++i) {
    a[4 + i] = static_cast<uint64_t>(first[i]);
    a[12 + i] = static_cast<uint64_t>(second[i]);
  }
  const double at[] = {80, 144, -1};
  return MicroMaker("threads", "tell", {"tw_tell"})
      .changed(before, after)
      .output(tensor_of(i64, {3}, [&](int64_t i) { return at[i]; }))
      .make(1, 32, R"(  if (t == 0) {
    x1[0] = tw_tell((u8*)x0, 1, 2, 3, 4, 5, 8);
    x1[1] = tw_tell((u8*)x0, 6, 7, 8, 9, -1, 40);
    x1[2] = tw_tell((u8*)x0, 1, 1, 1, 1, 1, 32);
  }
)");
}

/// 16 bytes of each thread, of which some are zeros; two groups.
MicroKernel copy_async_micro() {
  const Tensor x = mixed_bits(u32, {2, 64, 4});
  const auto kept = [](int64_t thread) { return (thread * 3 + 4) % 5; };  // words
  const Tensor want = tensor_of_bits(
      u32, {2, 64, 4}, [&](int64_t i) { return i % 4 < kept(i / 4 % 64) ? bits_at(x, i) : 0; });
  return MicroMaker("threads", "copy_async",
                    {"tw_copy_async_16", "tw_copy_async_commit", "tw_copy_async_wait"})
      .input(x)
      .output(want, {"first group", "second group"})
      .shared(2048)
      .make(1, 64, R"(  u32* all = (u32*)tw_shared();
  for (int i = 0; i < 2; ++i) {
    tw_copy_async_16(all + i * 256 + t * 4, x0 + i * 256 + t * 4, (t * 3 + 4) % 5 * 4);
    tw_copy_async_commit();
  }
  tw_copy_async_wait<1>();
  tw_sync();
  for (int i = t; i < 256; i += 64) x1[i] = all[i];
  tw_copy_async_wait<0>();
  tw_sync();
  for (int i = t; i < 256; i += 64) x1[256 + i] = all[256 + i];
)");
}

/// Eight launches of which each takes what the one before left, in the other order of blocks.
MicroKernel launches_micro() {
  constexpr int64_t kBlocks = 300, kThreads = 64, kCount = kBlocks * kThreads;
  constexpr int kLaunches = 8;
  const Tensor before = mixed_bits(u32, {kCount});
  std::vector<uint32_t> x(static_cast<size_t>(kCount));
  for (int64_t i = 0; i < kCount; ++i)
    x[static_cast<size_t>(i)] = static_cast<uint32_t>(bits_at(before, i));
  for (int k = 0; k < kLaunches; ++k) {
    std::reverse(x.begin(), x.end());
    for (uint32_t& v : x) v = v * 1664525 + 1013904223;
  }
  return MicroMaker("threads", "grid_dependency_sync", {"tw_grid_dependency_sync"})
      .changed(before,
               tensor_of_bits(u32, {kCount},
                              [&](int64_t i) { return uint64_t{x[static_cast<size_t>(i)]}; }))
      .early(kLaunches)
      .make(kBlocks / 2, static_cast<int>(kThreads), R"(  tw_grid_dependency_sync();
  const i64 low = tw_block() * 64 + t, high = 300 * 64 - 1 - low;
  const u32 was = x0[low];
  x0[low] = x0[high] * 1664525 + 1013904223;
  x0[high] = was * 1664525 + 1013904223;
)");
}

// ---- warps

struct Shuffle {
  const char* name;
  const char* argument;  ///< of round k, in the text
  int64_t (*from)(int64_t lane, int64_t k);
};

int64_t xor_mask(int64_t k) {
  return std::vector<int64_t>{1, 2, 5, 16, 31}[static_cast<size_t>(k)];
}

const Shuffle kShuffles[] = {
    {"shuffle_xor", "k == 0 ? 1 : k == 1 ? 2 : k == 2 ? 5 : k == 3 ? 16 : 31",
     [](int64_t lane, int64_t k) { return lane ^ xor_mask(k); }},
    {"shuffle_up", "k * 7",
     [](int64_t lane, int64_t k) { return lane < k * 7 ? lane : lane - k * 7; }},
    {"shuffle", "(t * k + 3 * k) % 32",
     [](int64_t lane, int64_t k) { return (lane * k + 3 * k) % kLanes; }},
};

/// Values of every type.
MicroKernel shuffle_micro(const Shuffle& s) {
  constexpr int64_t kThreads = 64, kRounds = 5;
  MicroMaker m("warps", s.name, {std::string("tw_") + s.name});
  std::string body;
  int args = 0;
  for (const DType type : {u8, i8, u16, i16, b1, u32, i32, f32, u64, i64, f64}) {
    const Tensor x = mixed_bits(type, {kThreads});
    m.input(x).output(tensor_of_bits(type, {kRounds, kThreads},
                                     [&](int64_t i) {
                                       const int64_t warp = i % kThreads / kLanes * kLanes;
                                       return bits_at(x, warp + s.from(i % kLanes, i / kThreads));
                                     }),
                      {name(type)});
    const std::string value =
        type == b1 ? fmt::format("x{}[t] != 0", args) : fmt::format("x{}[t]", args);
    body += fmt::format("  for (int k = 0; k < 5; ++k) x{}[k * 64 + t] = tw_{}({}, {});\n",
                        args + 1, s.name, value, s.argument);
    args += 2;
  }
  return m.make(1, 64, body);
}

MicroKernel votes_micro() {
  const auto says = [](int64_t thread, int64_t k) {
    return k == 0 ? thread % 3 == 0 : k == 1 ? false : k == 2 ? true : thread == 37;
  };
  const auto ballot = [&](int64_t i) {
    uint64_t all = 0;
    for (int64_t lane = 0; lane < kLanes; ++lane)
      all |= uint64_t{says(i % 64 / kLanes * kLanes + lane, i / 64)} << lane;
    return all;
  };
  return MicroMaker("warps", "votes", {"tw_ballot", "tw_any"})
      .output(tensor_of_bits(u32, {4, 64}, ballot),
              {"tw_ballot thirds", "tw_ballot none", "tw_ballot all", "tw_ballot one"})
      .output(tensor_of_bits(u32, {4, 64}, [&](int64_t i) { return ballot(i) != 0; }),
              {"tw_any thirds", "tw_any none", "tw_any all", "tw_any one"})
      .make(1, 64, R"(  for (int k = 0; k < 4; ++k) {
    const bool says = k == 0 ? t % 3 == 0 : k == 1 ? false : k == 2 ? true : t == 37;
    x0[k * 64 + t] = tw_ballot(says);
    x1[k * 64 + t] = tw_any(says);
  }
)");
}

/// One lane of each warp, whichever.
MicroKernel elect_micro() {
  return MicroMaker("warps", "elect", {"tw_elect"})
      .output(tensor_of(u32, {96}, [](int64_t) { return 1; }))
      .make(1, 96, R"(  const u32 elected = tw_ballot(tw_elect());
  u32 count = 0;
  for (int lane = 0; lane < 32; ++lane) count += elected >> lane & 1;
  x0[t] = count;
)");
}

}  // namespace

std::vector<MicroKernel> thread_micros() {
  return {numbers_micro(), shared_micro(), sync_or_micro(),    sync_warp_micro(), runs_micro(),
          parts_micro(),   tell_micro(),   copy_async_micro(), launches_micro()};
}

std::vector<MicroKernel> warp_micros() {
  std::vector<MicroKernel> all;
  for (const Shuffle& s : kShuffles) all.push_back(shuffle_micro(s));
  all.push_back(votes_micro());
  all.push_back(elect_micro());
  return all;
}

}  // namespace tw::test
