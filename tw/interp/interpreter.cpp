#include "tw/interp/interpreter.h"

#include <algorithm>
#include <numeric>

#include "tw/base/error.h"
#include "tw/interp/bounded.h"
#include "tw/interp/contraction.h"
#include "tw/interp/fold.h"
#include "tw/interp/launch.h"
#include "tw/interp/memory.h"

namespace tw {

namespace {

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
    for (size_t i = 0; i < p.params.size(); ++i)
      memory_.emplace_back(launch.tensors[i], p.params[i].kind != ParamKind::in);
  }

  void run() {
    const Extents grid = implicit_grid();
    std::vector<int64_t> order(static_cast<size_t>(tw::count(grid)));
    std::iota(order.begin(), order.end(), 0);
    if (options_.order_seed) shuffle(order, *options_.order_seed);
    for (int64_t instance : order) {
      for (size_t k = grid.size(); k-- > 0; instance /= grid[k]) pids_[k] = instance % grid[k];
      run_region(p_.body);
    }
  }

  std::vector<Scalar> elements(size_t param) const { return memory_[param].elements(); }

 private:
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
  void cast(const Op& op);
  void bitcast(const Op& op);
  void unary(const Op& op);
  void binary(const Op& op);
  void where(const Op& op);
  void reshape(const Op& op);
  void reduce(const Op& op);
  void custom_reduce(const Op& op);
  void for_loop(const Op& op);
  void branch(const Op& op);
  void par(const Op& op);

  Extents coordinates(const View& v, const Extents& origin, const Extents& tile_index) const;
  Extents origin_of(const View& v) const;
  std::vector<Elements> tuples_of(const Op& op, const Extents& i) const;
  Elements fold_tuples(const Region& r, const std::vector<Elements>& tuples);
  Elements combine(const Region& r, const Elements& left, const Elements& right);

  const Program& p_;
  const Launch& launch_;
  const InterpretOptions& options_;
  bool bounded_;
  bool in_combiner_ = false;
  std::vector<bool> contracts_;
  std::vector<TileData> values_;
  std::vector<int64_t> pids_, counters_;
  std::vector<ParamMemory> memory_;
};

void Machine::execute(const Op& op) {
  switch (op.code) {
    case Opcode::full:
      return full(op);
    case Opcode::iota:
      return iota(op);
    case Opcode::index:
      return index(op);
    case Opcode::load:
      return load(op);
    case Opcode::store:
      return store(op);
    case Opcode::cast:
      return cast(op);
    case Opcode::bitcast:
      return bitcast(op);
    case Opcode::neg:
    case Opcode::abs:
    case Opcode::not_:
    case Opcode::sqrt:
    case Opcode::rsqrt:
    case Opcode::exp:
    case Opcode::exp2:
    case Opcode::log:
    case Opcode::tanh:
    case Opcode::erf:
    case Opcode::floor:
    case Opcode::ceil:
    case Opcode::round:
      return unary(op);
    case Opcode::add:
    case Opcode::sub:
    case Opcode::mul:
    case Opcode::div:
    case Opcode::rem:
    case Opcode::min:
    case Opcode::max:
    case Opcode::min_num:
    case Opcode::max_num:
    case Opcode::and_:
    case Opcode::or_:
    case Opcode::xor_:
    case Opcode::shl:
    case Opcode::shr:
    case Opcode::eq:
    case Opcode::ne:
    case Opcode::lt:
    case Opcode::le:
      return binary(op);
    case Opcode::where:
      return where(op);
    case Opcode::reshape:
      return reshape(op);
    case Opcode::transpose:
      return define(op, transposed(in(op), op.as<PermAttr>().perm));
    case Opcode::broadcast:
      return define(op, broadcast_to(in(op), out_type(op).shape));
    case Opcode::keep:
      return define(op, in(op));
    case Opcode::reduce:
      return reduce(op);
    case Opcode::dot:
      return define(op, dot(options_.mode, in(op, 0), in(op, 1), in(op, 2)));
    case Opcode::for_:
      return for_loop(op);
    case Opcode::if_:
      return branch(op);
    case Opcode::par:
      return par(op);
    case Opcode::contract:
      throw InternalError("the interpreter runs programs before contractions are fused");
  }
}

void Machine::full(const Op& op) {
  TileData t = make_tile(out_type(op));
  std::fill(t.data.begin(), t.data.end(), from_number(t.type.dtype, op.as<FullAttr>().value));
  define(op, std::move(t));
}

