#include "tw/limit/impl/elements.h"

#include <algorithm>
#include <numeric>

namespace tw {

Extents row_major(const Extents& shape) {
  Extents strides(shape.size(), 1);
  for (size_t k = shape.size(); k-- > 1;) strides[k - 1] = strides[k] * shape[k];
  return strides;
}

Placement stretching(const Extents& shape, const Extents& small) {
  Placement p{shape, row_major(small)};
  for (size_t k = 0; k < shape.size(); ++k)
    if (small[k] == 1) p.strides[k] = 0;
  return p;
}

Placement transposing(const Extents& from, const std::vector<int>& perm) {
  const Extents strides = row_major(from);
  Placement p;
  for (int axis : perm) {
    p.shape.push_back(from[static_cast<size_t>(axis)]);
    p.strides.push_back(strides[static_cast<size_t>(axis)]);
  }
  return p;
}

Placement slicing(const Extents& from, const Extents& start, const Extents& shape) {
  Placement p{shape, row_major(from)};
  for (size_t k = 0; k < start.size(); ++k) p.offset += start[k] * p.strides[k];
  return p;
}

Elements Elements::none(const Extents& shape) {
  Elements e(shape);
  e.in_.assign(static_cast<size_t>(count(shape)), 0);
  return e;
}

Elements Elements::box(const Extents& shape, const Extents& lo, const Extents& hi) {
  bool whole = true;
  for (size_t k = 0; k < shape.size(); ++k) whole = whole && lo[k] <= 0 && hi[k] >= shape[k];
  if (whole) return all(shape);
  Elements e = none(shape);
  Extents inner(shape.size()), start(shape.size());
  for (size_t k = 0; k < shape.size(); ++k) {
    start[k] = std::max<int64_t>(lo[k], 0);
    inner[k] = std::max<int64_t>(std::min(hi[k], shape[k]) - start[k], 0);
  }
  slicing(shape, start, inner).for_each([&](size_t, size_t at) { e.in_[at] = 1; });
  return e;
}

Elements Elements::marked(const Extents& shape, const std::vector<int64_t>& marks) {
  Elements e(shape);
  for (int64_t mark : marks) e.in_.push_back(mark != 0);
  if (std::ranges::find(e.in_, 0) == e.in_.end()) e.in_.clear();
  return e;
}

int64_t Elements::size() const {
  return is_all() ? count(shape_) : std::accumulate(in_.begin(), in_.end(), int64_t{0});
}

Elements Elements::operator&(const Elements& o) const {
  if (is_all()) return o;
  Elements e = *this;
  if (!o.is_all())
    for (size_t i = 0; i < in_.size(); ++i) e.in_[i] &= o.in_[i];
  return e;
}

Elements Elements::operator|(const Elements& o) const {
  if (is_all() || o.is_all()) return all(shape_);
  Elements e = *this;
  for (size_t i = 0; i < in_.size(); ++i) e.in_[i] |= o.in_[i];
  return e;
}

Elements Elements::operator~() const {
  Elements e = none(shape_);
  for (size_t i = 0; i < in_.size(); ++i) e.in_[i] = in_[i] == 0;
  return e;
}

bool Elements::operator==(const Elements& o) const {
  if (is_all() != o.is_all()) return size() == o.size() && size() == count(shape_);
  return in_ == o.in_;
}

Elements Elements::taken(const Placement& p) const {
  if (is_all()) return all(p.shape);
  Elements e = none(p.shape);
  p.for_each([&](size_t i, size_t at) { e.in_[i] = in_[at]; });
  return e;
}

Elements Elements::put(const Placement& p, const Extents& shape) const {
  if (is_all() && count(shape_) >= count(shape)) return all(shape);
  Elements e = none(shape);
  p.for_each([&](size_t i, size_t at) { e.in_[at] |= has(i); });
  return e;
}

Elements Elements::stretched(const Extents& shape) const {
  return shape == shape_ ? *this : taken(stretching(shape, shape_));
}

Elements Elements::squeezed(const Extents& shape) const {
  return shape == shape_ ? *this : put(stretching(shape_, shape), shape);
}

Elements Elements::reshaped(const Extents& shape) const {
  Elements e = *this;
  e.shape_ = shape;
  return e;
}

int64_t products(const Elements& a, const Elements& b, const Elements& out) {
  const int64_t rows = a.shape()[0], depth = a.shape()[1], cols = b.shape()[1];
  if (a.is_all() && b.is_all()) return out.size() * depth;
  const Elements turned = b.taken(transposing(b.shape(), {1, 0}));
  std::vector<uint8_t> by_row(static_cast<size_t>(rows * depth)),
      by_col(static_cast<size_t>(cols * depth));
  for (size_t i = 0; i < by_row.size(); ++i) by_row[i] = a.has(i);
  for (size_t i = 0; i < by_col.size(); ++i) by_col[i] = turned.has(i);
  int64_t n = 0;
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t j = 0; j < cols; ++j) {
      if (!out.has(static_cast<size_t>(i * cols + j))) continue;
      const uint8_t *x = &by_row[static_cast<size_t>(i * depth)],
                    *y = &by_col[static_cast<size_t>(j * depth)];
      int both = 0;
      for (int64_t k = 0; k < depth; ++k) both += x[k] & y[k];
      n += both;
    }
  return n;
}

}  // namespace tw
