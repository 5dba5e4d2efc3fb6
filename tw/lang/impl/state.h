#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tw/base/error.h"
#include "tw/lang/tile.h"

namespace tw {

/// What a Trace, its Tiles and Index values share. Tiles are variables ("slots"); reads and writes
/// of slots become SSA values on the fly (Braun et al., CC 2013): in a loop's frame the first read
/// of an outer slot makes a loop argument stand in for it, and when the loop closes the slots that
/// were written become carried values; the other stand-ins become the outer value again.
class TraceState {
 public:
  explicit TraceState(std::string name, SourceLoc at);

  // ---- errors
  [[noreturn]] void fail(SourceLoc at, const std::string& what, const std::string& hint = "") const;
  /// Calls f; a UserError from it gets the prefix of the open scopes.
  template <class F>
  auto checked(F&& f) const {
    try {
      return f();
    } catch (const UserError& e) {
      fail(e.at(), e.message(), e.hint());
    }
  }
  /// Throws when the program is finished, and for an index of another program or with a problem.
  void check_open(SourceLoc at) const;
  Expr expr(const Index& i, SourceLoc at) const;
  Expr host_expr(const Index& i, const std::string& what, SourceLoc at) const;
  Facts facts() const;  ///< of open loops too
  std::vector<std::string> scopes;
  /// While set, ops and errors are at this line instead of their own.
  SourceLoc pinned;

  // ---- variables
  static constexpr uint64_t kMoved = 0;  ///< the slot of a Tile that was moved from
  uint64_t new_slot(ValueId v);
  void free_slot(uint64_t slot);
  ValueId read(uint64_t slot, SourceLoc at);
  void write(uint64_t slot, ValueId v);
  SourceLoc made_at(uint64_t slot) { return program.values[read(slot, {})].at; }
  void name_value(ValueId v, const std::string& name) { program.values[v].name = name; }
  const Type& type(ValueId v) const { return program.type(v); }

  // ---- ops
  ValueId emit(Opcode code, std::vector<ValueId> in, Attr attr, Type type, SourceLoc at);
  void append(Op op);
  ValueId constant(DType t, const Extents& shape, const Number& n, SourceLoc at);
  /// i64, one element of that rank.
  ValueId index(const Index& i, size_t rank, SourceLoc at);

  // ---- control
  uint64_t open_loop(LoopAttr loop, SourceLoc at);
  int last_loop() const { return program.loops - 1; }  ///< id of the loop opened last
  /// A loop that runs while its condition holds: `go` is that before the first iteration, at the
  /// end of one (which closes it) that before the next.
  uint64_t open_while(ValueId go, SourceLoc at);
  void close_loop(uint64_t frame, std::optional<ValueId> go = std::nullopt);
  /// Drops the frame and those inside it; finish() will throw the error.
  void abandon(uint64_t frame, SourceLoc at, const std::string& what);
  void branch(const CondAttr& cond, SourceLoc at, const std::function<void()>& then,
              const std::function<void()>& otherwise);
  /// The results of a reduce or scan whose region `body` fills: it gets the arguments, returns the
  /// yields.
  std::vector<ValueId> fold(
      Opcode code, const std::vector<ValueId>& in, Attr attr, SourceLoc at,
      const std::function<std::vector<ValueId>(const std::vector<ValueId>& args)>& body);
  Program finish(SourceLoc at);

  Program program;

 private:
  struct Slot {
    ValueId value;
    uint64_t frame;
  };
  struct Outer {  // how a frame sees a slot declared outside it
    ValueId entry, before, now;
    uint64_t first_write = 0;  // 0: only read
  };
  enum class FrameKind { root, loop, branch, combiner };
  struct Frame {
    uint64_t id;
    FrameKind kind;
    Region region;
    std::map<uint64_t, Outer> outer;
    std::optional<LoopAttr> loop;  // a loop has this, or else is a while loop
    SourceLoc at;
    ValueId go = 0;
  };
  using Written = std::vector<std::pair<uint64_t, Outer>>;

  uint64_t open_frame(FrameKind kind, SourceLoc at);
  void check_control(const char* what, SourceLoc at) const;
  /// The region that f fills in a frame of its own, and how that frame saw outer slots.
  Frame in_frame(FrameKind kind, SourceLoc at, const std::function<void()>& f);
  ValueId read(uint64_t slot, size_t depth, SourceLoc at);
  static Written written_in_order(const std::map<uint64_t, Outer>& outer);
  void write_if_alive(uint64_t slot, ValueId v);
  std::string place(SourceLoc at) const;
  void resolve(Region& r) const;
  ValueId resolve(ValueId v) const;
  void check_finished(SourceLoc at) const;
  void check_stored() const;
  void sort_params();

  std::map<uint64_t, Slot> slots_;
  std::vector<Frame> frames_;
  std::map<ValueId, ValueId> same_as_;  // stand-ins that turned out not to be carried
  std::optional<UserError> noted_;      // an error seen where throwing was impossible
  uint64_t last_slot_ = 0, last_frame_ = 0, writes_ = 0;
  bool finished_ = false;
  SourceLoc at_;
};

/// The value of an operand; numbers and Index values become one element of like's dtype and rank.
ValueId operand(TraceState& t, const Arg& a, const Type& like);

/// Functions made of other functions of the language report their caller's line.
class AtLine {
 public:
  AtLine(TraceState& trace, SourceLoc at) : trace_(trace), before_(trace.pinned) {
    if (!before_.known()) trace.pinned = at;
  }
  ~AtLine() { trace_.pinned = before_; }
  AtLine(const AtLine&) = delete;
  AtLine& operator=(const AtLine&) = delete;

 private:
  TraceState& trace_;
  SourceLoc before_;
};

}  // namespace tw