void Machine::iota(const Op& op) {
  TileData t = make_tile(out_type(op));
  const auto axis = static_cast<size_t>(op.as<AxisAttr>().axis);
  size_t at = 0;
  for_each_index(t.type.shape, [&](const Extents& i) {
    t.data[at++] = Scalar::of_int(wrap(t.type.dtype, i[axis]));
  });
  define(op, std::move(t));
}

void Machine::index(const Op& op) {
  TileData t = make_tile(out_type(op));
  t.data[0] = Scalar::of_int(wrap(t.type.dtype, value_of(op.as<IndexAttr>().value)));
  define(op, std::move(t));
}

Extents Machine::origin_of(const View& v) const {
  Extents origin;
  for (const Expr& e : v.origin) origin.push_back(value_of(e));
  return origin;
}

Extents Machine::coordinates(const View& v, const Extents& origin,
                             const Extents& tile_index) const {
  Extents at = origin;
  for (size_t k = 0; k < v.axes.size(); ++k) at[static_cast<size_t>(v.axes[k])] += tile_index[k];
  return at;
}

void Machine::load(const Op& op) {
  const View& view = op.as<ViewAttr>().view;
  const ParamMemory& memory = memory_[static_cast<size_t>(view.param)];
  TileData t = make_tile(out_type(op));
  const Scalar outside = from_number(t.type.dtype, op.as<ViewAttr>().pad);
  const Extents origin = origin_of(view);
  size_t at = 0;
  for_each_index(t.type.shape, [&](const Extents& i) {
    const Extents c = coordinates(view, origin, i);
    t.data[at++] = memory.inside(c) ? memory.read(c) : outside;
  });
  define(op, std::move(t));
}

void Machine::store(const Op& op) {
  const View& view = op.as<ViewAttr>().view;
  ParamMemory& memory = memory_[static_cast<size_t>(view.param)];
  const Extents origin = origin_of(view);
  size_t at = 0;
  for_each_index(in(op).type.shape, [&](const Extents& i) {
    const Extents c = coordinates(view, origin, i);
    const Scalar& value = in(op).data[at++];
    if (memory.inside(c)) memory.write(c, value);
  });
}

void Machine::cast(const Op& op) {
  const auto& how = op.as<CastAttr>();
  const DType from = in_type(op), to = out_type(op).dtype;
  const auto seed = static_cast<uint64_t>(value_of(how.seed));
  uint64_t element = 0;
  define(op, map(out_type(op), in(op), [&](const Scalar& a) {
           const bool stochastic = how.rounding == Rounding::SR;
           const uint32_t random = stochastic ? philox(seed, 0, element++).word[0] : 0;
           return bounded_ ? bounded_cast(from, to, how, random, a)
                           : exact_cast(from, to, how, random, a);
         }));
}

void Machine::bitcast(const Op& op) {
  const DType from = in_type(op), to = out_type(op).dtype;
  define(op, map(out_type(op), in(op), [&](const Scalar& a) {
           return bounded_ ? bounded_bitcast(from, to, a) : exact_bitcast(from, to, a);
         }));
}

void Machine::unary(const Op& op) {
  const DType t = in_type(op);
  define(op, map(out_type(op), in(op), [&](const Scalar& a) {
           return bounded_ ? bounded_unary(op.code, t, a) : exact_unary(op.code, t, a);
         }));
}

void Machine::binary(const Op& op) {
  const DType t = in_type(op);
  const bool loose = in_combiner_ || contracts_[op.out[0]];
  // A value compared with itself: whatever it is, it is the same on both sides.
  const bool itself = op.in[0] == op.in[1] && out_type(op).dtype == b1 && is_float(t);
  define(op, map(out_type(op), in(op, 0), in(op, 1), [&](const Scalar& a, const Scalar& b) {
           if (!bounded_ || (itself && !a.undecided)) return exact_binary(op.code, t, a, b);
           return bounded_binary(op.code, t, a, b, loose);
         }));
}

void Machine::where(const Op& op) {
  define(op, map(out_type(op), in(op, 0), in(op, 1), in(op, 2), bounded_where));
}

void Machine::reshape(const Op& op) {
  TileData t = in(op);
  t.type = out_type(op);
  define(op, std::move(t));
}

void Machine::reduce(const Op& op) {
  const ReduceAttr& a = op.as<ReduceAttr>();
  if (a.combiner == Combiner::custom) return custom_reduce(op);
  TileData t = make_tile(out_type(op));
  size_t at = 0;
  for_each_index(t.type.shape, [&](const Extents& i) {
    t.data[at++] = fold(options_.mode, a.combiner, t.type.dtype, line(in(op), a.axis, i));
  });
  define(op, std::move(t));
}

