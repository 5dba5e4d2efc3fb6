#include <cstring>
#include <fmt/format.h>

#include "tw/emu/impl/machine.h"

namespace tw::emu {
namespace {

bool same_call(const Call& a, const Call& b) {
  return a.line == b.line && (a.kind == b.kind || std::strcmp(a.kind, b.kind) == 0);
}

/// The thread of a warp with the lowest lane of a set.
Thread& first_of(const Warp& warp, uint32_t lanes) {
  return *warp.lanes[static_cast<size_t>(__builtin_ctz(lanes))];
}

std::string meet(const Thread& me, const Call& mine, const Thread& other) {
  return fmt::format("thread {} of block {} comes to {} @0\n  while thread {} waits in {} @1",
                     me.text.thread, me.text.block, mine.kind, other.text.thread, other.call.kind);
}

}  // namespace

int32_t Machine::sync(const char* kind, int32_t value, int32_t line) {
  offer();
  Thread& t = *current_;
  Block& block = *t.block;
  const Call mine{.kind = kind, .line = line, .argument = value};
  if (block.ended > 0)
    fail(EmuFault::divergence,
         fmt::format("thread {} of block {} comes to {} @0\n  when {} threads have ended",
                     t.text.thread, block.number, kind, block.ended),
         {at_line(line)});
  if (t.warp->arrived != 0) {
    const Thread& other = first_of(*t.warp, t.warp->arrived);
    fail(EmuFault::divergence, meet(t, mine, other), {at_line(line), at_line(other.call.line)});
  }
  if (block.arrived > 0 && !same_call(block.first->call, mine))
    fail(EmuFault::divergence, meet(t, mine, *block.first),
         {at_line(line), at_line(block.first->call.line)});
  if (block.arrived == 0) block.first = &t;
  t.call = mine;
  if (++block.arrived == grid_.threads) {
    complete_sync(block);
    offer();
  } else {
    wait_here();
  }
  return t.call.argument;
}

/// What is known, and that the thread has fenced.
KnowledgePtr Machine::with_fences(KnowledgePtr all, const Thread& t) {
  const uint32_t fenced = t.clock.fenced();
  const int64_t thread = t.clock.now().thread;
  if (fenced == 0 || (all && all->fenced.of(thread) >= fenced)) return all;
  auto more = all ? std::make_shared<Knowledge>(*all) : std::make_shared<Knowledge>();
  more->fenced.raise(thread, fenced);
  return more;
}

void Machine::learn(Thread& t, const KnowledgePtr& more) {
  KnowledgePtr all = join_(t.clock.known(), more);
  if (all != t.clock.known()) t.clock.set_known(all);
}

void Machine::complete_sync(Block& block) {
  idle_ = 0;
  block.arrived = 0;
  KnowledgePtr all;
  int32_t any = 0;
  bool others_done = false;
  for (const Thread& t : block.threads) {
    others_done |= t.others_done;
    all = with_fences(join_(all, t.clock.known()), t);
    any |= t.call.argument;
  }
  for (Thread& t : block.threads) {
    t.clock.pass_block_sync(all);
    t.others_done = others_done;
    t.call = {.argument = any};
    if (&t != current_) make_ready(t);
  }
}

void Machine::warp(const Call& call) {
  offer();
  Thread& t = *current_;
  Warp& warp = *t.warp;
  if (warp.arrived != 0) {
    const Thread& other = first_of(warp, warp.arrived);
    if (!same_call(other.call, call))
      fail(EmuFault::divergence, meet(t, call, other),
           {at_line(call.line), at_line(other.call.line)});
  }
  for (const Thread* other : warp.lanes) {
    if (!other || !other->call.kind || (warp.arrived >> other->lane & 1) != 0) continue;
    fail(EmuFault::divergence, meet(t, call, *other),
         {at_line(call.line), at_line(other->call.line)});
  }
  if (std::strstr(call.kind, "matrix_x4")) access_row(call);
  t.call = call;
  warp.arrived |= 1u << t.lane;
  if (warp.arrived == warp.present) {
    complete_warp(warp);
    offer();
  } else {
    wait_here();
  }
}

void Machine::complete_warp(Warp& warp) {
  idle_ = 0;
  const std::string kind = first_of(warp, warp.arrived).call.kind;
  if (kind == "tw_sync_warp") {
    KnowledgePtr all;
    for (const Thread* t : warp.lanes) {
      if (t && t->call.kind) all = with_fences(join_(all, t->clock.known()), *t);
    }
    for (Thread* t : warp.lanes) {
      if (t && t->call.kind) t->clock.pass_warp_sync(all);
    }
  } else if (kind.starts_with("tw_shuffle")) {
    shuffle(warp, kind);
  } else if (kind == "tw_ballot" || kind == "tw_any") {
    vote(warp, kind == "tw_ballot");
  } else if (kind.starts_with("tw_ldmatrix_x4")) {
    load_matrix(warp, kind.ends_with("_trans"));
  } else if (kind == "tw_stmatrix_x4") {
    store_matrix(warp);
  } else if (kind == "tw_elect") {
    elect(warp);
  } else if (!multiply(kind, warp.lanes)) {
    find({EmuFault::deadlock, "the emulator has no call " + kind, {}});
  }
  for (Thread* t : warp.lanes) {
    if (!t || !t->call.kind) continue;
    t->call = {};
    if (t != current_) make_ready(*t);
  }
  warp.arrived = 0;
}

}  // namespace tw::emu
