#include "tw/passes/place_tiles.h"

#include <algorithm>
#include <map>
#include <set>
#include <span>

namespace tw {
namespace {

/// Operations per element past which memory is cheaper than doing them again.
constexpr int kCostOfMemory = 8;
/// A value that is stretched at least this often is computed once, when it takes as many
/// operations.
constexpr int64_t kStretch = 8;
constexpr int kCostWhenStretched = 3;
/// A value that so few elements share along the last axes is computed in lanes of its own, when it
/// takes as many operations: one at a time they would take as long as what they are shared by.
constexpr int64_t kShared = 64;
constexpr int kCostWhenShared = 2;
/// Operations that a short reduction writes out at most.
constexpr int kCostOfText = 100;

bool among(std::span<const Opcode> list, Opcode code) {
  return std::find(list.begin(), list.end(), code) != list.end();
}

bool makes_nest(const Program& p, const Op& op) {
  static constexpr Opcode kNests[] = {
      Opcode::store, Opcode::scatter, Opcode::atomic,   Opcode::reduce,  Opcode::scan,
      Opcode::top_k, Opcode::dot,     Opcode::keep,     Opcode::for_,    Opcode::while_,
      Opcode::if_,   Opcode::par,     Opcode::contract, Opcode::assert_, Opcode::print};
  return among(kNests, op.code) && !is_short_reduction(p, op);
}

int cost(Opcode code) {
  static constexpr Opcode kFree[] = {Opcode::full,      Opcode::iota,    Opcode::index,
                                     Opcode::broadcast, Opcode::reshape, Opcode::transpose,
                                     Opcode::slice};
  // What a gather reads may lie anywhere.
  return is_costly(code) || code == Opcode::gather ? 10 : among(kFree, code) ? 0 : 1;
}

/// A place that reads a value: operand of an op, or yield of the region an op owns.
struct Use {
  const Op* op = nullptr;
  bool yield = false;
  int at = 0;     ///< position in program order; of a yield, past the region's ops
  int loops = 0;  ///< loops around it
  int out = -1;   ///< which result a yield gives
};

struct Place {
  const Op* op = nullptr;  ///< null for arguments
  int at = 0, loops = 0;
  std::vector<const Op*> around;  ///< ops whose regions hold it, outermost first
};

struct StoreAt {
  const Op* op;
  int at;
};

/// Where everything is, in program order.
struct Survey {
  std::vector<Place> def;
  std::vector<std::vector<Use>> uses;
  std::vector<StoreAt> stores;
  std::map<const Op*, int> ends;  ///< of loops: position after the op's regions
  std::map<const Op*, int> begins;

  explicit Survey(const Program& p) : def(p.values.size()), uses(p.values.size()) {
    visit(p.body, 0);
  }

 private:
  void visit(const Region& r, int loops) {
    for (const Op& op : r.ops) {
      const int at = ++clock_;
      for (const ValueId v : op.in) uses[v].push_back({&op, false, at, loops, -1});
      for (const ValueId v : op.out) def[v] = {&op, at, loops, around_};
      if (info(op.code).effect == Effect::write) stores.push_back({&op, at});
      if (is_fold(op.code)) continue;     // a combiner works on registers
      if (op.code == Opcode::contract) {  // and so do its prologues and epilogue
        for (const Region& inner : op.regions) {
          operands(inner, op, at, loops + 1);
          for (const Op& o : inner.ops) {
            if (o.code == Opcode::store) stores.push_back({&o, at});
          }
        }
        continue;
      }
      around_.push_back(&op);
      for (const Region& inner : op.regions) {
        const int inside = loops + (is_loop(op.code) ? 1 : 0);
        for (const ValueId v : inner.args) def[v] = {nullptr, at, inside, around_};
        visit(inner, inside);
        const int end = ++clock_;
        for (size_t k = 0; k < inner.yields.size(); ++k) {
          uses[inner.yields[k]].push_back({&op, true, end, inside, static_cast<int>(k)});
        }
      }
      around_.pop_back();
      if (!is_loop(op.code)) continue;
      begins[&op] = at;
      ends[&op] = ++clock_;
    }
  }

  /// Everything that ops of a region read counts as read by the op that owns it.
  void operands(const Region& r, const Op& owner, int at, int loops) {
    for (const Op& op : r.ops) {
      for (const ValueId v : op.in) uses[v].push_back({&owner, false, at, loops, -1});
    }
    for (const ValueId v : r.yields) uses[v].push_back({&owner, false, at, loops, -1});
  }

