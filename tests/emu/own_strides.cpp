#include "tests/emu/own_strides.h"

#include <algorithm>
#include <numeric>
#include <string>

#include "tw/base/error.h"
#include "tw/base/round.h"

namespace tw::test {

namespace {

std::vector<int64_t> own_strides(const TensorView& t, const ParamFacts& facts, int64_t number) {
  const auto rank = static_cast<size_t>(t.rank());
  if (rank < 2 || is_packed(t.dtype) || facts.unit_axis < 0 || facts.zero_stride != 0)
    return t.strides;
  std::vector<size_t> order(rank);
  std::iota(order.begin(), order.end(), 0);
  const auto unit = order.begin() + facts.unit_axis;
  std::rotate(unit, unit + 1, order.end());
  const int64_t run = 16 / bytes(t.dtype), step = facts.aligned ? run : 1;
  std::vector<int64_t> wider;
  for (const size_t axis : order) wider.push_back(t.dims[axis]);
  wider.back() = round_up(wider.back(), step) + step * number;
  if (!facts.aligned && wider.back() % run == 0) ++wider.back();
  for (size_t i = 1; i + 1 < rank; ++i) wider[i] += number % 2;
  const std::vector<int64_t> inward = contiguous_strides(wider, t.dtype);
  std::vector<int64_t> strides(rank);
  for (size_t i = 0; i < rank; ++i) strides[order[i]] = inward[i];
  return strides;
}

void move(const TensorView& from, const TensorView& to) {
  for (int64_t i = 0; i < from.count(); ++i) {
    const uint64_t code = load_bits(from.dtype, from.data, from.offset(i));
    store_bits(to.dtype, to.data, to.offset(i), code);
  }
}

}  // namespace

Views with_own_strides(Views some, const Specialisation& facts, size_t first) {
  for (TensorView& t : some) {
    const size_t number = first++;
    t.strides = own_strides(t, facts.params[number], static_cast<int64_t>(number) + 1);
  }
  return some;
}

OwnStrides::OwnStrides(const Views& all, const Specialisation& facts) : host_(all) {
  for (const TensorView& t : with_own_strides(all, facts, 0))
    copies_.push_back(std::make_unique<check::Guarded>(t.dtype, t.dims, t.strides));
  for (size_t i = 0; i < all.size(); ++i) move(all[i], copies_[i]->view());
}

Views OwnStrides::views(size_t begin, size_t end) const {
  Views some;
  for (size_t i = begin; i < end; ++i) some.push_back(copies_[i]->view());
  return some;
}

void OwnStrides::take_back() const {
  for (size_t i = 0; i < host_.size(); ++i) {
    move(copies_[i]->view(), host_[i]);
    if (const std::string damage = copies_[i]->damage(); !damage.empty())
      throw DeviceError("between rows: " + damage);
  }
}

}  // namespace tw::test
