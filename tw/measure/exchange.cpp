#include "tw/measure/impl/exchange.h"

#include <algorithm>
#include <cstring>

namespace tw::measure {

static int64_t bytes_of(const std::vector<TensorSpec>& specs, size_t count) {
  int64_t sum = 0;
  for (size_t i = 0; i < count; ++i) sum += span_bytes(specs[i]);
  return sum;
}

Exchange::Exchange(std::vector<TensorSpec> inputs, std::vector<TensorSpec> outputs, int sets)
    : inputs_(std::move(inputs)), outputs_(std::move(outputs)), sets_(sets) {}

/// No mapping is empty.
static int64_t some(int64_t bytes) { return std::max<int64_t>(bytes, 1); }

void Exchange::create() {
  from_judge_.create(some(sets_ * bytes_of(inputs_, inputs_.size())));
  from_judge_.seal();
  to_judge_.create(some(kSlots * bytes_of(outputs_, outputs_.size())));
}

void Exchange::map_here() {
  from_judge_.map(kWorkerInputs, some(sets_ * bytes_of(inputs_, inputs_.size())), false);
  to_judge_.map(kWorkerOutputs, some(kSlots * bytes_of(outputs_, outputs_.size())), true);
}

TensorView Exchange::input(int set, int index) const {
  const int64_t at = set * bytes_of(inputs_, inputs_.size()) + bytes_of(inputs_, index);
  return view_of(inputs_[index], from_judge_.data() + at);
}

TensorView Exchange::output(int slot, int index) const {
  const int64_t at = slot * bytes_of(outputs_, outputs_.size()) + bytes_of(outputs_, index);
  return view_of(outputs_[index], to_judge_.data() + at);
}

namespace {

constexpr uint64_t kGamma = 0x9e3779b97f4a7c15;

/// splitmix64 (Steele, Lea and Flood 2014).
uint64_t next_random(uint64_t& state) {
  uint64_t z = state += kGamma;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
  z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
  return z ^ (z >> 31);
}

char* some_element(const TensorView& t, uint64_t random) {
  int64_t offset = 0;
  for (int axis = t.rank(); axis-- > 0;) {
    const auto extent = static_cast<uint64_t>(t.dims[axis]);
    offset += static_cast<int64_t>(random % extent) * t.strides[axis];
    random /= extent;
  }
  return static_cast<char*>(t.data) + offset * bytes(t.dtype);
}

}  // namespace

Stirrer::Stirrer(const std::vector<TensorSpec>& inputs, uint64_t seed) {
  for (const TensorSpec& t : inputs) {
    const int64_t n = view_of(t, nullptr).count();
    const bool stirred = !t.fixed && !is_packed(t.dtype) && n > 1;
    const uint64_t pairs = next_random(seed);
    streams_.push_back({stirred, pairs, ~pairs});
    plain_ &= !stirred || t.strides.empty();
  }
}

void Stirrer::step(const std::vector<TensorView>& inputs, int64_t pairs) {
  for (size_t i = 0; i < streams_.size(); ++i) {
    if (!streams_[i].stirred) continue;
    const auto size = static_cast<size_t>(bytes(inputs[i].dtype));
    for (int64_t k = 0; k < pairs; ++k) {
      char* a = some_element(inputs[i], next_random(streams_[i].pairs));
      char* b = some_element(inputs[i], next_random(streams_[i].pairs));
      std::swap_ranges(a, a + size, b);
    }
  }
  state_.pairs += pairs;
}

void Stirrer::turn(const std::vector<TensorView>& inputs, const std::vector<TensorView>& first) {
  if (!plain_) return;
  ++state_.turns;
  state_.pairs_then = state_.pairs;
  for (size_t i = 0; i < streams_.size(); ++i) {
    const uint64_t random = next_random(streams_[i].turns);
    if (!streams_[i].stirred) continue;
    const int64_t n = inputs[i].count(), size = bytes(inputs[i].dtype);
    const int64_t by = size * static_cast<int64_t>(1 + random % static_cast<uint64_t>(n - 1));
    const auto* from = static_cast<const char*>(first[i].data);
    auto* to = static_cast<char*>(inputs[i].data);
    std::memcpy(to, from + by, static_cast<size_t>(n * size - by));
    std::memcpy(to + (n * size - by), from, static_cast<size_t>(by));
  }
}

void Stirrer::replay(const std::vector<TensorView>& inputs, const std::vector<TensorView>& first,
                     const State& state) {
  int64_t from = 0;
  if (state.turns > 0) {
    for (Stream& s : streams_) {
      s.turns += static_cast<uint64_t>(state.turns - 1) * kGamma;
      s.pairs += 2 * static_cast<uint64_t>(state.pairs_then) * kGamma;
    }
    turn(inputs, first);
    from = state.pairs_then;
  }
  step(inputs, state.pairs - from);
  state_ = state;
}

}  // namespace tw::measure
