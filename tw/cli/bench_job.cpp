#include "tw/cli/bench_job.h"

#include <algorithm>
#include <cstring>
#include <deque>
#include <memory>
#include <random>

#include "tw/base/error.h"

namespace tw::cli {

using kernels::Argument;
using kernels::Problem;

namespace {

/// Coordinates of an axis that a verification recomputes.
constexpr int64_t kSample = 16;

/// Of values that must ascend as many are equal.
constexpr int64_t kAlike = 4;

/// Values in [-1, 1), bytes of any value, by a 64-bit linear congruential step (Knuth): quick
/// enough for gigabytes.
void fill_uniform(const TensorView& to, uint64_t seed) {
  uint64_t state = seed | 1;
  const auto next = [&] {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return static_cast<float>(static_cast<int32_t>(state >> 32)) * 0x1p-31f;
  };
  const int64_t n = to.count();
  if (to.dtype == f32) {
    // Every element of the span, gaps too: strides are positive and dense in a permuted order.
    auto* at = static_cast<float*>(to.data);
    for (int64_t i = 0; i < n; ++i) at[i] = next();
  } else if (to.dtype == bf16) {
    auto* at = static_cast<uint16_t*>(to.data);
    for (int64_t i = 0; i < n; ++i) {
      const float v = next();
      uint32_t bits;
      std::memcpy(&bits, &v, sizeof bits);
      at[i] = static_cast<uint16_t>(bits >> 16);
    }
  } else if (is_packed(to.dtype)) {
    // Every pattern is a number: bytes are filled, gaps between rows too.
    const ByteRange r = byte_range(to);
    auto* at = static_cast<uint8_t*>(to.data);
    for (int64_t i = r.begin; i < r.end; ++i) at[i] = static_cast<uint8_t>(next() * 256);
  } else if (to.dtype == e8m0) {
    for (int64_t i = 0; i < n; ++i) set(to, i, std::abs(next()));
  } else if (is_int(to.dtype) && bytes(to.dtype) == 1) {
    auto* at = static_cast<uint8_t*>(to.data);
    for (int64_t i = 0; i < n; ++i) at[i] = static_cast<uint8_t>(next() * 128);
  } else {
    for (int64_t i = 0; i < n; ++i) set(to, i, next());
  }
}

/// The axis whose coordinates a kernel treats one by one: the first that every output has. (A
/// kernel for which that is untrue fails its verification; it cannot pass by it.)
struct SampleAxis {
  std::string name;           // empty: the kernel has none
  std::vector<int> position;  // of the axis in each argument, -1: it lacks it
};

SampleAxis sample_axis(const BenchCase& c) {
  const std::vector<Argument> whole = c.kernel->arguments(c.problem);
  for (const auto& axis : c.kernel->axes) {
    Problem other = c.problem;
    other.shape[axis.name] += 1;
    const std::vector<Argument> changed = c.kernel->arguments(other);
    SampleAxis s{axis.name, {}};
    bool all_outputs = true;
    for (size_t i = 0; i < whole.size(); ++i) {
      const auto differs =
          std::mismatch(whole[i].dims.begin(), whole[i].dims.end(), changed[i].dims.begin());
      const bool has = differs.first != whole[i].dims.end();
      s.position.push_back(has ? static_cast<int>(differs.first - whole[i].dims.begin()) : -1);
      all_outputs &= has || !whole[i].output;
    }
    if (all_outputs) return s;
  }
  return {};
}

/// A copy of the chosen coordinates of one axis.
Tensor gather(const TensorView& from, int axis, const std::vector<int64_t>& chosen) {
  std::vector<int64_t> dims = from.dims;
  const auto n = static_cast<int64_t>(chosen.size());
  dims[axis] = n;
  Tensor out = host_tensor(from.dtype, dims);
  int64_t inner = 1;
  for (size_t k = static_cast<size_t>(axis) + 1; k < dims.size(); ++k) inner *= dims[k];
  for (int64_t e = 0; e < out.count(); ++e) {
    const int64_t outer = e / (inner * n), at = chosen[static_cast<size_t>(e / inner % n)];
    set(out, e, get(from, (outer * from.dims[axis] + at) * inner + e % inner));
  }
  return out;
}

/// What outputs are compared with.
struct Expected {
  std::vector<int64_t> chosen;  // coordinates of the sampled axis; none: outputs are compared whole
  check::Reference reference;
};

/// By seed: the timer verifies many outputs of few sets of inputs.
class Expectations {
 public:
  explicit Expectations(BenchCase c) : c_(std::move(c)), axis_(sample_axis(c_)) {}

  double worst_ratio(const measure::TensorSet& set, uint64_t seed) {
    const Expected& want = of(set, seed);
    if (want.chosen.empty()) return check::worst_error(want.reference, set.outputs).ratio;
    std::vector<Tensor> owners;
    const std::vector<TensorView> outputs = parts(set.outputs, true, want.chosen, owners);
    return check::worst_error(want.reference, outputs).ratio;
  }

 private:
  static constexpr size_t kMost = 64;

