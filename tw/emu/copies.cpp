#include <cstring>

#include "tw/emu/impl/machine.h"

namespace tw::emu {
namespace {

constexpr int kCopyBytes = 16;

/// Makes the 16 bytes what the copy says.
void arrive(Copy& c) {
  if (c.arrived) return;
  std::memset(c.to, 0, kCopyBytes);
  std::memcpy(c.to, c.from, static_cast<size_t>(c.bytes));
  c.arrived = true;
}

}  // namespace

void Machine::copy_async(void* shared, const void* global, int32_t bytes, int32_t line) {
  offer();
  Thread& t = *current_;
  expect_aligned(shared, kCopyBytes, line);
  expect_aligned(global, kCopyBytes, line);
  if (bytes < 0 || bytes > kCopyBytes)
    fail(EmuFault::out_of_bounds, "a copy of other than 0 to 16 bytes @0", {at_line(line)});
  Place place = at_line(line);
  access(const_cast<void*>(global), static_cast<uint64_t>(bytes), false, place);
  place.bits |= Place::kInFlight;
  access(shared, kCopyBytes, true, place);
  t.copies.push_back({static_cast<char*>(shared), global, bytes, -1, false, place});
  if (random_.below(2) == 0) arrive(t.copies.back());
}

void Machine::copy_commit() {
  Thread& t = *current_;
  for (Copy& c : t.copies) {
    if (c.group < 0) c.group = t.groups;
  }
  ++t.groups;
}

void Machine::copy_wait(int32_t left) {
  offer();
  settle(*current_, current_->groups - left);
}

/// All groups before `end` have arrived, and the thread knows.
void Machine::settle(Thread& t, int64_t end) {
  size_t kept = 0;
  for (Copy& c : t.copies) {
    if (c.group < 0 || c.group >= end) {
      t.copies[kept++] = c;
      continue;
    }
    arrive(c);
    Region& shared = memory_.region(t.block->shared);
    if (grid_.check) memory_.settle(t.clock, shared, c.to - shared.begin, kCopyBytes, c.place);
  }
  t.copies.resize(kept);
}

}  // namespace tw::emu
