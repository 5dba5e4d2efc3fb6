#include "tw/emu/impl/order.h"

#include <algorithm>

namespace tw::emu {
namespace {

using Counts = std::map<int64_t, uint32_t>;

void join_counts(Counts& into, const Counts& from) {
  for (const auto& [who, count] : from) {
    uint32_t& most = into[who];
    most = std::max(most, count);
  }
}

bool has_passed(const Counts& counts, int64_t who, uint32_t count) {
  const auto it = counts.find(who);
  return it != counts.end() && it->second > count;
}

}  // namespace

KnowledgePtr joined(const KnowledgePtr& a, const KnowledgePtr& b) {
  if (!a || a == b) return b;
  if (!b) return a;
  auto both = std::make_shared<Knowledge>(*a);
  join_counts(both->threads, b->threads);
  join_counts(both->warps, b->warps);
  join_counts(both->blocks, b->blocks);
  return both;
}

KnowledgePtr Clock::release() {
  auto all = known_ ? std::make_shared<Knowledge>(*known_) : std::make_shared<Knowledge>();
  ++now_.releases;
  number_ = 0;
  join_counts(all->threads, {{now_.thread, now_.releases}});
  join_counts(all->warps, {{now_.warp, now_.warp_syncs}});
  join_counts(all->blocks, {{now_.block, now_.block_syncs}});
  return all;
}

bool Clock::knows(const Moment& m) const {
  return has_passed(known_->threads, m.thread, m.releases) ||
         has_passed(known_->warps, m.warp, m.warp_syncs) ||
         has_passed(known_->blocks, m.block, m.block_syncs);
}

}  // namespace tw::emu
