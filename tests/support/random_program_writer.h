#pragma once

#include <string>
#include <vector>

#include "tw/ir/infer.h"
#include "tw/ir/program.h"

#include "tests/support/random.h"

namespace tw::test {

/// A value of the program being written, with guesses that keep the data meaningful.
struct Known {
  ValueId id = 0;
  Type type;
  double magnitude = 2;  ///< about log2 of the largest |element|, special values apart
  bool loose = false;    ///< backends may differ in the last digits
  int uses = 0;
};

/// How one axis of a parameter is cut: a tile of `block` at `position`, the coordinate that belongs
/// to this instance or iteration.
struct Cut {
  Expr extent;
  int64_t block = 1;
  int grid_axis = -1;  ///< distributed over this axis of the grid, or -1
  int dim = -1;        ///< the dim that the extent is, or -1
};

/// An enclosing loop that walks a dim: `position` is where its tile starts.
struct Walk {
  int dim = -1;
  Expr counter, position;
};

/// Writes a random program op by op, keeping it valid. Construction is direct, apart from lang.
class Writer {
 public:
  explicit Writer(uint64_t seed) : r(seed) { regions_.emplace_back(); }

  Random r;
  Program p;
  std::vector<std::vector<Cut>> cuts;  ///< of each parameter, an axis each
  bool special_free = true;

  // Single ops. Each returns the value it defines and leaves it out of the pool.
  Known emit(Opcode code, std::vector<Known> in, Type type, Attr attr = NoneAttr{});
  Known unary(Opcode code, Known a);
  Known binary(Opcode code, Known a, Known b);
  Known where(const Known& mask, const Known& a, const Known& b);
  Known constant(const Type& type, double value);
  Known index(DType t, const Extents& ones, const Expr& e);
  Known iota(DType t, const Extents& shape);
  Known cast(const Known& a, DType to);
  Known bitcast(const Known& a, DType to);
  Known reshape(const Known& a, const Extents& shape);
  Known transpose(const Known& a, const std::vector<int>& perm);
  Known broadcast(const Known& a, const Extents& shape);
  Known reduce(const Known& a, int axis, Combiner c);
  Known philox(const Known& counter, const Known& seed, const Known& stream);
  Known lookup(const Known& index, DType t, int entries);
  Known slice(const Known& a, const Extents& start, const Extents& extents);
  Known scan(const Known& a, const ScanAttr& how);
  Known dot(const Known& a, const Known& b, const Known& acc, Precision p);
  Known load(int param, const View& v, const Extents& shape, double pad);
  void store(const View& v, const Known& a);
  Known gather(const View& v, const std::vector<Known>& at, const Known* mask,
               const Extents& shape);
  /// A scatter, or an atomic; whether that gives the old elements.
  void place(const View& v, const std::vector<Known>& at, const Known& value, const Known* mask);
  void atomic(const View& v, const std::vector<Known>& at, const Known& value, const Known* mask,
              const Extents& shape);

  // Choices.
  Known any();                      ///< from the pool, the less used the likelier
  Known of_class(bool floats);      ///< computes: a float (not fp8), or an integer
  Known partner(const Known& a);    ///< same dtype and rank, extents that broadcast with a's
  Known coerced(Known a, Type to);  ///< a value of type `to` that depends on a
  Known clamped(const Known& a, double lo, double hi);
  Known load_shape(const Extents& shape);  ///< from an input, anywhere near this instance
  DType some_dtype();
  Extents some_shape();
  Expr some_index();

  // Fragments: a few ops that put their results into the pool.
  void elementwise();
  void shape_op();
  void convert();
  void source();
  void dot_fragment();
  void reduce_fragment();
  void slice_fragment();
  void top_k_fragment();
  void custom_reduce_fragment();
  void loop_fragment(int depth);
  void while_fragment(int depth);
  void if_fragment(int depth);
  void fragment(int depth);
  void gather_fragment();
  void store_fragment();
  /// A store into parameter `param` at the part of it that belongs to this instance.
  void store_own(int param);

  void remember(const Known& k) { pool_.push_back(k); }
  void open(std::vector<Known> args, Region& region);
  Region close(const std::vector<Known>& yields);
  Region& body() { return regions_.front(); }
  std::vector<Walk> walks;

 private:
  Known guarded(Opcode code, Known a);
  Known off_steps(Known a);
  Known guarded_divisor(const Known& b);
  Known tamed(const Known& a);
  Known reduced_to_ones(Known a);
  Known shaped(const Known& a, const Extents& shape);
  void lookup_of_any();
  void assert_always(const Known& mask);
  void elementwise_of(Opcode code);
  std::vector<Expr> origins(const Cut& c);
  Known decided();  ///< a value that backends agree on
  Known coordinate(const Extents& shape, int axis, const Expr& origin, int64_t extent, bool inside);
  std::vector<Known> coordinates(View& v, const Extents& shape, bool inside);
  void place_own(const View& v, const Extents& shape);
  View own_view(int param, Extents& shape);
  std::vector<Expr> other_pids(int param) const;
  Known like(const Known& k);
  Known next_carried(const Known& old, const Type& type);
  /// Appends a loop whose region is closed, with its first values and a result for each argument.
  void append_loop(Op op, const std::vector<Known>& first, const std::vector<Known>& args);
  Region combiner_pairwise_extremum(DType value, DType index, bool largest);
  Region combiner_sums(DType a, DType b);
  Region combiner_logsumexp(DType t);
  void used(const Known& k);

  std::vector<Region> regions_;
  std::vector<size_t> marks_;
  std::vector<Known> pool_;
};

}  // namespace tw::test
