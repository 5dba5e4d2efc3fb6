#pragma once

#include <map>
#include <unordered_map>

#include "tw/graph/loops.h"
#include "tw/lang/lang.h"

namespace tw::graph {

/// A block of the axes: axis k runs over extents[k] elements from origin[k]. Axes that are not part
/// of it have extent 1.
struct Block {
  Extents extents;
  std::vector<Index> origin;
};

/// A window without the axes in front along which it has one element: those are fixed.
TileView window_of(const TensorRef& x, std::vector<Index> origin, Extents extents);

/// What a program is traced with: parameters, and dims by what they are.
class Parameters {
 public:
  Parameters(Trace& k, const Graph& g, const Loops& l);

  /// An expression over dims (and no axes).
  Index index(const Expr& e);
  const TensorRef& operand(int j) const { return operands_[static_cast<size_t>(j)]; }
  const TensorRef& result() const { return *result_; }
  std::vector<std::pair<std::string, Expr>> scalars() const { return scalars_; }

 private:
  Index extent(const Expr& e);

  Trace& k_;
  const Graph& g_;
  std::map<std::string, Index> dims_;  // by text
  std::vector<TensorRef> operands_;
  std::optional<TensorRef> result_;
  std::vector<std::pair<std::string, Expr>> scalars_;
};

/// Terms over a block as tiles. Each tile has an axis for each axis of the block, of its extent or
/// of 1. Values belong to the region in which they were made, so a loop's body has an evaluator of
/// its own.
class TileEvaluator {
 public:
  TileEvaluator(Trace& k, const Graph& g, const Loops& l, Parameters& parameters, Block block);

  Tile value(const Term& t);
  void set_result(const Tile& t) { result_.emplace(t); }
  /// Where all axes of the block in `axes` (bits) are below their extents; none: they always are.
  std::optional<Tile> inside(uint64_t axes);
  Tile axis_index(int k);  ///< i64, of the axis of the computation

 private:
  Tile fresh(const TermNode& n);
  Tile of_expr(const Expr& e);
  Tile loaded(const TermNode& n);
  std::optional<Tile> loaded_block(const TermNode& n);
  Tile applied(const TermNode& n);
  Extents ones() const { return Extents(block_.extents.size(), 1); }

  Trace& k_;
  const Graph& g_;
  const Loops& l_;
  Parameters& parameters_;
  Block block_;
  Facts facts_;
  std::optional<Tile> result_;
  std::unordered_map<const TermNode*, Tile> known_;
  std::vector<Term> made_;  // keeps nodes that known_ has alive
  std::map<int, Tile> axes_;
};

}  // namespace tw::graph
