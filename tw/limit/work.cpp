#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <utility>

#include "tw/limit/impl/moving.h"
#include "tw/limit/impl/needs.h"
#include "tw/limit/impl/sizes.h"
#include "tw/limit/impl/spans.h"

namespace tw {

namespace {

/// Bytes of one parameter that executed loads and stores covered.
struct Touched {
  double read = 0, written = 0;
};

bool uses(const Expr& e, SymbolKind kind) {
  bool found = false;
  for_each_symbol(e, [&](Symbol s) { found |= s.kind == kind; });
  return found;
}

bool writes(const Region& r) {
  bool found = false;
  walk(r, [&](const Op& op) { found |= info(op.code).effect == Effect::write; });
  return found;
}

/// Walks a program at given sizes, backward from what it writes.
class Counter {
 public:
  Counter(const Program& p, std::span<const int64_t> dims)
      : p_(p),
        sizes_(p, dims),
        needs_(p, sizes_),
        spans_(p, sizes_, needs_.known()),
        moving_(p, needs_.known()) {}

  Work count() {
    if (sizes_.instances() > 0) instances(0, {}, 1, kMostParts);
    return result();
  }

 private:
  using Wanted = std::vector<std::optional<Elements>>;

  /// Parts of the grid and of loops that are looked at one by one, in all and of one loop.
  static constexpr int64_t kMostParts = 8192, kMostInstances = 1024, kLeastParts = 32;

  int64_t value(const Expr& e, const Coordinates& at) const { return sizes_.value(e, at); }

  /// Coordinates of the grid from `axis` on.
  void instances(size_t axis, Coordinates at, double times, int64_t parts) {
    if (axis == sizes_.grid().size()) {
      parts_ = parts;
      return region(p_.body, at, times, {});
    }
    const Symbol pid{SymbolKind::pid, static_cast<int>(axis)};
    trips_[pid] = static_cast<double>(sizes_.grid()[axis]);
    const std::vector<Span> all =
        spans_.of(pid, 0, sizes_.grid()[axis], 1, at, std::min(parts, kMostInstances));
    for (const Span& s : all) {
      at[pid] = s.value;
      instances(axis + 1, at, times * s.count, std::max<int64_t>(parts / std::ssize(all), 1));
    }
  }

  void region(const Region& r, const Coordinates& at, double times, const Wanted& yields) {
    needs_.begin(r, at);
    for (size_t i = 0; i < yields.size(); ++i)
      if (yields[i]) needs_.want(r.yields[i], *yields[i]);
    for (auto op = r.ops.rbegin(); op != r.ops.rend(); ++op) one(*op, at, times);
  }

  void one(const Op& op, const Coordinates& at, double times) {
    if (op.code == Opcode::for_) return loop(op, at, times);
    if (op.code == Opcode::if_) return branch(op, at, times);
    if (op.code == Opcode::while_) return skipped(op);
    if (op.code == Opcode::store) return store(op, at, times);
    if (op.code == Opcode::scatter || op.code == Opcode::atomic) return place(op, times);
    const std::optional<Elements> needed = needs_.needed(op);
    if (!needed) return;
    if (op.code == Opcode::load) {
      touched_[op.as<ViewAttr>().view.param].read += bytes(op, needs_.data(op.out[0])) * times;
    } else if (op.code == Opcode::gather) {
      touched_[view_of(op)->param].read += bytes(op, *needed) * times;
      for (ValueId v : op.in) needs_.want(v, *needed);
    } else {
      const OpCost cost = cost_of(p_, op);
      if (cost.count > 0 && !needs_.known().follows(op.out[0]))
        add(cost, elements(op, *needed) * times * often(op));
      needs_.pass(op, *needed);
    }
  }

  /// How much of what an op does with these tiles it must do with any.
  double often(const Op& op) const {
    double share = 1;
    for (const Moving::Seldom& s : moving_.seldom(op)) share *= s.never ? 0 : 1 / trips_.at(s.of);
    return share;
  }

  double elements(const Op& op, const Elements& needed) const {
    if (op.code != Opcode::dot)
      return static_cast<double>((is_fold(op.code) ? needs_.folded(op, needed) : needed).size());
    const int64_t depth = p_.type(op.in[0]).shape.back();
    return static_cast<double>(needs_.multiplied(op, needed)) / static_cast<double>(depth);
  }

  void add(const OpCost& cost, double elements) {
    done_.ops[static_cast<size_t>(cost.unit)] += cost.count * elements;
    done_.flops += cost.flops * elements;
  }

  double bytes(const Op& op, const Elements& e) const {
    return static_cast<double>(e.size()) *
           static_cast<double>(bits(p_.params[view_of(op)->param].dtype)) / 8;
  }

  /// A loop that may end before its first iteration. What it looks at is not known to be padding.
  void skipped(const Op& op) {
    const bool used = std::ranges::any_of(op.out, [&](ValueId v) { return !!needs_.wanted(v); });
    if (!used && !writes(op.regions[0])) return;
    for (ValueId v : op.in) needs_.want(v, Elements::all(p_.type(v).shape));
    walk(op.regions[0], [this](const Op& inner) {
      for (ValueId v : inner.in) needs_.want(v, Elements::all(p_.type(v).shape));
    });
  }

