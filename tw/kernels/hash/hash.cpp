#include "tw/kernels/hash/hash.h"

#include <fmt/format.h>

#include "tw/base/error.h"
#include "tw/lang/lang.h"

namespace tw::kernels {

int64_t empty_slot(DType key) {
  if (key != i32 && key != i64)
    throw UserError(fmt::format("a hash table of keys of {}", name(key)), "wanted i32 or i64");
  return key == i32 ? INT32_MIN : INT64_MIN;
}

/// Where the search for a key begins, in [0, C) for C > 0.
static Tile first_slot(const Tile& key, const Index& C) {
  Tile h = bitcast(cast(key, i64), u64);
  h ^= h >> 33;
  h *= 0xff51afd7ed558ccd;
  h ^= h >> 33;
  h *= 0xc4ceb9fe1a85ec53;
  h ^= h >> 33;
  return cast((h >> 32) * C >> 32, i64);
}

/// The search of a tile of keys along their slots, at most once around the table.
struct Probe {
  Index C;
  Tile slot, found, active, tried;

  Probe(Trace& k, const Tile& key, const Tile& inside, int64_t n, const Index& capacity,
        int64_t empty)
      : C(capacity),
        slot(first_slot(key, capacity)),
        found(k.full(i64, {n}, -1)),
        active(inside & ne(key, empty)),
        tried(k.zeros(i64, {n})) {
    active &= tried < C;
  }

  /// Keys in `here` are at their slots; of the others those in `on` go on.
  void step(const Tile& here, const Tile& on) {
    found = where(here, slot, found);
    tried += 1;
    active = on & ~here & (tried < C);
    Tile next = slot + 1;
    slot = where(eq(next, C), 0, next);
  }
};

Program hash_insert(DType type, const HashTiling& tile) {
  const int64_t empty = empty_slot(type), n = tile.keys;
  Trace k("hash_insert");
  Index N = k.dim("N"), C = k.dim("C");
  TensorRef keys = k.input("keys", type, {N}), T = k.inout("T", type, {C});
  TensorRef slots = k.output("slots", i64, {N});
  auto [p] = k.grid(cdiv(N, n));
  Tile key = load(keys.tile({p}, {n}));
  Probe probe(k, key, k.iota({n}, 0) + p * n < N, n, C, empty);
  While loop(k);
  while (loop(any(probe.active))) {
    Tile old = atomic_cas(T, {probe.slot}, empty, key, {.mask = probe.active});
    Tile here = probe.active & (eq(old, empty) | eq(old, key));
    probe.step(here, probe.active);
  }
  store(slots.tile({p}, {n}), probe.found);
  return k.finish();
}

Program hash_lookup(DType type, const HashTiling& tile) {
  const int64_t empty = empty_slot(type), n = tile.keys;
  Trace k("hash_lookup");
  Index N = k.dim("N"), C = k.dim("C");
  TensorRef keys = k.input("keys", type, {N}), T = k.input("T", type, {C});
  TensorRef slots = k.output("slots", i64, {N});
  auto [p] = k.grid(cdiv(N, n));
  Tile key = load(keys.tile({p}, {n}));
  Probe probe(k, key, k.iota({n}, 0) + p * n < N, n, C, empty);
  While loop(k);
  while (loop(any(probe.active))) {
    Tile there = gather(T, {probe.slot}, {.mask = probe.active});
    Tile here = probe.active & eq(there, key);
    probe.step(here, probe.active & ne(there, empty));
  }
  store(slots.tile({p}, {n}), probe.found);
  return k.finish();
}

}  // namespace tw::kernels
