#pragma once

#include <map>
#include <set>
#include <vector>

#include "tw/emit/cpu/context.h"
#include "tw/emit/cuda/operands.h"
#include "tw/ir/program.h"
#include "tw/layout/thread_value.h"
#include "tw/target/gpu.h"

namespace tw::cuda {

/// The most registers of one thread that one tile may take.
inline constexpr int64_t kMostRegisters = 64;
/// The same for the sums of a dot.
inline constexpr int64_t kMostSums = 128;

/// How a program's tiles are spread over the threads of a block: one layout a shape, so that what
/// is computed from tiles of one shape needs no exchange. Tiles with extents of 1 lie as a fold of
/// the larger tile that they go with, and so do tiles that a reshape gives or takes such extents.
class Placement {
 public:
  /// Warps of a block and blocks of a cluster are chosen from the tiles where the mapping has none.
  /// Without panels all dots are plain.
  Placement(const cpu::Context& c, const Mapping& mapping, int most_cluster, bool panels);

  /// Of an instance: of a block, or of a cluster of blocks.
  int threads() const { return threads_; }
  int cluster() const { return cluster_; }
  int block_threads() const { return threads_ / cluster_; }
  /// Of a multiprocessor, so that they hide how long memory takes: more where elements are small
  /// and arithmetic takes as long. Products want registers.
  int threads_wanted() const;
  const layout::ThreadValue& layout_of(const Extents& shape) const;
  /// Whether a tile of the shape may lie in registers.
  bool in_registers(const Extents& shape) const {
    return layout_of(shape).registers() <= (is_product(shape) ? kMostSums : kMostRegisters);
  }
  /// What multiplies for the dot.
  DotUnit unit(const Op& dot) const;
  /// Warps and instructions over a tile of sums of matrix instructions.
  MatrixGrid grid(const Extents& shape) const {
    return matrix_grid(shape, threads_ / 32, rows_only_);
  }
  /// Whether a loop that the definition is outside of uses the value.
  bool used_deeper(ValueId v) const { return uses_.contains(v) && uses_.at(v).deeper; }
  /// Whether one op uses the value, in the region that defines it.
  bool used_once_here(ValueId v) const {
    return uses_.contains(v) && uses_.at(v).count == 1 && !uses_.at(v).deeper;
  }
  const Operands& operands() const { return operands_; }
  /// Whether there are dots that read panels: their sums want all registers that a block can have.
  bool multiplies() const { return panels_ && !operands_.bases().empty(); }
  /// Whether the tile lies in a panel only, where dots read it.
  bool in_panel_only(ValueId v) const { return panels_ && operands_.only(v); }
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
    int64_t bytes = 0;                    ///< of the narrowest element that memory holds; 0: none
    bool product = false;                 ///< of a dot
    int64_t row_run = 1, column_run = 4;  ///< of a thread, when threads multiply
    bool matrix = false;                  ///< all dots of the shape are of the matrix unit
    int scanned = -1;                     ///< the axis of a scan
    bool held = false;                    ///< some tile of it lies in registers
    int64_t loaded = 0;                   ///< bytes of an element of all that is loaded together
  };
  void visit(const Region& r, int depth);
  void note(ValueId v, int depth, bool anywhere);
  void note_view(const Op& op, ValueId v);
  void note_loads(const Region& r);
  bool keeps_rows(int64_t most) const;
  int64_t elements_of_thread(int64_t most) const;
  void choose_threads(int64_t warps);
  void choose_cluster(const Mapping& mapping, int most);
  int64_t most_held() const;
  void note_reshape(const Extents& from, const Extents& to);
  const Extents* whole_of(const Extents& shape) const;
  layout::ThreadValue choose(const Extents& shape) const;
  layout::ThreadValue choose_alone(const Extents& shape) const;
  bool cheap(ValueId v) const;
  bool counts(ValueId v) const;
  bool small_part(const Op& slice) const;
  void note_dot(const Op& op);
  bool loads_along(const Op& dot, size_t which, size_t axis) const;
  bool is_product(const Extents& shape) const;

  const cpu::Context& c_;
  const Operands operands_;
  const bool panels_;
  bool folds_ = false;      ///< there are folds of rows
  bool turns_ = false;      ///< there are transposes
  int64_t carried_ = 0;     ///< the most elements that a loop carries
  bool rows_only_ = false;  ///< of matrix layouts: some dot's left operand was another's sums
  int threads_ = 32, cluster_ = 1;
  std::map<ValueId, Use> uses_;
  std::map<ValueId, int> depth_;
  std::map<Extents, Shape> shapes_;
  /// Shapes that a reshape makes of each other and that differ by extents of 1 only.
  std::map<Extents, std::set<Extents>> alike_;
  mutable std::map<Extents, layout::ThreadValue> layouts_;
};

}  // namespace tw::cuda
