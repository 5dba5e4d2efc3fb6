#include "tw/passes/free_tiles.h"

#include <algorithm>
#include <fmt/format.h>
#include <set>

#include "tw/passes/impl/pointwise.h"

namespace tw {
namespace {

/// Longest piece: scratch for sums that wait is proportional to its rows, and few rows read rows of
/// B as long as it has columns, from end to end.
constexpr int64_t kMostOfPiece[] = {4096, 16384};

/// One axis of the grid, and the rows (side 0) or columns (side 1) of the contraction.
class TileAxis {
 public:
  TileAxis(Program& p, Op& contract, int grid_axis, int side)
      : p_(p),
        op_(contract),
        definitions_(p),
        facts_(facts_of(p)),
        grid_axis_(grid_axis),
        pid_{SymbolKind::pid, grid_axis},
        side_(side),
        sum_(contract.regions[2].args[0]),
        tile_(p.type(sum_).shape[side]) {}

  /// Frees the axis, or changes nothing.
  bool run() {
    if (tile_ == 1 || !follow(op_.regions[side_].yields[0], side_)) return false;
    for (const Op& op : op_.regions[2].ops) {
      if (op.code == Opcode::store && !follow_store(op)) return false;
    }
    if (!used_only_to_move()) return false;
    const std::optional<Expr> extent = find_extent();
    if (!extent) return false;
    cut(*extent);
    return true;
  }

 private:
  /// A tensor's axis along which the tile of an access lies.
  struct Moving {
    const Op* op;
    int axis;
    auto operator<=>(const Moving&) const = default;
  };

  /// What stays of a coordinate when the tile's place is taken off; nothing when it does not move
  /// by a tile each instance.
  std::optional<Expr> rest(const Expr& origin) const {
    const Expr e = simplify(origin - Expr::symbol(pid_) * tile_, facts_);
    return mentions(e, pid_) ? std::nullopt : std::optional(e);
  }

  bool move(const Op& op, int tensor_axis) {
    moving_.insert({&op, tensor_axis});
    return rest(op.as<ViewAttr>().view.origin[tensor_axis]).has_value();
  }

  /// Follows an axis of a value to the loads that it comes from.
  bool follow(ValueId v, int axis) {
    const Extents& shape = p_.type(v).shape;
    if (shape[axis] == 1) return true;
    if (shape[axis] != tile_) return false;
    if (!along_.insert({v, axis}).second) return true;
    const Op* op = definitions_.of(v);
    if (op == nullptr) return v == sum_ && axis == side_;
    if (op->code == Opcode::load) return move(*op, op->as<ViewAttr>().view.axes[axis]);
    if (op->code == Opcode::iota) return op->as<AxisAttr>().axis != axis;
    // Random bits are counted by the element of the tile.
    if (op->code == Opcode::cast && op->as<CastAttr>().rounding == Rounding::SR) return false;
    const std::optional<int> before = operand_axis(p_, *op, axis);
    return before && std::ranges::all_of(op->in, [&](ValueId in) { return follow(in, *before); });
  }

  /// Pieces of any length would share bytes of a row of packed elements.
  bool shares_bytes(const View& view) const {
    const Param& a = p_.params[view.param];
    return is_packed(a.dtype) && view.axes[side_] + 1 == static_cast<int>(a.dims.size());
  }

  bool follow_store(const Op& store) {
    if (shares_bytes(store.as<ViewAttr>().view)) return false;
    stores_.push_back(&store);
    return follow(store.in[0], side_) && move(store, store.as<ViewAttr>().view.axes[side_]);
  }

  /// Every other expression knows nothing of the coordinate.
  bool used_only_to_move() const {
    bool only = true;
    const auto check = [&](const Expr& e) { only = only && !mentions(e, pid_); };
    const ContractAttr& attr = op_.as<ContractAttr>();
    check(attr.depth);
    check(side_ == 0 ? attr.cols : attr.rows);
    for (const Region& r : op_.regions) {
      walk(r, [&](const Op& op) {
        const auto* view = std::get_if<ViewAttr>(&op.attr);
        if (view == nullptr) return for_each_expr(op, check);
        for (size_t axis = 0; axis < view->view.origin.size(); ++axis) {
          if (!moving_.contains({&op, static_cast<int>(axis)})) check(view->view.origin[axis]);
        }
      });
    }
    return only;
  }

  /// How many rows (columns) all instances store. (All stores begin and end at the same place: see
  /// fuse_contraction.)
  std::optional<Expr> find_extent() const {
    const View& view = stores_[0]->as<ViewAttr>().view;
    const int axis = view.axes[side_];
    const Expr all = simplify(p_.grid[grid_axis_] * tile_, facts_);
    const Expr there =
        simplify(p_.params[view.param].dims[axis] - *rest(view.origin[axis]), facts_);
    bool host = true;
    for_each_symbol(there, [&](Symbol s) { host = host && s.kind == SymbolKind::dim; });
    if (!host) return std::nullopt;
    if (prove_le(there, all, facts_)) return there;
    return prove_le(all, there, facts_) ? all : min(all, there);
  }

  void cut(const Expr& extent) {
    std::string name = side_ == 0 ? "PieceRows" : "PieceCols";
    while (std::ranges::any_of(p_.dims, [&](const Dim& d) { return d.name == name; })) name += '_';
    p_.dims.push_back({name, 1, kMostOfPiece[side_]});
    const Expr piece = Expr::symbol(SymbolKind::dim, static_cast<int>(p_.dims.size()) - 1);
    const Expr first = Expr::symbol(pid_) * piece;
    p_.grid[grid_axis_] = cdiv(extent, piece);

    ContractAttr& attr = op_.as<ContractAttr>();
    (side_ == 0 ? attr.rows : attr.cols) = min(piece, extent - first);
    for (Region& r : op_.regions) {
      walk(r, [&](Op& op) {
        for (const Moving& m : moving_) {
          if (m.op != &op) continue;
          Expr& origin = op.as<ViewAttr>().view.origin[m.axis];
          origin = first + *rest(origin);
        }
      });
    }
    for (const auto& [v, axis] : along_) p_.values[v].type.shape[axis] = kMostOfPiece[side_];
  }

  Program& p_;
  Op& op_;
  const Definitions definitions_;
  const Facts facts_;
  const int grid_axis_;
  const Symbol pid_;
  const int side_;
  const ValueId sum_;
  const int64_t tile_;
  std::set<std::pair<ValueId, int>> along_;  ///< axes of values that run along the piece
  std::set<Moving> moving_;
  std::vector<const Op*> stores_;
};

}  // namespace

void free_tiles(Program& p, const PassContext&) {
  if (p.body.ops.size() != 1 || p.body.ops[0].code != Opcode::contract) return;
  Op& contract = p.body.ops[0];
  for (int side = 0; side < 2; ++side) {
    for (int axis = 0; axis < static_cast<int>(p.grid.size()); ++axis) {
      if (TileAxis(p, contract, axis, side).run()) break;
    }
  }
}

}  // namespace tw
