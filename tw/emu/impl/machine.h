#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "tw/emu/emulator.h"
#include "tw/emu/impl/abi.h"
#include "tw/emu/impl/fiber.h"
#include "tw/emu/impl/memory.h"
#include "tw/emu/impl/order.h"
#include "tw/emu/impl/random.h"

namespace tw::emu {

constexpr int kLanes = 32;

/// Where a thread waits, or in which loop it last asked.
struct Call {
  const char* kind = nullptr;  ///< null: nowhere
  int32_t line = 0;
  const void* in = nullptr;
  uint64_t bytes = 0;
  int32_t argument = 0;
  void* out = nullptr;
};

/// 16 bytes under way to shared memory.
struct Copy {
  char* to;
  const void* from;
  int32_t bytes;
  int64_t group;  ///< -1: not committed yet
  bool arrived;
  Place place;
};

struct Block;
struct Warp;
struct Thread {
  TextThread text{};
  Fiber fiber;
  Clock clock;
  Block* block = nullptr;
  Warp* warp = nullptr;
  int lane = 0;
  bool starved = false;  ///< runs when nobody else can
  Call call;
  Call asked;                          ///< the last atomic
  const void* asked_at = nullptr;      ///< the first since memory that all see changed
  int64_t asked_since = -1, asks = 0;  ///< that change, and how often since then
  std::vector<Copy> copies;
  int64_t groups = 0;  ///< of copies, committed
};
struct Warp {
  std::array<Thread*, kLanes> lanes{};
  uint32_t present = 0;  ///< lanes that have not ended
  uint32_t arrived = 0;  ///< at one call
};
struct Block {
  size_t slot = 0;
  int64_t number = 0;
  size_t shared = 0;  ///< region
  std::vector<Thread> threads;
  std::vector<Warp> warps;
  int arrived = 0, ended = 0;
  int64_t waits_since = -1;  ///< the last change when a thread was seen to wait for another
  Thread* first = nullptr;   ///< that arrived at the barrier
};

struct Grid {
  int64_t blocks = 1;
  int threads = 1;
  int resident = 1;
  std::vector<size_t> shared;  ///< a region for each resident block
  void (*start)(const void* parameter) = nullptr;
  const void* parameter = nullptr;
  bool check = true;
};

/// What went wrong. In the text "@0" and "@1" stand for the places.
struct Finding {
  EmuFault fault;
  std::string text;
  std::vector<Place> places;
};

/// Runs the threads of a grid. Only one runs in a process at a time.
class Machine {
 public:
  Machine(TextTable& table, Memory& memory, FiberStacks& stacks, Grid grid, uint64_t seed);
  std::optional<Finding> run();

 private:
  // scheduling
  void start_block(Block& block, int64_t number);
  void start_next(Block& block);
  void switch_to(Thread& t);
  void make_ready(Thread& t);
  Thread* pick();
  void leave();  ///< back to the scheduler, from a thread
  void wait_here();
  void offer();  ///< lets others run, sometimes
  void run_thread();
  void end_thread();
  void deadlock();
  void ask_again(const void* address);
  std::string where_all_wait(std::vector<Place>& places) const;

  // reports; the running thread ends
  void find(Finding finding);
  [[noreturn]] void die();
  [[noreturn]] void fail(EmuFault fault, std::string text, std::vector<Place> places);
  void fail_access(const Conflict& c, const Region& r, bool write, uint64_t bytes, Place place);

  // what text calls
  void access(void* address, uint64_t bytes, bool write, Place place);
  void fault(int32_t line, void* address, uint64_t alignment);
  int32_t sync(const char* kind, int32_t value, int32_t line);
  void complete_sync(Block& block);
  void warp(const Call& call);
  void complete_warp(Warp& warp);
  void atomic(const char* name, const char* type, void* address, const void* value,
              const void* expected, void* old, int32_t line);
  void copy_async(void* shared, const void* global, int32_t bytes, int32_t line);
  void copy_commit();
  void copy_wait(int32_t left);
  void settle(Thread& t, int64_t group);
  void expect_aligned(const void* address, uint64_t bytes, int32_t line);
  Region& region_of(const void* address, uint64_t bytes, bool write, Place place);

  // calls of a warp
  void shuffle(Warp& warp, const std::string& kind);
  void vote(Warp& warp, bool ballot);
  void read_row(const Call& call);
  void load_matrix(Warp& warp, bool transposed);

  static Machine* running_;
  TextTable& table_;
  Memory& memory_;
  FiberStacks& stacks_;
  const Grid grid_;
  Random random_;
  bool in_turn_ = true;   ///< threads run in the order in which they became ready
  uint32_t preempt_ = 0;  ///< one of so many calls lets others run; 0: none
  uint64_t starve_ = 0;   ///< who is starved
  int64_t next_block_ = 0;
  int64_t running_blocks_ = 0;
  std::vector<Block> blocks_;
  std::vector<Block*> ended_blocks_;
  std::array<std::deque<Thread*>, 2> ready_;
  Thread* current_ = nullptr;
  Fiber scheduler_;
  std::map<const void*, KnowledgePtr> released_;
  std::optional<Finding> finding_;
  int64_t changes_ = 0;  ///< of memory that all blocks see
  int64_t idle_ = 0;     ///< calls and accesses since something changed

  friend void fill_table(TextTable& table, uintptr_t base);
};

/// Points the functions of a table to the running machine; code of its text lies behind `base`.
void fill_table(TextTable& table, uintptr_t base);

/// d += a b of a warp's registers, for the calls named tw_mma_*; false for another name.
bool multiply(const std::string& kind, const std::array<Thread*, kLanes>& lanes);

/// The place of a line, or of code.
Place at_line(int32_t line);

}  // namespace tw::emu
