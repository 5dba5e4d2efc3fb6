// How text writes the choices that ops have.
#include "tw/ir/infer.h"

namespace tw {

const char* name(Combiner c) {
  switch (c) {
    case Combiner::sum:
      return "sum";
    case Combiner::prod:
      return "prod";
    case Combiner::min:
      return "min";
    case Combiner::max:
      return "max";
    case Combiner::min_num:
      return "min_num";
    case Combiner::max_num:
      return "max_num";
    case Combiner::and_:
      return "and";
    case Combiner::or_:
      return "or";
    case Combiner::xor_:
      return "xor";
    case Combiner::custom:
      return "custom";
  }
  return "?";
}

const char* name(CompareKind c) {
  switch (c) {
    case CompareKind::lt:
      return "<";
    case CompareKind::le:
      return "<=";
    case CompareKind::eq:
      return "==";
    case CompareKind::ne:
      return "!=";
  }
  return "?";
}

const char* name(Precision p) {
  switch (p) {
    case Precision::ieee:
      return "ieee";
    case Precision::tf32:
      return "tf32";
    case Precision::tf32x3:
      return "tf32x3";
  }
  return "?";
}

const char* name(Rounding r) {
  switch (r) {
    case Rounding::RN:
      return "RN";
    case Rounding::RZ:
      return "RZ";
    case Rounding::RU:
      return "RU";
    case Rounding::SR:
      return "SR";
  }
  return "?";
}

}  // namespace tw
