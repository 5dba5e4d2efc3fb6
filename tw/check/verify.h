#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "tw/check/reference.h"
#include "tw/tensor/tensor.h"

namespace tw::check {

/// What an input may hold. finite: no special values, as what they give is not defined. small:
/// uniform ones only, as larger ones overflow an exponential of theirs. sorted: ascending.
enum class Domain : uint8_t { any, finite, small, sorted };

/// One tensor of a call, in the order of the program's parameters.
struct Argument {
  std::string name;
  DType dtype;
  std::vector<int64_t> dims;
  bool output;
  Domain domain = Domain::any;  ///< of an input
};

/// A kernel at one shape, whatever runs it.
struct Subject {
  std::vector<Argument> arguments;
  std::function<void(const std::vector<TensorView>& inputs, const std::vector<TensorView>& outputs)>
      run;
  std::function<Reference(std::span<const TensorView> inputs)> reference;
};

/// What inputs hold. uniform: (-1, 1). wide: both signs, magnitudes 2^-20..2^20. offset: 1000 plus
/// uniform. integers: -2..2, so that sums are exact. special: uniform with NaN, infinities, both
/// zeros and subnormals strewn in. unit: [0, 1). normal: N(0, 1). heavy: Pareto's tails (1.5), both
/// signs, cut at 10000. impulses: zero but for few ones, so that one index meets another alone.
/// scaled: uniform times one power of two a tensor, by the seed 2^-8 or one whose square overflows.
enum class Values {
  uniform,
  wide,
  offset,
  integers,
  special,
  unit,
  normal,
  heavy,
  impulses,
  scaled
};

/// How tensors lie. unaligned: one element past alignment. padded: gaps between rows, and between
/// matrices. transposed: first axis contiguous. spread: every other element. reversed: last axis
/// runs backward. expanded: inputs repeat along their first axis (stride 0), outputs are
/// contiguous. gapped: as padded, with rows that begin at multiples of 16 bytes. mixed: each tensor
/// another of these (Judge only).
enum class Layout {
  contiguous,
  unaligned,
  padded,
  transposed,
  spread,
  reversed,
  expanded,
  gapped,
  mixed
};

const char* name(Values v);
const char* name(Layout l);

struct SweepOptions {
  std::vector<Values> values = {Values::uniform, Values::wide, Values::offset, Values::integers,
                                Values::special};
  /// Beside contiguous, on which all values run: each subject gets the next of these, with uniform
  /// values, so that a sweep sees all of them and compiles few variants.
  std::vector<Layout> layouts = {Layout::unaligned, Layout::padded,   Layout::transposed,
                                 Layout::spread,    Layout::reversed, Layout::expanded};
  bool refuses_aliases = true;  ///< an output that overlaps an input must be a UserError
  bool whole = true;  ///< a sweep over many shapes, in which something must come near its bound
  uint64_t seed = 1;
};

/// Judges one kernel over many shapes against its double reference: every element within
/// check::bound; poisoned outputs, guard zones and gaps; inputs unchanged; bitwise the same on a
/// second run over other poison; overlapping outputs refused.
class Sweep {
 public:
  explicit Sweep(SweepOptions options = {}) : options_(std::move(options)) {}

  /// Runs the subject on all values and its layout. Faults are recorded under `label`.
  void add(const std::string& label, const Subject& subject);

  /// "" when all is well. Otherwise the faults, one a line; also when the largest error is below
  /// 0.02 of its bound, because a bound that nothing comes near shows nothing.
  std::string verdict() const;

  double worst() const { return worst_; }  ///< largest error / bound
  const std::string& worst_case() const { return worst_case_; }
  int64_t elements() const { return elements_; }  ///< compared
  int runs() const { return runs_; }

 private:
  void run(const std::string& label, const Subject& subject, Values values, Layout layout);
  void alias(const std::string& label, const Subject& subject);
  void compare(const std::string& label, const Argument& a, const TensorView& got,
               const Reference& want, size_t output);
  void fault(const std::string& label, const std::string& what);

  SweepOptions options_;
  std::vector<std::string> faults_;
  int64_t fault_count_ = 0, elements_ = 0;
  int runs_ = 0, subjects_ = 0;
  bool rounds_ = false;  // some bound was above 0, some result not 0
  double worst_ = 0;
  std::string worst_case_;
};

}  // namespace tw::check
