#include "tw/graph/trace.h"

#include <algorithm>
#include <bit>
#include <limits>
#include <numeric>

#include "tw/base/error.h"
#include "tw/graph/evaluate_tiles.h"
#include "tw/graph/products.h"

namespace tw::graph {

namespace {

/// Elements of a tile, and of its last axis at most.
constexpr int64_t kTile = 2048, kLast = 1024;
/// Tiles that are cut from longer axes are multiples of it.
constexpr int64_t kVector = 16;
/// Rows, columns and depth of the tile of a product.
constexpr int64_t kProduct = 64;
/// Elements of the reduced axes in a step, and of the result beside them.
constexpr int64_t kFolded = 256, kBeside = 16;

/// The extent of a tile along an axis that may have at most `most` elements: an axis that is known
/// to be short is taken whole, and a long one in equal parts where there are some.
int64_t tile_extent(const Expr& axis, int64_t most) {
  most = std::max<int64_t>(most, 1);
  const auto power = static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(most)));
  if (!axis.is_constant()) return power;
  const int64_t extent = std::max<int64_t>(axis.constant(), 1);
  if (extent <= most) return extent;
  for (int64_t t = most / kVector * kVector; t > most / 2; t -= kVector)
    if (extent % t == 0) return t;
  return power;
}

/// Tiles of some axes: from the last on, as many elements as fit in `most`.
void fill_from_last(const Loops& l, const std::vector<int>& axes, int64_t most, Extents& tile) {
  for (size_t i = axes.size(); i-- > 0;) {
    const auto a = static_cast<size_t>(axes[i]);
    tile[a] = tile_extent(l.compute.axes[a], most);
    most /= tile[a];
  }
}

std::vector<int> range(int from, int to) {
  std::vector<int> all(static_cast<size_t>(std::max(to - from, 0)));
  std::iota(all.begin(), all.end(), from);
  return all;
}

class Tracer {
 public:
  Tracer(const Graph& g, const Loops& l, const std::string& name)
      : g_(g), l_(l), k_(name), p_(k_, g, l), rank_(l.compute.rank) {
    tile_.assign(l.compute.axes.size(), 1);
  }

  Traced run() {
    if (l_.compute.fold == Fold::none)
      elements();
    else if (const std::optional<Product> p = product_of(l_.compute))
      product(*p);
    else
      fold();
    return {k_.finish(), p_.scalars()};
  }

 private:
  const Expr& extent(int a) const { return l_.compute.axes[static_cast<size_t>(a)]; }
  int64_t& tile(int a) { return tile_[static_cast<size_t>(a)]; }
  std::shared_ptr<TraceState> owner() const { return p_.result().trace(); }

  /// Steps over an axis.
  Expr steps(int a) {
    const Expr n = simplify(cdiv(extent(a), Expr(tile(a))), {});
    return p_.index(n).expr();
  }

  /// How many instances there are, and which tile of each axis of the result this one has.
  void open_grid() {
    std::vector<int> wide;  // axes with more than one tile
    for (int a = 0; a < rank_; ++a)
      if (!(steps(a) == Expr(1))) wide.push_back(a);
    place_.assign(l_.compute.axes.size(), Expr(0));
    // The first share an axis of the grid where there are too many.
    const size_t shared = wide.size() <= 3 ? 1 : wide.size() - 2;
    std::vector<Expr> counts;
    for (size_t from = 0; from < wide.size(); from += from == 0 ? shared : 1) {
      std::vector<Expr> extents;
      Expr all = 1;
      for (size_t i = from; i < (from == 0 ? shared : from + 1); ++i) {
        extents.push_back(steps(wide[i]));
        all = all * extents.back();
      }
      const Expr pid = Expr::symbol(SymbolKind::pid, static_cast<int>(counts.size()));
      const std::vector<Expr> at = unflatten(pid, extents);
      for (size_t i = 0; i < at.size(); ++i) place_[static_cast<size_t>(wide[from + i])] = at[i];
      counts.push_back(all);
    }
    const auto at = [&](size_t i) { return Index(counts[i], owner()); };
    if (counts.size() == 1) k_.grid(at(0));
    if (counts.size() == 2) k_.grid(at(0), at(1));
    if (counts.size() == 3) k_.grid(at(0), at(1), at(2));
  }

  /// The block with these axes (bits); the others have extent 1. `step`: tiles of reduced axes.
  Block block(uint64_t axes, const std::vector<Expr>& step = {}) {
    Block b;
    for (size_t a = 0; a < tile_.size(); ++a) {
      const bool reduced = static_cast<int>(a) >= rank_;
      const Expr at = !reduced ? place_[a]
                      : a - static_cast<size_t>(rank_) < step.size()
                          ? step[a - static_cast<size_t>(rank_)]
                          : Expr(0);
      b.extents.push_back(axes >> a & 1 ? tile_[a] : 1);
      b.origin.emplace_back(at * Expr(tile_[a]), owner());
    }
    return b;
  }
  uint64_t bits(const std::vector<int>& axes) const {
    uint64_t all = 0;
    for (int a : axes) all |= uint64_t{1} << a;
    return all;
  }
  uint64_t result_axes() const { return (uint64_t{1} << rank_) - 1; }

