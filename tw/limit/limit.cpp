#include "tw/limit/limit.h"

#include <algorithm>

namespace tw {

const char* name(Resource r) {
  switch (r) {
    case Resource::bandwidth:
      return "bandwidth";
    case Resource::arithmetic:
      return "arithmetic";
  }
  return "?";
}

static double traffic_us(const Work& w, const Bandwidth& b) {
  const int64_t both = std::min(w.bytes_read, w.bytes_written);
  return 2.0 * static_cast<double>(both) / b.copy +
         static_cast<double>(w.bytes_read - both) / b.read +
         static_cast<double>(w.bytes_written - both) / b.write;
}

Limit limit(const Program& p, std::span<const int64_t> dims, const Rates& rates, Residence where) {
  const Work w = least_work(p, dims);
  const bool wide = std::ranges::any_of(
      given(p), [](const Param& q) { return q.kind != ParamKind::in && q.dtype == f64; });
  const double traffic = traffic_us(w, where == Residence::memory ? rates.memory : rates.cache);
  const double arithmetic = w.flops / (wide ? rates.f32_flops / 2 : rates.f32_flops);
  return {w, traffic, arithmetic};
}

double Limit::time_us() const { return std::max(traffic_us, arithmetic_us); }

Resource Limit::bound() const {
  return traffic_us >= arithmetic_us ? Resource::bandwidth : Resource::arithmetic;
}

}  // namespace tw
