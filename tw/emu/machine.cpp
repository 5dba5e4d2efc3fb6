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
      blocks_(static_cast<size_t>(grid_.resident)) {
  constexpr uint64_t kModes = 6;
  constexpr uint32_t kRates[] = {0, 4, 8, 32};
  in_turn_ = seed % kModes == 0;
  starve_ = seed % kModes;
  preempt_ = kRates[random_.below(4)];
  const auto warps = static_cast<size_t>((grid_.threads + kLanes - 1) / kLanes);
  for (size_t slot = 0; slot < blocks_.size(); ++slot) {
    blocks_[slot].slot = slot;
    blocks_[slot].shared = grid_.shared[slot];
    blocks_[slot].threads = std::vector<Thread>(static_cast<size_t>(grid_.threads));
    blocks_[slot].warps.resize(warps);
  }
  table_.blocks = grid_.blocks;
}

// ---- scheduling

/// Modes 2 to 5 starve a kind of threads: odd warps, the first warp, first lanes, even blocks.
static bool is_starved(uint64_t mode, int thread, size_t slot) {
  const int warp = thread / kLanes;
  if (mode == 2) return warp % 2 == 1;
  if (mode == 3) return warp == 0;
  if (mode == 4) return thread % kLanes == 0;
  return mode == 5 && slot % 2 == 0;
}

void Machine::start_block(Block& block, int64_t number) {
  block.number = number;
  ++changes_;
  block.arrived = block.ended = 0;
  memory_.forget(block.shared);
  for (Warp& w : block.warps) w = {};
  const auto warps = static_cast<int64_t>(block.warps.size());
  for (int i = 0; i < grid_.threads; ++i) {
    Thread& t = block.threads[static_cast<size_t>(i)];
    const size_t stack = block.slot * static_cast<size_t>(grid_.threads) + static_cast<size_t>(i);
    t.text = {.stack = stacks_.stack(stack),
              .stack_bytes = FiberStacks::kBytes,
              .thread = i,
              .block = number,
              .shared = reinterpret_cast<uint8_t*>(memory_.region(block.shared).begin)};
    t.fiber.prepare(t.text.stack, FiberStacks::kBytes, [] { running_->run_thread(); });
    t.clock.start(number * grid_.threads + i, number * warps + i / kLanes, number);
    t.block = &block;
    t.warp = &block.warps[static_cast<size_t>(i / kLanes)];
    t.lane = i % kLanes;
    t.starved = is_starved(starve_, i, block.slot);
    t.call = t.asked = {};
    t.copies.clear();
    t.groups = 0;
    t.warp->lanes[static_cast<size_t>(t.lane)] = &t;
    t.warp->present |= 1u << t.lane;
    make_ready(t);
  }
}

void Machine::start_next(Block& block) {
  if (next_block_ == grid_.blocks) {
    --running_blocks_;
    return;
  }
  start_block(block, next_block_++);
}

std::optional<Finding> Machine::run() {
  running_ = this;
  running_blocks_ = grid_.resident;
  for (Block& b : blocks_) start_next(b);
  while (!finding_ && running_blocks_ > 0) {
    if (Thread* t = pick()) {
      switch_to(*t);
    } else {
      deadlock();
    }
    for (Block* b : ended_blocks_) start_next(*b);
    ended_blocks_.clear();
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
  constexpr uint32_t kMercy = 256;  // who waits in a loop for the starved gets there in the end
  const bool second = ready_[0].empty() || (!ready_[1].empty() && random_.below(kMercy) == 0);
  std::deque<Thread*>& from = ready_[second ? 1 : 0];
  if (from.empty()) return nullptr;
  if (!in_turn_) std::swap(from.front(), from[random_.below(static_cast<uint32_t>(from.size()))]);
  Thread* t = from.front();
  from.pop_front();
  return t;
}

void Machine::leave() { Fiber::jump(current_->fiber, scheduler_); }

void Machine::wait_here() { leave(); }

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
  if (block.arrived > 0)
    fail(EmuFault::divergence,
         fmt::format("thread {} of block {} has ended while thread {} waits in {} @0",
                     t.text.thread, block.number, block.first->text.thread, block.first->call.kind),
         {at_line(block.first->call.line)});
  warp.present &= ~(1u << t.lane);
  if (warp.arrived != 0 && warp.arrived == warp.present) complete_warp(warp);
  if (++block.ended == grid_.threads) ended_blocks_.push_back(&block);
}

