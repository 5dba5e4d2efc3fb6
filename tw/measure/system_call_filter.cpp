#include "tw/measure/impl/system_call_filter.h"

#include <cerrno>
#include <cstdio>
#include <fstream>
#include <string>
#include <sys/mman.h>
#include <sys/syscall.h>

namespace tw::measure {

namespace {

struct Range {
  uint64_t begin, end;
};

/// What of this process's memory stays as it is, in order and merged.
std::vector<Range> kept_ranges() {
  std::vector<Range> all;
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    unsigned long begin = 0, end = 0;
    char access[5] = "";
    if (std::sscanf(line.c_str(), "%lx-%lx %4s", &begin, &end, access) != 3) continue;
    if (access[1] == 'w' && access[3] != 's') continue;
    if (!all.empty() && all.back().end == begin)
      all.back().end = end;
    else
      all.push_back({begin, end});
  }
  return all;
}

constexpr uint32_t low(uint64_t v) { return static_cast<uint32_t>(v); }
constexpr uint32_t high(uint64_t v) { return static_cast<uint32_t>(v >> 32); }

sock_filter recall(uint32_t slot) { return BPF_STMT(BPF_LD | BPF_MEM, slot); }
sock_filter keep(uint32_t slot) { return BPF_STMT(BPF_ST, slot); }
sock_filter to_index() { return BPF_STMT(BPF_MISC | BPF_TAX, 0); }
sock_filter plus_index() { return BPF_STMT(BPF_ALU | BPF_ADD | BPF_X, 0); }

/// Slots 0 and 1: low and high half of where memory ends that starts at the first argument and is
/// as long as the second says.
Filter end_of_memory() {
  const uint32_t at = argument(0), length = argument(1);
  return {load(length), to_index(), load(at), plus_index(), keep(0), load(at), to_index(),
          recall(0),
          // The lower halves carry when their sum is less than either.
          BPF_JUMP(BPF_JMP | BPF_JGE | BPF_X, 0, 2, 0), BPF_STMT(BPF_LD | BPF_IMM, 1),
          BPF_STMT(BPF_JMP | BPF_JA, 1), BPF_STMT(BPF_LD | BPF_IMM, 0), to_index(), load(at + 4),
          plus_index(), to_index(), load(length + 4), plus_index(), keep(1)};
}

/// Refuses when the memory overlaps the range.
Filter outside(const Range& r) {
  return {load(argument(0) + 4),
          jump_if(BPF_JGT, high(r.end), 9, 0),
          jump_if(BPF_JEQ, high(r.end), 0, 2),
          load(argument(0)),
          jump_if(BPF_JGE, low(r.end), 6, 0),
          recall(1),
          jump_if(BPF_JGT, high(r.begin), 3, 0),
          jump_if(BPF_JEQ, high(r.begin), 0, 3),
          recall(0),
          jump_if(BPF_JGT, low(r.begin), 0, 1),
          answer(fails(EPERM))};
}

void append(Filter& f, const Filter& more) { f.insert(f.end(), more.begin(), more.end()); }

}  // namespace

void append_memory_filter(Filter& f, uint64_t key) {
  // The accumulator holds the call's number. All that go on from here change memory.
  f.push_back(jump_if(BPF_JEQ, SYS_mprotect, 7, 0));
  f.push_back(jump_if(BPF_JEQ, SYS_pkey_mprotect, 6, 0));
  f.push_back(jump_if(BPF_JEQ, SYS_munmap, 5, 0));
  f.push_back(jump_if(BPF_JEQ, SYS_mremap, 4, 0));
  f.push_back(jump_if(BPF_JEQ, SYS_mmap, 0, 2));
  f.push_back(load(argument(3)));
  f.push_back(jump_if(BPF_JSET, MAP_FIXED, 1, 0));
  f.push_back(answer(kAllow));

  append(f, {load(argument(5)), jump_if(BPF_JEQ, low(key), 0, 3), load(argument(5) + 4),
             jump_if(BPF_JEQ, high(key), 0, 1), answer(kAllow)});
  append(f, end_of_memory());
  for (const Range& r : kept_ranges()) append(f, outside(r));
  // To move memory over other memory is like mapping over it.
  append(f,
         {load(offsetof(seccomp_data, nr)), jump_if(BPF_JEQ, SYS_mremap, 0, 3), load(argument(3)),
          jump_if(BPF_JSET, MREMAP_FIXED, 0, 1), answer(fails(EPERM)), answer(kAllow)});
}

}  // namespace tw::measure
