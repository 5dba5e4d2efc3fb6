#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <map>
#include <set>
#include <utility>

#include "tw/base/error.h"
#include "tw/base/round.h"
#include "tw/ir/infer.h"
#include "tw/limit/impl/sizes.h"

namespace tw {

namespace {

/// Values that reach a store.
class Liveness {
 public:
  explicit Liveness(const Program& p) {
    while (grew_) {
      grew_ = false;
      mark(p.body);
    }
  }
  bool live(const Op& op) const {
    if (info(op.code).effect == Effect::write) return true;
    if (std::ranges::any_of(op.out, [&](ValueId v) { return values_.contains(v); })) return true;
    return std::ranges::any_of(op.regions, [&](const Region& r) {
      return std::ranges::any_of(r.ops, [&](const Op& o) { return live(o); });
    });
  }

 private:
  void add(const std::vector<ValueId>& values) {
    for (ValueId v : values) grew_ |= values_.insert(v).second;
  }
  void mark(const Region& region) {
    for (auto op = region.ops.rbegin(); op != region.ops.rend(); ++op) {
      if (!live(*op)) continue;
      add(op->in);
      for (const Region& r : op->regions) {
        add(r.yields);
        mark(r);
      }
    }
  }

  std::set<ValueId> values_;
  bool grew_ = true;
};

/// Bytes of one parameter that executed loads and stores covered.
struct Touched {
  double read = 0, written = 0;
};

bool uses(const Expr& e, SymbolKind kind) {
  bool found = false;
  for_each_symbol(e, [&](Symbol s) { found |= s.kind == kind; });
  return found;
}

/// Walks a program at given sizes. Along the way, every symbol (pid, loop) is known to take some
/// number of values; a tile axis placed by a symbol covers `values x extent` elements of a tensor
/// axis, of which only the tensor's own count: that share is the symbol's.
class Counter {
 public:
  Counter(const Program& p, std::span<const int64_t> dims) : p_(p), sizes_(p, dims), live_(p) {}

  Work count() {
    const int64_t instances = sizes_.instances();
    for (size_t axis = 0; axis < p_.grid.size(); ++axis)
      values_[{SymbolKind::pid, static_cast<int>(axis)}] = static_cast<double>(sizes_.grid()[axis]);
    loops(p_.body);
    shares(p_.body);
    if (instances > 0) {
      const int64_t samples = varies_ ? std::min<int64_t>(instances, 4096) : 1;
      for (int64_t s = 0; s < samples; ++s) {
        const double weight = static_cast<double>(instances) / static_cast<double>(samples);
        region(p_.body, sizes_.instance(s * (instances / samples)), weight);
      }
    }
    return result();
  }

 private:
  int64_t value(const Expr& e, const Coordinates& at) const { return sizes_.value(e, at); }
  int64_t trips(const LoopAttr& loop, const Coordinates& at) const {
    return sizes_.trips(loop, at);
  }

  /// Notes how many values each loop counter takes in the first instance.
  void loops(const Region& region) {
    for (const Op& op : region.ops) {
      if (op.code == Opcode::for_) {
        const auto& loop = op.as<LoopAttr>();
        values_[{SymbolKind::loop, loop.loop}] = static_cast<double>(trips(loop, {}));
        for (const Expr& e : {loop.lo, loop.hi, loop.step}) varies_ |= uses(e, SymbolKind::pid);
      }
      for (const Region& r : op.regions) loops(r);
    }
  }

  void shares(const Region& region) {
    for (const Op& op : region.ops) {
      if (live_.live(op) && (op.code == Opcode::load || op.code == Opcode::store)) share_of(op);
      for (const Region& r : op.regions) shares(r);
    }
  }

  /// One tile axis of a view: who places it, and how much of what it covers lies in the tensor.
  struct AxisShare {
    std::set<Symbol> by;
    int64_t dim, extent;
    double share;
  };

  std::vector<AxisShare> axis_shares(const Op& op) const {
    const View& view = op.as<ViewAttr>().view;
    const Extents& shape = p_.type(op.code == Opcode::load ? op.out[0] : op.in[0]).shape;
    std::vector<AxisShare> out;
    for (size_t k = 0; k < view.axes.size(); ++k) {
      AxisShare a{{}, value(p_.params[view.param].dims[view.axes[k]], {}), shape[k], 1};
      double covered = static_cast<double>(shape[k]);
      for_each_symbol(view.origin[view.axes[k]], [&](Symbol s) {
        if (s.kind != SymbolKind::dim && a.by.insert(s).second) covered *= values_.at(s);
      });
      if (covered > 0) a.share = std::min(1.0, static_cast<double>(a.dim) / covered);
      out.push_back(std::move(a));
    }
    return out;
  }

  void share_of(const Op& op) {
    for (const AxisShare& a : axis_shares(op)) {
      if (a.by.empty()) {
        if (fixed_.insert({a.dim, a.extent}).second) fixed_share_ *= a.share;
      } else {
        auto [known, fresh] = shares_.try_emplace(a.by, a.share);
        if (!fresh) known->second = std::min(known->second, a.share);
      }
    }
  }

  /// The share of work that is no padding under these symbols: each symbol counts once.
  double share(const Coordinates& at) const {
    double product = fixed_share_;
    std::set<Symbol> used;
    for (const auto& [by, share] : shares_) {
      const bool applies =
          std::ranges::all_of(by, [&](Symbol s) { return at.contains(s) && !used.contains(s); });
      if (!applies) continue;
      used.insert(by.begin(), by.end());
      product *= share;
    }
    return product;
  }

  void region(const Region& r, const Coordinates& at, double times) {
    for (const Op& op : r.ops)
      if (live_.live(op)) one(op, at, times);
  }