  int clock_ = 0;
  std::vector<const Op*> around_;
};

class Placer {
 public:
  explicit Placer(Program& p) : p_(p), s_(p), reach_(p.values.size()) {}

  std::set<ValueId> run() {
    std::vector<ValueId> order;
    for (ValueId v = 0; v < p_.values.size(); ++v) {
      if (s_.def[v].op && !makes_nest(*s_.def[v].op)) order.push_back(v);
    }
    // Users first: what a kept user hides needs no memory of its own.
    std::sort(order.begin(), order.end(),
              [&](ValueId a, ValueId b) { return s_.def[a].at > s_.def[b].at; });
    for (const ValueId v : order) {
      reach_[v] = reach_of(v);
      if (must_keep(v) || worth_keeping(v)) kept_.insert(v);
    }
    return kept_;
  }

 private:
  bool makes_nest(const Op& op) const { return tw::makes_nest(p_, op); }

  /// What is known of the nests that compute a value without listing them all.
  struct Reach {
    std::set<std::pair<ValueId, size_t>>
        uses;       ///< two of them at most: value and place in its list
    int loops = 0;  ///< most loops around one
    void add(const std::pair<ValueId, size_t>& use) {
      if (uses.size() < 2) uses.insert(use);
    }
  };

  /// Of v, whose users are decided.
  Reach reach_of(ValueId v) const {
    Reach r;
    for (size_t k = 0; k < s_.uses[v].size(); ++k) {
      const Use& u = s_.uses[v][k];
      if (u.yield || makes_nest(*u.op) || kept_.count(u.op->out[0])) {
        r.add({v, k});
        r.loops = std::max(r.loops, u.loops);
        continue;
      }
      const Reach& more = reach_[u.op->out[0]];
      for (const auto& use : more.uses) r.add(use);
      r.loops = std::max(r.loops, more.loops);
    }
    return r;
  }

  /// The nests that compute v: its uses, through expressions that are not kept.
  std::vector<Use> nests(ValueId v) const {
    std::vector<Use> found;
    std::set<ValueId> seen;
    collect(v, seen, found);
    return found;
  }

  void collect(ValueId v, std::set<ValueId>& seen, std::vector<Use>& found) const {
    if (!seen.insert(v).second) return;
    for (const Use& u : s_.uses[v]) {
      if (u.yield || makes_nest(*u.op)) {
        found.push_back(u);
      } else if (kept_.count(u.op->out[0])) {
        found.push_back({u.op, false, u.at, u.loops, -1});
      } else {
        collect(u.op->out[0], seen, found);
      }
    }
  }

  /// Loads, and registers of carried variables, that an expression reads. A sum of products may lie
  /// in the memory of the tile to which it was added.
  void inputs(ValueId v, std::set<ValueId>& seen) const {
    if (!seen.insert(v).second) return;
    const Op* op = s_.def[v].op;
    if (op && op->code == Opcode::dot) inputs(op->in[2], seen);
    if (!op || makes_nest(*op) || kept_.count(v)) return;
    for (const ValueId x : op->in) inputs(x, seen);
  }

  bool must_keep(ValueId v) const {
    const Op& op = *s_.def[v].op;
    for (const Use& u : s_.uses[v]) {
      if (feeds_dot(v, u) || feeds_host(u)) return true;
      if (u.yield && yield_conflicts(v, u)) return true;
    }
    return effect(p_, op) == Effect::read && changes_before_use(v, op);
  }

  /// Operands of a dot lie in memory. A is read by its strides, so its transpose takes none.
  bool feeds_dot(ValueId v, const Use& u) const {
    if (u.yield) return false;
    if (u.op->code == Opcode::dot) {
      return u.op->in[1] == v || (u.op->in[0] == v && s_.def[v].op->code != Opcode::transpose);
    }
    if (u.op->code != Opcode::transpose) return false;
    return std::ranges::any_of(s_.uses[u.op->out[0]], [&](const Use& next) {
      return !next.yield && next.op->code == Opcode::dot && next.op->in[0] == u.op->out[0];
    });
  }

  /// The host gets tiles in memory.
  static bool feeds_host(const Use& u) {
    return !u.yield && info(u.op->code).effect == Effect::host;
  }