std::string Machine::where_all_wait(std::vector<Place>& places) const {
  struct Group {
    int count = 0, first = 0;
    std::string last;
  };
  std::map<std::tuple<int64_t, std::string, int32_t>, Group> groups;
  for (const Block& b : blocks_) {
    for (const Thread& t : b.threads) {
      const bool ended = t.warp && (t.warp->present >> t.lane & 1) == 0;
      if (!t.warp || ended) continue;
      const bool waits = t.call.kind != nullptr;
      const Call& call = waits ? t.call : t.asked;
      if (!call.kind) continue;
      Group& g = groups[{b.number, (waits ? "in " : "in a loop around ") + std::string(call.kind),
                         call.line}];
      if (g.count++ == 0) g.first = t.text.thread;
    }
  }
  std::string text;
  for (const auto& [key, g] : groups) {
    constexpr size_t kMost = 10;
    if (places.size() == kMost) break;
    text += fmt::format("\n  block {}: {} threads, thread {} among them, {} @{}", std::get<0>(key),
                        g.count, g.first, std::get<1>(key), places.size());
    places.push_back(at_line(std::get<2>(key)));
  }
  return text;
}

void Machine::deadlock() {
  std::vector<Place> places;
  const std::string waits = where_all_wait(places);
  find({EmuFault::deadlock, "nobody can go on:" + waits, std::move(places)});
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

static std::string who(const Moment& m, int threads) {
  return fmt::format("thread {} of block {}", m.thread % threads, m.block);
}

void Machine::fail_access(const Conflict& c, const Region& r, bool write, uint64_t bytes,
                          Place place) {
  const std::string me = who(current_->clock.now(), grid_.threads);
  const std::string what = fmt::format("{} {} {} bytes of {} at byte {} @0", me,
                                       write ? "writes" : "reads", bytes, r.name, c.offset);
  if (c.kind == Conflict::Kind::uninitialised)
    fail(EmuFault::uninitialised, what + "\n  nothing has written there", {place});
  const Moment& m = memory_.moment(c.other);
  const bool flies = c.other.place.has(Place::kInFlight);
  fail(EmuFault::race,
       fmt::format("{}\n  not ordered behind: {} {} there @1{}", what, who(m, grid_.threads),
                   c.other_writes ? "writes" : "reads",
                   flies ? ", a copy that is not waited for" : ""),
       {place, c.other.place});
}

// ---- accesses

Region& Machine::region_of(const void* address, uint64_t bytes, bool write, Place place) {
  Region* r = memory_.find(address, bytes);
  const Region* own = &memory_.region(current_->block->shared);
  if (r && (!r->shared || r == own) && (!write || r->writable)) return *r;
  const std::string me = who(current_->clock.now(), grid_.threads);
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
  Region& r = region_of(address, bytes, write, place);
  if (write && !r.shared && !place.has(Place::kAtomic)) ++changes_;
  if (!grid_.check) return;
  const int64_t offset = static_cast<char*>(address) - r.begin;
  const auto n = static_cast<int64_t>(bytes);
  Clock& clock = current_->clock;
  const std::optional<Conflict> c =
      write ? memory_.write(clock, r, offset, n, place) : memory_.read(clock, r, offset, n, place);
  if (c) fail_access(*c, r, write, bytes, place);
}

void Machine::fault(int32_t line, void* address, uint64_t alignment) {
  const std::string me = who(current_->clock.now(), grid_.threads);
  if (alignment == 0)
    fail(EmuFault::out_of_bounds, me + " leaves the bounds of a local array @0", {at_line(line)});
  fail(
      EmuFault::misaligned,
      fmt::format("{} uses address {} as one of a multiple of {} bytes @0", me, address, alignment),
      {at_line(line)});
}

}  // namespace tw::emu
