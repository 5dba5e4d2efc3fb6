#include "tw/interp/memory.h"

#include "tw/interp/bounded.h"

namespace tw {

ParamMemory::ParamMemory(TensorView view, bool written)
    : view_(std::move(view)), written_(written) {
  if (!written_) return;
  for_each_index(view_.dims, [&](const Extents& at) {
    elements_.push_back(from_bits(view_.dtype, load_bits(view_.dtype, view_.data, offset(at))));
  });
}

int64_t ParamMemory::offset(const Extents& at) const {
  int64_t sum = 0;
  for (size_t k = 0; k < at.size(); ++k) sum += at[k] * view_.strides[k];
  return sum;
}

bool ParamMemory::inside(const Extents& at) const {
  for (size_t k = 0; k < at.size(); ++k)
    if (at[k] < 0 || at[k] >= view_.dims[k]) return false;
  return true;
}

Scalar ParamMemory::read(const Extents& at) const {
  if (written_) return elements_[static_cast<size_t>(position(view_.dims, at))];
  return from_bits(view_.dtype, load_bits(view_.dtype, view_.data, offset(at)));
}

void ParamMemory::write(const Extents& at, const Scalar& value) {
  sums_.erase(static_cast<size_t>(position(view_.dims, at)));
  put(at, value);
}

void ParamMemory::update(AtomicOp op, const Extents& at, const Scalar& value,
                         const Scalar& expected) {
  const DType t = view_.dtype;
  const auto where = static_cast<size_t>(position(view_.dims, at));
  const Scalar& old = elements_[where];
  if (op != AtomicOp::add || !is_float(t)) {
    const bool unknown = old.undecided || value.undecided || expected.undecided;
    const bool extremum = op == AtomicOp::min || op == AtomicOp::max;
    const Opcode code = op == AtomicOp::min ? Opcode::min : Opcode::max;
    return write(at, op == AtomicOp::exch ? value
                     : unknown            ? Scalar::unknown()
                     : extremum           ? bounded_binary(code, t, old, value, false)
                                          : updated(op, t, old, value, expected));
  }
  std::vector<Scalar>& terms = sums_[where];
  if (terms.empty()) terms.push_back(old);
  terms.push_back(value);
  put(at, bounded_sum(t, terms));
}

void ParamMemory::forget() {
  sums_.clear();
  for (Scalar& element : elements_) element = Scalar::unknown();
}

void ParamMemory::clear() {
  sums_.clear();
  const Scalar zero = from_number(view_.dtype, Number{!is_float(view_.dtype), 0, 0});
  for_each_index(view_.dims, [&](const Extents& at) { put(at, zero); });
}

Scalar updated(AtomicOp op, DType t, const Scalar& old, const Scalar& value,
               const Scalar& expected) {
  switch (op) {
    case AtomicOp::add:
      return exact_binary(Opcode::add, t, old, value);
    case AtomicOp::min:
      return exact_binary(Opcode::min, t, old, value);
    case AtomicOp::max:
      return exact_binary(Opcode::max, t, old, value);
    case AtomicOp::and_:
      return exact_binary(Opcode::and_, t, old, value);
    case AtomicOp::or_:
      return exact_binary(Opcode::or_, t, old, value);
    case AtomicOp::xor_:
      return exact_binary(Opcode::xor_, t, old, value);
    case AtomicOp::exch:
      return value;
    case AtomicOp::cas:
      return old.i == expected.i ? value : old;
  }
  return value;
}

void ParamMemory::put(const Extents& at, const Scalar& value) {
  elements_[static_cast<size_t>(position(view_.dims, at))] = value;
  store_bits(view_.dtype, view_.data, offset(at), to_bits(view_.dtype, value));
}

}  // namespace tw
