#include <algorithm>
#include <cmath>
#include <cstring>
#include <fmt/format.h>
#include <limits>
#include <string_view>

#include "tw/emu/impl/machine.h"

namespace tw::emu {
namespace {

template <class T>
T updated(std::string_view op, T old, T value) {
  using Bits = std::conditional_t<sizeof(T) == 4, uint32_t, uint64_t>;
  if (op == "exch") return value;
  if constexpr (std::is_floating_point_v<T>) {
    if (op == "add") return old + value;
    // What is no number wins; -0 is below +0.
    const bool equal = old == value, negative = std::signbit(old);
    if (op == "min") return std::isnan(old) || old < value || (equal && negative) ? old : value;
    if (op == "max") return std::isnan(old) || old > value || (equal && !negative) ? old : value;
  } else {
    const auto a = static_cast<Bits>(old), b = static_cast<Bits>(value);
    if (op == "add") return static_cast<T>(a + b);
    if (op == "and") return static_cast<T>(a & b);
    if (op == "or") return static_cast<T>(a | b);
    if (op == "xor") return static_cast<T>(a ^ b);
    if (op == "min") return std::min(old, value);
    if (op == "max") return std::max(old, value);
  }
  return old;
}

/// Sums of f32 in global memory know no subnormals: a GPU takes and leaves zeros for them.
float flushed(float x) {
  return std::fabs(x) < std::numeric_limits<float>::min() ? std::copysign(0.0f, x) : x;
}
bool add_flushed(void* address, const void* value, void* old_out) {
  float old = 0, v = 0;
  std::memcpy(&old, address, sizeof(old));
  std::memcpy(&v, value, sizeof(v));
  const float next = flushed(flushed(old) + flushed(v));
  std::memcpy(old_out, &old, sizeof(old));
  if (std::memcmp(&old, &next, sizeof(old)) == 0) return false;
  std::memcpy(address, &next, sizeof(next));
  return true;
}

/// Returns true when memory changed.
template <class T>
bool update(std::string_view op, void* address, const void* value, const void* expected,
            void* old_out) {
  T old, v;
  std::memcpy(&old, address, sizeof(T));
  std::memcpy(&v, value, sizeof(T));
  T next = old;
  if (op == "cas") {
    if (std::memcmp(&old, expected, sizeof(T)) == 0) next = v;
  } else if constexpr (sizeof(T) >= 4) {
    next = updated<T>(op, old, v);
  }
  std::memcpy(old_out, &old, sizeof(T));
  if (std::memcmp(&old, &next, sizeof(T)) == 0) return false;
  std::memcpy(address, &next, sizeof(T));
  return true;
}

struct AtomicType {
  std::string_view name;
  uint64_t bytes;
  bool (*update)(std::string_view, void*, const void*, const void*, void*);
};
constexpr AtomicType kAtomicTypes[] = {{"u8", 1, update<uint8_t>},  {"u16", 2, update<uint16_t>},
                                       {"i32", 4, update<int32_t>}, {"u32", 4, update<uint32_t>},
                                       {"i64", 8, update<int64_t>}, {"u64", 8, update<uint64_t>},
                                       {"f32", 4, update<float>},   {"f64", 8, update<double>}};

/// The parts of tw_atomic_<op>_<order>_<scope>.
struct AtomicName {
  std::string_view op, order, scope;
};
AtomicName parts(std::string_view name) {
  name.remove_prefix(std::string_view("tw_atomic_").size());
  const size_t first = name.find('_'), last = name.rfind('_');
  return {name.substr(0, first), name.substr(first + 1, last - first - 1), name.substr(last + 1)};
}

}  // namespace

void Machine::expect_aligned(const void* address, uint64_t bytes, int32_t line) {
  if (reinterpret_cast<uintptr_t>(address) % bytes != 0)
    fault(TextFault::misaligned, line, address, bytes);
}

/// A thread that asks for one value again and again waits for another block, whatever its own does
/// meanwhile in shared memory. When each block has such a thread, and no other can run, nobody
/// answers.
void Machine::ask_again(const void* address) {
  constexpr int64_t kMostAsks = 1 << 10;
  const auto waits = [&](const Thread* other) {
    return other->asked_since == changes_ && other->asks >= kMostAsks;
  };
  Thread& t = *current_;
  if (t.asked_since != changes_) {
    t.asked_since = changes_;
    t.asked_at = address;
    t.asks = 0;
  }
  if (address != t.asked_at || ++t.asks < kMostAsks) return;
  t.block->waits_since = changes_;
  const bool all = std::ranges::all_of(blocks_, [&](const Block& b) {
    return b.ended == grid_.threads || b.waits_since == changes_;
  });
  if (all && std::ranges::all_of(ready_[0], waits) && std::ranges::all_of(ready_[1], waits))
    deadlock();
}

void Machine::atomic(const char* name, const char* type, void* address, const void* value,
                     const void* expected, void* old, int32_t line) {
  constexpr uint32_t kOffers = 4;  // others must get on where a thread waits in a loop
  Thread& t = *current_;
  if (random_.below(kOffers) == 0) {
    make_ready(t);
    leave();
  }
  const AtomicName n = parts(name);
  const AtomicType& as = *std::find_if(std::begin(kAtomicTypes), std::end(kAtomicTypes),
                                       [&](const AtomicType& a) { return a.name == type; });
  t.asked = {.kind = name, .line = line};
  expect_aligned(address, as.bytes, line);
  const int64_t idle = idle_;
  Place place = at_line(line);
  place.bits |= Place::kAtomic | (n.scope == "block" ? Place::kOfBlock : 0);
  access(address, as.bytes, false, place);
  access(address, as.bytes, true, place);
  const bool both = n.order == "acq_rel";
  if (n.order == "acquire" || both) {
    const auto it = released_.find(address);
    if (it != released_.end()) learn(t, it->second);
  }
  if (n.order == "release" || both) {
    KnowledgePtr& all = released_[address];
    const Past past[] = {t.clock.release()};
    all = join_(all, knowledge_of(join_, past));
  }
  const Region* region = memory_.find(static_cast<const char*>(address), as.bytes);
  const bool flushes = n.op == "add" && as.name == "f32" && region && !region->shared;
  const bool changed =
      flushes ? add_flushed(address, value, old) : as.update(n.op, address, value, expected, old);
  constexpr int64_t kMostIdle = 1 << 18;
  idle_ = changed ? 0 : idle + 1;
  if (idle_ > kMostIdle) deadlock();
  if (changed)
    ++changes_;
  else
    ask_again(address);
  if (finding_) die();
}

}  // namespace tw::emu
