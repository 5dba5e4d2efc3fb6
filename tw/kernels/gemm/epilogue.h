#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "tw/lang/lang.h"
#include "tw/tensor/tensor.h"

namespace tw::kernels {

/// What an operand of an epilogue runs along: one value a column of C (a bias), one a row, or one
/// an element (a residual).
enum class Along : uint8_t { columns, rows, both };

struct EpilogueOperand {
  std::string name;
  Along along = Along::columns;
  DType dtype = f32;
  TensorView tensor = {};  ///< of a call; programs are traced without
};

/// What is done with sums before they are stored: a C++ callable that runs while the program is
/// traced. Sums come as f32[bm,bn]; operands as f32[1,bn], f32[bm,1] or f32[bm,bn], in order. Two
/// epilogues are the same when they trace the same ops.
struct Epilogue {
  std::vector<EpilogueOperand> operands = {};
  std::function<Tile(const Tile& sums, std::span<const Tile> operands)> apply = nullptr;
};

/// First a, then b on its result. Operands of b are renamed where a has the name.
Epilogue then(const Epilogue& a, const Epilogue& b);

Epilogue bias(const TensorView& row = {});                ///< x + row, f32[N]
Epilogue column_bias(const TensorView& column = {});      ///< x + column, f32[M]
Epilogue row_scale(const TensorView& column = {});        ///< x * column, f32[M]
Epilogue residual(DType t, const TensorView& same = {});  ///< x + same, t[M, N]
Epilogue scale(float factor);
Epilogue activation(Tile (*f)(const Tile& x, SourceLoc at));  ///< relu, silu, gelu_tanh, ...
Epilogue bias_gelu(const TensorView& row = {});               ///< gelu_tanh(x + row)

}  // namespace tw::kernels
