#include "tw/emu/impl/memory.h"

#include <algorithm>
#include <cstring>
#include <sys/mman.h>

#include "tw/base/error.h"

namespace tw::emu {
namespace {

char* reserve(int64_t bytes) {
  void* memory = mmap(nullptr, static_cast<size_t>(bytes), PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) throw EnvError("no memory for an emulated launch");
  return static_cast<char*>(memory);
}

}  // namespace

Memory::~Memory() {
  if (arena_) munmap(arena_, static_cast<size_t>(arena_bytes_));
  if (cells_) munmap(cells_, static_cast<size_t>(cell_bytes_));
}

size_t Memory::add(Region r, int64_t phase) {
  starts_.push_back(arena_bytes_ + phase);
  arena_bytes_ += (phase + r.bytes + kPage - 1) / kPage * kPage + kGap;
  cell_bytes_ += r.bytes * static_cast<int64_t>(sizeof(Cell));
  regions_.push_back(std::move(r));
  return regions_.size() - 1;
}

void Memory::build() {
  arena_ = reserve(arena_bytes_);
  if (cell_bytes_ > 0) cells_ = reinterpret_cast<Cell*>(reserve(cell_bytes_));
  page_region_.assign(static_cast<size_t>(arena_bytes_ / kPage), 0);
  Cell* cells = cells_;
  for (size_t i = 0; i < regions_.size(); ++i) {
    Region& r = regions_[i];
    r.begin = arena_ + starts_[i];
    r.cells = cells;
    cells += r.bytes;
    const int64_t end = (starts_[i] + r.bytes + kPage - 1) / kPage;
    for (int64_t page = starts_[i] / kPage; page < end; ++page) {
      page_region_[static_cast<size_t>(page)] = static_cast<uint16_t>(i + 1);
    }
  }
}

void Memory::forget(size_t region) {
  Region& r = regions_[region];
  std::memset(static_cast<void*>(r.cells), 0,
              static_cast<size_t>((r.bytes + (1 << r.shift) - 1) >> r.shift) * sizeof(Cell));
  r.shift = Region::kWidest;
  constexpr int kPoison = 0xff;  // NaN, and indices that lead nowhere
  if (r.bytes > 0) std::memset(r.begin, kPoison, static_cast<size_t>(r.bytes));
}

Region* Memory::find(const void* address, uint64_t bytes) {
  const int64_t at = static_cast<const char*>(address) - arena_;
  if (at < 0 || at >= arena_bytes_) return nullptr;
  const uint16_t i = page_region_[static_cast<size_t>(at / kPage)];
  if (i == 0) return nullptr;
  Region& r = regions_[i - 1u];
  const int64_t offset = static_cast<const char*>(address) - r.begin;
  const bool inside =
      offset >= 0 && offset <= r.bytes && bytes <= static_cast<uint64_t>(r.bytes - offset);
  return inside ? &r : nullptr;
}

const Region* Memory::nearest(const void* address) const {
  const auto* at = static_cast<const char*>(address);
  const Region* best = nullptr;
  for (const Region& r : regions_) {
    const bool near = at >= r.begin - kGap / 2 && at <= r.begin + r.bytes + kGap / 2;
    if (near && (!best || r.begin > best->begin)) best = &r;
  }
  return best;
}

void Memory::narrow(Region& r, int shift) {
  const int by = r.shift - shift;
  for (int64_t i = (r.bytes - 1) >> shift; i >= 0; --i) r.cells[i] = r.cells[i >> by];
  r.shift = shift;
}

template <class Who>
bool Memory::is_behind(Who& clock, uint32_t moment) const {
  if constexpr (std::is_same_v<Who, Clock>) {
    if (clock.has_learnt_before(moment)) return moment == clock.number();
  }
  return clock.memo().answer(moment, [&] { return clock.is_behind(moments_[moment]); });
}

template <class Who>
bool Memory::is_ordered(Who& clock, const Access& before, Place now) const {
  if (before.moment == 0) return true;
  if (before.place.has(Place::kInFlight)) return false;
  if (is_behind(clock, before.moment)) return true;
  if constexpr (std::is_same_v<Who, Clock>) {
    if (!before.place.has(Place::kAtomic) || !now.has(Place::kAtomic)) return false;
    const bool of_block = before.place.has(Place::kOfBlock) || now.has(Place::kOfBlock);
    return !of_block || moments_[before.moment].block == clock.now().block;
  }
  return false;
}

template <class Who>
std::optional<Conflict::Kind> Memory::conflict_with_write(Who& clock, const Access& before,
                                                          Place now, bool shared) const {
  if (before.place.has(Place::kBarrier)) return Conflict::Kind::barrier;
  if (!is_ordered(clock, before, now)) return Conflict::Kind::race;
  if constexpr (std::is_same_v<Who, AsyncClock>) {
    const bool generic = before.moment != 0 && !before.place.has(Place::kAsync);
    const bool seen = !generic || !shared || clock.fences().answer(before.moment, [&] {
      return clock.has_fenced(moments_[before.moment]);
    });
    if (!seen) return Conflict::Kind::unfenced;
  }
  return std::nullopt;
}

template <class Who>
void Memory::note_read(Who& clock, Cell& cell, Access now) {
  for (const Access& a : cell.reads) {
    if (a.moment == now.moment) return;
  }
  for (Access& a : cell.reads) {
    bool gone = a.moment == 0 || is_behind(clock, a.moment);
    // Turns of the same asynchronous work end one after the other.
    if constexpr (std::is_same_v<Who, AsyncClock>)
      gone = gone || moments_[a.moment].thread == clock.agent();
    if (gone) {
      a = now;
      return;
    }
  }
  cell.reads[random_.below(Cell::kReads)] = now;
}

Memory::Cells Memory::cells_of(Region& r, int64_t offset, int64_t bytes) {
  const int64_t bits = offset | bytes;
  if ((bits & ((1 << r.shift) - 1)) != 0) narrow(r, (bits & 1) != 0 ? 0 : 1);
  return {r.cells + (offset >> r.shift), r.cells + ((offset + bytes - 1) >> r.shift) + 1};
}

/// Calls note(cell) for each; a Conflict ends it. What that makes of a cell becomes of the next
/// ones that were as this one: those of a vector mostly are.
template <class F>
std::optional<Conflict> Memory::visit(const Region& r, Cells cells, F&& note) {
  for (Cell* cell = cells.begin; cell != cells.end;) {
    const Cell before = *cell;
    if (std::optional<Conflict> c = note(*cell)) {
      c->offset = (cell - r.cells) << r.shift;
      return c;
    }
    const Cell& after = *cell;
    for (++cell; cell != cells.end && std::memcmp(cell, &before, sizeof before) == 0; ++cell)
      *cell = after;
  }
  return std::nullopt;
}

template <class Who>
std::optional<Conflict> Memory::read(Who& clock, Region& r, int64_t offset, int64_t bytes,
                                     Place place) {
  if (!r.writable && r.initialised) return std::nullopt;
  const Access now{clock.number(), place};
  return visit(r, cells_of(r, offset, bytes), [&](Cell& cell) -> std::optional<Conflict> {
    if (cell.write.moment == 0 && !r.initialised)
      return Conflict{Conflict::Kind::uninitialised, 0, {}, false};
    if (const auto kind = conflict_with_write(clock, cell.write, place, r.shared))
      return Conflict{*kind, 0, cell.write, true};
    if (r.writable) note_read(clock, cell, now);
    return std::nullopt;
  });
}

template <class Who>
std::optional<Conflict> Memory::write(Who& clock, Region& r, int64_t offset, int64_t bytes,
                                      Place place) {
  const Access now{clock.number(), place};
  return visit(r, cells_of(r, offset, bytes), [&](Cell& cell) -> std::optional<Conflict> {
    if (const auto kind = conflict_with_write(clock, cell.write, place, r.shared))
      return Conflict{*kind, 0, cell.write, true};
    for (const Access& a : cell.reads) {
      if (!is_ordered(clock, a, place)) return Conflict{Conflict::Kind::race, 0, a, false};
    }
    cell = {.write = now, .reads = {}};
    return std::nullopt;
  });
}

template std::optional<Conflict> Memory::read(Clock&, Region&, int64_t, int64_t, Place);
template std::optional<Conflict> Memory::read(AsyncClock&, Region&, int64_t, int64_t, Place);
template std::optional<Conflict> Memory::write(Clock&, Region&, int64_t, int64_t, Place);
template std::optional<Conflict> Memory::write(AsyncClock&, Region&, int64_t, int64_t, Place);

void Memory::settle(Clock& clock, Region& r, int64_t offset, int64_t bytes, Place place) {
  const Access now{clock.number(), {place.bits & ~Place::kInFlight}};
  const Cells cells = cells_of(r, offset, bytes);
  for (Cell* cell = cells.begin; cell != cells.end; ++cell) cell->write = now;
}

}  // namespace tw::emu
