#include "tw/check/impl/values.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "tw/base/round.h"

namespace tw::check {

const char* name(Values v) {
  switch (v) {
    case Values::uniform:
      return "uniform";
    case Values::wide:
      return "wide";
    case Values::offset:
      return "offset";
    case Values::integers:
      return "integers";
    case Values::special:
      return "special";
    case Values::unit:
      return "unit";
    case Values::normal:
      return "normal";
    case Values::heavy:
      return "heavy";
    case Values::impulses:
      return "impulses";
    case Values::scaled:
      return "scaled";
  }
  return "?";
}

const char* name(Layout l) {
  switch (l) {
    case Layout::contiguous:
      return "contiguous";
    case Layout::unaligned:
      return "unaligned";
    case Layout::padded:
      return "padded";
    case Layout::transposed:
      return "transposed";
    case Layout::spread:
      return "spread";
    case Layout::reversed:
      return "reversed";
    case Layout::expanded:
      return "expanded";
    case Layout::gapped:
      return "gapped";
    case Layout::mixed:
      return "mixed";
  }
  return "?";
}

ValueStream::ValueStream(Values values, DType dtype, uint64_t seed)
    : values_(values), dtype_(dtype), random_(seed) {
  if (values != Values::scaled || !is_float(dtype)) return;
  const int top = 1 << (info(dtype).exponent_bits - 1);
  scale_ = std::exp2(random_() % 2 ? top * 9 / 16 : -8);
}

double ValueStream::next() {
  if (dtype_ == e8m0) return std::fabs(floating());  // a scale
  return is_float(dtype_) ? floating() : integer();
}

double ValueStream::integer() {
  if (dtype_ == b1) return random_() % 2;
  const bool extreme = values_ == Values::special && random_() % 8 == 0;
  if (extreme) return random_() % 2 ? largest(dtype_) : lowest(dtype_);
  const double v = std::floor(uniform() * (values_ == Values::integers ? 2.99 : 100));
  return is_unsigned_int(dtype_) ? std::fabs(v) : v;
}

double ValueStream::floating() {
  switch (values_) {
    case Values::uniform:
      return uniform();
    case Values::wide: {
      const int top = std::min(20, (1 << (info(dtype_).exponent_bits - 1)) / 2);
      return std::copysign(std::exp2(uniform() * top), uniform());
    }
    case Values::offset:
      return std::min(1000.0, largest(dtype_) / 4) + uniform();
    case Values::integers:
      return std::floor(uniform() * 2.5 + 0.5);
    case Values::special:
      return random_() % 8 == 0 ? special() : uniform();
    case Values::unit:
      return (uniform() + 1) / 2;
    case Values::normal:
      return std::normal_distribution<double>()(random_);
    case Values::heavy: {
      constexpr double kShape = 1.5, kMost = 1e4;
      const double tail = std::pow(1 - std::generate_canonical<double, 32>(random_), -1 / kShape);
      return std::copysign(std::min({tail, kMost, largest(dtype_) / 4}), uniform());
    }
    case Values::impulses:
      return random_() % 8 == 0;
    case Values::scaled:
      return uniform() * scale_;
  }
  return 0;
}

/// The values that an input holds where `wanted` are asked for.
static Values allowed(Domain domain, Values wanted) {
  switch (domain) {
    case Domain::any:
    case Domain::sorted:
      return wanted;
    case Domain::finite:
      return wanted == Values::special ? Values::uniform : wanted;
    case Domain::small:
      return Values::uniform;
  }
  return wanted;
}

std::vector<double> input_values(const Argument& a, Values wanted, uint64_t seed) {
  ValueStream stream(allowed(a.domain, wanted), a.dtype, seed);
  const int64_t count = TensorView{nullptr, a.dtype, a.dims, {}}.count();
  std::vector<double> elements(static_cast<size_t>(count));
  for (double& v : elements) v = stream.next();
  if (a.domain == Domain::sorted) std::ranges::sort(elements);
  return elements;
}

double ValueStream::special() {
  const double subnormal = ulp(dtype_, 0) * 3;
  const double middling = ulp(dtype_, 0) * std::exp2(info(dtype_).mantissa_bits - 1);
  const double all[] = {std::numeric_limits<double>::quiet_NaN(),
                        INFINITY,
                        -INFINITY,
                        0.0,
                        -0.0,
                        subnormal,
                        -subnormal,
                        middling,
                        -middling};
  return all[random_() % std::size(all)];
}

namespace {

/// Where the last axis must be the contiguous one, and rows whole bytes, the axis before does what
/// the last does elsewhere.
std::vector<int64_t> packed_strides(Layout l, const std::vector<int64_t>& dims, DType t) {
  std::vector<int64_t> s = contiguous_strides(dims, t);
  const size_t rank = dims.size();
  if (rank < 2) return s;
  if (l == Layout::padded || l == Layout::gapped) {
    const int64_t run = 128 / bits(t), row = s[rank - 2];
    const int64_t wider = l == Layout::padded ? row + 24 : round_up(row, run) + run;
    for (size_t k = 0; k + 1 < rank; ++k) s[k] = s[k] / row * wider;
  } else if (l == Layout::spread) {
    for (size_t k = 0; k + 1 < rank; ++k) s[k] *= 2;
  } else if (l == Layout::reversed) {
    s[rank - 2] = -s[rank - 2];
  }
  return s;
}

}  // namespace

std::vector<int64_t> strides_of(Layout l, const std::vector<int64_t>& dims, DType t, bool output) {
  if (is_packed(t)) return packed_strides(l, dims, t);
  std::vector<int64_t> s = contiguous_strides(dims);
  const int rank = static_cast<int>(dims.size());
  switch (l) {
    case Layout::contiguous:
    case Layout::unaligned:
    case Layout::mixed:
      break;
    case Layout::padded:
    case Layout::gapped: {
      std::vector<int64_t> wider = dims;
      const int64_t run = l == Layout::gapped ? 16 / bytes(t) : 1;
      if (rank > 0) wider.back() = round_up(wider.back(), run) + (run > 1 ? run : 3);
      for (int k = 1; k + 1 < rank; ++k) ++wider[k];
      s = contiguous_strides(wider);
      break;
    }
    case Layout::transposed: {
      int64_t step = 1;
      for (int k = 0; k < rank; step *= std::max<int64_t>(dims[k++], 1)) s[k] = step;
      break;
    }
    case Layout::spread:
      for (int64_t& v : s) v *= 2;
      break;
    case Layout::reversed:
      if (rank > 0) s.back() = -s.back();
      break;
    case Layout::expanded:
      if (rank > 0 && !output) s[0] = 0;
      break;
  }
  return s;
}

}  // namespace tw::check
