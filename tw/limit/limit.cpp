#include "tw/limit/limit.h"

#include <algorithm>

namespace tw {

const char* name(Unit u) {
  static constexpr std::array<const char*, kUnits> kNames = {
      "f32",     "half",    "f64",      "integer",  "special", "convert",
      "dot f32", "dot f64", "dot tf32", "dot half", "dot fp8", "dot i8"};
  return kNames[static_cast<size_t>(u)];
}

const char* name(Resource r) {
  static constexpr std::array<const char*, kResources> kNames = {
      "bandwidth", "arithmetic", "matrix",  "f64",   "integer",
      "special",   "convert",    "latency", "launch"};
  return kNames[static_cast<size_t>(r)];
}

static double traffic_us(const Work& w, const Bandwidth& b) {
  const int64_t both = std::min(w.bytes_read, w.bytes_written);
  const auto at = [](double bytes, double rate) { return rate > 0 ? bytes / rate : 0; };
  return at(2.0 * static_cast<double>(both), b.copy) +
         at(static_cast<double>(w.bytes_read - both), b.read) +
         at(static_cast<double>(w.bytes_written - both), b.write);
}

Limit limit(const Program& p, std::span<const int64_t> dims, const Rates& rates, Residence where) {
  Limit l{least_work(p, dims), {}};
  const auto us = [&l](Resource r) -> double& { return l.us[static_cast<size_t>(r)]; };
  us(Resource::bandwidth) =
      traffic_us(l.work, where == Residence::memory ? rates.memory : rates.cache);
  for (size_t u = 0; u < kUnits; ++u)
    if (rates.ops[u].per_us > 0) us(rates.ops[u].on) += l.work.ops[u] / rates.ops[u].per_us;
  us(Resource::latency) = chain_us(p, dims, rates.latency, where);
  us(Resource::launch) = rates.launch_us;
  return l;
}

double Limit::time_us() const { return *std::ranges::max_element(us); }

Resource Limit::bound() const {
  return static_cast<Resource>(std::ranges::max_element(us) - us.begin());
}

}  // namespace tw
