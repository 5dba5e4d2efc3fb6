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
#include "tw/emu/impl/async.h"
#include "tw/emu/impl/fiber.h"
#include "tw/emu/impl/memory.h"
#include "tw/emu/impl/order.h"
#include "tw/emu/impl/random.h"

namespace tw::emu {

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

  Wait wait;
  bool in_cluster_barrier = false;
  uint32_t cluster_generation = 0;
  int setmaxnregs = 0;
  BulkQueue bulk;
  bool wgmma_fenced = false;
  bool others_done = true;  ///< it is behind a wait for the launches before this one
  uint64_t wgmmas = 0;
  uint32_t wgmma_groups = 0;  ///< committed
  Past wgmma_past;            ///< as it was at the version
  uint64_t wgmma_version = 0;
  std::vector<InFlight> in_flight;
};
struct Warp {
  std::array<Thread*, kLanes> lanes{};
  uint32_t present = 0;  ///< lanes that have not ended
  uint32_t arrived = 0;  ///< at one call
  int registers = 0;     ///< of a thread
  int setmaxnregs = 0;
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

  Cluster* cluster = nullptr;
  std::map<int64_t, MBarrier> mbarriers;  ///< by offset
  std::array<NamedBarrier, 16> named;
  std::vector<WarpGroup> groups;
  int free_registers = 0;
  std::vector<Thread*> wants_registers;
  struct Touch {
    Moment moment;
    Place place;
  };
  std::map<int64_t, Touch> touches;  ///< of its shared memory, the last of each other thread
  std::vector<Past> ends;
  bool has_ended = false;
};

struct Grid {
  int64_t blocks = 1;
  int threads = 1;
  int resident = 1;
  int cluster = 1;
  bool warp_groups = false;    ///< the text has roles for groups of four warps
  std::vector<size_t> shared;  ///< a region for each resident block
  void (*start)(const void* parameter) = nullptr;
  const void* parameter = nullptr;
  uint32_t shared_base = 0;  ///< address of the first byte of shared memory
  bool check = true;
  bool early = false;  ///< begins while the launches before it run
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
  void start_next(Cluster& cluster);
  void reset(Thread& t);
  void switch_to(Thread& t);
  void make_ready(Thread& t);
  Thread* pick();
  void leave();  ///< back to the scheduler, from a thread
  void wait_here();
  void wait_in(std::vector<Thread*>& queue, const Wait& wait);
  void wake(std::vector<Thread*>& queue);
  void offer();  ///< lets others run, sometimes
  void run_thread();
  void end_thread();
  void end_block(Block& block);
  void deadlock();
  std::string describe(const Thread& t) const;
  std::string waits_for(const Thread& t) const;
  void ask_again(const void* address);
  std::string where_all_wait(std::vector<Place>& places) const;

  // reports; the running thread ends
  void find(Finding finding);
  [[noreturn]] void die();
  [[noreturn]] void fail(EmuFault fault, std::string text, std::vector<Place> places);
  std::string who(const Moment& m) const;
  Finding access_finding(const std::string& me, const Conflict& c, const Region& r, bool write,
                         int64_t bytes, Place place) const;

  // what text calls
  void access(void* address, uint64_t bytes, bool write, Place place);
  [[noreturn]] void fault(TextFault kind, int32_t line, const void* address, uint64_t alignment);
  int32_t sync(const char* kind, int32_t value, int32_t line);
  void complete_sync(Block& block);
  KnowledgePtr with_fences(KnowledgePtr all, const Thread& t);
  void learn(Thread& t, const KnowledgePtr& more);
  void warp(const Call& call);
  void complete_warp(Warp& warp);
  void atomic(const char* name, const char* type, void* address, const void* value,
              const void* expected, void* old, int32_t line);
  void copy_async(void* shared, const void* global, int32_t bytes, int32_t line);
  void copy_commit();
  void copy_wait(int32_t left);
  void settle(Thread& t, int64_t group);
  void expect_aligned(const void* address, uint64_t bytes, int32_t line);
  void expect_others_done(Place place);
  Region& region_of(const void* address, uint64_t bytes, bool write, Place place);

  // calls of a warp
  void shuffle(Warp& warp, const std::string& kind);
  void vote(Warp& warp, bool ballot);
  void access_row(const Call& call);
  void load_matrix(Warp& warp, bool transposed);
  void store_matrix(Warp& warp);
  void elect(Warp& warp);

