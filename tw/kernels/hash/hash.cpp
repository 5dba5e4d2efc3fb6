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

/// Which keys of a probe are at their slots, and which others go on.
struct Seen {
  Tile here, on;
};

/// The program that gives each key's slot in the table T; `look` says what a probe sees there.
template <class Look>
static Program slots_of_keys(const char* name, ParamKind table, DType type, const HashTiling& tile,
                             const Look& look) {
  const int64_t empty = empty_slot(type), n = tile.keys;
  Trace k(name);
  Index N = k.dim("N"), C = k.dim("C");
  TensorRef keys = k.input("keys", type, {N});
  TensorRef T = table == ParamKind::in ? k.input("T", type, {C}) : k.inout("T", type, {C});
  TensorRef slots = k.output("slots", i64, {N});
  auto [p] = k.grid(cdiv(N, n));
  Tile key = load(keys.tile({p}, {n}));
  Probe probe(k, key, k.iota({n}, 0) + p * n < N, n, C, empty);
  While loop(k);
  while (loop(any(probe.active))) {
    const Seen seen = look(T, probe, key, empty);
    probe.step(seen.here, seen.on);
  }
  store(slots.tile({p}, {n}), probe.found);
  return k.finish();
}

Program hash_insert(DType type, const HashTiling& tile) {
  return slots_of_keys(
      "hash_insert", ParamKind::inout, type, tile,
      [](const TensorRef& T, const Probe& probe, const Tile& key, int64_t empty) -> Seen {
        Tile old = atomic_cas(T, {probe.slot}, empty, key, {.mask = probe.active});
        return {probe.active & (eq(old, empty) | eq(old, key)), probe.active};
      });
}

Program hash_lookup(DType type, const HashTiling& tile) {
  return slots_of_keys(
      "hash_lookup", ParamKind::in, type, tile,
      [](const TensorRef& T, const Probe& probe, const Tile& key, int64_t empty) -> Seen {
        Tile there = gather(T, {probe.slot}, {.mask = probe.active});
        return {probe.active & eq(there, key), probe.active & ne(there, empty)};
      });
}

}  // namespace tw::kernels
