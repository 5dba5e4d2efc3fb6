#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

namespace tw::emu {

/// Who did something, and when: its thread, and how many barriers that thread had passed. Threads,
/// warps and blocks are numbered through the whole grid. Asynchronous work has a negative number of
/// its own for a thread, and the turn of the work for `releases`.
struct Moment {
  int64_t thread = 0, warp = 0, block = 0;
  uint32_t releases = 0, warp_syncs = 0, block_syncs = 0;
};

/// Counts by number, in order of the numbers.
class Counts {
 public:
  using Entry = std::pair<int64_t, uint32_t>;
  /// 0 where it has none.
  uint32_t of(int64_t who) const;
  void raise(int64_t who, uint32_t count);
  bool covers(const Counts& other) const;
  static Counts larger(const Counts& a, const Counts& b);

 private:
  std::vector<Entry> entries_;
};

/// Moments of others that a thread is ordered behind by atomics and partial barriers, beside what
/// whole barriers order: all of a thread before a release, all of a warp or block before a barrier.
/// `fenced` are releases of threads before which their writes are seen by asynchronous work. Never
/// changed once shared.
struct Knowledge {
  Counts threads, warps, blocks, fenced;
  bool is_behind(const Moment& m) const {
    return threads.of(m.thread) > m.releases || warps.of(m.warp) > m.warp_syncs ||
           blocks.of(m.block) > m.block_syncs;
  }
  bool has_fenced(const Moment& m) const { return fenced.of(m.thread) > m.releases; }
};
using KnowledgePtr = std::shared_ptr<const Knowledge>;

/// What both know; null knows nothing. Of equal pairs the results are the same object, so that
/// threads that learn the same share it.
class Joiner {
 public:
  KnowledgePtr operator()(const KnowledgePtr& a, const KnowledgePtr& b);

 private:
  struct Entry {
    KnowledgePtr a, b, both;
  };
  std::array<Entry, 64> entries_;
};

/// All of a thread up to a release.
struct Past {
  KnowledgePtr known;
  Moment passed;  ///< counts that were passed
  uint32_t fenced = 0;
};
KnowledgePtr knowledge_of(Joiner& join, std::span<const Past> pasts);

/// Answers that were given lately, by the number of a moment.
class Memo {
 public:
  template <class F>
  bool answer(uint32_t moment, F&& ask) {
    uint64_t& e = entries_[moment % entries_.size()];
    if (e >> 1 != moment) e = uint64_t{moment} << 1 | (ask() ? 1 : 0);
    return (e & 1) != 0;
  }
  void clear() { entries_ = {}; }

 private:
  std::array<uint64_t, 16> entries_{};  ///< moment 0 is none
};

/// The clock of a thread.
class Clock {
 public:
  /// `moments` has those of all, each with its number, and grows.
  void start(int64_t thread, int64_t warp, int64_t block, std::vector<Moment>& moments) {
    moments_ = &moments;
    now_ = {.thread = thread, .warp = warp, .block = block};
    fenced_ = 0;
    set_known(nullptr);
  }
  const Moment& now() const { return now_; }
  const KnowledgePtr& known() const { return known_; }

  /// True when all that happened at `m` is ordered before what this thread does now.
  bool is_behind(const Moment& m) const {
    if (m.thread == now_.thread) return true;
    if (m.block == now_.block && m.block_syncs < now_.block_syncs) return true;
    if (m.warp == now_.warp && m.warp_syncs < now_.warp_syncs) return true;
    return known_ && known_->is_behind(m);
  }

  void pass_block_sync(const KnowledgePtr& of_all) {
    ++now_.block_syncs;
    set_known(of_all);
  }
  void pass_warp_sync(const KnowledgePtr& of_all) {
    ++now_.warp_syncs;
    set_known(of_all);
  }
  /// What is behind whoever acquires what this thread releases now.
  Past release() {
    change();
    ++now_.releases;
    return {known_, now_, fenced_};
  }
  /// What it has written before, asynchronous work may see behind it.
  void fence() {
    change();
    fenced_ = ++now_.releases;
  }
  uint32_t fenced() const { return fenced_; }
  /// `known` has what the thread knew.
  void set_known(const KnowledgePtr& known) {
    change();
    known_ = known;
  }
  /// Grows with every change.
  uint64_t version() const { return version_; }

  /// The number of the present moment.
  uint32_t number() {
    if (number_ == 0) {
      number_ = static_cast<uint32_t>(moments_->size());
      moments_->push_back(now_);
    }
    return number_;
  }
  /// Whether the moment of that number came up when this thread had learnt the last that it knows:
  /// then it is behind that one only if it is its own.
  bool has_learnt_before(uint32_t moment) const { return moment >= learnt_; }
  Memo& memo() { return memo_; }

 private:
  void change() {
    number_ = 0;
    learnt_ = static_cast<uint32_t>(moments_->size());
    ++version_;
    memo_.clear();
  }
  Moment now_;
  KnowledgePtr known_;
  uint32_t fenced_ = 0;
  std::vector<Moment>* moments_ = nullptr;
  uint32_t number_ = 0;  ///< 0: not in the list yet
  uint32_t learnt_ = 0;  ///< how many moments there were at the last change
  uint64_t version_ = 0;
  Memo memo_;
};

/// The clock of a piece of asynchronous work, behind what all of some threads know.
class AsyncClock {
 public:
  AsyncClock() = default;
  /// `number` is that of its moment.
  AsyncClock(uint32_t number, int64_t agent, std::vector<KnowledgePtr> behind)
      : number_(number), agent_(agent), behind_(std::move(behind)) {}
  bool is_behind(const Moment& m) const {
    for (const KnowledgePtr& k : behind_) {
      if (!k->is_behind(m)) return false;
    }
    return true;
  }
  bool has_fenced(const Moment& m) const {
    for (const KnowledgePtr& k : behind_) {
      if (!k->has_fenced(m)) return false;
    }
    return true;
  }
  uint32_t number() const { return number_; }
  int64_t agent() const { return agent_; }
  Memo& memo() { return memo_; }
  Memo& fences() { return fences_; }

 private:
  uint32_t number_ = 0;
  int64_t agent_ = 0;
  std::vector<KnowledgePtr> behind_;
  Memo memo_, fences_;
};

}  // namespace tw::emu
