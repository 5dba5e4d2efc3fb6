#include <array>
#include <fmt/format.h>
#include <limits>
#include <random>

#include "tw/graph/onnx/functions.h"
#include "tw/graph/onnx/operators.h"

namespace tw::graph::onnx {

namespace {

/// The next uniform number in [0, 1) of numpy's RandomState, which made the tests of ONNX.
double next_uniform(std::mt19937& words) {
  const auto high = static_cast<double>(words() >> 5), low = static_cast<double>(words() >> 6);
  return (high * 0x1p26 + low) * 0x1p-53;
}

uint32_t seed_of(const Context& c) {
  if (!c.has_attribute("seed"))
    c.fail("is in training mode without a seed",
           "give it the attribute 'seed', or export for inference");
  const int64_t seed = c.integer("seed", 0), most = std::numeric_limits<uint32_t>::max();
  if (seed < 0 || seed > most) c.fail(fmt::format("has seed {}, wanted 0 to {}", seed, most));
  return static_cast<uint32_t>(seed);
}

/// Which elements of input 0 stay.
TensorId mask_of(Context& c, double ratio) {
  std::mt19937 words(seed_of(c));
  std::vector<int64_t> dims;
  for (const Expr& e : c.info(0).dims)
    dims.push_back(c.g.number(e, fmt::format("{}: an extent of input 0", c.node().title())));
  Tensor mask = host_tensor(b1, dims);
  for (int64_t i = 0; i < mask.count(); ++i)
    mask.data<uint8_t>()[i] = next_uniform(words) >= ratio ? 1 : 0;
  return c.g.constant(c.name() + " mask", std::move(mask));
}

/// The share that goes; 0 where nothing does.
double dropped_share(const Context& c) {
  if (!c.has(2) || first_of(c, 2, c.numbers(2)) == 0) return 0;
  const double ratio = c.has(1) ? first_of(c, 1, c.values(1)) : 0.5;
  if (!(ratio >= 0 && ratio < 1))
    c.fail(fmt::format("drops a share of {}, wanted 0 or more and less than 1", ratio));
  return ratio;
}

std::vector<TensorId> dropout(Context& c) {
  const double ratio = dropped_share(c);
  const bool named = names_output(c, 1);
  if (ratio == 0) {
    const DType mask = c.opset() < 10 ? c.dtype(0) : b1;
    return {c.in(0), named ? filled(c, c.info(0).dims, constant_int(mask, 1)) : -1};
  }
  c.wants(0, std::array{f16, bf16, f32, f64});
  const TensorId mask = mask_of(c, ratio);
  const TensorId y = joined(c, c.in(0), mask, [&](const Term& x, const Term& kept) {
    const Term wide = cast(x, computed_in(x->dtype));
    const Term scale = where(kept, real(wide, 1 / (1 - ratio)), real(wide, 0));
    return cast(op(Opcode::mul, wide, scale), x->dtype);
  });
  return {y, mask};
}

}  // namespace

std::vector<Operator> dropout_operators() { return {{"Dropout", 7, kLatestOpset, dropout}}; }

}  // namespace tw::graph::onnx
