#pragma once

#include <array>
#include <bitset>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "tw/emu/impl/abi.h"
#include "tw/emu/impl/memory.h"
#include "tw/emu/impl/order.h"
#include "tw/emu/impl/tensor_map.h"

namespace tw::emu {

struct Block;
struct Thread;

constexpr int kLanes = 32, kGroupThreads = 128;

/// Where a thread waits for others or for asynchronous work.
struct Wait {
  const char* kind = nullptr;  ///< null: nowhere
  int32_t line = 0;
  int64_t what = 0, value = 0;
};

/// A barrier in shared memory.
struct MBarrier {
  int64_t offset = 0;
  int64_t agent = 0;  ///< copies that complete here
  int32_t line = 0;   ///< of its initialisation
  int of_line = 0;    ///< how many that line had initialised before
  Moment initialised;
  bool announced = false;  ///< to asynchronous work and other blocks
  int64_t count = 1, pending = 1, bytes = 0;
  uint32_t phase = 0;
  uint32_t moment = 0;        ///< number of the phase's copies; 0: none yet
  uint32_t copies_until = 0;  ///< phases up to the last one with copies
  std::vector<Past> arrivals;
  std::vector<int64_t> arrived, arrived_before;  ///< threads, of this phase and the one before
  KnowledgePtr released;                         ///< what is behind a wait
  std::vector<Thread*> waiting;
};

/// A barrier of hardware for a part of a block.
struct NamedBarrier {
  uint32_t expected = 0, arrived = 0, generation = 0;
  int32_t line = 0;
  std::vector<Past> arrivals;
  std::bitset<1024> who;
  std::vector<Thread*> waiting;
};

/// Blocks that run at the same time and reach each other's shared memory.
struct Cluster {
  size_t first = 0;  ///< slot
  int alive = 0, ended_blocks = 0;
  int arrived = 0;
  uint32_t generation = 0;
  std::vector<Past> arrivals;
  KnowledgePtr released;
  std::vector<Thread*> waiting;
};

/// Copies of boxes and runs of bytes between global and shared memory.
struct BulkCopy {
  struct Piece {
    Block* block;
    int first, end;  ///< rows
  };
  bool stores = false;
  TensorMap map{};
  std::array<int64_t, TensorMap::kRanks> at{};
  int64_t shared = 0, barrier = 0;  ///< offsets in shared memory
  KnowledgePtr behind;
  int32_t line = 0;
  Thread* issuer = nullptr;
  uint32_t group = 0;  ///< of stores
  std::vector<Piece> pieces;
};

/// Stores of a thread, in groups.
struct BulkQueue {
  int64_t reading = 0, writing = 0;  ///< agents; 0: none yet
  uint32_t groups = 0;               ///< committed
  uint32_t waited = 0;               ///< groups that the thread knows to be read
  bool open = false;                 ///< stores that are not committed
  int32_t line = 0;                  ///< of the last one
  std::map<uint32_t, int> left;      ///< stores of a group that are not done
};

/// Registers of a thread that asynchronous work uses, up to a group.
struct InFlight {
  char* begin;
  int64_t bytes;
  bool written;  ///< accumulators, not A
  uint32_t group;
  int32_t line;
};

/// Accumulators of four warps while products add to them: 64 rows.
struct Accumulators {
  int n = 0;
  std::vector<float> values;
  std::array<float*, kGroupThreads> registers{};  ///< null: not taken
  std::array<uint32_t, kGroupThreads> group{};    ///< last
  int given_back = 0;
};

/// A product that some of the four warps' threads have issued.
struct Wgmma {
  TextWgmma text{};  ///< of the first thread
  std::string type;
  int32_t line = 0;
  uint32_t group = 0;
  int threads = 0;
  std::shared_ptr<Accumulators> d;
  std::array<std::array<uint32_t, 4>, kGroupThreads> a{};
  std::array<Past, kGroupThreads> pasts;
  std::array<uint64_t, 4> versions{};  ///< of the clocks of each warp's threads, together
};

/// Tensor cores of four warps.
struct WarpGroup {
  int64_t agent = 0;
  std::deque<std::unique_ptr<Wgmma>> products;
  uint64_t first = 0, executed = 0;  ///< numbers of products
  std::map<uint32_t, int> left;      ///< products of a group that are not done
  std::vector<std::shared_ptr<Accumulators>> accumulators;
  std::array<KnowledgePtr, 4> behind;  ///< of the warps, as they were at these versions
  std::array<uint64_t, 4> versions{};
  uint32_t done_until = 0;
  KnowledgePtr done;  ///< what a wait for these groups tells
  uint32_t moment = 0, moment_group = 0;
  std::vector<Thread*> waiting;
};

/// Reads an operand's elements through its descriptor: row r of 64 or n, column k.
struct Descriptor {
  uint32_t start, leading, stride;
  int swizzle;
  explicit Descriptor(uint64_t bits);
  /// Address of 16 bytes: of row r from byte `along` on, or, transposed, of column `along` from
  /// row r on.
  uint32_t address(int r, int along, bool transposed, int element_bytes) const;
};

}  // namespace tw::emu
