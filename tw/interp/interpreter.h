#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tw/interp/scalar.h"
#include "tw/ir/program.h"
#include "tw/tensor/message.h"
#include "tw/tensor/tensor.h"

namespace tw {

/// exact: every op in its own dtype, as docs/language.md says. A backend must give the same bits
/// (any NaN for any NaN) for programs without float sums, products and dots, without functions that
/// have an error in ops.def, and without a multiplication that may contract into an addition.
///
/// bounded: every element is a value in double and a bound on how far a right backend may be from
/// it. First-order propagation by intervals; each op adds its own error (unit roundoff, the stated
/// ulps of functions, 8 sqrt(K) u sum|terms| for sums and dots). A bound of 0 means: the very bits.
/// An element that hangs on a comparison, cast or overflow that could go either way inside the
/// bounds is undecided, and all that depends on it too; of a while loop whose condition is, all
/// that it carries and writes.
enum class InterpretMode : uint8_t { exact, bounded };

struct InterpretOptions {
  InterpretMode mode = InterpretMode::exact;
  /// Runs the instances of the grid in an order shuffled by this seed instead of row-major.
  std::optional<uint64_t> order_seed = {};
  /// Of all while loops together; one more is a UserError: a loop may have no end.
  int64_t most_iterations = 1'000'000;
  /// Checks of the program and integer divisions by zero are UserErrors.
  bool checked = false;
  PrintLines print = {};  ///< gets what prints say; empty: standard output
};

struct Interpretation {
  /// Of each tensor in `outputs`, its elements in row-major order after the run.
  std::vector<std::vector<Scalar>> outputs;
  int64_t undecided() const;  ///< elements of all outputs
  int64_t count() const;
};

/// Runs every instance of the program's grid on host tensors: the oracle for every backend. Inputs
/// (`in` parameters) and outputs (`out` and `inout`) stand in declaration order, each group in
/// order; `dims` gives dims that no tensor determines. Outputs are written, in bounded mode with
/// the values rounded to their dtype. Throws UserError when the tensors do not fit the program: the
/// rules of a launch.
Interpretation interpret(const Program& p, const std::vector<TensorView>& inputs,
                         const std::vector<TensorView>& outputs,
                         const std::vector<std::pair<std::string, int64_t>>& dims = {},
                         const InterpretOptions& options = {});

}  // namespace tw
