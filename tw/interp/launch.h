#pragma once

#include <string>
#include <utility>
#include <vector>

#include "tw/ir/program.h"
#include "tw/tensor/tensor.h"

namespace tw {

/// What a run of a program fixes: a tensor for each argument (in declaration order), workspace too,
/// the value of each dim, the extents of the grid (at least 0).
struct Launch {
  std::vector<TensorView> tensors;
  std::vector<Tensor> workspace;
  std::vector<int64_t> dims;
  std::vector<int64_t> grid;
};

/// Checks count, dtype, rank, that a dim has one value everywhere, promises on dims, and that an
/// output overlaps neither another tensor nor itself. Throws UserError naming the argument.
Launch check_launch(const Program& p, const std::vector<TensorView>& inputs,
                    const std::vector<TensorView>& outputs,
                    const std::vector<std::pair<std::string, int64_t>>& dims);

}  // namespace tw
