#include <cstring>
#include <fmt/format.h>

#include "tw/emu/impl/machine.h"

namespace tw::emu {
namespace {

constexpr int64_t kBarrierBytes = 8, kMostCount = (1 << 20) - 1, kMostBytes = (1 << 20) - 1;

}  // namespace

void Machine::misuse(const std::string& what, int32_t line) {
  fail(EmuFault::barrier, fmt::format("{} {} @0", who(current_->clock.now()), what),
       {at_line(line)});
}

int64_t Machine::new_agent(const std::string& name) {
  agents_.push_back(name);
  return -static_cast<int64_t>(agents_.size());
}

uint32_t Machine::shared_address(const void* p, int32_t line) {
  const Region& r = memory_.region(current_->block->shared);
  const int64_t offset = static_cast<const char*>(p) - r.begin;
  if (offset < 0 || offset > r.bytes)
    fail(EmuFault::out_of_bounds,
         fmt::format("{} takes an address that is none of its shared memory @0",
                     who(current_->clock.now())),
         {at_line(line)});
  return grid_.shared_base + static_cast<uint32_t>(offset);
}

// ---- barriers in shared memory

void Machine::mbarrier(const char* kind, void* p, uint32_t value, int32_t rank, int32_t line) {
  offer();
  Block& own = *current_->block;
  const int64_t offset = shared_address(p, line) - grid_.shared_base;
  const std::string_view what = kind;
  if (what == "tw_mbarrier_init") return init_mbarrier(own, offset, value, line);
  Block& block = rank < 0 ? own : peer_block(static_cast<uint32_t>(rank), line);
  if (&block != &own) touch(block, at_line(line));
  MBarrier& b = mbarrier_at(block, offset, &block != &own, line);
  if (what == "tw_mbarrier_wait") return wait_mbarrier(b, value, line);
  if (what != "tw_mbarrier_arrive" && what != "tw_mbarrier_arrive_remote")
    expect_bytes(b, value, line);
  if (what != "tw_mbarrier_expect") arrive_at(block, b, kind, line);
}

void Machine::init_mbarrier(Block& block, int64_t offset, uint32_t count, int32_t line) {
  char* p = shared_at(block, offset);
  expect_aligned(p, kBarrierBytes, line);
  if (count < 1 || count > kMostCount) misuse(fmt::format("wants {} arrivals", count), line);
  Place place = at_line(line);
  place.bits |= Place::kBarrier;
  access(p, kBarrierBytes, true, place);
  int before = 0;
  for (const auto& [other, b] : block.mbarriers) before += b.line == line ? 1 : 0;
  MBarrier& b = block.mbarriers[offset];
  b.offset = offset;
  b.of_line = before;
  b.agent = new_agent(fmt::format("a copy to barrier {} of block {}", offset, block.number));
  b.line = line;
  b.initialised = current_->clock.now();
  b.count = b.pending = count;
}

MBarrier& Machine::mbarrier_at(Block& block, int64_t offset, bool announced, int32_t line) {
  const auto it = block.mbarriers.find(offset);
  if (it == block.mbarriers.end())
    misuse(fmt::format("uses a barrier at byte {} of shared memory, where none is", offset), line);
  MBarrier& b = it->second;
  const char* lacks = !current_->clock.is_behind(b.initialised) ? "nothing orders that behind"
                      : announced && !b.announced ? "tw_mbarrier_fence_init is not called behind"
                                                  : nullptr;
  if (lacks)
    fail(EmuFault::barrier,
         fmt::format("{} uses barrier {} of block {} @0\n  {} its initialisation @1",
                     who(current_->clock.now()), offset, block.number, lacks),
         {at_line(line), at_line(b.line)});
  return b;
}

void Machine::expect_bytes(MBarrier& b, uint32_t bytes, int32_t line) {
  b.bytes += bytes;
  if (b.bytes > kMostBytes)
    misuse(fmt::format("makes barrier {} expect {} bytes", b.offset, b.bytes), line);
}

void Machine::arrive_at(Block& block, MBarrier& b, const char* kind, int32_t line) {
  Thread& t = *current_;
  if (b.pending == 0)
    misuse(fmt::format("comes to {} of barrier {} of block {}, where {} have arrived in phase {}",
                       kind, b.offset, block.number, b.count, b.phase),
           line);
  b.arrivals.push_back(t.clock.release());
  b.arrived.push_back(t.clock.now().thread);
  --b.pending;
  complete_phase(b);
}

/// When all have arrived and all bytes are there.
void Machine::complete_phase(MBarrier& b) {
  if (b.pending != 0 || b.bytes != 0) return;
  ++b.phase;
  b.pending = b.count;
  Past copies;
  copies.passed = {.thread = b.agent, .releases = b.phase};
  b.arrivals.push_back(copies);
  b.released = join_(b.released, knowledge_of(join_, b.arrivals));
  b.arrivals.clear();
  b.arrived_before = std::move(b.arrived);
  b.arrived.clear();
  b.moment = 0;
  wake(b.waiting);
}

void Machine::wait_mbarrier(MBarrier& b, uint32_t parity, int32_t line) {
  if (parity > 1) misuse(fmt::format("waits for parity {}", parity), line);
  while (b.phase % 2 == parity)
    wait_in(b.waiting, {"tw_mbarrier_wait", line, b.offset, static_cast<int64_t>(parity)});
  if (b.released) learn(*current_, b.released);
}

// ---- named barriers

void Machine::named(const char* kind, uint32_t number, uint32_t threads, int32_t line) {
  offer();
  Thread& t = *current_;
  Block& block = *t.block;
  const bool waits = std::strcmp(kind, "tw_named_sync") == 0;
  if (number < 1 || number >= block.named.size())
    misuse(fmt::format("uses barrier {}: wanted 1 to 15", number), line);
  if (threads == 0 || threads % kLanes != 0 || threads > static_cast<uint32_t>(grid_.threads))
    misuse(fmt::format("uses a barrier for {} threads: wanted whole warps of {}", threads,
                       grid_.threads),
           line);
  NamedBarrier& b = block.named[number];
  const auto me = static_cast<size_t>(t.text.thread);
  if (b.arrived == 0) {
    b.expected = threads;
    b.line = line;
  }
  const char* wrong = b.expected != threads ? "with another number of threads" : nullptr;
  if (b.who[me] && !waits) wrong = "a second time";
  if (wrong)
    fail(EmuFault::barrier,
         fmt::format("{} comes to barrier {} {} @0\n  which {} of {} threads have come to @1",
                     who(t.clock.now()), number, wrong, b.arrived, b.expected),
         {at_line(line), at_line(b.line)});
  b.who[me] = true;
  b.arrivals.push_back(t.clock.release());
  const uint32_t generation = b.generation;
  if (++b.arrived < b.expected) {
    while (waits && b.generation == generation)
      wait_in(b.waiting, {kind, line, static_cast<int64_t>(number), 0});
    return;
  }
  const KnowledgePtr all = complete_named(block, b, number, line);
  if (waits) learn(t, all);
}

KnowledgePtr Machine::complete_named(Block& block, NamedBarrier& b, uint32_t number, int32_t line) {
  for (size_t w = 0; w < block.warps.size(); ++w) {
    size_t lanes = 0;
    for (size_t i = 0; i < kLanes; ++i) lanes += b.who[w * kLanes + i] ? 1 : 0;
    if (lanes % kLanes != 0)
      misuse(fmt::format("completes barrier {} with {} lanes of warp {}: hardware counts warps",
                         number, lanes, w),
             line);
  }
  b.arrived = 0;
  b.who.reset();
  ++b.generation;
  KnowledgePtr all = knowledge_of(join_, b.arrivals);
  b.arrivals.clear();
  for (Thread* t : b.waiting) learn(*t, all);
  wake(b.waiting);
  return all;
}

// ---- registers of warps

void Machine::setmaxnreg(const char* kind, int32_t count, int32_t line) {
  offer();
  Thread& t = *current_;
  Block& block = *t.block;
  Warp& warp = *t.warp;
  const bool more = std::strcmp(kind, "tw_setmaxnreg_inc") == 0;
  const bool first = ++t.setmaxnregs > warp.setmaxnregs;  // of its warp
  if (count < 24 || count > 256 || count % 8 != 0)
    misuse(fmt::format("wants {} registers: wanted a multiple of 8 from 24 to 256", count), line);
  const Wait wait{kind, line, count, 0};
  if (first) {
    warp.setmaxnregs = t.setmaxnregs;
    if (more ? count < warp.registers : count > warp.registers)
      misuse(fmt::format("has {} registers and comes to {} with {}", warp.registers, kind, count),
             line);
  }
  if (!more) {
    if (!first) return;
    block.free_registers += (warp.registers - count) * kLanes;
    warp.registers = count;
    wake(block.wants_registers);
    return;
  }
  while (warp.registers < count) {
    const int wanted = (count - warp.registers) * kLanes;
    if (block.free_registers >= wanted) {
      block.free_registers -= wanted;
      warp.registers = count;
      wake(block.wants_registers);
    } else {
      wait_in(block.wants_registers, wait);
    }
  }
}

}  // namespace tw::emu
