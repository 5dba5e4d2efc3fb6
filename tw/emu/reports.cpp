#include <algorithm>
#include <fmt/format.h>
#include <tuple>

#include "tw/emu/impl/machine.h"

namespace tw::emu {
namespace {

const Call& call_of(const Thread& t) { return t.call.kind ? t.call : t.asked; }

std::string threads_of(const std::vector<int64_t>& arrived, int threads) {
  constexpr size_t kShown = 4;
  std::vector<std::string> shown;
  for (size_t i = 0; i < std::min(arrived.size(), kShown); ++i)
    shown.push_back(fmt::format("{} of block {}", arrived[i] % threads, arrived[i] / threads));
  const char* more = arrived.size() > kShown ? ", .." : "";
  return shown.empty() ? "none" : fmt::format("threads {}{}", fmt::join(shown, ", "), more);
}

}  // namespace

std::string Machine::who(const Moment& m) const {
  if (m.thread < 0) return agents_[static_cast<size_t>(-m.thread - 1)];
  return fmt::format("thread {} of block {}", m.thread % grid_.threads, m.block);
}

Finding Machine::access_finding(const std::string& me, const Conflict& c, const Region& r,
                                bool write, int64_t bytes, Place place) const {
  const std::string what = fmt::format("{} {} {} bytes of {} at byte {} @0", me,
                                       write ? "writes" : "reads", bytes, r.name, c.offset);
  if (c.kind == Conflict::Kind::uninitialised)
    return {EmuFault::uninitialised, what + "\n  nothing has written there", {place}};
  const std::string other = who(memory_.moment(c.other));
  if (c.kind == Conflict::Kind::barrier)
    return {
        EmuFault::barrier, what + "\n  a barrier is there, initialised @1", {place, c.other.place}};
  if (c.kind == Conflict::Kind::unfenced)
    return {
        EmuFault::fence,
        fmt::format("{}\n  {} has written there @1, without tw_fence_async behind it", what, other),
        {place, c.other.place}};
  const bool flies = c.other.place.has(Place::kInFlight);
  return {EmuFault::race,
          fmt::format("{}\n  not ordered behind: {} {} there @1{}", what, other,
                      c.other_writes ? "writes" : "reads",
                      flies ? ", a copy that is not waited for" : ""),
          {place, c.other.place}};
}

// ---- who waits for what

std::string Machine::waits_for(const Thread& t) const {
  const std::string_view kind = t.wait.kind;
  if (kind == "tw_mbarrier_wait") {
    const MBarrier& b = t.block->mbarriers.at(t.wait.what);
    return fmt::format(
        " of barrier {} (number {} of line {}) for the end of a phase of parity {}: it is in phase "
        "{}, where {} of {} arrivals and {} bytes are missing; arrived: {}; in the phase before: "
        "{}; waits",
        b.offset, b.of_line, b.line, t.wait.value, b.phase, b.pending, b.count, b.bytes,
        threads_of(b.arrived, grid_.threads), threads_of(b.arrived_before, grid_.threads));
  }
  if (kind == "tw_named_sync") {
    const NamedBarrier& b = t.block->named[static_cast<size_t>(t.wait.what)];
    return fmt::format(" of barrier {}, to which {} of {} threads have come", t.wait.what,
                       b.arrived, b.expected);
  }
  if (kind == "tw_cluster_wait")
    return fmt::format(", to which {} of {} threads have come", t.block->cluster->arrived,
                       t.block->cluster->alive);
  if (kind == "tw_setmaxnreg_inc")
    return fmt::format(" for {} registers: {} of the block are free, and its {} threads have {}",
                       t.wait.what, t.block->free_registers, kLanes, t.warp->registers);
  return "";
}

/// In which call a thread waits, and for what; empty where it does not.
std::string Machine::describe(const Thread& t) const {
  if (t.wait.kind) return "in " + std::string(t.wait.kind) + waits_for(t);
  if (t.call.kind) return "in " + std::string(t.call.kind);
  return t.asked.kind ? "in a loop around " + std::string(t.asked.kind) : "";
}

std::string Machine::where_all_wait(std::vector<Place>& places) const {
  struct Group {
    int count = 0, first = 0;
  };
  std::map<std::tuple<int64_t, std::string, int32_t>, Group> groups;
  for (const Block& b : blocks_) {
    for (const Thread& t : b.threads) {
      const bool ended = t.warp && (t.warp->present >> t.lane & 1) == 0;
      const std::string what = t.warp && !ended ? describe(t) : "";
      if (what.empty()) continue;
      Group& g = groups[{b.number, what, t.wait.kind ? t.wait.line : call_of(t).line}];
      if (g.count++ == 0) g.first = t.text.thread;
    }
  }
  std::string text;
  for (const auto& [key, g] : groups) {
    constexpr size_t kMost = 10;
    if (places.size() == kMost) break;
    const std::string threads =
        g.count == 1 ? fmt::format("thread {}", g.first)
                     : fmt::format("{} threads, thread {} among them", g.count, g.first);
    text += fmt::format("\n  block {}: {}, {} @{}", std::get<0>(key), threads, std::get<1>(key),
                        places.size());
    places.push_back(at_line(std::get<2>(key)));
  }
  return text;
}

void Machine::deadlock() {
  std::vector<Place> places;
  const std::string waits = where_all_wait(places);
  find({EmuFault::deadlock, "nobody can go on:" + waits, std::move(places)});
}

}  // namespace tw::emu
