#pragma once

#include <map>
#include <optional>

#include "tw/emit/cpu/expression.h"

namespace tw::cpu {

/// Where an element (or lanes of them) of a gather, scatter or atomic lies.
struct Places {
  int param = 0;
  Coords at;                    ///< but for the axes in `lanes`
  std::map<size_t, Reg> lanes;  ///< tensor axes along which each lane has a coordinate of its own
  std::optional<Reg> inside;    ///< one b1: coordinates that `at` takes from data lie inside
};
Places places_of(Expression& e, const Op& op, const Coords& at);

/// Reads the elements; pad outside the tensor.
Reg load_places(Expression& e, const Places& p, const Number& pad);

/// Writes or updates the elements as a scatter or atomic says; `old`, where given, gets what an
/// atomic gives.
void write_place(Expression& e, const Reg& value, const Op& op, const Storage* old,
                 const Coords& at, const std::string& active);

/// The name of the function that does an atomic's update of one element and gives the old one;
/// `own`: of memory that only this thread sees.
std::string use_atomic(Prelude& prelude, const AtomicAttr& how, DType t, bool own);

}  // namespace tw::cpu