  bool changes_before_use(ValueId v, const Op& load) const {
    const View& view = *view_of(load);
    for (const Use& u : nests(v)) {
      const int until = last_moment(s_.def[v], u);
      for (const StoreAt& s : s_.stores) {
        const View& other = *view_of(*s.op);
        if (other.param != view.param || s.at < s_.def[v].at || s.at > until) continue;
        // Of coordinates in tiles nothing is known.
        const bool plain = load.code == Opcode::load && s.op->code == Opcode::store;
        const bool same_element =
            plain && s.op == u.op && other == view && reads_in_place(s.op->in[0], v);
        if (!same_element) return true;
      }
    }
    return false;
  }

  /// The latest moment at which a use reads: the end of the outermost loop around it that began
  /// after the definition.
  int last_moment(const Place& def, const Use& u) const {
    int until = u.at;
    for (const auto& [op, end] : s_.ends) {
      const bool around_use = s_.begins.at(op) <= u.at && u.at <= end && op != u.op;
      const bool around_def =
          std::find(def.around.begin(), def.around.end(), op) != def.around.end();
      if (around_use && !around_def) until = std::max(until, end);
    }
    return until;
  }

  /// Where element t of an expression reads another value.
  enum class Reads : uint8_t { nowhere, in_place, elsewhere };

  /// Whether element t of `root` reads `v` only at element t.
  bool reads_in_place(ValueId root, ValueId v) const {
    std::map<ValueId, Reads> known{{v, Reads::in_place}};
    return reads(root, known) != Reads::elsewhere;
  }
  Reads reads(ValueId root, std::map<ValueId, Reads>& known) const {
    const auto [it, added] = known.emplace(root, Reads::nowhere);
    const Op* op = s_.def[root].op;
    if (!added || !op) return it->second;
    // A sum of products may lie in the memory of the tile to which it was added.
    if (op->code == Opcode::dot) it->second = reads(op->in[2], known);
    if (makes_nest(*op) || kept_.count(root)) return it->second;
    const bool moves = op->code == Opcode::reshape || op->code == Opcode::transpose ||
                       op->code == Opcode::broadcast || op->code == Opcode::slice;
    for (const ValueId x : op->in) {
      Reads r = reads(x, known);
      if (r == Reads::nowhere) continue;
      if (moves || p_.type(x).shape != p_.type(root).shape) r = Reads::elsewhere;
      it->second = std::max(it->second, r);
    }
    return it->second;
  }

  /// A yield is computed while the loop's variables are being written one after the other.
  bool yield_conflicts(ValueId v, const Use& u) const {
    if (!is_loop(u.op->code) || count(p_.type(v).shape) == 1) return false;
    const Region& body = u.op->regions[0];
    std::set<ValueId> read;
    inputs(v, read);
    for (size_t k = 0; k < body.args.size(); ++k) {
      const bool array = count(p_.type(body.args[k]).shape) > 1;
      if (!array || !read.count(body.args[k])) continue;
      const bool unchanged = body.yields[k] == body.args[k];
      const bool own = static_cast<int>(k) == u.out && reads_in_place(v, body.args[k]);
      if (!unchanged && !own) return true;
    }
    return false;
  }

  /// Whether computing v costs as much.
  bool costs(ValueId v, int least) const {
    std::set<ValueId> seen;
    add_cost(v, 1, least, seen);
    return least <= 0;
  }
  /// Of `times` elements of v.
  void add_cost(ValueId v, int times, int& missing, std::set<ValueId>& seen) const {
    const Op* op = s_.def[v].op;
    if (!op || makes_nest(*op) || kept_.count(v) || !seen.insert(v).second) return;
    missing -= times * cost(op->code);
    if (op->code == Opcode::reduce) {
      times *= static_cast<int>(p_.type(op->in[0]).shape[op->as<ReduceAttr>().axis]);
    }
    for (size_t k = 0; k < op->in.size() && missing > 0; ++k) {
      add_cost(op->in[k], times, missing, seen);
    }
  }

  bool worth_keeping(ValueId v) const {
    const bool scalar = count(p_.type(v).shape) == 1;
    if (costs(v, kCostWhenStretched) && stretched(v)) return true;
    if (costs(v, kCostWhenShared) && shared_by_few(v)) return true;
    if (s_.def[v].op->code == Opcode::reduce && costs(v, kCostOfText)) return true;
    if (!costs(v, scalar ? 1 : kCostOfMemory)) return false;
    return reach_[v].uses.size() > 1 || reach_[v].loops > s_.def[v].loops;
  }

