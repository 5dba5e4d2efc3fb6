#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "tw/measure/contestant.h"

namespace tw::measure {

/// Of an even count, the mean of the middle two. There must be a value.
double median(std::vector<double> values);

/// Median and its 95 % bootstrap interval.
struct Interval {
  double median = 0, low = 0, high = 0;
};
/// Percentile bootstrap over 2000 resamples (Efron 1979); the same seed gives the same interval.
/// Throws InternalError for no values.
Interval median_interval(std::vector<double> values, uint64_t seed = 1);

/// Of the ratios other / ours of blocks that were timed side by side.
Interval ratio_of_blocks(const std::vector<double>& ours, const std::vector<double>& other);

/// What a ratio's interval says: a difference counts when the interval clears 2 %.
enum class Verdict { slower, equal, faster };
Verdict verdict(const Interval& ratio);
/// The chance that blocks differ so much or more where ours is no more than 2 % faster: Student's t
/// of the logarithms of their ratios. 1 for fewer than two blocks.
double chance_of_blocks(const std::vector<double>& ours, const std::vector<double>& other);
/// Which of many say "faster" when all are asked at once: Holm's step-down correction (1979) keeps
/// the chance that any of them is wrong at 2.5 %, that of one interval of 95 %.
std::vector<bool> faster_of_many(const std::vector<double>& chances);

/// A tensor that compare() makes: `strides` in elements, all >= 0; empty means contiguous.
struct TensorSpec {
  std::string name;
  DType dtype = f32;
  std::vector<int64_t> dims, strides;
  bool fixed = false;  ///< of an input: its values do not change from call to call (weights of a
                       ///< model, values in an order)
};

struct Job {
  Task task;
  std::vector<TensorSpec> inputs, outputs;
  /// Writes values for input `index` of a set; calls with another `seed` must give other values.
  std::function<void(int index, const TensorView& to, uint64_t seed)> fill;
  /// Largest error / bound among outputs, or a secret sample of them drawn from `seed`; > 1 rejects
  /// the contestant. Each call has inputs of its own.
  std::function<double(const TensorSet& set, uint64_t seed)> verify;
};

struct Settings {
  int blocks = 15;      ///< rounds in which everybody is timed twice, in ABBA order
  int most_blocks = 0;  ///< more rounds, up to so many, while the ratio of the first contestant to
                        ///< the fastest other is known less closely than `width`; 0: no more
  double width = 0.05;  ///< of the 95 % interval of that ratio, as a share of it
  double slice_s = 0.03;   ///< seconds of one timed slice
  int64_t cold_bytes = 0;  ///< input sets together span at least this much: larger than the last
                           ///< cache's share means every call starts from memory; 0: few sets, warm
  int refreshes = 3;       ///< how often values and addresses change during the blocks
  int repeats = 30;        ///< how many disturbed blocks may be repeated in all
  bool all_values = false;  ///< change between calls, not some: for a contestant that may compute
                            ///< only what changed; slices take longer by it
  double leave_behind = 0;  ///< after two blocks, contestants but the first leave when they take so
                            ///< many times as long as the best of them; 0: all stay to the end
  double timeout_s = 60;    ///< for one answer of a worker
  std::string worker;       ///< program that calls serve_worker(); "": this program
  uint64_t seed = 0;        ///< 0: from the system, as it must be for a judge
};

struct Measured {
  std::string name, about;       ///< `about` as the contestant says: version, kernel set
  std::string failure;           ///< why it is out: crashed, hung, wrong, refused; "" when it is in
  bool refused = false;          ///< it is out because it does no such task
  std::vector<double> block_us;  ///< time of one call, mean of a block's two slices
  Interval time_us;
  double max_error = 0;  ///< largest error / bound of all verified outputs
  int verified = 0;      ///< timed outputs that were verified
};

struct Comparison {
  std::vector<Measured> all;  ///< in the order of the specs
  int sets = 0;               ///< input sets that calls cycled through
  int disturbed = 0;          ///< blocks that stayed disturbed by other processes
  int repeated = 0;
  double least_clock = 1;  ///< slowest clock of the processor that a block saw, of the fastest
  uint64_t seed = 0;
  /// Time of `other` over time of `ours`, block by block: above 1 when ours is faster.
  Interval ratio(int ours, int other) const;
  /// That ours is not 2 % faster, all the same.
  double chance(int ours, int other) const;
};

/// Times contestants side by side. Each lives in its own process, which is stopped while another
/// runs, and in which a plug-in can neither start, signal nor read others nor write files. Calls
/// cycle through input sets in random order, whose values change before every call, or every 30 us
/// where calls are shorter. Outputs are copied where a call of a secret number returned, and
/// verified. Two clocks must agree: the worker's, which counts, and the judge's. CPU time beyond
/// the task's threads rejects. Blocks in which other processes took more than 5 % of the CPU time,
/// or the processor's clock fell by as much, are repeated. Contestants that fail are reported, not
/// thrown.
Comparison compare(const Job& job, const std::vector<ContestantSpec>& contestants,
                   const Settings& settings = {});

}  // namespace tw::measure
