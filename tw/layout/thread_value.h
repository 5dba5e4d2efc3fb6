#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace tw::layout {

/// How the elements of a tile lie in the registers of the threads of a block: the number of a
/// thread and the number of a register are written in mixed radix, and every digit moves the
/// element along one axis.
///
///   coordinate[a] = sum of digit * stride over the modes of threads and values with axis a
///
/// Mode 0 is the fastest digit. Threads that differ only in digits of axis -1 hold the same
/// elements. A coordinate past the tile's extent is a hole: the register holds no element.
///
///   blocked({2, 16}, 8, 1, 4):  threads (4:4 along axis 1)(2:1 along axis 0), values (4:1 along 1)
///     thread 0 holds [0, 0..3], thread 1 [0, 4..7], ... thread 4 [1, 0..3], ...
struct ThreadValue {
  struct Mode {
    int64_t extent = 1;
    int axis = -1;
    int64_t stride = 0;
    bool operator==(const Mode&) const = default;
  };
  std::vector<int64_t> tile;
  std::vector<Mode> threads, values;

  int64_t thread_count() const;
  int64_t registers() const;  ///< of one thread
  /// The largest coordinate that some register has along the axis, inside the tile or not.
  int64_t reach(size_t axis) const;
  bool has_holes(size_t axis) const { return reach(axis) >= tile[axis]; }
  /// The coordinate along the axis of a thread's register.
  int64_t coordinate(size_t axis, int64_t thread, int64_t value) const;
  bool operator==(const ThreadValue&) const = default;
};

/// Neighbouring threads along `vector_axis`, `vector` neighbours each (fewer where the extent is
/// smaller), then along the axes before it, last to first, then the others; registers repeat what
/// the threads do not cover. Threads that are left over hold copies. `threads` is a power of two.
ThreadValue blocked(const std::vector<int64_t>& tile, int64_t threads, size_t vector_axis,
                    int64_t vector);

/// What is left of a layout when an axis is folded: extent 1, all threads along it hold copies.
ThreadValue slice(const ThreadValue& l, size_t axis);

/// The layout of a tile each of whose axes is axis `of[a]` of `l` (-1: an extent of 1 that `l`
/// lacks); axes of `l` that are not named are sliced away.
ThreadValue renamed(const ThreadValue& l, const std::vector<int>& of,
                    const std::vector<int64_t>& tile);

/// "[2,16] threads (4:4@1)(2:1@0) values (4:1@1)".
std::string to_string(const ThreadValue& l);

}  // namespace tw::layout
