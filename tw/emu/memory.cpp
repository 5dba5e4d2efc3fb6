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
  const int64_t count = r.granule == 1 ? r.bytes : (r.bytes + 3) / 4;
  std::memset(static_cast<void*>(r.cells), 0, static_cast<size_t>(count) * sizeof(Cell));
  r.granule = 4;
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

void Memory::narrow(Region& r) {
  for (int64_t i = (r.bytes + 3) / 4 - 1; i >= 0; --i) {
    const Cell cell = r.cells[i];
    for (int64_t k = 4 * i; k < std::min(4 * i + 4, r.bytes); ++k) r.cells[k] = cell;
  }
  r.granule = 1;
}

template <class Who>
bool Memory::is_behind(Who& clock, uint32_t moment) const {
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
  Access* free = nullptr;
  for (Access& a : cell.reads) {
    if (a.moment == now.moment) return;
    bool gone = a.moment == 0 || is_behind(clock, a.moment);
    // Turns of the same asynchronous work end one after the other.
    if constexpr (std::is_same_v<Who, AsyncClock>)
      gone = gone || moments_[a.moment].thread == clock.agent();
    if (gone && !free) free = &a;
  }
  *(free ? free : &cell.reads[random_.below(Cell::kReads)]) = now;
}

template <class Who>
std::optional<Conflict> Memory::read(Who& clock, Region& r, int64_t offset, int64_t bytes,
                                     Place place) {
  if (!r.writable && r.initialised) return std::nullopt;
  if (r.granule == 4 && ((offset | bytes) & 3) != 0) narrow(r);
  const Access now{clock.number(moments_), place};
  for (int64_t i = offset / r.granule; i * r.granule < offset + bytes; ++i) {
    Cell& cell = r.cells[i];
    if (cell.write.moment == 0 && !r.initialised)
      return Conflict{Conflict::Kind::uninitialised, i * r.granule, {}, false};
    if (const auto kind = conflict_with_write(clock, cell.write, place, r.shared))
      return Conflict{*kind, i * r.granule, cell.write, true};
    if (r.writable) note_read(clock, cell, now);
  }
  return std::nullopt;
}

template <class Who>
std::optional<Conflict> Memory::write(Who& clock, Region& r, int64_t offset, int64_t bytes,
                                      Place place) {
  if (r.granule == 4 && ((offset | bytes) & 3) != 0) narrow(r);
  const Access now{clock.number(moments_), place};
  for (int64_t i = offset / r.granule; i * r.granule < offset + bytes; ++i) {
    Cell& cell = r.cells[i];
    if (const auto kind = conflict_with_write(clock, cell.write, place, r.shared))
      return Conflict{*kind, i * r.granule, cell.write, true};
    for (Access& a : cell.reads) {
      if (!is_ordered(clock, a, place))
        return Conflict{Conflict::Kind::race, i * r.granule, a, false};
      a = {};
    }
    cell.write = now;
  }
  return std::nullopt;
}

template std::optional<Conflict> Memory::read(Clock&, Region&, int64_t, int64_t, Place);
template std::optional<Conflict> Memory::read(AsyncClock&, Region&, int64_t, int64_t, Place);
template std::optional<Conflict> Memory::write(Clock&, Region&, int64_t, int64_t, Place);
template std::optional<Conflict> Memory::write(AsyncClock&, Region&, int64_t, int64_t, Place);

void Memory::settle(Clock& clock, Region& r, int64_t offset, int64_t bytes, Place place) {
  const Access now{clock.number(moments_), {place.bits & ~Place::kInFlight}};
  for (int64_t i = offset / r.granule; i * r.granule < offset + bytes; ++i) {
    r.cells[i].write = now;
  }
}

}  // namespace tw::emu
