#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tw/emu/impl/order.h"
#include "tw/emu/impl/random.h"

namespace tw::emu {

/// Where an access stands in the text: a line, or an address of code that has one. And its kind.
struct Place {
  static constexpr uint32_t kIsCode = 1u << 31, kAtomic = 1u << 30, kOfBlock = 1u << 29,
                            kInFlight = 1u << 28, kAsync = 1u << 27, kBarrier = 1u << 26,
                            kValue = kBarrier - 1;
  uint32_t bits = 0;
  bool has(uint32_t flag) const { return (bits & flag) != 0; }
};

struct Access {
  uint32_t moment = 0;  ///< number of it; 0: none
  Place place;
};

/// What is known of some bytes: the last write, and reads since then.
struct Cell {
  static constexpr int kReads = 3;
  Access write, reads[kReads];
};

/// Memory that the text may touch: an argument (or several that overlap), the workspace, or the
/// shared memory of a resident block.
struct Region {
  std::string name;  ///< "argument 'x'", "shared memory"
  char* begin = nullptr;
  int64_t bytes = 0;
  bool shared = false;  ///< of one block
  bool writable = true, initialised = false;
  static constexpr int kWidest = 2;
  int shift = kWidest;  ///< a cell has 2^shift bytes: 4 until some access is narrower
  Cell* cells = nullptr;
};

/// What is wrong with an access.
struct Conflict {
  enum class Kind : uint8_t {
    race,
    uninitialised,
    unfenced,  ///< asynchronous work comes to what a thread has written without a fence
    barrier    ///< the bytes are a barrier
  };
  Kind kind;
  int64_t offset;  ///< in the region
  Access other;    ///< what was there
  bool other_writes = false;
};

/// All memory of a launch, far apart from each other, with shadow cells.
class Memory {
 public:
  explicit Memory(uint64_t seed) : random_(seed) {}
  ~Memory();
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;

  /// Plans a region whose address is `phase` modulo 4096; build() makes the memory.
  size_t add(Region r, int64_t phase);
  /// Throws EnvError when there is no memory.
  void build();
  /// The region's bytes are unwritten again.
  void forget(size_t region);

  Region& region(size_t i) { return regions_[i]; }
  /// The region that holds all the bytes; null when none does.
  Region* find(const void* address, uint64_t bytes);
  /// The nearest region that begins at or before the address, for reports; null when none does.
  const Region* nearest(const void* address) const;

  /// Notes an access and tells what is wrong with it: of a thread, or of asynchronous work, whose
  /// clock is an AsyncClock.
  template <class Who>
  std::optional<Conflict> read(Who& clock, Region& r, int64_t offset, int64_t bytes, Place place);
  template <class Who>
  std::optional<Conflict> write(Who& clock, Region& r, int64_t offset, int64_t bytes, Place place);
  /// Bytes that were written in flight, at that place, are written by the thread now.
  void settle(Clock& clock, Region& r, int64_t offset, int64_t bytes, Place place);
  const Moment& moment(const Access& a) const { return moments_[a.moment]; }
  std::vector<Moment>& moments() { return moments_; }
  /// The number of a moment of asynchronous work.
  uint32_t add_moment(const Moment& m) {
    moments_.push_back(m);
    return static_cast<uint32_t>(moments_.size() - 1);
  }

 private:
  static constexpr int64_t kPage = 4096, kGap = 1 << 20;
  struct Cells {
    Cell *begin, *end;
  };
  void narrow(Region& r, int shift);
  /// Of the bytes, narrow enough to be of no others.
  Cells cells_of(Region& r, int64_t offset, int64_t bytes);
  template <class F>
  std::optional<Conflict> visit(const Region& r, Cells cells, F&& note);
  template <class Who>
  bool is_behind(Who& clock, uint32_t moment) const;
  template <class Who>
  bool is_ordered(Who& clock, const Access& before, Place now) const;
  template <class Who>
  std::optional<Conflict::Kind> conflict_with_write(Who& clock, const Access& before, Place now,
                                                    bool shared) const;
  template <class Who>
  void note_read(Who& clock, Cell& cell, Access now);

  std::vector<Region> regions_;
  std::vector<int64_t> starts_;  ///< of regions in the arena
  std::vector<uint16_t> page_region_;
  std::vector<Moment> moments_{1};
  char* arena_ = nullptr;
  int64_t arena_bytes_ = kGap;
  Cell* cells_ = nullptr;
  int64_t cell_bytes_ = 0;
  Random random_;
};

}  // namespace tw::emu