  // addresses of shared memory, barriers in it
  uint32_t shared_address(const void* p, int32_t line);
  char* shared_at(Block& block, int64_t offset) {
    return memory_.region(block.shared).begin + offset;
  }
  int64_t new_agent(const std::string& name);
  Block& peer_block(uint32_t rank, int32_t line);
  void* peer(void* shared, uint32_t rank, int32_t line);
  void touch(Block& other, Place place);
  void mbarrier(const char* kind, void* p, uint32_t value, int32_t rank, int32_t line);
  void init_mbarrier(Block& block, int64_t offset, uint32_t count, int32_t line);
  MBarrier& mbarrier_at(Block& block, int64_t offset, bool announced, int32_t line);
  void arrive_at(Block& block, MBarrier& b, const char* kind, int32_t line);
  void expect_bytes(MBarrier& b, uint32_t bytes, int32_t line);
  void wait_mbarrier(MBarrier& b, uint32_t parity, int32_t line);
  void complete_phase(MBarrier& b);
  void named(const char* kind, uint32_t number, uint32_t threads, int32_t line);
  KnowledgePtr complete_named(Block& block, NamedBarrier& b, uint32_t number, int32_t line);
  uint32_t cluster(const char* kind, int32_t line);
  void complete_cluster(Cluster& c);
  void setmaxnreg(const char* kind, int32_t count, int32_t line);
  void fence(const char* kind, int32_t line);
  [[noreturn]] void misuse(const std::string& what, int32_t line);

  // copies of boxes and runs
  void tensor(const char* kind, const void* map, void* shared, void* barrier, const int32_t* at,
              int32_t rank, uint32_t mask, int32_t line);
  void bulk(const char* kind, void* shared, void* global, uint32_t bytes, void* barrier,
            int32_t line);
  void start_load(BulkCopy copy, void* barrier, uint32_t mask);
  void start_store(BulkCopy copy);
  void check_corner(const BulkCopy& copy);
  void cut(BulkCopy& copy, Block& block);
  void bulk_group(const char* kind, int32_t left, int32_t line);
  void run_copy(size_t index);
  bool copy_row(const BulkCopy& copy, const BulkCopy::Piece& piece, int row, AsyncClock& from,
                AsyncClock& to);
  bool check_async(AsyncClock& clock, const char* address, int64_t bytes, bool write, Place place);

  // products of four warps
  void wgmma(const TextWgmma& product, int32_t line);
  Wgmma& product_of(WarpGroup& group, const TextWgmma& product, int32_t line);
  void take_registers(Wgmma& w, float* d, int32_t line);
  void wgmma_group(const char* kind, int32_t left, int32_t line);
  void give_back(WarpGroup& group, uint32_t until);
  void update_in_flight(Thread& t);
  void touch_in_flight(char* address, uint64_t bytes, bool write, Place place);
  void run_wgmma(Block& block, WarpGroup& group);
  bool read_operand(Block& block, const Wgmma& w, bool a, std::span<AsyncClock> clocks,
                    std::vector<float>& out);
  void find_behind(WarpGroup& group, const Wgmma& w);
  bool run_async();

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
  std::vector<Cluster> clusters_;
  std::vector<BulkCopy> copies_;
  std::vector<std::string> agents_;  ///< names; number -1 is the first
  Joiner join_;
  uint32_t async_rate_ = 0;  ///< of 1024 steps, those of asynchronous work
  int elected_ = 0;
  std::vector<Cluster*> ended_;
  std::array<std::deque<Thread*>, 2> ready_;  ///< those that are starved last
  Thread* current_ = nullptr;
  Fiber scheduler_;
  std::map<const void*, KnowledgePtr> released_;
  std::optional<Finding> finding_;
  int64_t changes_ = 0;  ///< of memory that all blocks see
  int64_t idle_ = 0;     ///< calls and accesses since something changed

  friend void fill_table(TextTable& table, uintptr_t base);
  friend void fill_async(TextTable& table);
};

void fill_async(TextTable& table);
/// Points the functions of a table to the running machine; code of its text lies behind `base`.
void fill_table(TextTable& table, uintptr_t base);

/// d += a b of a warp's registers, for the calls named tw_mma_*; false for another name.
bool multiply(const std::string& kind, const std::array<Thread*, kLanes>& lanes);

/// The place of a line, or of code.
Place at_line(int32_t line);

}  // namespace tw::emu
