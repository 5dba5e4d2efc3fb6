#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "tw/ir/program.h"

namespace tw {

/// What a program must do at given sizes, however it is compiled: dead code, padding of tiles and
/// repeated reads do not count.
struct Work {
  int64_t bytes_read = 0;     ///< unique bytes of inputs that are needed
  int64_t bytes_written = 0;  ///< unique bytes of outputs
  double flops = 0;  ///< an addition, a product, a function: 1 each; a multiply-add of `dot`: 2
  int64_t bytes() const { return bytes_read + bytes_written; }
};

/// `dims` has the value of every Program::dims entry, in order. Counts instances and loop trips
/// exactly where they follow from dims; where a loop depends on the instance, over at most 4096
/// instances, evenly chosen. A branch that depends on a coordinate counts as its cheaper side, the
/// body of a while loop not at all.
/// Throws UserError when the number of dims is wrong.
Work least_work(const Program& p, std::span<const int64_t> dims);

/// Bytes per microsecond in each direction; copy counts bytes read plus bytes written.
struct Bandwidth {
  double read = 0, write = 0, copy = 0;
};

/// How fast a machine is with some number of threads, and how we know.
struct Rates {
  double f32_flops = 0;     ///< per microsecond, a fused multiply-add counting 2
  Bandwidth memory, cache;  ///< from and to memory; within the caches of the cores
  std::string source;       ///< e.g. "2 x 32 lanes x 3.5 GHz", "measured, times 1.1"
};

enum class Residence : uint8_t { memory, cache };  ///< where tensors are when a call starts
enum class Resource : uint8_t { bandwidth, arithmetic };
const char* name(Resource r);

/// The least time a program can take: that of each resource alone, of which the longest holds.
struct Limit {
  Work work;
  double traffic_us = 0, arithmetic_us = 0;
  double time_us() const;
  Resource bound() const;
};

/// max(traffic at its bandwidth, operations at the f32 rate; half that rate when the outputs are
/// f64). Traffic of equal parts goes at the copy rate, the rest at that of its direction.
Limit limit(const Program& p, std::span<const int64_t> dims, const Rates& rates, Residence where);

}  // namespace tw
