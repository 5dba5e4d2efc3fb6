#pragma once

#include <array>
#include <exception>
#include <functional>
#include <string>
#include <vector>

#include "tw/lang/tile.h"

namespace tw {

/// A block of a tensor, ready to be loaded or stored. Owns what it needs.
struct TileView {
  std::shared_ptr<TraceState> trace;
  View view;
  Type type;
};

/// A parameter in memory, or scratch. [] fixes its leading axis.
class TensorRef {
 public:
  TensorRef operator[](const Index& i) const;
  /// The block at tile coordinates: axis a starts at at[a] * extents[a].
  TileView tile(const std::vector<Index>& at, const Extents& extents,
                SourceLoc loc = SourceLoc::here()) const;
  /// The block that starts at element coordinates (any, also outside the tensor).
  TileView window(const std::vector<Index>& offset, const Extents& extents,
                  SourceLoc loc = SourceLoc::here()) const;

  const std::shared_ptr<TraceState>& trace() const { return trace_; }
  int param() const { return param_; }
  const std::vector<Index>& fixed() const { return fixed_; }  ///< coordinates that [] gave

 private:
  friend class Trace;
  TensorRef(std::shared_ptr<TraceState> trace, int param)
      : trace_(std::move(trace)), param_(param) {}
  TileView view(const std::vector<Index>& at, const Extents& extents, bool scaled, const char* what,
                SourceLoc loc) const;

  std::shared_ptr<TraceState> trace_;
  int param_;
  std::vector<Index> fixed_;
};

/// How a block-scaled tensor is kept: elements of one type, and one scale for each block of them.
/// A block stretches along the last two axes, by these extents.
struct ScaledFormat {
  DType element = e4m3;
  DType scale = f32;
  std::array<int64_t, 2> block = {1, 128};
};
/// OCP Microscaling v1.0: 32 neighbours share a power of two. Elements are e4m3, e5m2, e3m2, e2m3
/// or e2m1.
inline ScaledFormat mx(DType element) { return {element, e8m0, {1, 32}}; }
/// Blocks of 16 e2m1 with an e4m3 scale.
inline ScaledFormat nvfp4() { return {e2m1, e4m3, {1, 16}}; }

/// A block of a scaled tensor, and the scales of what is in it.
struct ScaledView {
  TileView elements, scales;
};

/// A scaled tensor: two parameters. `scales` has an extent of cdiv(n, block) where `elements` has
/// n.
class ScaledRef {
 public:
  ScaledRef(TensorRef elements_, TensorRef scales_, ScaledFormat format_)
      : elements(std::move(elements_)), scales(std::move(scales_)), format(format_) {}
  ScaledRef operator[](const Index& i) const;
  /// As TensorRef::tile. Along each axis the tile is made of whole blocks, or lies in one; the
  /// program must show that.
  ScaledView tile(const std::vector<Index>& at, const Extents& extents,
                  SourceLoc loc = SourceLoc::here()) const;

  TensorRef elements, scales;
  ScaledFormat format;
};

struct DimOptions {
  int64_t multiple_of = 1;  ///< a promise, checked at launch
};

/// Records one tile program. There is no current trace: every value knows its own. Not for use by
/// several threads. All errors are UserErrors at the user's line.
class Trace {
 public:
  explicit Trace(std::string name, SourceLoc at = SourceLoc::here());
  Trace(const Trace&) = delete;
  Trace& operator=(const Trace&) = delete;

  /// The integer of that name, known at launch: a tensor extent, or a plain argument when no tensor
  /// has it. Always the same Index for one name.
  Index dim(const std::string& name, DimOptions o = {}, SourceLoc at = SourceLoc::here());
  /// Parameters, in the order of the launch. Extents are dims and constants.
  TensorRef input(const std::string& name, DType t, const std::vector<Index>& dims,
                  SourceLoc at = SourceLoc::here());
  TensorRef output(const std::string& name, DType t, const std::vector<Index>& dims,
                   SourceLoc at = SourceLoc::here());
  TensorRef inout(const std::string& name, DType t, const std::vector<Index>& dims,
                  SourceLoc at = SourceLoc::here());

  /// Memory that this instance alone sees, all zeros when it begins: for load, store, gather,
  /// scatter and atomics like a tensor. No argument of the launch.
  TensorRef scratch(const std::string& name, DType t, const Extents& extents,
                    SourceLoc at = SourceLoc::here());
  /// Memory that all instances of a launch share, all zeros when the launch begins: for load,
  /// store, gather, scatter and atomics like a tensor. No argument of the launch.
  TensorRef workspace(const std::string& name, DType t, const std::vector<Index>& dims,
                      SourceLoc at = SourceLoc::here());
  /// Scaled tensors: the parameters `name` and `name`_scale.
  ScaledRef input_scaled(const std::string& name, const ScaledFormat& format,
                         const std::vector<Index>& dims, SourceLoc at = SourceLoc::here());
  ScaledRef output_scaled(const std::string& name, const ScaledFormat& format,
                          const std::vector<Index>& dims, SourceLoc at = SourceLoc::here());

  /// How many instances run: a point of the grid each, unordered. Returns this instance's
  /// coordinates. At most one grid; none means one instance.
  std::array<Index, 1> grid(const Index& x, SourceLoc at = SourceLoc::here());
  std::array<Index, 2> grid(const Index& x, const Index& y, SourceLoc at = SourceLoc::here());
  std::array<Index, 3> grid(const Index& x, const Index& y, const Index& z,
                            SourceLoc at = SourceLoc::here());

