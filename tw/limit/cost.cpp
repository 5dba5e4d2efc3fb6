#include <algorithm>
#include <array>
#include <span>

#include "tw/limit/impl/sizes.h"

namespace tw {

namespace {

/// 10 rounds of two wide products each (Salmon et al. 2011).
constexpr double kPhiloxProducts = 20;

constexpr std::array kFunctions = {Opcode::sqrt, Opcode::rsqrt,     Opcode::exp,     Opcode::exp2,
                                   Opcode::log,  Opcode::sin,       Opcode::cos,     Opcode::tanh,
                                   Opcode::erf,  Opcode::tanh_fast, Opcode::erf_fast};
constexpr std::array kOnFloats = {Opcode::neg, Opcode::abs, Opcode::floor, Opcode::ceil,
                                  Opcode::round};
constexpr std::array kArithmetic = {Opcode::add, Opcode::sub,     Opcode::mul,
                                    Opcode::div, Opcode::rem,     Opcode::min,
                                    Opcode::max, Opcode::min_num, Opcode::max_num};
constexpr std::array kOnBits = {Opcode::and_, Opcode::or_, Opcode::xor_, Opcode::shl, Opcode::shr};

bool is_one_of(std::span<const Opcode> list, Opcode code) {
  return std::ranges::find(list, code) != list.end();
}

OpCost arithmetic_on(DType t) {
  if (t == f64) return {Unit::f64, 1, 1};
  if (is_float(t)) return {bits(t) <= 16 ? Unit::half : Unit::f32, 1, 1};
  return {Unit::integer, std::min(1.0, static_cast<double>(bits(t)) / 32), 0};
}

OpCost cast_cost(DType from, DType to) {
  const bool narrows = is_float(from) && (is_float(to) ? bits(to) < bits(from) : to != b1);
  return {Unit::convert, narrows ? 1.0 : 0.0, 0};
}

OpCost dot_cost(const Program& p, const Op& op) {
  const DType a = p.type(op.in[0]).dtype, b = p.type(op.in[1]).dtype;
  const DType wider = bits(a) < bits(b) ? b : a;
  const double flops = 2 * static_cast<double>(p.type(op.in[0]).shape.back());
  if (!is_float(wider)) return {Unit::dot_i8, flops, 0};
  if (wider == f64) return {Unit::dot_f64, flops, flops};
  if (bits(wider) <= 8) return {Unit::dot_fp8, flops, flops};
  if (bits(wider) <= 16) return {Unit::dot_half, flops, flops};
  switch (op.as<DotAttr>().precision) {
    case Precision::ieee:
      return {Unit::dot_f32, flops, flops};
    case Precision::tf32:
      return {Unit::dot_tf32, flops, flops};
    case Precision::tf32x3:
      return {Unit::dot_tf32, 3 * flops, flops};
  }
  return {};
}

}  // namespace

OpCost cost_of(const Program& p, const Op& op) {
  if (op.in.empty()) return {};
  if (op.code == Opcode::dot) return dot_cost(p, op);
  const DType t = p.type(op.in.back()).dtype;
  if (op.code == Opcode::cast) return cast_cost(t, p.type(op.out[0]).dtype);
  if (is_fold(op.code) || is_one_of(kArithmetic, op.code)) return arithmetic_on(t);
  if (is_one_of(kFunctions, op.code)) return {t == f64 ? Unit::f64 : Unit::special, 1, 1};
  if (is_one_of(kOnFloats, op.code)) return is_float(t) ? arithmetic_on(t) : OpCost{};
  if (is_one_of(kOnBits, op.code)) return is_float(t) ? OpCost{} : arithmetic_on(t);
  if (op.code == Opcode::philox) return {Unit::integer, kPhiloxProducts, 0};
  return {};
}

}  // namespace tw
