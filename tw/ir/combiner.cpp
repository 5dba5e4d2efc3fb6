#include <limits>

#include "tw/base/error.h"
#include "tw/ir/program.h"

namespace tw {

Opcode opcode_of(Combiner c) {
  switch (c) {
    case Combiner::sum:
      return Opcode::add;
    case Combiner::prod:
      return Opcode::mul;
    case Combiner::min:
      return Opcode::min;
    case Combiner::max:
      return Opcode::max;
    case Combiner::min_num:
      return Opcode::min_num;
    case Combiner::max_num:
      return Opcode::max_num;
    case Combiner::and_:
      return Opcode::and_;
    case Combiner::or_:
      return Opcode::or_;
    case Combiner::xor_:
      return Opcode::xor_;
    case Combiner::custom:
      break;
  }
  throw InternalError("a custom combiner has no opcode");
}

namespace {

int64_t integer_limit(DType t, bool most) {
  const int unused = 64 - 8 * static_cast<int>(bytes(t));
  if (t == b1) return most;
  if (!is_signed_int(t)) return most ? static_cast<int64_t>(UINT64_MAX >> unused) : 0;
  return most ? INT64_MAX >> unused : INT64_MIN >> unused;
}

}  // namespace

Number neutral(Combiner c, DType t) {
  const bool real = is_float(t);
  const double infinity = std::numeric_limits<double>::infinity();
  switch (c) {
    case Combiner::sum:
      return real ? Number{false, 0, -0.0} : Number{};
    case Combiner::prod:
      return Number{true, 1, 0};
    case Combiner::min:
      return real ? Number{false, 0, infinity} : Number{true, integer_limit(t, true), 0};
    case Combiner::max:
      return real ? Number{false, 0, -infinity} : Number{true, integer_limit(t, false), 0};
    case Combiner::min_num:
    case Combiner::max_num:
      if (real) return Number{false, 0, std::numeric_limits<double>::quiet_NaN()};
      return neutral(c == Combiner::min_num ? Combiner::min : Combiner::max, t);
    case Combiner::and_:
      return Number{true, -1, 0};
    case Combiner::or_:
    case Combiner::xor_:
      return Number{};
    case Combiner::custom:
      break;
  }
  throw InternalError("a custom combiner has no neutral element");
}

}  // namespace tw
