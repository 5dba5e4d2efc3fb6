#pragma once

#include <map>
#include <set>
#include <vector>

#include "tw/emit/cpu/context.h"
#include "tw/ir/program.h"
#include "tw/layout/thread_value.h"
#include "tw/target/gpu.h"

namespace tw::cuda {

/// The most registers of one thread that one tile may take.
inline constexpr int64_t kMostRegisters = 64;

/// How a program's tiles are spread over the threads of a block: one layout a shape, so that what
/// is computed from tiles of one shape needs no exchange. Tiles with extents of 1 lie as a fold of
/// the larger tile that they go with.
class Placement {
 public:
  /// `warps`: of a block; 0: chosen from the tiles.
  Placement(const cpu::Context& c, int64_t warps);

  int threads() const { return threads_; }
  const layout::ThreadValue& layout_of(const Extents& shape) const;
  /// Whether a tile of the shape may lie in registers.
  bool in_registers(const Extents& shape) const {
    return layout_of(shape).registers() <= kMostRegisters;
  }
  /// Whether the results of the op are kept when it is done; others are computed where they are
  /// used.
  bool kept(const Op& op) const;

 private:
  struct Use {
    int count = 0;
    bool deeper = false;    ///< in a loop that the definition is outside of
    bool anywhere = false;  ///< by an op that reads elements at places of its own choice
  };
  struct Shape {
    size_t vector_axis = 0;
    int64_t bytes = 0;  ///< of the narrowest element that memory holds; 0: none
    bool product = false;
  };
  void visit(const Region& r, int depth);
  void note(ValueId v, int depth, bool anywhere);
  void note_view(const Op& op, ValueId v);
  void choose_threads(int64_t warps);
  layout::ThreadValue choose(const Extents& shape) const;
  bool cheap(ValueId v) const;

  const cpu::Context& c_;
  int threads_ = 32;
  std::map<ValueId, Use> uses_;
  std::map<ValueId, int> depth_;
  std::map<Extents, Shape> shapes_;
  mutable std::map<Extents, layout::ThreadValue> layouts_;
};

}  // namespace tw::cuda