void Machine::custom_reduce(const Op& op) {
  std::vector<TileData> out;
  for (ValueId v : op.out) out.push_back(make_tile(p_.type(v)));
  size_t at = 0;
  for_each_index(out_type(op).shape, [&](const Extents& i) {
    std::vector<Elements> tuples = tuples_of(op, i);
    Elements folded = fold_tuples(op.regions[0], tuples);
    if (bounded_) {
      std::reverse(tuples.begin(), tuples.end());
      const Elements backward = fold_tuples(op.regions[0], tuples);
      for (size_t k = 0; k < out.size(); ++k)
        folded[k] = either_order(out[k].type.dtype, folded[k], backward[k]);
    }
    for (size_t k = 0; k < out.size(); ++k) out[k].data[at] = folded[k];
    ++at;
  });
  for (size_t k = 0; k < out.size(); ++k) values_[op.out[k]] = std::move(out[k]);
}

/// The tuples that a reduction over several tiles folds for the place `i` of its results.
std::vector<Elements> Machine::tuples_of(const Op& op, const Extents& i) const {
  std::vector<Elements> tuples;
  for (size_t k = 0; k < op.in.size(); ++k) {
    const Elements l = line(in(op, k), op.as<ReduceAttr>().axis, i);
    tuples.resize(l.size());
    for (size_t n = 0; n < l.size(); ++n) tuples[n].push_back(l[n]);
  }
  return tuples;
}

Elements Machine::fold_tuples(const Region& r, const std::vector<Elements>& tuples) {
  in_combiner_ = true;
  Elements folded = tuples[0];
  for (size_t n = 1; n < tuples.size(); ++n) folded = combine(r, folded, tuples[n]);
  in_combiner_ = false;
  return folded;
}

Elements Machine::combine(const Region& r, const Elements& left, const Elements& right) {
  for (size_t k = 0; k < left.size(); ++k) {
    const ValueId a = r.args[k], b = r.args[left.size() + k];
    values_[a] = {p_.type(a), {left[k]}};
    values_[b] = {p_.type(b), {right[k]}};
  }
  run_region(r);
  Elements result;
  for (ValueId v : r.yields) result.push_back(values_[v].data[0]);
  return result;
}

void Machine::for_loop(const Op& op) {
  const auto& a = op.as<LoopAttr>();
  const Region& body = op.regions[0];
  const int64_t hi = value_of(a.hi), step = value_of(a.step);
  assign(body.args, op.in);
  for (int64_t i = value_of(a.lo); i < hi; i += step) {
    counters_[static_cast<size_t>(a.loop)] = i;
    run_region(body);
    assign(body.args, body.yields);
  }
  assign(op.out, body.args);
}

void Machine::branch(const Op& op) {
  const auto& c = op.as<CondAttr>();
  const int64_t a = value_of(c.a), b = value_of(c.b);
  const bool taken = c.kind == CompareKind::lt   ? a < b
                     : c.kind == CompareKind::le ? a <= b
                     : c.kind == CompareKind::eq ? a == b
                                                 : a != b;
  const Region& side = op.regions[taken ? 0 : 1];
  run_region(side);
  assign(op.out, side.yields);
}

void Machine::par(const Op& op) {
  const auto axis = static_cast<size_t>(op.as<AxisAttr>().axis);
  for (pids_[axis] = 0; pids_[axis] < launch_.grid[axis]; ++pids_[axis]) run_region(op.regions[0]);
}

}  // namespace

int64_t Interpretation::count() const {
  int64_t n = 0;
  for (const auto& tensor : outputs) n += static_cast<int64_t>(tensor.size());
  return n;
}

int64_t Interpretation::undecided() const {
  int64_t n = 0;
  for (const auto& tensor : outputs)
    n += std::count_if(tensor.begin(), tensor.end(), [](const Scalar& s) { return s.undecided; });
  return n;
}

Interpretation interpret(const Program& p, const std::vector<TensorView>& inputs,
                         const std::vector<TensorView>& outputs,
                         const std::vector<std::pair<std::string, int64_t>>& dims,
                         const InterpretOptions& options) {
  const Launch launch = check_launch(p, inputs, outputs, dims);
  Machine machine(p, launch, options);
  machine.run();
  Interpretation r;
  for (size_t i = 0; i < p.params.size(); ++i)
    if (p.params[i].kind != ParamKind::in) r.outputs.push_back(machine.elements(i));
  return r;
}

}  // namespace tw
