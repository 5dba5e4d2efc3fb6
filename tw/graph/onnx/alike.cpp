#include "tw/graph/onnx/alike.h"

#include <fmt/format.h>
#include <string_view>

namespace tw::graph::onnx {

namespace {

/// Inputs of an operator of ai.onnx that have one type, as bits.
struct Alike {
  std::string_view op;
  uint32_t inputs = ~0U;
};

constexpr Alike kAlike[] = {
    {"Add"},
    {"And"},
    {"BitShift"},
    {"BitwiseAnd"},
    {"BitwiseOr"},
    {"BitwiseXor"},
    {"Clip"},
    {"Concat"},
    {"Conv"},
    {"ConvTranspose"},
    {"Div"},
    {"Einsum"},
    {"Equal"},
    {"Gemm"},
    {"Greater"},
    {"GreaterOrEqual"},
    {"GroupNormalization"},
    {"InstanceNormalization"},
    {"LayerNormalization"},
    {"Less"},
    {"LessOrEqual"},
    {"MatMul"},
    {"Max"},
    {"Mean"},
    {"Min"},
    {"Mod"},
    {"Mul"},
    {"Or"},
    {"PRelu"},
    {"Pad", 0b101},
    {"Range"},
    {"Scatter", 0b101},
    {"ScatterElements", 0b101},
    {"ScatterND", 0b101},
    {"Sub"},
    {"Sum"},
    {"Where", 0b110},
    {"Xor"},
};

}  // namespace

void check_alike(const Context& c) {
  if (!c.node().domain.empty()) return;
  for (const Alike& a : kAlike) {
    if (a.op != c.node().op) continue;
    int first = -1;
    for (size_t i = 0; i < c.count(); ++i) {
      if (!c.has(i) || (i < 32 && (a.inputs >> i & 1) == 0)) continue;
      if (first < 0) first = static_cast<int>(i);
      const auto like = static_cast<size_t>(first);
      if (c.dtype(i) != c.dtype(like))
        c.fail(fmt::format("input {}, '{}', is {}, wanted {} as input {}", i, c.info(i).name,
                           tw::name(c.dtype(i)), tw::name(c.dtype(like)), like));
    }
  }
}

}  // namespace tw::graph::onnx