  /// Some user stretches v along an axis by kStretch or more, other than the last (lanes share
  /// what does not change along them).
  bool stretched(ValueId v) const {
    const Extents& mine = p_.type(v).shape;
    for (const Use& u : s_.uses[v]) {
      if (u.yield || u.op->out.empty() || makes_nest(*u.op)) continue;
      const Extents& theirs = p_.type(u.op->out[0]).shape;
      if (mine.empty() || theirs.size() != mine.size() || mine.back() == 1) continue;
      for (size_t k = 0; k + 1 < mine.size(); ++k) {
        if (mine[k] == 1 && theirs[k] >= kStretch) return true;
      }
    }
    return false;
  }

  /// Some user stretches v, which has several rows of numbers, along the last axes only, by kShared
  /// at most.
  bool shared_by_few(ValueId v) const {
    const Extents& mine = p_.type(v).shape;
    size_t rank = mine.size();
    while (rank > 0 && mine[rank - 1] == 1) --rank;
    if (rank == 0 || rank == mine.size() || mine[rank - 1] < kStretch) return false;
    if (p_.type(v).dtype == b1 || count(mine) == mine[rank - 1]) return false;
    return std::ranges::any_of(s_.uses[v], [&](const Use& u) {
      if (u.yield || u.op->out.empty() || makes_nest(*u.op)) return false;
      const Extents& theirs = p_.type(u.op->out[0]).shape;
      if (theirs.size() != mine.size()) return false;
      const int64_t sharers = count(Extents(theirs.begin() + rank, theirs.end()));
      return sharers > 1 && sharers <= kShared;
    });
  }

  Program& p_;
  Survey s_;
  std::vector<Reach> reach_;  ///< of values that are decided
  std::set<ValueId> kept_;
};

void insert(Program& p, Region& r, const std::set<ValueId>& kept,
            std::map<ValueId, ValueId>& renamed) {
  std::vector<Op> ops;
  const auto rename = [&](std::vector<ValueId>& list) {
    for (ValueId& v : list) {
      if (const auto it = renamed.find(v); it != renamed.end()) v = it->second;
    }
  };
  for (Op& op : r.ops) {
    rename(op.in);
    for (Region& inner : op.regions) insert(p, inner, kept, renamed);
    const std::vector<ValueId> results = op.out;
    const SourceLoc at = op.at;
    ops.push_back(std::move(op));
    for (const ValueId v : results) {
      if (!kept.count(v)) continue;
      const ValueId held = p.new_value(p.type(v), at, p.values[v].name);
      renamed[v] = held;
      ops.push_back({Opcode::keep, at, {v}, {held}, NoneAttr{}, {}});
    }
  }
  r.ops = std::move(ops);
  rename(r.yields);
}

/// Whether value v of a loop body may lie in the memory of carried argument `arg`: it is that
/// argument, or a dot that accumulates on it or on what is made of it.
bool lies_in(const Region& body, ValueId v, ValueId arg) {
  if (v == arg) return true;
  const auto defining = [&](ValueId x) {
    return std::ranges::find_if(
        body.ops, [&](const Op& op) { return std::ranges::find(op.out, x) != op.out.end(); });
  };
  const auto dot = defining(v);
  if (dot == body.ops.end() || dot->code != Opcode::dot) return false;
  const auto made = defining(dot->in[2]);
  return dot->in[2] == arg ||
         (made != body.ops.end() && std::ranges::find(made->in, arg) != made->in.end());
}

/// Carried tiles are written one after the other at the end of an iteration. A yield that lies in
/// the memory of another one, which may be written first, is copied out before.
void copy_exchanged(Program& p, Op& loop) {
  if (!is_loop(loop.code)) return;
  Region& body = loop.regions[0];
  std::vector<ValueId> yields = body.yields;
  for (size_t k = 0; k < yields.size(); ++k) {
    if (count(p.type(yields[k]).shape) == 1) continue;
    for (size_t other = 0; other < body.args.size(); ++other) {
      const ValueId arg = body.args[other], v = body.yields[k];
      if (other == k || body.yields[other] == arg || !lies_in(body, v, arg)) continue;
      yields[k] = p.new_value(p.type(v), loop.at, p.values[v].name);
      body.ops.push_back({Opcode::keep, loop.at, {v}, {yields[k]}, NoneAttr{}, {}});
      break;
    }
  }
  body.yields = std::move(yields);
}

}  // namespace

void place_tiles(Program& p, const PassContext&) {
  walk(p, [&](Op& op) { copy_exchanged(p, op); });
  const std::set<ValueId> kept = Placer(p).run();
  std::map<ValueId, ValueId> renamed;
  insert(p, p.body, kept, renamed);
}

}  // namespace tw
