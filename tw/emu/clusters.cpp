#include <cstring>
#include <fmt/format.h>

#include "tw/emu/impl/machine.h"

namespace tw::emu {

Block& Machine::peer_block(uint32_t rank, int32_t line) {
  if (rank >= static_cast<uint32_t>(grid_.cluster))
    fail(EmuFault::out_of_bounds,
         fmt::format("{} asks for block {} of a cluster of {} @0", who(current_->clock.now()), rank,
                     grid_.cluster),
         {at_line(line)});
  return blocks_[current_->block->cluster->first + rank];
}

/// Notes that the running thread comes to the shared memory of another block.
void Machine::touch(Block& other, Place place) {
  const Moment& now = current_->clock.now();
  if (other.has_ended)
    fail(EmuFault::in_flight,
         fmt::format("{} comes to the shared memory of block {}, which has ended @0", who(now),
                     other.number),
         {place});
  other.touches[now.thread] = {now, place};
}

void* Machine::peer(void* shared, uint32_t rank, int32_t line) {
  const uint32_t offset = shared_address(shared, line) - grid_.shared_base;
  return shared_at(peer_block(rank, line), offset);
}

uint32_t Machine::cluster(const char* kind, int32_t line) {
  Thread& t = *current_;
  Cluster& c = *t.block->cluster;
  const std::string_view what = kind;
  if (what == "tw_cluster_rank") return static_cast<uint32_t>(t.block->slot - c.first);
  offer();
  const bool waits = what == "tw_cluster_wait";
  if (t.in_cluster_barrier != waits)
    misuse(waits ? "waits for the cluster without having arrived"
                 : "arrives a second time at the cluster's barrier",
           line);
  t.in_cluster_barrier = !waits;
  if (!waits) {
    t.cluster_generation = c.generation;
    c.arrivals.push_back(t.clock.release());
    if (++c.arrived == c.alive) complete_cluster(c);
    return 0;
  }
  while (c.generation == t.cluster_generation) wait_in(c.waiting, {kind, line});
  learn(t, c.released);
  return 0;
}

void Machine::complete_cluster(Cluster& c) {
  c.arrived = 0;
  ++c.generation;
  c.released = join_(c.released, knowledge_of(join_, c.arrivals));
  c.arrivals.clear();
  wake(c.waiting);
}

void Machine::fence(const char* kind, int32_t) {
  offer();
  Thread& t = *current_;
  const std::string_view what = kind;
  if (what == "tw_fence_async") {
    t.clock.fence();
  } else if (what == "tw_wgmma_fence") {
    t.wgmma_fenced = true;
  } else if (what == "tw_grid_dependency_sync") {
    t.others_done = true;
  } else {  // of initialised barriers
    for (auto& [offset, b] : t.block->mbarriers) {
      b.announced |= b.initialised.thread == t.clock.now().thread;
    }
  }
}

}  // namespace tw::emu
