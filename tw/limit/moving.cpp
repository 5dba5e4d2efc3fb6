#include "tw/limit/impl/moving.h"

#include <algorithm>

namespace tw {

Moving::Moving(const Program& p, const Known& known) : p_(p), known_(known) {
  for (size_t axis = 0; axis < p.grid.size(); ++axis) {
    motion_.assign(p.values.size(), {});
    look(p.body, {SymbolKind::pid, static_cast<int>(axis)});
  }
  walk(p, [this](const Op& op) {
    if (op.code == Opcode::for_) begin(op);
  });
}

const std::vector<Moving::Seldom>& Moving::seldom(const Op& op) const {
  static const std::vector<Seldom> kNone;
  const auto found = seldom_.find(&op);
  return found == seldom_.end() ? kNone : found->second;
}

/// Whether a loop begins with a constant, or goes on where one left off that did.
bool Moving::fresh(ValueId v) const {
  if (known_.constant(v)) return true;
  const Op* op = known_.giver(v);
  if (op == nullptr || op->code != Opcode::for_) return false;
  return fresh(op->in[static_cast<size_t>(std::ranges::find(op->out, v) - op->out.begin())]);
}

void Moving::begin(const Op& loop) {
  motion_.assign(p_.values.size(), {});
  for (size_t i = 0; i < loop.in.size(); ++i)
    motion_[loop.regions[0].args[i]].carried = fresh(loop.in[i]);
  look(loop.regions[0], {SymbolKind::loop, loop.as<LoopAttr>().loop});
}

void Moving::look(const Region& r, Symbol s) {
  follow(r, s);
  bool tiled = false;
  walk(r, [&](const Op& op) {
    tiled = tiled || (op.code == Opcode::load && motion_[op.out[0]].axes != 0);
  });
  if (!tiled) return;
  walk(r, [&](const Op& op) {
    if (op.out.empty() || !op.regions.empty()) return;
    const bool folds = is_fold(op.code) || op.code == Opcode::dot;
    bool moves = motion_[op.out[0]].moves();
    for (ValueId v : op.in) moves = moves || (folds && motion_[v].moves());
    if (!moves) seldom_[&op].push_back({s, motion_[op.out[0]].carried});
  });
}

void Moving::follow(const Region& r, Symbol s) {
  for (const Op& op : r.ops) {
    if (op.regions.empty() || is_fold(op.code)) {
      const Motion m = of(op, s);
      for (ValueId v : op.out) motion_[v] = m;
      continue;
    }
    // Of what other loops and branches carry it is not followed how it moves.
    for (const Region& inner : op.regions) {
      for (ValueId v : inner.args) motion_[v] = {.pinned = true};
      follow(inner, s);
    }
    for (ValueId v : op.out) motion_[v] = {.pinned = true};
  }
}

Moving::Motion Moving::of_view(const Op& op, const View& view, Symbol s) const {
  Motion m;
  if (op.out.empty()) return m;
  const Extents& shape = p_.type(op.out[0]).shape;
  for (size_t axis = 0; axis < view.origin.size(); ++axis) {
    if (!mentions(view.origin[axis], s)) continue;
    const auto k = std::ranges::find(view.axes, static_cast<int>(axis)) - view.axes.begin();
    if (k < std::ssize(view.axes) && shape[static_cast<size_t>(k)] > 1)
      m.axes |= 1U << k;
    else
      m.pinned = true;
  }
  return m;
}

Moving::Motion Moving::joined(const Op& op) const {
  Motion m;
  for (ValueId v : op.in) {
    m.axes |= motion_[v].axes;
    m.pinned |= motion_[v].pinned;
    m.carried |= motion_[v].carried;
  }
  return m;
}

/// What transpose and reshape make of the axes; a reshape keeps those whose extents are alike.
Moving::Motion Moving::moved(const Op& op) const {
  const Motion from = motion_[op.in[0]];
  Motion m{0, from.pinned, from.carried};
  const Extents &a = p_.type(op.in[0]).shape, &b = p_.type(op.out[0]).shape;
  size_t k = 0;
  for (size_t axis = 0; axis < b.size(); ++axis) {
    size_t source = axis;
    if (op.code == Opcode::transpose) {
      source = static_cast<size_t>(op.as<PermAttr>().perm[axis]);
    } else {
      if (b[axis] == 1) continue;
      while (k < a.size() && a[k] == 1) ++k;
      if (k == a.size() || a[k] != b[axis]) return {0, from.moves(), from.carried};
      source = k++;
    }
    if (from.axes >> source & 1) m.axes |= 1U << axis;
  }
  return m;
}

Moving::Motion Moving::of(const Op& op, Symbol s) const {
  Motion m = joined(op);
  if (op.code == Opcode::load) return of_view(op, op.as<ViewAttr>().view, s);
  if (op.code == Opcode::index) return {.pinned = mentions(op.as<IndexAttr>().value, s)};
  if (op.code == Opcode::gather || op.code == Opcode::atomic)
    return {.pinned = m.moves() || of_view(op, *view_of(op), s).moves()};
  if (op.code == Opcode::where && known_.follows(op.in[0])) {
    // A mask of coordinates moves as what it hides does.
    const Motion a = motion_[op.in[1]], b = motion_[op.in[2]];
    const bool alone = !a.moves() && !b.moves() && motion_[op.in[0]].moves();
    return {a.axes | b.axes, a.pinned || b.pinned || alone, a.carried || b.carried};
  }
  if (op.code == Opcode::transpose || op.code == Opcode::reshape) return moved(op);
  if (op.code == Opcode::reduce) m.axes &= ~(1U << fold_of(op).axis);
  if (op.code == Opcode::top_k) m.pinned = m.moves();
  if (op.code == Opcode::dot) {
    m.axes = (motion_[op.in[0]].axes & 1U) | (motion_[op.in[1]].axes & 2U) | motion_[op.in[2]].axes;
  }
  return m;
}

}  // namespace tw