  /// Finishes what the fold gave, a tile over the result's axes (and reduced ones of extent 1).
  void finish(const Tile& folded) {
    TileEvaluator e(k_, g_, l_, p_, block(result_axes()));
    e.set_result(folded);
    store_result(l_.compute.finish ? e.value(l_.compute.finish) : folded);
  }

  void store_result(const Tile& t) {
    const Extents shape(tile_.begin(), tile_.begin() + rank_), whole = result_shape();
    const Tile full = t.type().shape == whole ? t : broadcast(t, whole);
    std::vector<Index> origin;
    for (size_t a = 0; a < shape.size(); ++a)
      origin.emplace_back(place_[a] * Expr(tile_[a]), owner());
    const TileView to = window_of(p_.result(), origin, shape);
    store(to, reshape(full, to.type.shape));
  }

  void elements() {
    tile(rank_ - 1) = tile_extent(extent(rank_ - 1), kLast);
    fill_from_last(l_, range(0, rank_ - 1), kTile / tile(rank_ - 1), tile_);
    open_grid();
    TileEvaluator e(k_, g_, l_, p_, block(result_axes()));
    store_result(e.value(l_.compute.body));
  }

  /// One loop over the blocks of the reduced axes.
  template <class Body>
  void walk(const std::vector<int>& axes, const Body& body) {
    std::vector<Expr> counts;
    Expr all = 1;
    for (int a : axes) {
      counts.push_back(steps(a));
      all = all * counts.back();
    }
    for (const Index& q : k_.range(Index(all, owner()))) body(unflatten(q.expr(), counts));
  }

  void product(const Product& x) {
    fill_from_last(l_, x.rows, kProduct, tile_);
    fill_from_last(l_, x.columns, kProduct, tile_);
    if (const std::optional<int> walked = walked_axis(l_.compute, x))
      tile(*walked) = tile_extent(extent(*walked), kProduct);
    else
      fill_from_last(l_, x.summed, 2 * kProduct, tile_);
    open_grid();
    const auto extents = [&](const std::vector<int>& axes) {
      int64_t n = 1;
      for (int a : axes) n *= tile(a);
      return n;
    };
    const int64_t m = extents(x.rows), n = extents(x.columns), d = extents(x.summed);
    Tile acc = k_.zeros(x.sum, {m, n}).named("acc");
    walk(x.summed, [&](const std::vector<Expr>& step) {
      const Tile a = factor(x.a, x.rows, x.summed, step, {m, d});
      const Tile b = factor(x.b, x.columns, x.summed, step, {n, d});
      acc = dot(a, transpose(b), acc);
    });
    finish(to_result(acc, x));
  }

  /// A factor's block as a matrix of its own axes and the summed ones; 0 past the summed extents.
  Tile factor(const Term& t, const std::vector<int>& own, const std::vector<int>& summed,
              const std::vector<Expr>& step, const Extents& shape) {
    TileEvaluator e(k_, g_, l_, p_, block(bits(own) | bits(summed), step));
    const Tile v = e.value(t);
    const auto inside = e.inside(bits(summed));
    const bool cut = inside && !zero_outside(l_, t, summed);
    return reshape(cut ? tw::where(*inside, v, 0) : v, shape);
  }

  /// Rows and columns of a product as a tile over the computation's axes.
  Tile to_result(const Tile& acc, const Product& x) {
    std::vector<int> order = x.rows;
    order.insert(order.end(), x.columns.begin(), x.columns.end());
    std::vector<int> wide = order;
    std::erase_if(wide, [&](int a) { return tile(a) == 1; });
    if (std::is_sorted(wide.begin(), wide.end())) return reshape(acc, result_shape());
    Extents split;
    for (int a : order) split.push_back(tile(a));
    std::vector<int> perm = range(0, static_cast<int>(order.size()));
    std::stable_sort(perm.begin(), perm.end(), [&](int i, int j) {
      return order[static_cast<size_t>(i)] < order[static_cast<size_t>(j)];
    });
    const Tile apart = reshape(acc, split);
    const Tile t = std::is_sorted(perm.begin(), perm.end()) ? apart : transpose(apart, perm);
    return reshape(t, result_shape());
  }

  void fold() {
    const std::vector<int> reduced = range(rank_, static_cast<int>(tile_.size()));
    fill_from_last(l_, reduced, kFolded, tile_);
    // Rows that are folded along their last axis need few beside them; folded ones in front, many.
    const bool along_last = reads_last_axis();
    tile(rank_ - 1) = tile_extent(extent(rank_ - 1), along_last ? kBeside : kFolded);
    if (!along_last)
      fill_from_last(l_, reduced, std::min(kFolded, kTile * 4 / tile(rank_ - 1)), tile_);
    open_grid();
    if (finds_place(l_.compute.fold))
      fold_places(reduced);
    else
      fold_values(reduced);
  }

