#include "tw/layout/layout.h"

#include <fmt/format.h>

#include "tw/base/error.h"

namespace tw {

static int64_t fits(bool overflow, int64_t value, const char* what) {
  if (overflow) throw UserError(fmt::format("layout: its {} does not fit in 64 bits", what));
  return value;
}

static int64_t checked_product(int64_t a, int64_t b, const char* what) {
  int64_t product = 0;
  const bool overflow = __builtin_mul_overflow(a, b, &product);
  return fits(overflow, product, what);
}

static int64_t checked_sum(int64_t a, int64_t b, const char* what) {
  int64_t sum = 0;
  const bool overflow = __builtin_add_overflow(a, b, &sum);
  return fits(overflow, sum, what);
}

Layout::Layout(const IntTuple& shape, const IntTuple& stride) {
  if (shape.is_tuple() != stride.is_tuple() || shape.modes().size() != stride.modes().size())
    throw UserError(fmt::format("layout: shape {} and stride {} differ in form", to_string(shape),
                                to_string(stride)));
  if (shape.is_tuple()) {
    std::vector<Layout> modes;
    for (size_t i = 0; i < shape.modes().size(); i++)
      modes.push_back(Layout(shape.modes()[i], stride.modes()[i]));
    *this = make_layout(std::move(modes));
    return;
  }
  if (shape.value() < 1)
    throw UserError(fmt::format("layout: shape {}: wanted at least 1", shape.value()));
  if (stride.value() < 0)
    throw UserError(fmt::format("layout: stride {}: wanted at least 0", stride.value()));
  size_ = shape.value();
  stride_ = stride.value();
  cosize_ = checked_sum(checked_product(size_ - 1, stride_, "largest offset"), 1, "cosize");
}

static IntTuple compact_stride(const IntTuple& shape, int64_t& next) {
  if (!shape.is_tuple()) {
    const int64_t stride = next;
    next = checked_product(next, shape.value(), "size");
    return stride;
  }
  std::vector<IntTuple> strides;
  for (const IntTuple& mode : shape.modes()) strides.push_back(compact_stride(mode, next));
  return IntTuple::of(std::move(strides));
}

Layout Layout::compact(const IntTuple& shape) {
  int64_t next = 1;
  return Layout(shape, compact_stride(shape, next));
}

Layout make_layout(std::vector<Layout> modes) {
  if (modes.empty()) throw UserError("layout: a tuple without modes: wanted at least one");
  Layout all;
  for (const Layout& mode : modes) {
    all.size_ = checked_product(all.size_, mode.size_, "size");
    all.cosize_ = checked_sum(all.cosize_, mode.cosize_ - 1, "largest offset");
  }
  all.modes_ = std::move(modes);
  return all;
}

const Layout& Layout::mode(int i) const {
  if (i < 0 || i >= rank())
    throw InternalError(fmt::format("mode {} of {}, which has {}", i, to_string(*this), rank()));
  return is_tuple() ? modes_[static_cast<size_t>(i)] : *this;
}

IntTuple Layout::shape() const {
  if (!is_tuple()) return size_;
  std::vector<IntTuple> shapes;
  for (const Layout& mode : modes_) shapes.push_back(mode.shape());
  return IntTuple::of(std::move(shapes));
}

IntTuple Layout::stride() const {
  if (!is_tuple()) return stride_;
  std::vector<IntTuple> strides;
  for (const Layout& mode : modes_) strides.push_back(mode.stride());
  return IntTuple::of(std::move(strides));
}

int64_t Layout::offset_of(int64_t index) const {
  if (!is_tuple()) return index * stride_;
  int64_t offset = 0;
  for (const Layout& mode : modes_) {
    offset += mode.offset_of(index % mode.size_);
    index /= mode.size_;
  }
  return offset;
}

int64_t Layout::operator()(int64_t index) const {
  if (index < 0 || index >= size_)
    throw InternalError(
        fmt::format("index {} of {}: wanted 0..{}", index, to_string(*this), size_ - 1));
  return offset_of(index);
}

int64_t Layout::operator()(const IntTuple& coordinate) const {
  if (!coordinate.is_tuple()) return (*this)(coordinate.value());
  if (!is_tuple() || coordinate.modes().size() != modes_.size())
    throw InternalError(fmt::format("coordinate {} of {}: its form differs from the shape",
                                    to_string(coordinate), to_string(*this)));
  int64_t offset = 0;
  for (size_t i = 0; i < modes_.size(); i++) offset += modes_[i](coordinate.modes()[i]);
  return offset;
}

bool Layout::operator==(const Layout& other) const {
  return size_ == other.size_ && stride_ == other.stride_ && modes_ == other.modes_;
}

static void append_flat(const Layout& layout, std::vector<ShapeStride>& modes) {
  if (!layout.is_tuple()) {
    modes.push_back({layout.size(), layout.stride().value()});
    return;
  }
  for (int i = 0; i < layout.rank(); i++) append_flat(layout.mode(i), modes);
}

std::vector<ShapeStride> flatten(const Layout& layout) {
  std::vector<ShapeStride> modes;
  append_flat(layout, modes);
  return modes;
}

Layout unflatten(const std::vector<ShapeStride>& modes) {
  std::vector<Layout> layouts;
  for (const ShapeStride& mode : modes) layouts.push_back(Layout(mode.shape, mode.stride));
  if (layouts.empty()) return Layout();
  return layouts.size() == 1 ? layouts[0] : make_layout(std::move(layouts));
}

}  // namespace tw
