#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "tw/ir/program.h"
#include "tw/target/machine.h"

namespace tw {

/// Kinds of operations that have a rate of their own on some machine.
enum class Unit : uint8_t {
  f32,      ///< arithmetic on vectors of f32
  half,     ///< of types of 16 bits and below
  f64,      ///< functions of f64 too
  integer,  ///< of 32 bits; those of fewer bits count less
  special,  ///< exp, rsqrt, tanh, ..: a function of f32 or below
  convert,  ///< roundings to narrower floats, floats to integers
  dot_f32,  ///< products of `dot` by the type of the wider operand and the precision
  dot_f64,
  dot_tf32,
  dot_half,  ///< f16, bf16
  dot_fp8,   ///< floats of 8 bits and below
  dot_i8
};
inline constexpr size_t kUnits = 12;
const char* name(Unit u);

/// What a program must do at given sizes, however it is compiled: dead code, padding of tiles and
/// repeated reads do not count.
struct Work {
  int64_t bytes_read = 0;     ///< unique bytes of inputs that are needed
  int64_t bytes_written = 0;  ///< unique bytes of outputs
  double flops = 0;  ///< on floats: an addition, a product, a function: 1 each; a multiply-add of
                     ///< `dot`: 2
  std::array<double, kUnits> ops = {};  ///< counted likewise; tf32x3 makes three products of one
  int64_t bytes() const { return bytes_read + bytes_written; }
  double of(Unit u) const { return ops[static_cast<size_t>(u)]; }
};

/// `dims` has the value of every Program::dims entry, in order. Counts the elements that are needed
/// at every coordinate of the grid and every trip of its loops; where those differ in thousands of
/// ways, at 1024 coordinates of an axis, evenly chosen. What is done once a tile counts as with one
/// tile. A branch that depends on a coordinate counts as its cheaper side, the body of a while loop
/// not at all.
/// Throws UserError when the number of dims is wrong.
Work least_work(const Program& p, std::span<const int64_t> dims);

/// Bytes per microsecond in each direction; copy counts bytes read plus bytes written.
struct Bandwidth {
  double read = 0, write = 0, copy = 0;
};

/// What may hold a program up.
enum class Resource : uint8_t {
  bandwidth,
  arithmetic,  ///< vector units: of CPUs all that they compute
  matrix,      ///< tensor cores
  f64,
  integer,
  special,
  convert,
  latency,  ///< the longest chain of operations of which each needs the one before
  launch
};
inline constexpr size_t kResources = 9;
const char* name(Resource r);

/// How long one operation waits for another, at least.
struct Latency {
  double memory_us = 0, cache_us = 0;  ///< a load
  double arithmetic_us = 0, special_us = 0, matrix_us = 0;
};

/// How fast a machine is, and how we know. What is 0 is not known, and holds nothing up.
struct Rates {
  /// Operations per microsecond, a fused multiply-add counting 2. Units of one resource take turns.
  struct Rate {
    double per_us = 0;
    Resource on = Resource::arithmetic;
  };
  std::array<Rate, kUnits> ops = {};
  Bandwidth memory, cache;  ///< from and to memory; within the caches of the cores
  Latency latency;
  double launch_us = 0;  ///< of an empty program
  std::string source;    ///< e.g. "data sheet", "measured, times 1.1"
  Rate& of(Unit u) { return ops[static_cast<size_t>(u)]; }
  const Rate& of(Unit u) const { return ops[static_cast<size_t>(u)]; }
};

/// Of a CPU whose vector units make so many f32 operations per microsecond: all operations are
/// theirs, half as many of f64, four times as many products of bytes. Conversions and arithmetic on
/// integers are not known.
Rates vector_rates(double f32_flops);

/// What the makers say: of a CPU with so many threads, of a GPU. Throws UserError where they are
/// not known: of CPUs that are not machine_named(), and of architectures that are not gpu_named(),
/// of which other models count by their multiprocessors and memory.
Rates datasheet_rates(const CpuMachine& m, int threads);
Rates datasheet_rates(const GpuMachine& m);
/// Of a GPU of which so much is known; f32 products are its vector units'.
Rates rates_of(const GpuPeaks& p);
/// What was reached on one of that architecture, in the same proportion; nothing where nobody
/// measured.
std::optional<Rates> reached_rates(const GpuMachine& m);

enum class Residence : uint8_t { memory, cache };  ///< where tensors are when a call starts

/// The longest chain: a load, what is computed from it, what a loop carries from one trip to the
/// next. Sums and the like, which may be regrouped, carry nothing. Of the first and the last
/// instance, the longer.
double chain_us(const Program& p, std::span<const int64_t> dims, const Latency& latency,
                Residence where);

/// The least time a program can take: that of each resource alone, of which the longest holds.
struct Limit {
  Work work;
  std::array<double, kResources> us = {};
  double of(Resource r) const { return us[static_cast<size_t>(r)]; }
  double time_us() const;
  Resource bound() const;
};

/// Traffic of equal parts goes at the copy rate, the rest at that of its direction.
Limit limit(const Program& p, std::span<const int64_t> dims, const Rates& rates, Residence where);

}  // namespace tw
