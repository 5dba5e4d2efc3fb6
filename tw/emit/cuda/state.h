#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "tw/emit/cpu/expression.h"
#include "tw/emit/cuda/placement.h"
#include "tw/target/gpu.h"

namespace tw::cuda {

using cpu::Coords;
using cpu::Expression;
using cpu::Reg;
using cpu::register_type;
using cpu::Storage;
using cpu::Writer;

/// A value in registers: an array of every thread, or a variable when one register is enough.
struct Tile {
  std::string name;
  Type type;
  layout::ThreadValue layout;
  bool variable() const { return layout.registers() == 1; }
};

/// What threads of a block touch since they last met: ranges of the block's memory, and tensors.
struct Touched {
  enum class Space : uint8_t { shared, workspace, tensor };
  Space space = Space::shared;
  int64_t lo = 0, hi = 0;  ///< bytes; of a tensor: its number
  /// Of an atomic whose order among others of its kind means nothing.
  std::optional<AtomicOp> commutes = {};
  bool meets(const Touched& o) const {
    return space == o.space && lo < o.hi && o.lo < hi && !(commutes && commutes == o.commutes);
  }
};

/// An operand of dots in the block's memory.
struct PanelMemory {
  Panel form;
  std::string name;  ///< a pointer to its first element
  Touched where;
};
/// What a draft may use. Thrown when it cannot, so that the text is drafted anew without: a panel
/// finds no room in shared memory; threads of several blocks exchange more than what they fold.
struct Means {
  bool panels = true, clusters = true;
};
struct NoRoomForPanels {};
struct NoCluster {};

/// What a statement reads and writes that other threads may write or read.
struct Footprint {
  std::vector<Touched> reads, writes;
  void add(const Footprint& o);
  bool conflicts_with(const Footprint& before) const;
};

/// What the parts of one emission for a GPU share.
class State {
 public:
  State(Program p, const Specialisation& s, const GpuMachine& gpu, const Mapping& mapping,
        cpu::Thread kind, std::set<ValueId>& scattered, const Means& means);

  State(const State&) = delete;
  State& operator=(const State&) = delete;

 private:
  Program own_;

 public:
  cpu::Context c;
  const GpuMachine& gpu;
  Placement placement;
  std::map<ValueId, Tile> tiles;
  /// Values that some use reads at other places than its thread holds: they lie in memory too.
  /// Found while text is drafted; complete when a draft adds none.
  std::set<ValueId>& scattered;
  const std::string cluster_thread;       ///< its name; empty where an instance has one block
  const std::set<ValueId> settled;        ///< what the drafts before found of them
  std::map<ValueId, PanelMemory> panels;  ///< of tiles that dots read
  int branches = 0;                       ///< that the text being written stands in
  std::set<ValueId> late;                 ///< loads of runs that stand where they are used
  std::set<ValueId> fetched;              ///< loads that stand at the top of their loop
  std::map<ValueId, Touched> memory_of;   ///< of values in memory
  Footprint pending;                      ///< since the threads last met
  Footprint outside;         ///< the same from before a loop, while they did not meet in its body
  bool before_loop = false;  ///< its body touches that: they must meet before the loop
  Footprint head;            ///< of a loop's body: what it touches before the threads meet in it
  bool met = false;          ///< whether they have met there
  Writer bases;              ///< coordinates of the thread, at the top of the kernel
  std::map<std::string, Symbol> base_symbols;
  Footprint drafted;  ///< what tiles are read in memory by text that is not appended yet
  int64_t shared = 0, shared_most = 0, workspace = 0, workspace_most = 0;

  const Program& program() const { return own_; }
  /// A value of v's type that nothing defines.
  ValueId copy_of(ValueId v);
  /// C++ text of the thread's first coordinate along an axis of a layout, as an expression.
  Expr base(const layout::ThreadValue& l, size_t axis);
  /// A condition that one of the threads that hold copies meets; empty when there are none.
  std::string first_copy(const layout::ThreadValue& l);
  /// A number along a mode of threads that is `below` others apart: "tw_thread() / 8 % 4".
  std::string digit(int64_t below, int64_t extent);
  std::string call(const std::string& function);  ///< notes it as used; returns its name
  /// The number of a thread among those of an instance.
  std::string thread() { return cluster_thread.empty() ? call("thread") + "()" : cluster_thread; }
  /// The threads of an instance meet.
  std::string sync() { return call(placement.cluster() > 1 ? "cluster_sync" : "sync") + "();"; }

  /// Declares the registers of a tile; `note` ends the line.
  void declare_registers(const Tile& t, Writer& out, const std::string& note = "");
  /// Declares a tile of registers for the value.
  const Tile& declare(ValueId v, Writer& out);
  /// Reserves memory of the block and makes it the value's storage. `padded`: rows that begin in
  /// one bank of shared memory are a word longer, so that columns are read from many.
  const Storage& reserve(ValueId v, Writer& out, bool padded = true);
  /// Bytes of memory of the block, as a pointer to `type`; what it covers in `where`. An instance
  /// of several blocks has no other memory than those parts that a fold sends to all of them.
  std::string reserve_bytes(const std::string& type, const std::string& wish, int64_t bytes,
                            const std::string& comment, Writer& out, Touched& where,
                            bool of_fold = false);
  /// Where shared memory of that size is reserved. A little lies beside what other threads may
  /// still touch: it is cheaper than a barrier.
  int64_t beside_pending(int64_t size) const;
  /// A use reads v where its thread holds it not: the next draft keeps it in memory.
  void scatter(ValueId v);
  /// Whether the value lies in memory: some use wants it, or it is too large for registers.
  bool in_memory(ValueId v) const;
  bool in_registers(ValueId v) const;

  /// What computing an element of v reads of tensors that are written, and of tiles that lie in
  /// memory only. What it reads of others in memory is found when it is drafted.
  Footprint reads_of(ValueId v) const;
  /// Whether text drafted with such reads touches memory where a hole must not.
  bool guards(const Footprint& reads) const {
    return !reads.reads.empty() || !drafted.reads.empty();
  }
  /// Puts the statements at the end of `out`, after a barrier when they touch what is pending.
  void append(const Footprint& f, const Writer& text, Writer& out);
  void barrier(Writer& out);
};

/// Memory by the name of a pointer, as a value's storage, and back.
Storage memory_at(const std::string& name, const Type& type);
std::string pointer_to(const Storage& s);

/// Frees the memory that is reserved while it lives.
class MemoryScope {
 public:
  explicit MemoryScope(State& s) : s_(s), shared_(s.shared), workspace_(s.workspace) {}
  ~MemoryScope() {
    s_.shared = shared_;
    s_.workspace = workspace_;
  }
  MemoryScope(const MemoryScope&) = delete;
  MemoryScope& operator=(const MemoryScope&) = delete;

 private:
  State& s_;
  int64_t shared_, workspace_;
};

/// Emits the ops of a region in order.
void emit_region(State& s, const Region& r, Writer& out);

}  // namespace tw::cuda
