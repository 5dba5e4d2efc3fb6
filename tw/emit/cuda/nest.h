#pragma once

#include <functional>
#include <string>
#include <vector>

#include "tw/emit/cuda/state.h"

namespace tw::cuda {

/// Loops over the registers that a layout gives each thread; text for one element is written by an
/// Expression inside them. Loops are unrolled where they reach registers.
class Nest {
 public:
  /// `inner`: modes of values whose loops stand innermost, in this order from outside; the others
  /// stand outside of them, slowest first. Modes in `skipped` get no loop: their digit is 0.
  Nest(State& s, const layout::ThreadValue& l, std::vector<size_t> inner = {},
       std::vector<size_t> skipped = {});

  Expression& expression() { return e_; }
  const Coords& at() const { return at_; }
  /// The element of v at the place of the loops.
  Reg value(ValueId v) { return e_.value(v, at_); }
  /// The element that the op computes there, whether or not v is kept.
  Reg computed(const Op& op);
  /// The register of a tile of this layout, or of one with extents of 1, as C++ text.
  std::string place(const Tile& t) const;
  /// Its number.
  Expr index(const Tile& t) const;
  /// Adds a loop with another counter, inside of all; returns the counter.
  Expr add_loop(const std::string& name, int64_t extent, bool unroll);

  /// Where every register holds an element nothing is asked; else statements of each depth stand
  /// under what says that the element is there. Called before emit().
  void guard();
  /// Conditions of the innermost statements, e.g. that a place lies inside a tensor.
  void require(int depth, const std::string& condition);
  /// How deep the loops are that e depends on.
  int depth_of(const Expr& e) const;

  void emit(Writer& out);

 private:
  struct Loop {
    std::string counter;
    int64_t extent;
    bool unroll;
  };
  void bind(ValueId v, const Tile& t);
  /// The axes of the nest along which the coordinates run; an axis of extent 1 runs along none.
  /// Nothing where the thread's registers hold other places.
  std::optional<std::vector<int>> axes_of(const Extents& shape, const layout::ThreadValue& l,
                                          const Coords& coords) const;
  Reg read(ValueId v, const Tile& t, const Coords& coords);
  Reg read_late(ValueId v, const Coords& coords);
  std::string place_of(const Tile& t, const std::vector<int>& of) const;
  Expr index_of(const std::vector<int>& of) const;

  State& s_;
  const layout::ThreadValue layout_;
  Expression e_;
  Coords at_;
  Coords digits_;             ///< of each mode of values: its counter
  std::vector<int> loop_of_;  ///< of each mode of values
  std::vector<Loop> loops_;
  std::vector<std::string> conditions_;                      ///< by depth
  std::map<ValueId, std::function<Reg(const Expr&)>> late_;  ///< loads that stand in this nest
};

/// Lets an expression outside of any nest read tiles where they lie in memory.
void bind_memory(State& s, Expression& e);

/// index / n and index % n as text, index >= 0.
std::string quotient(const State& s, const Expr& index, int64_t n);
std::string remainder(const State& s, const Expr& index, int64_t n);
/// The element of that index in an array of packs of n.
std::string in_packs(const State& s, const std::string& name, const Expr& index, int64_t n);

/// The bits of all loops of the expression: what such a register is part of stands in the
/// innermost.
inline uint32_t all_loops(const Expression& e) { return (1u << e.depth()) - 1; }

/// Writes r to the register of the target at the nest's place.
void write_register(Nest& n, const Reg& r, const Tile& target);

}  // namespace tw::cuda
