#include "tw/layout/thread_value.h"

#include <algorithm>
#include <bit>
#include <fmt/format.h>
#include <fmt/ranges.h>

namespace tw::layout {
namespace {

using Mode = ThreadValue::Mode;

int64_t product_of(const std::vector<Mode>& modes) {
  int64_t n = 1;
  for (const Mode& m : modes) n *= m.extent;
  return n;
}

int64_t along(const std::vector<Mode>& modes, size_t axis, int64_t number) {
  int64_t at = 0;
  for (const Mode& m : modes) {
    if (m.axis == static_cast<int>(axis)) at += number % m.extent * m.stride;
    number /= m.extent;
  }
  return at;
}

/// Without modes of one digit value, and neighbours that count on as one mode.
std::vector<Mode> joined(const std::vector<Mode>& modes) {
  std::vector<Mode> r;
  for (const Mode& m : modes) {
    if (m.extent == 1) continue;
    const bool copies = m.axis < 0;
    if (!r.empty() && r.back().axis == m.axis &&
        (copies || m.stride == r.back().stride * r.back().extent)) {
      r.back().extent *= m.extent;
    } else {
      r.push_back(copies ? Mode{m.extent, -1, 0} : m);
    }
  }
  return r;
}

/// How many threads share `pieces`: a power of two that leaves few of them idle.
int64_t threads_along(int64_t pieces, int64_t threads) {
  const int64_t most = std::min(threads, static_cast<int64_t>(std::bit_ceil(uint64_t(pieces))));
  int64_t best = most;
  auto slots = [&](int64_t t) { return (pieces + t - 1) / t * t; };
  for (int64_t t = most / 2; t >= 1 && t * 4 >= most; t /= 2) {
    if (slots(t) * 5 < slots(best) * 4) best = t;
  }
  return best;
}

}  // namespace

int64_t ThreadValue::thread_count() const { return product_of(threads); }
int64_t ThreadValue::registers() const { return product_of(values); }

int64_t ThreadValue::reach(size_t axis) const {
  int64_t most = 0;
  for (const auto* modes : {&threads, &values}) {
    for (const Mode& m : *modes) {
      if (m.axis == static_cast<int>(axis)) most += (m.extent - 1) * m.stride;
    }
  }
  return most;
}

int64_t ThreadValue::coordinate(size_t axis, int64_t thread, int64_t value) const {
  return along(threads, axis, thread) + along(values, axis, value);
}

ThreadValue blocked(const std::vector<int64_t>& tile, int64_t threads, size_t vector_axis,
                    int64_t vector) {
  ThreadValue l;
  l.tile = tile;
  std::vector<size_t> order;
  if (!tile.empty()) order.push_back(vector_axis);
  for (size_t a = tile.size(); a-- > 0;) {
    if (a != vector_axis) order.push_back(a);
  }
  std::vector<Mode> repeats;
  int64_t left = threads;
  for (const size_t a : order) {
    int64_t step = 1;
    if (a == vector_axis) {
      while (step * 2 <= vector && step * 2 <= tile[a]) step *= 2;
      l.values.push_back({step, static_cast<int>(a), 1});
    }
    const int64_t pieces = (tile[a] + step - 1) / step;
    const int64_t t = threads_along(pieces, left);
    l.threads.push_back({t, static_cast<int>(a), step});
    repeats.push_back({(pieces + t - 1) / t, static_cast<int>(a), step * t});
    left /= t;
  }
  l.threads.push_back({left, -1, 0});
  l.values.insert(l.values.end(), repeats.begin(), repeats.end());
  l.threads = joined(l.threads);
  l.values = joined(l.values);
  return l;
}

ThreadValue slice(const ThreadValue& l, size_t axis) {
  std::vector<int> of;
  for (size_t a = 0; a < l.tile.size(); ++a) of.push_back(a == axis ? -1 : static_cast<int>(a));
  std::vector<int64_t> tile = l.tile;
  tile[axis] = 1;
  return renamed(l, of, tile);
}

ThreadValue renamed(const ThreadValue& l, const std::vector<int>& of,
                    const std::vector<int64_t>& tile) {
  ThreadValue r;
  r.tile = tile;
  const auto axis_of = [&](int axis) {
    const auto it = std::find(of.begin(), of.end(), axis);
    return axis < 0 || it == of.end() ? -1 : static_cast<int>(it - of.begin());
  };
  for (const Mode& m : l.threads) r.threads.push_back({m.extent, axis_of(m.axis), m.stride});
  for (const Mode& m : l.values) {
    if (axis_of(m.axis) >= 0) r.values.push_back({m.extent, axis_of(m.axis), m.stride});
  }
  r.threads = joined(r.threads);
  r.values = joined(r.values);
  return r;
}

std::string to_string(const ThreadValue& l) {
  const auto modes = [](const std::vector<Mode>& all) {
    std::string s;
    for (const Mode& m : all) {
      s += m.axis < 0 ? fmt::format("({}:copies)", m.extent)
                      : fmt::format("({}:{}@{})", m.extent, m.stride, m.axis);
    }
    return s.empty() ? "()" : s;
  };
  return fmt::format("[{}] threads {} values {}", fmt::join(l.tile, ","), modes(l.threads),
                     modes(l.values));
}

}  // namespace tw::layout
