#include "tw/kernels/gemm/epilogue.h"

#include <algorithm>

namespace tw::kernels {

static Epilogue with_operand(EpilogueOperand operand,
                             Tile (*f)(const Tile& x, const Tile& operand)) {
  return {{std::move(operand)},
          [f](const Tile& x, std::span<const Tile> operands) { return f(x, operands[0]); }};
}

static Tile plus(const Tile& x, const Tile& y) { return x + y; }
static Tile times(const Tile& x, const Tile& y) { return x * y; }

Epilogue then(const Epilogue& a, const Epilogue& b) {
  if (!a.apply) return b;
  if (!b.apply) return a;
  Epilogue both;
  both.operands = a.operands;
  for (EpilogueOperand o : b.operands) {
    const std::string wish = o.name;
    const auto taken = [&](const EpilogueOperand& other) { return other.name == o.name; };
    for (int n = 2; std::any_of(both.operands.begin(), both.operands.end(), taken); ++n)
      o.name = wish + std::to_string(n);
    both.operands.push_back(std::move(o));
  }
  both.apply = [f = a.apply, g = b.apply, n = a.operands.size()](const Tile& x,
                                                                 std::span<const Tile> operands) {
    return g(f(x, operands.first(n)), operands.subspan(n));
  };
  return both;
}

Epilogue bias(const TensorView& row) {
  return with_operand({"bias", Along::columns, f32, row}, plus);
}
Epilogue column_bias(const TensorView& column) {
  return with_operand({"column_bias", Along::rows, f32, column}, plus);
}
Epilogue row_scale(const TensorView& column) {
  return with_operand({"row_scale", Along::rows, f32, column}, times);
}
Epilogue residual(DType t, const TensorView& same) {
  return with_operand({"residual", Along::both, t, same}, plus);
}
Epilogue scale(float factor) {
  return {{}, [factor](const Tile& x, std::span<const Tile>) { return x * factor; }};
}
Epilogue activation(Tile (*f)(const Tile& x, SourceLoc at)) {
  return {{}, [f](const Tile& x, std::span<const Tile>) { return f(x, SourceLoc::here()); }};
}
Epilogue bias_gelu(const TensorView& row) { return then(bias(row), activation(gelu_tanh)); }

}  // namespace tw::kernels
