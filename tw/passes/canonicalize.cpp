#include "tw/passes/canonicalize.h"

#include <algorithm>
#include <map>

namespace tw {
namespace {

// Where a value comes from, as far as liveness cares.
struct Origin {
  const Op* op = nullptr;
  size_t k = 0;  // the result, or the loop argument, of that number
};

// What is there for its effect.
bool is_root(const Op& op) {
  const Effect effect = info(op.code).effect;
  return effect == Effect::write || effect == Effect::host;
}

// What some store depends on. A loop keeps carried value k when its result or its argument is
// needed; both need the first value and the next one. A while loop that is kept needs its
// condition, the first of them.
class Liveness {
 public:
  explicit Liveness(const Program& p) : live_(p.values.size(), false), origin_(p.values.size()) {
    record(p.body);
    walk(p, [&](const Op& op) {
      if (is_root(op))
        for (ValueId v : op.in) need(v);
      if (op.code == Opcode::while_ && has_root(op.regions[0])) need(op.out[0]);
      if (op.code != Opcode::contract) return;
      for (const Region& r : op.regions)
        for (ValueId v : r.yields) need(v);
    });
    while (!open_.empty()) {
      const ValueId v = open_.back();
      open_.pop_back();
      follow(origin_[v]);
    }
  }

  bool operator()(ValueId v) const { return live_[v]; }
  bool keeps(const Op& op) const {
    if (is_root(op)) return true;
    for (ValueId v : op.out)
      if (live_[v]) return true;
    if (is_fold(op.code)) return false;
    return std::any_of(op.regions.begin(), op.regions.end(), [&](const Region& r) {
      return std::any_of(r.ops.begin(), r.ops.end(), [&](const Op& o) { return keeps(o); });
    });
  }

 private:
  void record(const Region& r) {
    for (const Op& op : r.ops) {
      for (size_t k = 0; k < op.out.size(); ++k) origin_[op.out[k]] = {&op, k};
      for (const Region& inner : op.regions) {
        for (size_t k = 0; k < inner.args.size(); ++k) origin_[inner.args[k]] = {&op, k};
        record(inner);
      }
    }
  }
  static bool has_root(const Region& r) {
    bool found = false;
    walk(r, [&](const Op& op) { found = found || is_root(op); });
    return found;
  }
  void need(ValueId v) {
    if (live_[v]) return;
    live_[v] = true;
    open_.push_back(v);
  }
  void follow(const Origin& o) {
    if (o.op->code == Opcode::while_) need(o.op->out[0]);
    if (is_loop(o.op->code)) {
      const Region& body = o.op->regions[0];
      for (ValueId v : {o.op->in[o.k], o.op->out[o.k], body.args[o.k], body.yields[o.k]}) need(v);
      return;
    }
    if (o.op->code == Opcode::if_) {
      for (const Region& r : o.op->regions) need(r.yields[o.k]);
      return;
    }
    for (ValueId v : o.op->in) need(v);
    for (ValueId v : o.op->out) need(v);
    for (const Region& r : o.op->regions)
      for (ValueId v : r.yields) need(v);
  }

  std::vector<bool> live_;
  std::vector<Origin> origin_;
  std::vector<ValueId> open_;
};

template <class T>
void keep_where(std::vector<T>& items, const std::vector<bool>& keep) {
  size_t n = 0;
  for (size_t k = 0; k < items.size(); ++k)
    if (keep[k]) items[n++] = items[k];
  items.resize(n);
}

void drop_dead_results(Op& op, const Liveness& live) {
  if (op.code == Opcode::atomic && !op.out.empty() && !live(op.out[0])) op.out.clear();
  if (!is_loop(op.code) && op.code != Opcode::if_) return;
  std::vector<bool> keep;
  for (ValueId v : op.out) keep.push_back(live(v));
  keep_where(op.out, keep);
  for (Region& r : op.regions) keep_where(r.yields, keep);
  if (op.code == Opcode::if_) return;
  keep_where(op.in, keep);
  keep_where(op.regions[0].args, keep);
}

void drop_dead(Region& r, const Liveness& live) {
  std::erase_if(r.ops, [&](const Op& op) { return !live.keeps(op); });
  for (Op& op : r.ops) {
    drop_dead_results(op, live);
    if (is_fold(op.code)) continue;  // its region is whole or gone
    for (Region& inner : op.regions) drop_dead(inner, live);
  }
}

// Ops with effects keep their order; a pure op comes where the first of them, or the yields, needs
// it, operands first. Inner regions are ordered before, so that the order of their needs is the
// canonical one. Within a combiner dead ops go too: nothing else roots them.
class Ordering {
 public:
  explicit Ordering(const Program& p) : p_(p) {}

