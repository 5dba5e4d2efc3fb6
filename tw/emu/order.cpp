#include "tw/emu/impl/order.h"

#include <algorithm>

namespace tw::emu {
namespace {

bool by_number(const Counts::Entry& a, int64_t who) { return a.first < who; }

bool knows_all_of(const Knowledge& a, const Knowledge& b) {
  return a.threads.covers(b.threads) && a.warps.covers(b.warps) && a.blocks.covers(b.blocks) &&
         a.fenced.covers(b.fenced);
}

KnowledgePtr join_different(const KnowledgePtr& a, const KnowledgePtr& b) {
  if (knows_all_of(*a, *b)) return a;
  if (knows_all_of(*b, *a)) return b;
  return std::make_shared<Knowledge>(
      Knowledge{Counts::larger(a->threads, b->threads), Counts::larger(a->warps, b->warps),
                Counts::larger(a->blocks, b->blocks), Counts::larger(a->fenced, b->fenced)});
}

}  // namespace

uint32_t Counts::of(int64_t who) const {
  const auto it = std::lower_bound(entries_.begin(), entries_.end(), who, by_number);
  return it != entries_.end() && it->first == who ? it->second : 0;
}

void Counts::raise(int64_t who, uint32_t count) {
  const auto it = std::lower_bound(entries_.begin(), entries_.end(), who, by_number);
  if (it == entries_.end() || it->first != who) {
    entries_.insert(it, {who, count});
  } else {
    it->second = std::max(it->second, count);
  }
}

bool Counts::covers(const Counts& other) const {
  auto it = entries_.begin();
  for (const auto& [who, count] : other.entries_) {
    while (it != entries_.end() && it->first < who) ++it;
    if (it == entries_.end() || it->first != who || it->second < count) return false;
  }
  return true;
}

Counts Counts::larger(const Counts& a, const Counts& b) {
  Counts both;
  both.entries_.reserve(a.entries_.size() + b.entries_.size());
  auto i = a.entries_.begin(), j = b.entries_.begin();
  while (i != a.entries_.end() || j != b.entries_.end()) {
    if (j == b.entries_.end() || (i != a.entries_.end() && i->first < j->first)) {
      both.entries_.push_back(*i++);
    } else if (i == a.entries_.end() || j->first < i->first) {
      both.entries_.push_back(*j++);
    } else {
      both.entries_.push_back({i->first, std::max(i->second, j->second)});
      ++i, ++j;
    }
  }
  return both;
}

KnowledgePtr Joiner::operator()(const KnowledgePtr& a, const KnowledgePtr& b) {
  if (!a || a == b) return b;
  if (!b) return a;
  const size_t hash =
      (reinterpret_cast<uintptr_t>(a.get()) * 31 + reinterpret_cast<uintptr_t>(b.get())) >> 4;
  Entry& e = entries_[hash % entries_.size()];
  if (e.a != a || e.b != b) e = {a, b, join_different(a, b)};
  return e.both;
}

KnowledgePtr knowledge_of(Joiner& join, std::span<const Past> pasts) {
  KnowledgePtr before;
  for (const Past& p : pasts) before = join(before, p.known);
  auto all = before ? std::make_shared<Knowledge>(*before) : std::make_shared<Knowledge>();
  for (const Past& p : pasts) {
    all->threads.raise(p.passed.thread, p.passed.releases);
    if (p.passed.warp_syncs > 0) all->warps.raise(p.passed.warp, p.passed.warp_syncs);
    if (p.passed.block_syncs > 0) all->blocks.raise(p.passed.block, p.passed.block_syncs);
    if (p.fenced > 0) all->fenced.raise(p.passed.thread, p.fenced);
  }
  return all;
}

}  // namespace tw::emu