  /// Instances begin in row-major order of the grid, so that one may wait, in a While loop over
  /// atomics, for what those before it do. On the CPU they then run on one thread.
  void in_order(SourceLoc at = SourceLoc::here());

  Tile full(DType t, const Extents& shape, Constant value, SourceLoc at = SourceLoc::here());
  Tile zeros(DType t, const Extents& shape, SourceLoc at = SourceLoc::here());
  /// i64: the element's index along the axis.
  Tile iota(const Extents& shape, int axis, SourceLoc at = SourceLoc::here());

  class Loop;
  /// A loop on the device, written `for (Index i : k.range(n)) { ... }`: i runs lo, lo + step, ...
  /// below hi. The body is traced once; a Tile assigned in it is carried from one iteration to the
  /// next. step must be provably at least 1.
  Loop range(const Index& hi, SourceLoc at = SourceLoc::here());
  Loop range(const Index& lo, const Index& hi, SourceLoc at = SourceLoc::here());
  Loop range(const Index& lo, const Index& hi, const Index& step, SourceLoc at = SourceLoc::here());
  template <class T>
  requires std::same_as<T, Tile>
  void range(const T&) {
    static_assert(sizeof(T) == 0,
                  "tilewright: k.range takes Index values; a Tile is not known before it runs");
  }

  /// A branch that the whole instance takes together.
  void when(
      const Cond& cond, const std::function<void()>& then,
      const std::function<void()>& otherwise = [] {}, SourceLoc at = SourceLoc::here());
  template <class T>
  requires std::same_as<T, Tile>
  void when(
      const T&, const std::function<void()>&, const std::function<void()>& = [] {}) {
    static_assert(sizeof(T) == 0,
                  "tilewright: k.when takes a condition on Index values, such as i < 4; use "
                  "where(mask, a, b) for a choice per element");
  }

  /// Of a checked launch: an error at this line, with the message and where it is, when an element
  /// of the mask is false. Of other launches it is not part.
  void check(const Tile& mask, const std::string& message, SourceLoc at = SourceLoc::here());
  /// Shows the tile's elements, in lines that begin with the label and the instance's coordinates.
  void print(const std::string& label, const Tile& x, SourceLoc at = SourceLoc::here());

  /// The program. The Trace and its Tiles are of no further use.
  Program finish(SourceLoc at = SourceLoc::here());

  /// While it lives, messages of this trace start with "in <name>: ".
  class Scope {
   public:
    Scope(Trace& k, std::string name);
    ~Scope();
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    std::shared_ptr<TraceState> trace_;
  };

 private:
  friend class While;
  void tell(Opcode code, const Tile& x, const std::string& text, SourceLoc at);
  TensorRef param(const std::string& name, ParamKind kind, DType t, const std::vector<Index>& dims,
                  SourceLoc at);
  ScaledRef scaled(const std::string& name, ParamKind kind, const ScaledFormat& format,
                   const std::vector<Index>& dims, SourceLoc at);
  std::shared_ptr<TraceState> state_;
};

/// A loop on the device that runs as long as data says:
///   While loop(k);
///   while (loop(any(active))) { ... }
/// C++ evaluates the condition twice, and so traces it twice: before the loop, which opens the
/// body, and at the body's end, which closes it. The body is traced once; Tiles assigned in it are
/// carried, as in range(). The condition is a scalar b1 tile.
class While {
 public:
  explicit While(Trace& k, SourceLoc at = SourceLoc::here());
  While(const While&) = delete;
  While& operator=(const While&) = delete;
  ~While();  ///< notes `break`, `return` and exceptions for finish()
  bool operator()(const Tile& condition, SourceLoc at = SourceLoc::here());

 private:
  enum class Stage { before, inside, after };
  std::shared_ptr<TraceState> trace_;
  SourceLoc at_;
  Stage stage_ = Stage::before;
  uint64_t frame_ = 0;
  int errors_;  // exceptions in flight when it was made
};

/// What a range-for over Trace::range walks on: its begin() opens the loop's region, ++ closes it.
class Trace::Loop {
 public:
  struct End {};
  class Iterator {
   public:
    Iterator(std::shared_ptr<TraceState> trace, LoopAttr loop, SourceLoc at);
    Iterator(const Iterator&) = delete;
    Iterator& operator=(const Iterator&) = delete;
    ~Iterator();  ///< notes `break`, `return` and exceptions for finish()
    const Index& operator*() const { return counter_; }
    bool operator!=(End) const { return open_; }
    void operator++();

   private:
    std::shared_ptr<TraceState> trace_;
    uint64_t frame_;
    Index counter_;
    SourceLoc at_;
    int errors_;  // exceptions in flight when the loop was opened
    bool open_ = true;
  };
  Iterator begin() const { return {trace_, loop_, at_}; }
  End end() const { return {}; }

 private:
  friend class Trace;
  Loop(std::shared_ptr<TraceState> trace, LoopAttr loop, SourceLoc at)
      : trace_(std::move(trace)), loop_(std::move(loop)), at_(at) {}
  std::shared_ptr<TraceState> trace_;
  LoopAttr loop_;
  SourceLoc at_;
};

}  // namespace tw
