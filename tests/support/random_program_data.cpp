#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "tw/num/codec.h"

#include "tests/support/random.h"
#include "tests/support/random_program.h"

namespace tw::test {

namespace {

int64_t gap_of(Layout layout) { return layout == Layout::gaps ? 3 : 0; }

std::vector<int64_t> strides_of(const TensorSpec& s) {
  const size_t rank = s.dims.size();
  std::vector<int64_t> strides(rank);
  std::vector<size_t> order;
  for (size_t k = rank; k-- > 0;) order.push_back(k);
  if (s.layout == Layout::transposed) std::reverse(order.begin(), order.end());
  int64_t step = s.layout == Layout::gaps && s.seed % 2 ? 2 : 1;
  for (size_t k : order) {
    strides[k] = step;
    step = step * std::max<int64_t>(s.dims[k], 1) + gap_of(s.layout);
  }
  if (rank == 0) return strides;
  const size_t axis = static_cast<size_t>(s.seed % rank);
  if (s.layout == Layout::repeated) strides[axis] = 0;
  if (s.layout == Layout::reversed) strides[axis] = -strides[axis];
  return strides;
}

double special_float(Random& r, DType t) {
  const double inf = std::numeric_limits<double>::infinity();
  const double tiny = decode(t, 1);
  const double pool[] = {std::nan(""), inf,        -inf,        -0.0,     0.0, tiny,
                         -tiny,        largest(t), -largest(t), tiny * 3, 1.0};
  return pool[r.below(std::size(pool))];
}

int64_t special_int(Random& r, DType t) {
  const uint64_t lo = is_signed_int(t) ? ~uint64_t{0} << (8 * bytes(t) - 1) : 0;
  const uint64_t pool[] = {lo, lo + 1, ~uint64_t{0}, 0, lo - 1, 1};  // modulo 2^64
  return static_cast<int64_t>(pool[r.below(std::size(pool))]);
}

double plain_float(Random& r, Fill fill) {
  switch (fill) {
    case Fill::small_integers:
      return static_cast<double>(r.between(-4, 4));
    case Fill::normal:
    case Fill::bits:
      return r.normal();
    case Fill::positive:
      return 0.25 + r.unit();
    case Fill::wide:
      return std::ldexp(r.normal(), static_cast<int>(r.between(-12, 12)));
  }
  return 0;
}

uint64_t element_bits(Random& r, const TensorSpec& s) {
  const bool special = s.special_one_in > 0 && r.one_in(s.special_one_in);
  if (s.dtype == b1) return r.below(2);
  if (is_float(s.dtype)) {
    if (special) return encode(s.dtype, special_float(r, s.dtype));
    if (s.fill == Fill::bits && s.special_one_in > 0) return r.next() >> (64 - 8 * bytes(s.dtype));
    return encode(s.dtype, plain_float(r, s.fill), Rounding::RN, true);
  }
  if (special) return static_cast<uint64_t>(special_int(r, s.dtype));
  if (s.fill == Fill::bits) return r.next();
  return static_cast<uint64_t>(r.between(is_signed_int(s.dtype) ? -9 : 0, 9));
}

void fill(const TensorView& t, const TensorSpec& s) {
  Random r(s.seed);
  std::vector<int64_t> at(t.dims.size(), 0);
  for (int64_t n = t.count(); n > 0; --n) {
    int64_t offset = 0;
    for (size_t k = 0; k < at.size(); ++k) offset += at[k] * t.strides[k];
    const uint64_t bits = element_bits(r, s);
    std::memcpy(static_cast<char*>(t.data) + offset * bytes(t.dtype), &bits,
                static_cast<size_t>(bytes(t.dtype)));
    for (size_t k = at.size(); k-- > 0;) {
      if (++at[k] < t.dims[k]) break;
      at[k] = 0;
    }
  }
}

}  // namespace

Arguments arguments(const RandomProgram& r) {
  Arguments a;
  for (const TensorSpec& s : r.tensors) {
    const int64_t misaligned = s.layout == Layout::shifted ? bytes(s.dtype) : 0;
    a.tensors.emplace_back(s.dtype, s.dims, strides_of(s), misaligned);
    fill(a.tensors.back().view(), s);
  }
  for (size_t i = 0; i < a.tensors.size(); ++i)
    (r.program.params[i].kind == ParamKind::in ? a.inputs : a.outputs)
        .push_back(a.tensors[i].view());
  return a;
}

}  // namespace tw::test