  void order(Region& r) {
    for (Op& op : r.ops)
      for (Region& inner : op.regions) Ordering(p_).order(inner);
    std::vector<Op> ops = std::move(r.ops);
    for (Op& op : ops)
      if (effect(p_, op) == Effect::pure)
        for (ValueId v : op.out) waiting_[v] = &op;
    for (Op& op : ops) {
      if (effect(p_, op) == Effect::pure) continue;
      std::vector<ValueId> list;
      needs_of(op, list);
      need(list);
      ordered_.push_back(std::move(op));
    }
    need(r.yields);
    r.ops = std::move(ordered_);
  }

 private:
  // An op whose operands are being placed.
  struct Visit {
    Op* op;
    std::vector<ValueId> list;
    size_t next = 0;
  };

  // Depth first with a stack of its own: chains of ops may be long.
  void need(const std::vector<ValueId>& list) {
    std::vector<Visit> stack{{nullptr, list}};
    while (true) {
      Visit& top = stack.back();
      if (top.next < top.list.size()) {
        if (Op* op = take(top.list[top.next++])) {
          stack.push_back({op, {}});
          needs_of(*op, stack.back().list);
        }
        continue;
      }
      if (top.op == nullptr) return;
      ordered_.push_back(std::move(*top.op));
      stack.pop_back();
    }
  }
  // The op that makes v, if it waits still; from now on it does not.
  Op* take(ValueId v) {
    const auto it = waiting_.find(v);
    if (it == waiting_.end()) return nullptr;
    Op* op = it->second;
    for (ValueId result : op->out) waiting_.erase(result);
    return op;
  }
  static void needs_of(const Op& op, std::vector<ValueId>& list) {
    list.insert(list.end(), op.in.begin(), op.in.end());
    for (const Region& r : op.regions) {
      for (const Op& inner : r.ops) needs_of(inner, list);
      list.insert(list.end(), r.yields.begin(), r.yields.end());
    }
  }

  const Program& p_;
  std::map<ValueId, Op*> waiting_;
  std::vector<Op> ordered_;
};

// Values and loops get their numbers in the order of the text.
class Numbering {
 public:
  explicit Numbering(Program& p) : p_(p), ids_(p.values.size(), 0) {
    region(p_.body);
    p_.values = std::move(values_);
    p_.loops = static_cast<int>(loops_.size());
  }

 private:
  void define(ValueId& v) {
    values_.push_back(std::move(p_.values[v]));
    ids_[v] = static_cast<ValueId>(values_.size() - 1);
    v = ids_[v];
  }
  void use(ValueId& v) const { v = ids_[v]; }
  void region(Region& r) {
    for (ValueId& v : r.args) define(v);
    for (Op& op : r.ops) {
      for (ValueId& v : op.in) use(v);
      map_exprs(op, [&](const Expr& e) { return renamed(e); });
      if (auto* message = std::get_if<MessageAttr>(&op.attr)) message->id = messages_++;
      if (op.code == Opcode::for_) {
        const int id = static_cast<int>(loops_.size());
        loops_[op.as<LoopAttr>().loop] = id;
        op.as<LoopAttr>().loop = id;
      }
      for (Region& inner : op.regions) region(inner);
      for (ValueId& v : op.out) define(v);
    }
    for (ValueId& v : r.yields) use(v);
  }
  Expr renamed(const Expr& e) const {
    return substitute(e, [&](Symbol s) -> std::optional<Expr> {
      if (s.kind != SymbolKind::loop) return std::nullopt;
      return Expr::symbol(SymbolKind::loop, loops_.at(s.id));
    });
  }

  Program& p_;
  std::vector<ValueId> ids_;
  std::vector<Value> values_;
  std::map<int, int> loops_;
  int messages_ = 0;
};

}  // namespace

void canonicalize(Program& p) {
  drop_dead(p.body, Liveness(p));
  Ordering(p).order(p.body);
  Numbering number(p);
}

}  // namespace tw
