#include "tw/emu/impl/machine.h"

#include <fmt/format.h>

#include "tw/base/error.h"

namespace tw::emu {

Machine* Machine::running_ = nullptr;

Place at_line(int32_t line) { return {static_cast<uint32_t>(line) & Place::kValue}; }

Machine::Machine(TextTable& table, Memory& memory, FiberStacks& stacks, Grid grid, uint64_t seed)
    : table_(table),
      memory_(memory),
      stacks_(stacks),
      grid_(std::move(grid)),
      random_(seed),
      blocks_(static_cast<size_t>(grid_.resident)),
      clusters_(blocks_.size() / static_cast<size_t>(grid_.cluster)) {
  const uint64_t modes = grid_.warp_groups ? 8 : 6;
  constexpr uint32_t kRates[] = {0, 4, 8, 32};
  constexpr uint32_t kAsyncRates[] = {0, 8, 64, 300, 1024};  // never unless nobody can run, always
  in_turn_ = seed % modes == 0;
  starve_ = seed % modes;
  preempt_ = kRates[random_.below(4)];
  if (grid_.warp_groups) {
    async_rate_ = kAsyncRates[random_.below(5)];
    elected_ = static_cast<int>(random_.below(kLanes));
  }
  const auto warps = static_cast<size_t>((grid_.threads + kLanes - 1) / kLanes);
  for (size_t slot = 0; slot < blocks_.size(); ++slot) {
    Block& b = blocks_[slot];
    b.slot = slot;
    b.shared = grid_.shared[slot];
    b.threads = std::vector<Thread>(static_cast<size_t>(grid_.threads));
    b.warps.resize(warps);
    b.cluster = &clusters_[slot / static_cast<size_t>(grid_.cluster)];
  }
  for (size_t i = 0; i < clusters_.size(); ++i) {
    clusters_[i].first = i * static_cast<size_t>(grid_.cluster);
  }
  table_.blocks = grid_.blocks;
}

// ---- scheduling

/// Modes from 2 on starve a kind of threads: odd warps, the first warp, first lanes, even blocks.
/// Where groups of four warps have roles: the first group, the others, the second, first threads of
/// groups, even blocks, odd blocks; the third and the fourth group where one block is resident.
static bool is_starved(uint64_t mode, bool warp_groups, int thread, size_t slot, bool alone) {
  const int unit = warp_groups ? kGroupThreads : kLanes, number = thread / unit;
  const bool lead = warp_groups;
  switch (mode) {
    case 2:
      return lead ? number == 0 : number % 2 == 1;
    case 3:
      return lead ? number > 0 : number == 0;
    case 4:
      return lead ? number == 1 : thread % unit == 0;
    case 5:
      return lead ? thread % unit == 0 : slot % 2 == 0;
    default:
      return mode >= 6 && (alone ? number == static_cast<int>(mode) - 4 : slot % 2 == mode % 2);
  }
}

void Machine::reset(Thread& t) {
  t.text.in_flight = nullptr;
  t.text.in_flight_bytes = 0;
  t.call = t.asked = {};
  t.copies.clear();
  t.groups = 0;
  t.wait = {};
  t.in_cluster_barrier = false;
  t.setmaxnregs = 0;
  t.bulk = {};
  t.wgmma_fenced = false;
  t.others_done = !grid_.early;
  t.wgmmas = 0;
  t.wgmma_groups = 0;
  t.in_flight.clear();
}

void Machine::start_block(Block& block, int64_t number) {
  constexpr int kRegisters = 65536, kMostOfThread = 255, kUnit = 8;
  block.number = number;
  ++changes_;
  block.arrived = block.ended = 0;
  memory_.forget(block.shared);
  const Region& shared = memory_.region(block.shared);
  released_.erase(released_.lower_bound(shared.begin),
                  released_.lower_bound(shared.begin + shared.bytes));
  block.mbarriers.clear();
  block.named = {};
  block.groups = std::vector<WarpGroup>(static_cast<size_t>(grid_.threads / kGroupThreads));
  block.free_registers = 0;
  block.wants_registers.clear();
  block.touches.clear();
  block.ends.clear();
  block.has_ended = false;
  for (WarpGroup& g : block.groups) {
    g.agent = new_agent(fmt::format("a product of warps {} to {} of block {}",
                                    4 * (&g - block.groups.data()),
                                    4 * (&g - block.groups.data()) + 3, number));
  }
  for (Warp& w : block.warps) {
    w = {};
    w.registers = std::min(kMostOfThread, kRegisters / grid_.threads / kUnit * kUnit);
  }
  const auto warps = static_cast<int64_t>(block.warps.size());
  for (int i = 0; i < grid_.threads; ++i) {
    Thread& t = block.threads[static_cast<size_t>(i)];
    const size_t stack = block.slot * static_cast<size_t>(grid_.threads) + static_cast<size_t>(i);
    t.text = {.stack = stacks_.stack(stack),
              .stack_bytes = FiberStacks::kBytes,
              .in_flight = nullptr,
              .in_flight_bytes = 0,
              .thread = i,
              .block = number,
              .shared = reinterpret_cast<uint8_t*>(memory_.region(block.shared).begin)};
    t.fiber.prepare(t.text.stack, FiberStacks::kBytes, [] { running_->run_thread(); });
    t.clock.start(number * grid_.threads + i, number * warps + i / kLanes, number,
                  memory_.moments());
    t.block = &block;
    t.warp = &block.warps[static_cast<size_t>(i / kLanes)];
    t.lane = i % kLanes;
    t.starved = is_starved(starve_, grid_.warp_groups, i, block.slot, blocks_.size() == 1);
    reset(t);
    t.warp->lanes[static_cast<size_t>(t.lane)] = &t;
    t.warp->present |= 1u << t.lane;
    make_ready(t);
  }
}

/// The blocks of a cluster end and start together.
void Machine::start_next(Cluster& cluster) {
  if (next_block_ >= grid_.blocks) {
    running_blocks_ -= grid_.cluster;
    return;
  }
  cluster.alive = grid_.cluster * grid_.threads;
  cluster.arrived = cluster.ended_blocks = 0;
  cluster.generation = 0;
  cluster.arrivals.clear();
  cluster.released = nullptr;
  for (int i = 0; i < grid_.cluster; ++i)
    start_block(blocks_[cluster.first + static_cast<size_t>(i)], next_block_++);
}

std::optional<Finding> Machine::run() {
  running_ = this;
  running_blocks_ = grid_.resident;
  for (Cluster& c : clusters_) start_next(c);
  while (!finding_ && running_blocks_ > 0) {
    const bool idle = ready_[0].empty() && ready_[1].empty();
    const bool async = idle || (async_rate_ > 0 && random_.below(1024) < async_rate_);
    if (async && run_async()) continue;
    if (Thread* t = pick()) {
      switch_to(*t);
    } else {
      deadlock();
    }
    for (Cluster* c : ended_) start_next(*c);
    ended_.clear();
  }
  running_ = nullptr;
  return finding_;
}

void Machine::switch_to(Thread& t) {
  current_ = &t;
  table_.self = &t.text;
  Fiber::jump(scheduler_, t.fiber);
}

void Machine::make_ready(Thread& t) { ready_[t.starved ? 1 : 0].push_back(&t); }

Thread* Machine::pick() {
  // Who waits in a loop for the starved gets there in the end.
  constexpr int64_t kPatience = 1 << 12;
  const uint32_t mercy = idle_ > kPatience ? 2 : 256;
  const bool second = ready_[0].empty() || (!ready_[1].empty() && random_.below(mercy) == 0);
  std::deque<Thread*>& from = ready_[second ? 1 : 0];
  if (from.empty()) return nullptr;
  if (!in_turn_) std::swap(from.front(), from[random_.below(static_cast<uint32_t>(from.size()))]);
  Thread* t = from.front();
  from.pop_front();
  return t;
}

void Machine::leave() { Fiber::jump(current_->fiber, scheduler_); }

void Machine::wait_here() { leave(); }

void Machine::wait_in(std::vector<Thread*>& queue, const Wait& wait) {
  queue.push_back(current_);
  current_->wait = wait;
  leave();
  current_->wait = {};
}

void Machine::wake(std::vector<Thread*>& queue) {
  idle_ = 0;
  for (Thread* t : queue) make_ready(*t);
  queue.clear();
}

void Machine::offer() {
  if (preempt_ == 0 || random_.below(preempt_) != 0) return;
  make_ready(*current_);
  leave();
}

void Machine::run_thread() {
  grid_.start(grid_.parameter);
  end_thread();
  for (;;) leave();
}

void Machine::end_thread() {
  Thread& t = *current_;
  settle(t, t.groups);
  idle_ = 0;
  Block& block = *t.block;
  Warp& warp = *t.warp;
  const std::string me =
      fmt::format("thread {} of block {} has ended", t.text.thread, block.number);
  if (block.arrived > 0)
    fail(EmuFault::divergence,
         fmt::format("{} while thread {} waits in {} @0", me, block.first->text.thread,
                     block.first->call.kind),
         {at_line(block.first->call.line)});
  if (!t.in_flight.empty())
    fail(EmuFault::in_flight, me + " before a wait for its product @0",
         {at_line(t.in_flight.back().line)});
  if (t.bulk.open || t.bulk.waited < t.bulk.groups)
    fail(EmuFault::in_flight, me + " before a wait for its store @0", {at_line(t.bulk.line)});
  warp.present &= ~(1u << t.lane);
  if (warp.arrived != 0 && warp.arrived == warp.present) complete_warp(warp);
  Cluster& cluster = *block.cluster;
  if (--cluster.alive == cluster.arrived && cluster.arrived > 0) complete_cluster(cluster);
  block.ends.push_back(t.clock.release());
  if (++block.ended < grid_.threads) return;
  end_block(block);
  if (++cluster.ended_blocks == grid_.cluster) ended_.push_back(&cluster);
}

/// Nothing may reach the shared memory of a block that has ended.
void Machine::end_block(Block& block) {
  block.has_ended = true;
  if (block.mbarriers.empty() && block.touches.empty()) return;
  const KnowledgePtr known = knowledge_of(join_, block.ends);
  const std::string end = fmt::format("block {} has ended", block.number);
  for (const auto& [thread, touch] : block.touches) {
    if (known->is_behind(touch.moment)) continue;
    fail(EmuFault::in_flight,
         fmt::format("{} without waiting for {}, which comes to its shared memory @0", end,
                     who(touch.moment)),
         {touch.place});
  }
  for (const auto& [offset, b] : block.mbarriers) {
    if (b.copies_until == 0 && b.bytes == 0) continue;
    if (b.bytes == 0 && known->threads.of(b.agent) >= b.copies_until) continue;
    fail(EmuFault::in_flight,
         fmt::format("{} without waiting for copies that complete at barrier {} @0", end, offset),
         {at_line(b.line)});
  }
}

// ---- reports

void Machine::find(Finding finding) {
  if (!finding_) finding_ = std::move(finding);
}

void Machine::die() {
  for (;;) leave();
}

void Machine::fail(EmuFault fault, std::string text, std::vector<Place> places) {
  find({fault, std::move(text), std::move(places)});
  die();
}

// ---- accesses

void Machine::expect_others_done(Place place) {
  if (current_->others_done) return;
  fail(EmuFault::race,
       who(current_->clock.now()) +
           " comes to global memory @0, and nothing waits for the launches before this one",
       {place});
}

Region& Machine::region_of(const void* address, uint64_t bytes, bool write, Place place) {
  Region* r = memory_.find(address, bytes);
  const Region* own = &memory_.region(current_->block->shared);
  if (r && !r->shared) expect_others_done(place);
  if (r && (!r->shared || r == own) && (!write || r->writable)) return *r;
  for (int i = 0; r && grid_.cluster > 1 && i < grid_.cluster; ++i) {
    Block& peer = blocks_[current_->block->cluster->first + static_cast<size_t>(i)];
    if (r != &memory_.region(peer.shared)) continue;
    touch(peer, place);
    return *r;
  }
  const std::string me = who(current_->clock.now());
  if (r && !r->shared)
    fail(EmuFault::out_of_bounds, fmt::format("{} writes to the input {} @0", me, r->name),
         {place});
  const Region* near = memory_.nearest(address);
  const std::string at = near ? fmt::format("byte {} of {}{}, which has {}",
                                            static_cast<const char*>(address) - near->begin,
                                            near->shared && near != own ? "another block's " : "",
                                            near->name, near->bytes)
                              : fmt::format("address {}, far from all arguments", address);
  fail(EmuFault::out_of_bounds,
       fmt::format("{} {} {} bytes at {} @0", me, write ? "writes" : "reads", bytes, at), {place});
}

void Machine::access(void* address, uint64_t bytes, bool write, Place place) {
  constexpr int64_t kPatience = 1 << 14;
  if (write) idle_ = 0;
  if (++idle_ % kPatience == 0) {  // a loop that waits for a plain store
    make_ready(*current_);
    leave();
  }
  if (bytes == 0) return;
  const auto on_stack = static_cast<uint64_t>(static_cast<char*>(address) - current_->text.stack);
  if (on_stack < current_->text.stack_bytes) {
    touch_in_flight(static_cast<char*>(address), bytes, write, place);
    return;
  }
  Region& r = region_of(address, bytes, write, place);
  if (write && !r.shared && !place.has(Place::kAtomic)) ++changes_;
  if (!grid_.check) return;
  const int64_t offset = static_cast<char*>(address) - r.begin;
  const auto n = static_cast<int64_t>(bytes);
  Clock& clock = current_->clock;
  const std::optional<Conflict> c =
      write ? memory_.write(clock, r, offset, n, place) : memory_.read(clock, r, offset, n, place);
  if (!c) return;
  find(access_finding(who(clock.now()), *c, r, write, n, place));
  die();
}

void Machine::fault(TextFault kind, int32_t line, const void* address, uint64_t alignment) {
  const std::string me = who(current_->clock.now());
  switch (kind) {
    case TextFault::out_of_bounds:
      fail(EmuFault::out_of_bounds, me + " leaves the bounds of a local array @0", {at_line(line)});
    case TextFault::shift:
      fail(EmuFault::out_of_bounds, me + " shifts by as many bits as there are, or more, @0",
           {at_line(line)});
    case TextFault::misaligned:
      break;
  }
  fail(
      EmuFault::misaligned,
      fmt::format("{} uses address {} as one of a multiple of {} bytes @0", me, address, alignment),
      {at_line(line)});
}

}  // namespace tw::emu
