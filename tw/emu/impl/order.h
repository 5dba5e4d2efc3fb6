#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <vector>

namespace tw::emu {

/// Who did something, and when: its thread, and how many barriers that thread had passed. Threads,
/// warps and blocks are numbered through the whole grid.
struct Moment {
  int64_t thread = 0, warp = 0, block = 0;
  uint32_t releases = 0, warp_syncs = 0, block_syncs = 0;
};

/// Moments of others that a thread is ordered behind by atomics, beside what barriers order: all
/// of a thread before a release, all of a warp or block before a barrier. Never changed once
/// shared.
struct Knowledge {
  std::map<int64_t, uint32_t> threads, warps, blocks;  ///< counts that were passed
};
using KnowledgePtr = std::shared_ptr<const Knowledge>;

/// What both know; null knows nothing.
KnowledgePtr joined(const KnowledgePtr& a, const KnowledgePtr& b);

/// The clock of a thread.
class Clock {
 public:
  void start(int64_t thread, int64_t warp, int64_t block) {
    now_ = {.thread = thread, .warp = warp, .block = block};
    known_ = nullptr;
    number_ = 0;
  }
  const Moment& now() const { return now_; }
  const KnowledgePtr& known() const { return known_; }

  /// True when all that happened at `m` is ordered before what this thread does now.
  bool is_behind(const Moment& m) const {
    if (m.thread == now_.thread) return true;
    if (m.block == now_.block && m.block_syncs < now_.block_syncs) return true;
    if (m.warp == now_.warp && m.warp_syncs < now_.warp_syncs) return true;
    return known_ && knows(m);
  }

  void pass_block_sync(const KnowledgePtr& of_all) {
    ++now_.block_syncs;
    learn(of_all);
  }
  void pass_warp_sync(const KnowledgePtr& of_all) {
    ++now_.warp_syncs;
    learn(of_all);
  }
  /// What another thread learns that acquires what this one releases now.
  KnowledgePtr release();
  void learn(const KnowledgePtr& k) {
    known_ = joined(known_, k);
    number_ = 0;
  }

  /// The number of the present moment in `moments`, which grows.
  uint32_t number(std::vector<Moment>& moments) {
    if (number_ == 0) {
      number_ = static_cast<uint32_t>(moments.size());
      moments.push_back(now_);
    }
    return number_;
  }

 private:
  bool knows(const Moment& m) const;
  Moment now_;
  KnowledgePtr known_;
  uint32_t number_ = 0;  ///< 0: not in the list yet
};

}  // namespace tw::emu