  void store(const Op& op, const Coordinates& at, double times) {
    const View& view = op.as<ViewAttr>().view;
    const Elements inside = needs_.inside(view, p_.type(op.in[0]).shape, at);
    touched_[view.param].written += bytes(op, inside) * times;
    needs_.want(op.in[0], inside);
  }

  /// A scatter or atomic: which elements of the tensor it meets is not known.
  void place(const Op& op, double times) {
    const Elements placed = needs_.placed(op);
    const auto n = static_cast<double>(placed.size()) * times;
    Touched& touched = touched_[view_of(op)->param];
    touched.written += bytes(op, placed) * times;
    for (ValueId v : op.in) needs_.want(v, placed);
    if (op.code != Opcode::atomic) return;
    touched.read += bytes(op, placed) * times;
    done_.flops += n;
    const DType t = p_.params[view_of(op)->param].dtype;
    done_.ops[static_cast<size_t>(is_float(t) ? Unit::f32 : Unit::integer)] += n;
  }

  /// What a loop's body must hand back: what is used after it and what the next trip uses.
  void loop(const Op& op, const Coordinates& at, double times) {
    const auto& loop = op.as<LoopAttr>();
    const int64_t n = sizes_.trips(loop, at);
    Wanted yields;
    for (ValueId v : op.out) yields.push_back(needs_.wanted(v));
    const Symbol counter{SymbolKind::loop, loop.loop};
    const std::vector<Span> trips =
        spans_.of(counter, value(loop.lo, at), n, std::max<int64_t>(value(loop.step, at), 1), at,
                  std::max(parts_, kLeastParts));
    trips_[counter] = static_cast<double>(n);
    const int64_t parts = parts_;
    parts_ = std::max<int64_t>(parts / std::max<int64_t>(std::ssize(trips), 1), 1);
    if (n > 1 && !yields.empty()) rehearse(op, at, trips, yields);
    Wanted first = n > 0 ? Wanted(op.in.size()) : yields;
    for (const Span& s : trips) {
      trip(op, at, s, times * s.count, yields);
      add_arguments(op, first);
    }
    parts_ = parts;
    for (size_t i = 0; i < op.in.size(); ++i)
      if (first[i]) needs_.want(op.in[i], *first[i]);
  }

  void trip(const Op& op, Coordinates at, const Span& s, double times, const Wanted& yields) {
    at[{SymbolKind::loop, op.as<LoopAttr>().loop}] = s.value;
    region(op.regions[0], at, times, yields);
  }

  /// Adds to what is wanted of a body what its first and its last trip want of the one before.
  void rehearse(const Op& op, const Coordinates& at, const std::vector<Span>& trips,
                Wanted& yields) {
    for (size_t round = 0; round <= yields.size(); ++round) {
      const Wanted before = yields;
      for (const Span& s : {trips.front(), trips.back()}) {
        trip(op, at, s, 0, before);
        add_arguments(op, yields);
      }
      if (yields == before) return;
    }
  }

  /// What the body wants of its arguments.
  void add_arguments(const Op& op, Wanted& to) const {
    for (size_t i = 0; i < to.size(); ++i)
      if (const auto& more = needs_.wanted(op.regions[0].args[i]))
        to[i] = to[i] ? *to[i] | *more : *more;
  }

  void branch(const Op& op, const Coordinates& at, double times) {
    const auto& c = op.as<CondAttr>();
    const int64_t a = value(c.a, at), b = value(c.b, at);
    Wanted yields;
    for (ValueId v : op.out) yields.push_back(needs_.wanted(v));
    if (!uses(c.a, SymbolKind::pid) && !uses(c.b, SymbolKind::pid))
      return region(op.regions[holds(c.kind, a, b) ? 0 : 1], at, times, yields);
    // Which side an instance takes is not followed: both count as the cheaper one.
    const auto touched = touched_;
    const Work done = done_;
    region(op.regions[0], at, times, yields);
    const auto touched_first = std::exchange(touched_, touched);
    const Work done_first = std::exchange(done_, done);
    region(op.regions[1], at, times, yields);
    done_.flops = std::min(done_.flops, done_first.flops);
    for (size_t u = 0; u < kUnits; ++u) done_.ops[u] = std::min(done_.ops[u], done_first.ops[u]);
    for (auto& [param, bytes] : touched_) {
      const auto other = touched_first.find(param);
      const Touched first = other == touched_first.end() ? Touched{} : other->second;
      bytes = {std::min(bytes.read, first.read), std::min(bytes.written, first.written)};
    }
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
  Needs needs_;
  Spans spans_;
  Moving moving_;
  std::map<Symbol, double> trips_;  // how many values the symbols around take
  int64_t parts_ = 0;               // that loops may have from here inward
  Work done_;                       // but for bytes
  std::map<int, Touched> touched_;  // by parameter
};

}  // namespace

Work least_work(const Program& p, std::span<const int64_t> dims) {
  return Counter(p, dims).count();
}

}  // namespace tw
