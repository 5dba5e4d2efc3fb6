#pragma once

#include "tw/ir/program.h"

namespace tw::kernels {

struct HashTiling {
  int64_t keys = 64;  ///< that an instance inserts or looks up together
};

/// What an empty slot of a table holds: the lowest value of the key type (i32 or i64), which is no
/// key.
int64_t empty_slot(DType key);

/// Inserts keys[N] of type i32 or i64 into the hash table T[C] (inout, C < 2^32, any strides),
/// whose slots the caller filled with empty_slot() before the first insertion; slots[N] (i64) says
/// where each key is. Equal keys share a slot. A key that finds neither itself nor room gets -1, as
/// does the mark of empty slots; nothing hangs on a full table. As long as all keys find room, the
/// set of keys in T is that of the keys given, whatever the order of instances; in which slots they
/// are depends on it. Open addressing with linear probing (Knuth, TAOCP 3, 6.4, algorithm L) from
/// the upper half of MurmurHash3's 64-bit finaliser (Appleby 2011), scaled to C; slots are taken by
/// compare and exchange, and tables may be filled by several launches.
Program hash_insert(DType key, const HashTiling& tiling = {});

/// slots[N] (i64): where keys[N] are in T[C], which hash_insert filled; -1 for keys that are not
/// there and for the mark of empty slots. Exact.
Program hash_lookup(DType key, const HashTiling& tiling = {});

}  // namespace tw::kernels
