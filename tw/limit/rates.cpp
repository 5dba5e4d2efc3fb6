#include <algorithm>
#include <fmt/format.h>

#include "tw/limit/limit.h"

namespace tw {

namespace {

constexpr Unit kAllUnits[] = {Unit::f32,      Unit::half,     Unit::f64,     Unit::integer,
                              Unit::special,  Unit::convert,  Unit::dot_f32, Unit::dot_f64,
                              Unit::dot_tf32, Unit::dot_half, Unit::dot_fp8, Unit::dot_i8};

/// Of terms of 1e12 a second.
constexpr double kTera = 1e6;

}  // namespace

Rates vector_rates(double f32_flops) {
  Rates r;
  for (Unit u : kAllUnits) r.of(u) = {f32_flops, Resource::arithmetic};
  r.of(Unit::f64).per_us = r.of(Unit::dot_f64).per_us = f32_flops / 2;
  r.of(Unit::dot_i8).per_us = 4 * f32_flops;
  r.of(Unit::integer).per_us = r.of(Unit::convert).per_us = 0;
  return r;
}

Rates datasheet_rates(const CpuMachine& m, int threads) {
  const CpuPeaks& p = stated_peaks(m);
  const double cycles = p.clock_ghz * 1e3 * threads, lanes = m.vector_bytes / 4.0;
  Rates r = vector_rates(cycles * lanes * m.fma_pipes * 2);
  const double read = cycles * p.loads * m.vector_bytes, write = cycles * p.stores * m.vector_bytes;
  r.memory = {p.memory_gbs * 1e3, p.memory_gbs * 1e3, p.memory_gbs * 1e3};
  r.cache = {read, write, read + write};
  r.source = fmt::format("data sheet of {}: {} x {} lanes x {} pipes x {} GHz", m.name, threads,
                         lanes, m.fma_pipes, p.clock_ghz);
  return r;
}

/// A model of the architecture with other counts: `size` of the multiprocessors, `memory` of the
/// bandwidth.
static Rates rates_of(const GpuPeaks& p, double size, double memory) {
  Rates r;
  const auto set = [&](Unit u, double peak, Resource on) { r.of(u) = {peak * kTera * size, on}; };
  set(Unit::f32, p.f32, Resource::arithmetic);
  set(Unit::half, p.half, Resource::arithmetic);
  set(Unit::dot_f32, p.f32, Resource::arithmetic);
  set(Unit::f64, p.f64, Resource::f64);
  set(Unit::integer, p.integer, Resource::integer);
  set(Unit::special, p.special, Resource::special);
  set(Unit::convert, p.convert, Resource::convert);
  set(Unit::dot_tf32, p.dot_tf32, Resource::matrix);
  set(Unit::dot_half, p.dot_half, Resource::matrix);
  set(Unit::dot_fp8, p.dot_fp8, Resource::matrix);
  set(Unit::dot_i8, p.dot_i8, Resource::matrix);
  set(Unit::dot_f64, p.dot_f64, Resource::matrix);
  const double bytes = kTera * memory, cached = kTera * size;
  r.memory = {p.read * bytes, p.write * bytes, p.copy * bytes};
  r.cache = {p.cache_read * cached, p.cache_write * cached, p.cache_copy * cached};
  const double cycle_us = p.clock_ghz > 0 ? 1e-3 / p.clock_ghz : 0;
  r.latency = {p.load_ns * 1e-3, p.cached_load_ns * 1e-3, p.arithmetic_cycles * cycle_us,
               p.special_cycles * cycle_us, p.matrix_cycles * cycle_us};
  r.launch_us = p.launch_us;
  r.source = p.source;
  return r;
}

Rates rates_of(const GpuPeaks& p) { return rates_of(p, 1, 1); }

static Rates rates_of(const GpuPeaks& p, const GpuMachine& m) {
  const GpuMachine& model = gpu_named(m.arch);
  Rates r = rates_of(p, static_cast<double>(m.multiprocessors) / model.multiprocessors,
                     m.copy_bandwidth / model.copy_bandwidth);
  if (m.name != model.name) r.source += ", in proportion";
  return r;
}

Rates datasheet_rates(const GpuMachine& m) { return rates_of(stated_peaks(m.arch), m); }

/// Nothing waits less than what is stated; what nobody measured waits that long.
static Latency longer(const Latency& a, const Latency& b) {
  return {std::max(a.memory_us, b.memory_us), std::max(a.cache_us, b.cache_us),
          std::max(a.arithmetic_us, b.arithmetic_us), std::max(a.special_us, b.special_us),
          std::max(a.matrix_us, b.matrix_us)};
}

std::optional<Rates> reached_rates(const GpuMachine& m) {
  const GpuPeaks* p = reached_peaks(m.arch);
  if (p == nullptr) return std::nullopt;
  Rates r = rates_of(*p, m);
  r.latency = longer(r.latency, datasheet_rates(m).latency);
  return r;
}

}  // namespace tw
