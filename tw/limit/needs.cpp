#include "tw/limit/impl/needs.h"

#include <algorithm>

#include "tw/ir/infer.h"

namespace tw {

Needs::Needs(const Program& p, const Sizes& sizes)
    : p_(p), sizes_(sizes), known_(p), wanted_(p.values.size()) {
  for (const Value& v : p.values) data_.push_back(Elements::all(v.type.shape));
}

void Needs::begin(const Region& r, const Coordinates& at) {
  for (ValueId v : r.args) wanted_[v].reset();
  for (const Op& op : r.ops) {
    known_.compute(op, sizes_, at);
    for (ValueId v : op.out) wanted_[v].reset();
    if (op.out.size() == 1) data_[op.out[0]] = made(op, at);
  }
}

void Needs::want(ValueId v, const Elements& e) {
  const Elements part = e.squeezed(shape(v));
  wanted_[v] = wanted_[v] ? *wanted_[v] | part : part;
}

/// Of the elements of a view those inside its tensor.
Elements Needs::inside(const View& view, const Extents& shape, const Coordinates& at) const {
  Extents lo(shape.size()), hi(shape.size());
  size_t k = 0;
  for (size_t axis = 0; axis < view.origin.size(); ++axis) {
    const int64_t origin = sizes_.value(view.origin[axis], at);
    const int64_t dim = sizes_.value(p_.params[view.param].dims[axis], {});
    if (k < view.axes.size() && view.axes[k] == static_cast<int>(axis)) {
      lo[k] = -origin;
      hi[k++] = dim - origin;
    } else if (origin < 0 || origin >= dim) {
      return Elements::none(shape);
    }
  }
  return Elements::box(shape, lo, hi);
}

Elements Needs::mask(ValueId v, const Extents& shape) const {
  if (!known_.follows(v)) return Elements::all(shape);
  return Elements::marked(this->shape(v), known_.elements(v)).stretched(shape);
}

/// Where coordinates lie in [0, dim), as far as they are known.
Elements Needs::reached(ValueId at, int64_t dim, const Extents& shape) const {
  if (!known_.follows(at)) return data_[at].stretched(shape);
  std::vector<int64_t> marks;
  for (int64_t x : known_.elements(at)) marks.push_back(x >= 0 && x < dim);
  return Elements::marked(this->shape(at), marks).stretched(shape);
}

/// Of a gather, scatter or atomic.
Elements Needs::placed(const Op& op) const {
  const Extents shape = place_extents(p_, op);
  const View& view = *view_of(op);
  const PlaceOperands operands = place_operands(op);
  Elements e = Elements::all(shape);
  for (size_t k = 0; k < operands.at.size(); ++k) {
    const Expr& dim = p_.params[view.param].dims[static_cast<size_t>(view.axes[k])];
    e = e & reached(operands.at[k], sizes_.value(dim, {}), shape);
  }
  if (operands.mask) e = e & mask(*operands.mask, shape);
  return e;
}

/// What is data on both sides; extents of 1 and constants say nothing of the others.
Elements Needs::common(const Op& op, const Extents& shape) const {
  Elements e = Elements::all(shape);
  for (ValueId v : op.in)
    if (!data_[v].is_all()) e = e & data_[v].stretched(shape);
  return e;
}

/// Of a where: what comes from data of either side.
Elements Needs::chosen(const Op& op) const {
  const Extents& shape = this->shape(op.out[0]);
  const bool first = !known_.constant(op.in[1]), second = !known_.constant(op.in[2]);
  if (!known_.follows(op.in[0]) || (!first && !second)) return common(op, shape);
  const Elements here = mask(op.in[0], shape);
  if (!second) return here & data_[op.in[1]].stretched(shape);
  const Elements there = ~here & data_[op.in[2]].stretched(shape);
  return first ? (here & data_[op.in[1]].stretched(shape)) | there : there;
}

static Elements moved(const Op& op, const Elements& e, const Extents& shape) {
  if (op.code == Opcode::reshape) return e.reshaped(shape);
  if (op.code == Opcode::transpose) return e.taken(transposing(e.shape(), op.as<PermAttr>().perm));
  return e.taken(slicing(e.shape(), op.as<SliceAttr>().start, shape));
}

static Elements moved_back(const Op& op, const Elements& e, const Extents& shape) {
  if (op.code == Opcode::reshape) return e.reshaped(shape);
  if (op.code == Opcode::transpose) return e.put(transposing(shape, op.as<PermAttr>().perm), shape);
  return e.put(slicing(shape, op.as<SliceAttr>().start, e.shape()), shape);
}

/// Which elements of an op's result are data.
Elements Needs::made(const Op& op, const Coordinates& at) const {
  const Extents& shape = this->shape(op.out[0]);
  if (op.code == Opcode::load) return inside(op.as<ViewAttr>().view, shape, at);
  if (op.code == Opcode::gather) return placed(op);
  if (op.code == Opcode::where) return chosen(op);
  if (!op.regions.empty() && !is_fold(op.code)) return Elements::all(shape);
  if (op.code == Opcode::reshape || op.code == Opcode::transpose || op.code == Opcode::slice)
    return moved(op, data_[op.in[0]], shape);
  if (is_fold(op.code)) return data_[op.in[0]].squeezed(shape);
  if (op.code == Opcode::top_k || op.code == Opcode::atomic) return Elements::all(shape);
  if (op.code != Opcode::dot) return common(op, shape);
  return data_[op.in[0]].squeezed({shape[0], 1}).stretched(shape) &
         data_[op.in[1]].squeezed({1, shape[1]}).stretched(shape);
}

std::optional<Elements> Needs::needed(const Op& op) const {
  std::optional<Elements> e;
  if (op.out.empty()) return e;
  for (ValueId v : op.out)
    if (wanted_[v]) e = e ? *e | wanted_[v]->stretched(shape(op.out[0])) : *wanted_[v];
  return e && op.out.size() == 1 ? *e & data_[op.out[0]] : e;
}

Elements Needs::folded(const Op& op, const Elements& needed) const {
  return needed.stretched(shape(op.in[0])) & data_[op.in[0]];
}

int64_t Needs::multiplied(const Op& op, const Elements& needed) const {
  return products(data_[op.in[0]], data_[op.in[1]], needed);
}

void Needs::pass_dot(const Op& op, const Elements& needed) {
  const Extents &a = shape(op.in[0]), &b = shape(op.in[1]);
  const Elements terms = data_[op.in[0]].squeezed({1, a[1]}).reshaped({a[1]}) &
                         data_[op.in[1]].squeezed({b[0], 1}).reshaped({b[0]});
  want(op.in[0], needed.squeezed({a[0], 1}).stretched(a) & terms.reshaped({1, a[1]}).stretched(a));
  want(op.in[1], needed.squeezed({1, b[1]}).stretched(b) & terms.reshaped({b[0], 1}).stretched(b));
  want(op.in[2], *wanted_[op.out[0]]);
}

void Needs::pass(const Op& op, const Elements& needed) {
  if (op.code == Opcode::dot) return pass_dot(op, needed);
  if (op.code == Opcode::reshape || op.code == Opcode::transpose || op.code == Opcode::slice)
    return want(op.in[0], moved_back(op, needed, shape(op.in[0])));
  if (op.code == Opcode::where && known_.follows(op.in[0])) {
    const Elements here = mask(op.in[0], needed.shape()), all = *wanted_[op.out[0]];
    want(op.in[0], all);
    want(op.in[1], all & here);
    return want(op.in[2], all & ~here);
  }
  const bool widens = is_fold(op.code) || op.code == Opcode::top_k;
  for (ValueId v : op.in) {
    if (!widens) {
      want(v, needed);
    } else {
      want(v, op.code == Opcode::reduce ? needed.stretched(shape(v)) : Elements::all(shape(v)));
    }
  }
}

}  // namespace tw