  const Expected& of(const measure::TensorSet& set, uint64_t seed) {
    for (const auto& [known, expected] : kept_)
      if (known == seed) return expected;
    if (kept_.size() == kMost) kept_.pop_front();
    return kept_.emplace_back(seed, make(set.inputs, seed)).second;
  }

  /// Outputs of a problem without an axis to sample, or of a short one, are expected whole.
  Expected make(const std::vector<TensorView>& inputs, uint64_t seed) const {
    if (axis_.name.empty() || c_.problem.extent(axis_.name) <= kSample)
      return {{}, c_.kernel->reference(c_.problem, inputs)};
    std::mt19937_64 random(seed);
    const int64_t extent = c_.problem.extent(axis_.name);
    std::vector<int64_t> chosen(kSample);
    for (int64_t& v : chosen) v = static_cast<int64_t>(random() % static_cast<uint64_t>(extent));
    Problem sample = c_.problem;
    sample.shape[axis_.name] = kSample;
    std::vector<Tensor> owners;
    const std::vector<TensorView> sampled = parts(inputs, false, chosen, owners);
    return {chosen, c_.kernel->reference(sample, sampled)};
  }

  /// The chosen coordinates of the inputs or of the outputs; `owners` hold the copies.
  std::vector<TensorView> parts(const std::vector<TensorView>& all, bool output,
                                const std::vector<int64_t>& chosen,
                                std::vector<Tensor>& owners) const {
    std::vector<TensorView> found;
    const std::vector<Argument> arguments = c_.kernel->arguments(c_.problem);
    for (size_t i = 0; i < arguments.size(); ++i) {
      if (arguments[i].output != output) continue;
      const TensorView& whole = all[found.size()];
      found.push_back(axis_.position[i] < 0
                          ? whole
                          : owners.emplace_back(gather(whole, axis_.position[i], chosen)).view());
    }
    return found;
  }

  BenchCase c_;
  SampleAxis axis_;
  std::deque<std::pair<uint64_t, Expected>> kept_;
};

std::vector<int64_t> column_major(const std::vector<int64_t>& dims) {
  std::vector<int64_t> strides(dims.size());
  int64_t step = 1;
  for (size_t k = 0; k < dims.size(); step *= dims[k++]) strides[k] = step;
  return strides;
}

}  // namespace

measure::Job job_of(const BenchCase& c) {
  measure::Job job;
  const std::vector<Argument> arguments = c.kernel->arguments(c.problem);
  // Quantised weights, and their scales, are those of a model: a peer may pack them beforehand.
  const bool weights = std::ranges::any_of(
      arguments, [](auto& a) { return !a.output && is_int(a.dtype) && bits(a.dtype) <= 8; });
  const std::string activations = arguments.front().name;
  job.task = {c.kernel->name, c.problem.options, c.threads};
  for (const Argument& a : arguments) {
    measure::TensorSpec spec{a.name, a.dtype, a.dims, {}};
    spec.fixed = a.domain == check::Domain::sorted || (weights && a.name != activations);
    if (c.transposed.contains(a.name)) spec.strides = column_major(a.dims);
    (a.output ? job.outputs : job.inputs).push_back(spec);
  }
  std::vector<bool> sorted;
  for (const Argument& a : arguments)
    if (!a.output) sorted.push_back(a.domain == check::Domain::sorted);
  job.fill = [sorted](int input, const TensorView& to, uint64_t seed) {
    if (!sorted[static_cast<size_t>(input)]) return fill_uniform(to, seed);
    for (int64_t i = 0; i < to.count(); ++i) {
      const int64_t id = i / kAlike;
      set(to, i, static_cast<double>(id));
    }
  };
  const auto expectations = std::make_shared<Expectations>(c);
  job.verify = [expectations](const measure::TensorSet& set, uint64_t seed) {
    return expectations->worst_ratio(set, seed);
  };
  return job;
}

Program program_of(const BenchCase& c, const CpuMachine& machine) {
  return c.kernel->trace(c.problem, {machine, c.threads});
}

std::vector<int64_t> dims_of(const Program& p, const BenchCase& c) {
  const std::vector<Argument> arguments = c.kernel->arguments(c.problem);
  std::vector<int64_t> values(p.dims.size(), 0);
  for (size_t i = 0; i < p.params.size(); ++i)
    for (size_t k = 0; k < p.params[i].dims.size(); ++k) {
      const Expr& e = p.params[i].dims[k];
      if (e.kind() == Expr::Kind::symbol) values[e.symbol().id] = arguments[i].dims[k];
    }
  return values;
}

/// Calls whose tensors are larger than this start from memory, others from the caches.
static constexpr int64_t kWarmBytes = 64 << 20;

BenchCase case_of(const kernels::KernelEntry& k, const kernels::Problem& p, int threads) {
  return {&k, p, threads, tensor_bytes(k, p) > kWarmBytes ? Residence::memory : Residence::cache};
}

int64_t tensor_bytes(const kernels::KernelEntry& k, const kernels::Problem& p) {
  int64_t sum = 0;
  for (const check::Argument& a : k.arguments(p)) sum += byte_count(a.dtype, a.dims);
  return sum;
}

}  // namespace tw::cli