  /// Whether the last coordinate of some load follows a reduced axis.
  bool reads_last_axis() const {
    bool last = false;
    for_each(l_.compute.body, [&](const TermNode& n) {
      if (n.kind == TermKind::load && !n.in.empty()) last |= axes_of(n.in.back()) >> rank_ != 0;
    });
    return last;
  }

  Tile body_of(const std::vector<int>& reduced, TileEvaluator& e, const Constant& neutral) {
    const Tile v = e.value(l_.compute.body);
    const Tile whole = v.type().shape == tile_ ? v : broadcast(v, tile_);
    const auto inside = e.inside(bits(reduced));
    if (!inside) return whole;
    return tw::where(*inside, whole, k_.full(whole.dtype(), Extents(tile_.size(), 1), neutral));
  }

  /// Folded axis by axis, the last first.
  static Tile folded(const Tile& v, const std::vector<int>& axes, size_t count, Combiner c) {
    if (count == 0) return v;
    return folded(tw::reduce(v, axes[count - 1], c), axes, count - 1, c);
  }

  Extents result_shape() {
    Extents shape = tile_;
    for (size_t a = static_cast<size_t>(rank_); a < shape.size(); ++a) shape[a] = 1;
    return shape;
  }

  void fold_values(const std::vector<int>& reduced) {
    const DType t = l_.compute.body->dtype;
    const std::pair<Combiner, Opcode> fold = combiner_of(l_.compute.fold);
    const Constant neutral = neutral_of(t);
    Tile acc = k_.full(t, result_shape(), neutral).named("acc");
    walk(reduced, [&](const std::vector<Expr>& step) {
      TileEvaluator e(k_, g_, l_, p_, block(~uint64_t{0}, step));
      const Tile v = body_of(reduced, e, neutral);
      acc = elementwise(fold.second, acc, folded(v, reduced, reduced.size(), fold.first));
    });
    finish(acc);
  }

  void fold_places(const std::vector<int>& reduced) {
    const Fold f = l_.compute.fold;
    const bool most = f == Fold::argmax || f == Fold::last_argmax;
    const bool last = f == Fold::last_argmax || f == Fold::last_argmin;
    const DType t = l_.compute.body->dtype;
    const Constant neutral = neutral_of(t);
    const auto pick = [&](const Tiles<2>& a, const Tiles<2>& b) {
      return most ? argmax_pair(a, b) : argmin_pair(a, b);
    };
    Tile best = k_.full(t, result_shape(), neutral).named("best");
    Tile where_best =
        k_.full(i64, result_shape(), std::numeric_limits<int64_t>::max()).named("place");
    walk(reduced, [&](const std::vector<Expr>& step) {
      TileEvaluator e(k_, g_, l_, p_, block(~uint64_t{0}, step));
      const Tile v = body_of(reduced, e, neutral);
      const Tile place = place_of(reduced, e, last);
      const Tiles<2> found = tw::reduce({v, place}, reduced[0], pick);
      const Tiles<2> now = pick({best, where_best}, found);
      best = now[0];
      where_best = now[1];
    });
    finish(last ? -where_best : where_best);
  }

  /// Where each element is along the reduced axis; elements past the extent lose to all others.
  Tile place_of(const std::vector<int>& reduced, TileEvaluator& e, bool last) {
    const Tile index = broadcast(e.axis_index(reduced[0]), tile_);
    const Tile place = last ? -index : index;
    const auto inside = e.inside(bits(reduced));
    return inside ? tw::where(*inside, place, std::numeric_limits<int64_t>::max()) : place;
  }

  static std::pair<Combiner, Opcode> combiner_of(Fold f) {
    if (f == Fold::sum) return {Combiner::sum, Opcode::add};
    if (f == Fold::prod) return {Combiner::prod, Opcode::mul};
    if (f == Fold::min) return {Combiner::min, Opcode::min};
    return {Combiner::max, Opcode::max};
  }

  /// What changes no fold of that type.
  Constant neutral_of(DType t) const {
    const Fold f = l_.compute.fold;
    if (f == Fold::sum) return 0;
    if (f == Fold::prod) return 1;
    const bool low = f == Fold::max || f == Fold::argmax || f == Fold::last_argmax;
    if (is_float(t)) {
      const double infinity = std::numeric_limits<double>::infinity();
      return low ? -infinity : infinity;
    }
    if (t == u64) return low ? uint64_t{0} : std::numeric_limits<uint64_t>::max();
    if (t == i64)
      return low ? std::numeric_limits<int64_t>::min() : std::numeric_limits<int64_t>::max();
    return static_cast<int64_t>(low ? lowest(t) : largest(t));
  }

  const Graph& g_;
  const Loops& l_;
  Trace k_;
  Parameters p_;
  int rank_;
  Extents tile_;             // of all axes
  std::vector<Expr> place_;  // which tile of each axis of the result
};

}  // namespace

Traced trace(const Graph& g, const Loops& l, const std::string& name) {
  return Tracer(g, l, name).run();
}

}  // namespace tw::graph
