#pragma once

#include <cstddef>
#include <cstdint>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <vector>

namespace tw::measure {

// Steps of a filter that the kernel runs before every system call (seccomp).

using Filter = std::vector<sock_filter>;

constexpr uint32_t argument(int i) {
  return static_cast<uint32_t>(offsetof(seccomp_data, args)) + 8 * static_cast<uint32_t>(i);
}

inline sock_filter load(uint32_t offset) { return BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offset); }
inline sock_filter answer(uint32_t with) { return BPF_STMT(BPF_RET | BPF_K, with); }

/// Compares the accumulator (BPF_JEQ, BPF_JGT, ..) and skips so many steps.
inline sock_filter jump_if(uint16_t compare, uint32_t with, size_t then, size_t otherwise) {
  return BPF_JUMP(static_cast<uint16_t>(BPF_JMP | BPF_K | compare), with,
                  static_cast<uint8_t>(then), static_cast<uint8_t>(otherwise));
}

/// The accumulator holds the call's number: any other goes past the next `length` steps.
inline sock_filter unless_is(int number, size_t length) {
  return BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, static_cast<uint32_t>(number), 0,
                  static_cast<uint8_t>(length));
}

inline void append(Filter& f, int number, const Filter& then) {
  f.push_back(unless_is(number, then.size()));
  f.insert(f.end(), then.begin(), then.end());
}

constexpr uint32_t kAllow = SECCOMP_RET_ALLOW, kTrap = SECCOMP_RET_TRAP;
constexpr uint32_t fails(int error) { return SECCOMP_RET_ERRNO | static_cast<uint32_t>(error); }

/// Appends the end of a filter, which allows all but to unmap, map over or give other access to
/// memory that is not writable now, or is shared: code, constants and the judge's tensors. Those
/// who know the key may, see protect().
void append_memory_filter(Filter& f, uint64_t key);

}  // namespace tw::measure
