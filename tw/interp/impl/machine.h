#pragma once

#include <algorithm>
#include <numeric>
#include <vector>

#include "tw/interp/contraction.h"
#include "tw/interp/interpreter.h"
#include "tw/interp/launch.h"
#include "tw/interp/memory.h"
#include "tw/interp/places.h"
#include "tw/interp/tile.h"

namespace tw {

using Elements = std::vector<Scalar>;

/// One run of a program: memory, and the values and counters of the instance at hand.
class Machine {
 public:
  Machine(const Program& p, const Launch& launch, const InterpretOptions& options)
      : p_(p),
        launch_(launch),
        options_(options),
        bounded_(options.mode == InterpretMode::bounded),
        contracts_(contracting_products(p)),
        values_(p.values.size()),
        pids_(launch.grid.size()),
        counters_(static_cast<size_t>(p.loops)) {
    for (size_t i = 0; i < launch.tensors.size(); ++i)
      memory_.emplace_back(launch.tensors[i], p.params[i].kind != ParamKind::in);
    for (size_t i = memory_.size(); i < p.params.size(); ++i) {
      std::vector<int64_t> dims;
      for (const Expr& e : p.params[i].dims) dims.push_back(e.constant());
      memory_.emplace_back(scratch_.emplace_back(host_tensor(p.params[i].dtype, dims)), true);
    }
  }

  void run() {
    const Extents grid = implicit_grid();
    std::vector<int64_t> order(static_cast<size_t>(tw::count(grid)));
    std::iota(order.begin(), order.end(), 0);
    if (options_.order_seed && !p_.ticket) shuffle(order, *options_.order_seed);
    for (int64_t instance : order) {
      for (size_t k = grid.size(); k-- > 0; instance /= grid[k]) pids_[k] = instance % grid[k];
      begin_instance();
      run_region(p_.body);
    }
  }

  std::vector<Scalar> elements(size_t param) const { return memory_[param].elements(); }

 private:
  void begin_instance() {
    for (size_t i = launch_.tensors.size(); i < memory_.size(); ++i) memory_[i].clear();
  }
  bool is_scratch(int param) const { return static_cast<size_t>(param) >= launch_.tensors.size(); }

  /// Axes that a `par` of the body walks are run once here.
  Extents implicit_grid() const {
    Extents grid = launch_.grid;
    walk(p_, [&](const Op& op) {
      if (op.code == Opcode::par) grid[static_cast<size_t>(op.as<AxisAttr>().axis)] = 1;
    });
    return grid;
  }

  static void shuffle(std::vector<int64_t>& order, uint64_t seed) {
    for (size_t i = order.size(); i > 1; --i)
      std::swap(order[i - 1], order[philox(seed, 0, i).word[0] % i]);
  }

  void run_region(const Region& r) {
    for (const Op& op : r.ops) execute(op);
  }

  const TileData& in(const Op& op, size_t k = 0) const { return values_[op.in[k]]; }
  DType in_type(const Op& op, size_t k = 0) const { return p_.type(op.in[k]).dtype; }
  const Type& out_type(const Op& op) const { return p_.type(op.out[0]); }
  void define(const Op& op, TileData t) { values_[op.out[0]] = std::move(t); }

  int64_t value_of(const Expr& e) const {
    return evaluate(e, [&](Symbol s) {
      const auto id = static_cast<size_t>(s.id);
      if (s.kind == SymbolKind::dim) return launch_.dims[id];
      return s.kind == SymbolKind::pid ? pids_[id] : counters_[id];
    });
  }

  void assign(const std::vector<ValueId>& to, const std::vector<ValueId>& from) {
    std::vector<TileData> tiles;
    for (ValueId v : from) tiles.push_back(values_[v]);
    for (size_t k = 0; k < to.size(); ++k) values_[to[k]] = std::move(tiles[k]);
  }

  void execute(const Op& op);
  void full(const Op& op);
  void iota(const Op& op);
  void index(const Op& op);
  void load(const Op& op);
  void store(const Op& op);
  void gather(const Op& op);
  void scatter(const Op& op);
  void atomic(const Op& op);
  Message message(const Op& op) const;
  void check(const Op& op);
  void show(const Op& op);
  void cast(const Op& op);
  void bitcast(const Op& op);
  void lookup(const Op& op);
  void random(const Op& op);
  void unary(const Op& op);
  void binary(const Op& op);
  void where(const Op& op);
  void reshape(const Op& op);
  void slice(const Op& op);
  void reduce(const Op& op);
  void custom_reduce(const Op& op);
  void scan(const Op& op);
  void custom_scan(const Op& op);
  void top_k(const Op& op);
  std::vector<Elements> scan_tuples(const Op& op, const std::vector<Elements>& tuples);
  void for_loop(const Op& op);
  void while_loop(const Op& op);
  void lose(const Op& loop);
  void branch(const Op& op);
  void par(const Op& op);

  Extents coordinates(const View& v, const Extents& origin, const Extents& tile_index) const;
  Extents origin_of(const View& v) const;
  void places(const Op& op, const VisitPlace& visit) const;
  std::vector<Elements> tuples_of(const Op& op, const Extents& i) const;
  Extents places_of(const Op& op) const;
  Elements fold_tuples(const Region& r, const std::vector<Elements>& tuples);
  Elements combine(const Region& r, const Elements& left, const Elements& right);

  const Program& p_;
  const Launch& launch_;
  const InterpretOptions& options_;
  bool bounded_;
  bool in_combiner_ = false;
  int64_t iterations_ = 0;  ///< of while loops, in all instances
  std::vector<bool> contracts_;
  std::vector<TileData> values_;
  std::vector<int64_t> pids_, counters_;
  std::vector<Tensor> scratch_;
  std::vector<ParamMemory> memory_;
};

}  // namespace tw