  void one(const Op& op, const Coordinates& at, double times) {
    const double each = share(at) * times;
    if (op.code == Opcode::for_) {
      loop(op, at, times);
    } else if (op.code == Opcode::while_) {
      return;  // it may end before its first iteration
    } else if (op.code == Opcode::if_) {
      branch(op, at, times);
    } else if (op.code == Opcode::load) {
      touched_[op.as<ViewAttr>().view.param].read += bytes_inside(op, op.out[0]) * times;
    } else if (op.code == Opcode::store) {
      touched_[op.as<ViewAttr>().view.param].written += bytes_inside(op, op.in[0]) * times;
    } else if (const View* view = view_of(op)) {
      place(op, touched_[view->param], each);
    } else if (const OpCost cost = cost_of(p_, op); cost.count > 0) {
      add(cost, elements(is_fold(op.code) ? op.in[0] : op.out[0]) * each);
    }
  }

  void add(const OpCost& cost, double elements) {
    done_.ops[static_cast<size_t>(cost.unit)] += cost.count * elements;
    done_.flops += cost.flops * elements;
  }

  /// A gather, scatter or atomic: where its elements lie is not known.
  void place(const Op& op, Touched& touched, double times) {
    const double n = static_cast<double>(tw::count(place_extents(p_, op))) * times;
    const DType t = p_.params[view_of(op)->param].dtype;
    const double moved = n * static_cast<double>(bits(t)) / 8;
    if (op.code != Opcode::scatter) touched.read += moved;
    if (op.code != Opcode::gather) touched.written += moved;
    if (op.code != Opcode::atomic) return;
    done_.flops += n;
    done_.ops[static_cast<size_t>(is_float(t) ? Unit::f32 : Unit::integer)] += n;
  }

  void loop(const Op& op, Coordinates at, double times) {
    const auto& loop = op.as<LoopAttr>();
    const int64_t n = trips(loop, at);
    const Symbol counter{SymbolKind::loop, loop.loop};
    const Region& body = op.regions[0];
    if (!depends_on(body, counter)) {
      at[counter] = value(loop.lo, at);
      return region(body, at, times * static_cast<double>(n));
    }
    for (int64_t i = 0; i < n; ++i) {
      at[counter] = value(loop.lo, at) + i * value(loop.step, at);
      region(body, at, times);
    }
  }

  /// True when inner loops or branches must be counted for every value of the counter.
  static bool depends_on(const Region& r, Symbol counter) {
    bool found = false;
    const auto look = [&](Symbol s) { found |= s == counter; };
    walk(r, [&](const Op& op) {
      if (op.code == Opcode::for_)
        for (const Expr& e : {op.as<LoopAttr>().lo, op.as<LoopAttr>().hi, op.as<LoopAttr>().step})
          for_each_symbol(e, look);
      if (op.code == Opcode::if_)
        for (const Expr& e : {op.as<CondAttr>().a, op.as<CondAttr>().b}) for_each_symbol(e, look);
    });
    return found;
  }

  void branch(const Op& op, const Coordinates& at, double times) {
    const auto& c = op.as<CondAttr>();
    const int64_t a = value(c.a, at), b = value(c.b, at);
    if (!uses(c.a, SymbolKind::pid) && !uses(c.b, SymbolKind::pid))
      return region(op.regions[holds(c.kind, a, b) ? 0 : 1], at, times);
    // Which side an instance takes is not followed: both count as the cheaper one.
    const auto touched = touched_;
    const Work done = done_;
    region(op.regions[0], at, times);
    const auto touched_first = std::exchange(touched_, touched);
    const Work done_first = std::exchange(done_, done);
    region(op.regions[1], at, times);
    done_.flops = std::min(done_.flops, done_first.flops);
    for (size_t u = 0; u < kUnits; ++u) done_.ops[u] = std::min(done_.ops[u], done_first.ops[u]);
    for (auto& [param, bytes] : touched_) {
      const auto other = touched_first.find(param);
      const Touched first = other == touched_first.end() ? Touched{} : other->second;
      bytes = {std::min(bytes.read, first.read), std::min(bytes.written, first.written)};
    }
  }

  double elements(ValueId v) const { return static_cast<double>(tw::count(p_.type(v).shape)); }
  double bytes_inside(const Op& op, ValueId tile) const {
    double n = elements(tile) * static_cast<double>(bits(p_.type(tile).dtype)) / 8;
    for (const AxisShare& a : axis_shares(op)) n *= a.share;
    return n;
  }

  /// A tensor moves once, and no more of it than was touched.
  Work result() const {
    Work w = done_;
    for (const auto& [param, touched] : touched_) {
      // What no call gives need not come from memory.
      if (p_.params[param].kind >= ParamKind::workspace) continue;
      double whole = static_cast<double>(bits(p_.params[param].dtype)) / 8;
      for (const Expr& d : p_.params[param].dims) whole *= static_cast<double>(value(d, {}));
      // What a program wrote itself need not come from memory.
      if (p_.params[param].kind != ParamKind::out)
        w.bytes_read += std::llround(std::min(whole, touched.read));
      w.bytes_written += std::llround(std::min(whole, touched.written));
    }
    return w;
  }

  const Program& p_;
  Sizes sizes_;
  Liveness live_;
  std::map<Symbol, double> values_;
  bool varies_ = false;  // some loop's bounds depend on the instance
  std::map<std::set<Symbol>, double> shares_;
  std::set<std::pair<int64_t, int64_t>> fixed_;
  double fixed_share_ = 1;
  Work done_;                       // but for bytes
  std::map<int, Touched> touched_;  // by parameter
};

}  // namespace

Work least_work(const Program& p, std::span<const int64_t> dims) {
  return Counter(p, dims).count();
}

}  // namespace tw
