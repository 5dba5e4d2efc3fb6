#include <algorithm>
#include <cstring>
#include <fmt/format.h>

#include "tw/emu/impl/machine.h"

namespace tw::emu {
namespace {

constexpr int kTransferBytes = 16, kBoxAlignment = 128;

/// Copies elements [begin, end) of a row, whose pieces of 16 bytes are mixed in shared memory.
void move_row(const BulkCopy& copy, char* global, char* shared, uint32_t address, int64_t begin,
              int64_t end) {
  const TensorMap& m = copy.map;
  for (int64_t i = 0; i < m.box[0]; ++i) {
    const auto bytes = static_cast<size_t>(m.element_bytes);
    const auto at = static_cast<uint32_t>(i * m.element_bytes);
    char* in_shared = shared + (swizzled(address + at, m.swizzle) - address);
    if (i < begin || i >= end) {
      if (!copy.stores) std::memset(in_shared, 0, bytes);
    } else if (copy.stores) {
      std::memcpy(global + at, in_shared, bytes);
    } else {
      std::memcpy(in_shared, global + at, bytes);
    }
  }
}

}  // namespace

// ---- what threads issue

void Machine::tensor(const char* kind, const void* map, void* shared, void* barrier,
                     const int32_t* at, int32_t rank, uint32_t mask, int32_t line) {
  offer();
  BulkCopy copy;
  std::memcpy(&copy.map, map, sizeof(copy.map));
  copy.stores = std::strncmp(kind, "tw_tma_store", 12) == 0;
  copy.line = line;
  copy.shared = shared_address(shared, line) - grid_.shared_base;
  if (copy.map.rank != rank)
    misuse(fmt::format("copies a box of {} axes of a tensor of {}", rank, copy.map.rank), line);
  expect_aligned(shared, kBoxAlignment, line);
  for (int i = 0; i < rank; ++i) copy.at[static_cast<size_t>(i)] = at[i];
  check_corner(copy);
  expect_others_done(at_line(line));
  copy.stores ? start_store(std::move(copy)) : start_load(std::move(copy), barrier, mask);
}

/// A GPU calls what is wrong here an illegal instruction.
void Machine::check_corner(const BulkCopy& copy) {
  const int64_t first = int64_t{copy.at[0]} * copy.map.element_bytes;
  if (first % kTransferBytes != 0)
    misuse(fmt::format("copies a box from byte {} of the fastest axis on: wanted a multiple of 16",
                       first),
           copy.line);
  if (copy.stores && std::ranges::any_of(copy.at, [](int64_t at) { return at < 0; }))
    misuse("stores a box whose first corner is at a negative coordinate", copy.line);
}

/// A run of bytes is a box of rows of 16.
void Machine::bulk(const char* kind, void* shared, void* global, uint32_t bytes, void* barrier,
                   int32_t line) {
  offer();
  BulkCopy copy;
  copy.stores = std::strcmp(kind, "tw_bulk_store") == 0;
  copy.line = line;
  copy.shared = shared_address(shared, line) - grid_.shared_base;
  expect_aligned(shared, kTransferBytes, line);
  expect_aligned(global, kTransferBytes, line);
  if (bytes == 0 || bytes % kTransferBytes != 0)
    misuse(fmt::format("copies {} bytes: wanted a multiple of 16", bytes), line);
  const int rows = static_cast<int>(bytes) / kTransferBytes;
  copy.map = {.base = static_cast<char*>(global),
              .dims = {kTransferBytes, rows, 1, 1, 1},
              .strides = {1, kTransferBytes, 0, 0, 0},
              .box = {kTransferBytes, rows, 1, 1, 1},
              .rank = 2,
              .element_bytes = 1,
              .swizzle = 0};
  expect_others_done(at_line(line));
  copy.stores ? start_store(std::move(copy)) : start_load(std::move(copy), barrier, 0);
}

/// `mask` has a bit for each block of the cluster that gets the box; 0: this one does.
void Machine::start_load(BulkCopy copy, void* barrier, uint32_t mask) {
  Block& own = *current_->block;
  const auto rank = static_cast<uint32_t>(own.slot - own.cluster->first);
  copy.barrier = shared_address(barrier, copy.line) - grid_.shared_base;
  if (mask == 0) mask = 1u << rank;
  for (uint32_t r = 0; mask >> r != 0; ++r) {
    if ((mask >> r & 1) == 0) continue;
    Block& to = peer_block(r, copy.line);
    if (to.has_ended) touch(to, at_line(copy.line));
    MBarrier& b = mbarrier_at(to, copy.barrier, true, copy.line);
    b.copies_until = std::max(b.copies_until, b.phase + 1);
    cut(copy, to);
  }
  const Past past[] = {current_->clock.release()};
  copy.behind = knowledge_of(join_, past);
  copies_.push_back(std::move(copy));
}

void Machine::start_store(BulkCopy copy) {
  Thread& t = *current_;
  BulkQueue& q = t.bulk;
  if (q.reading == 0) {
    const std::string of = fmt::format("a store of {}", who(t.clock.now()));
    q.reading = new_agent(of);
    q.writing = new_agent(of);
  }
  q.open = true;
  q.line = copy.line;
  copy.issuer = &t;
  copy.group = q.groups;
  ++q.left[copy.group];
  cut(copy, *t.block);
  const Past past[] = {t.clock.release()};
  copy.behind = knowledge_of(join_, past);
  copies_.push_back(std::move(copy));
}

/// Up to four pieces, which come in any order.
void Machine::cut(BulkCopy& copy, Block& block) {
  const int rows = copy.map.rows();
  const int pieces = std::min(rows, 1 + static_cast<int>(random_.below(4)));
  for (int i = 0; i < pieces; ++i)
    copy.pieces.push_back({&block, rows * i / pieces, rows * (i + 1) / pieces});
}

void Machine::bulk_group(const char* kind, int32_t left, int32_t line) {
  offer();
  Thread& t = *current_;
  BulkQueue& q = t.bulk;
  if (std::strcmp(kind, "tw_bulk_commit") == 0) {
    ++q.groups;
    q.open = false;
    return;
  }
  const auto kept = static_cast<uint32_t>(left);
  if (q.reading == 0 || q.groups <= kept) return;
  const uint32_t until = q.groups - kept;
  std::vector<Thread*> alone;
  while (!q.left.empty() && q.left.begin()->first < until) wait_in(alone, {kind, line});
  q.waited = std::max(q.waited, until);
  Knowledge done;
  done.threads.raise(q.reading, until);
  if (std::strcmp(kind, "tw_bulk_wait") == 0) done.threads.raise(q.writing, until);
  learn(t, std::make_shared<Knowledge>(std::move(done)));
}

// ---- what happens later

/// Does one asynchronous step, if there is any.
bool Machine::run_async() {
  struct Product {
    Block* block;
    WarpGroup* group;
  };
  std::vector<Product> products;
  for (Block& b : blocks_) {
    for (WarpGroup& g : b.groups) {
      const uint64_t next = g.executed - g.first;
      if (next < g.products.size() && g.products[next]->threads == kGroupThreads)
        products.push_back({&b, &g});
    }
  }
  const size_t count = products.size() + copies_.size();
  if (count == 0) return false;
  const size_t i = random_.below(static_cast<uint32_t>(count));
  if (i < products.size()) {
    run_wgmma(*products[i].block, *products[i].group);
  } else {
    run_copy(i - products.size());
  }
  return true;
}

void Machine::run_copy(size_t index) {
  BulkCopy& copy = copies_[index];
  std::swap(copy.pieces.back(),
            copy.pieces[random_.below(static_cast<uint32_t>(copy.pieces.size()))]);
  const BulkCopy::Piece piece = copy.pieces.back();
  copy.pieces.pop_back();
  AsyncClock from, to;
  MBarrier* b = nullptr;
  if (copy.stores) {
    const BulkQueue& q = copy.issuer->bulk;
    const auto clock_of = [&](int64_t agent) {
      const Moment m{.thread = agent, .warp = agent, .block = agent, .releases = copy.group};
      return AsyncClock(memory_.add_moment(m), agent, {copy.behind});
    };
    from = clock_of(q.reading);
    to = clock_of(q.writing);
  } else {
    if (piece.block->has_ended)
      return find({EmuFault::in_flight,
                   fmt::format("a copy comes to block {}, which has ended @0", piece.block->number),
                   {at_line(copy.line)}});
    b = &piece.block->mbarriers.at(copy.barrier);
    const Moment m{.thread = b->agent, .warp = b->agent, .block = b->agent, .releases = b->phase};
    if (b->moment == 0) b->moment = memory_.add_moment(m);
    from = to = AsyncClock(b->moment, b->agent, {copy.behind});
  }
  for (int row = piece.first; row < piece.end; ++row) {
    if (!copy_row(copy, piece, row, from, to)) return;
  }
  if (b) {
    b->bytes -= int64_t{piece.end - piece.first} * copy.map.row_bytes();
    complete_phase(*b);
  }
  if (!copy.pieces.empty()) return;
  if (copy.stores) {
    BulkQueue& q = copy.issuer->bulk;
    if (--q.left[copy.group] == 0) q.left.erase(copy.group);
    Wait& wait = copy.issuer->wait;
    if (wait.kind && std::strncmp(wait.kind, "tw_bulk_wait", 12) == 0) {
      wait = {};
      make_ready(*copy.issuer);
    }
  }
  std::swap(copies_[index], copies_.back());
  copies_.pop_back();
}

/// False when something is wrong.
bool Machine::copy_row(const BulkCopy& copy, const BulkCopy::Piece& piece, int row,
                       AsyncClock& from, AsyncClock& to) {
  const TensorMap& m = copy.map;
  char* global = m.base + copy.at[0] * m.element_bytes;
  bool inside = true;
  int rest = row;
  for (int i = 1; i < m.rank; ++i) {
    const auto k = static_cast<size_t>(i);
    const int64_t at = copy.at[k] + rest % m.box[k];
    rest /= m.box[k];
    inside = inside && at >= 0 && at < m.dims[k];
    global += at * m.strides[k];
  }
  const int64_t begin = std::clamp<int64_t>(-copy.at[0], 0, m.box[0]);
  const int64_t end = inside ? std::clamp<int64_t>(m.dims[0] - copy.at[0], begin, m.box[0]) : begin;
  const int64_t offset = copy.shared + int64_t{row} * m.row_bytes();
  char* shared = shared_at(*piece.block, offset);
  Place place = at_line(copy.line);
  place.bits |= Place::kAsync;
  const bool ok =
      check_async(copy.stores ? from : to, shared, m.row_bytes(), !copy.stores, place) &&
      check_async(copy.stores ? to : from, global + begin * m.element_bytes,
                  (end - begin) * m.element_bytes, copy.stores, place);
  if (ok)
    move_row(copy, global, shared, grid_.shared_base + static_cast<uint32_t>(offset), begin, end);
  return ok;
}

/// Notes an access of asynchronous work; false when something is wrong.
bool Machine::check_async(AsyncClock& clock, const char* address, int64_t bytes, bool write,
                          Place place) {
  if (bytes == 0) return true;
  const std::string& me = agents_[static_cast<size_t>(-clock.agent() - 1)];
  Region* r = memory_.find(address, static_cast<uint64_t>(bytes));
  if (!r || (write && !r->writable)) {
    const Region* near = memory_.nearest(address);
    find({EmuFault::out_of_bounds,
          fmt::format("{} {} {} bytes {} @0", me, write ? "writes" : "reads", bytes,
                      r      ? "of the input " + r->name
                      : near ? fmt::format("at byte {} of {}, which has {}", address - near->begin,
                                           near->name, near->bytes)
                             : "far from all arguments"),
          {place}});
    return false;
  }
  if (!grid_.check) return true;
  const int64_t offset = address - r->begin;
  const std::optional<Conflict> c = write ? memory_.write(clock, *r, offset, bytes, place)
                                          : memory_.read(clock, *r, offset, bytes, place);
  if (c) find(access_finding(me, *c, *r, write, bytes, place));
  return !c;
}

}  // namespace tw::emu
