#include <cmath>
#include <cstring>
#include <fmt/format.h>
#include <map>

#include "tw/check/impl/values.h"
#include "tw/check/judge.h"

namespace tw::check {

namespace {

constexpr Values kTelling[] = {Values::uniform, Values::normal, Values::heavy, Values::wide,
                               Values::integers};
constexpr double kScale = 1.01;
constexpr int64_t kPart = 10;

using Inputs = std::vector<std::vector<double>>;

/// `v` with so many bits of a float's fraction left.
double shortened(double v, int fraction) {
  if (!std::isfinite(v) || v == 0) return v;
  const double unit = std::ldexp(1.0, std::ilogb(v) - fraction);
  return std::nearbyint(v / unit) * unit;
}

class Auditor {
 public:
  Auditor(const Case& c, uint64_t seed) : case_(c), seed_(seed) {
    for (const Argument& a : c.arguments)
      if (!a.output) arguments_.push_back(&a);
  }

  Audit run() {
    for (const Values v : kTelling) try_all(v);
    Audit out;
    for (const auto& [mutant, told] : told_) {
      ++out.mutants;
      if (!told) out.passed.push_back(mutant);
    }
    return out;
  }

 private:
  Inputs inputs(Values v, uint64_t seed) const {
    Inputs out;
    for (const Argument* a : arguments_) out.push_back(input_values(*a, v, ++seed));
    return out;
  }

  Reference reference(const Inputs& values) const {
    std::vector<Tensor> tensors;
    std::vector<TensorView> views;
    for (size_t i = 0; i < values.size(); ++i) {
      tensors.push_back(host_tensor(arguments_[i]->dtype, arguments_[i]->dims));
      views.push_back(tensors.back());
      for (size_t e = 0; e < values[i].size(); ++e)
        set(views.back(), static_cast<int64_t>(e), values[i][e]);
    }
    return case_.reference(views);
  }

  /// Whether results with these values would be rejected.
  void judge(const std::string& mutant, const Reference& want,
             const std::vector<std::vector<double>>& results) {
    std::vector<Tensor> tensors;
    std::vector<TensorView> views;
    size_t output = 0;
    for (const Argument& a : case_.arguments) {
      if (!a.output) continue;
      tensors.push_back(host_tensor(a.dtype, a.dims));
      views.push_back(tensors.back());
      for (size_t e = 0; e < results[output].size(); ++e)
        set(views.back(), static_cast<int64_t>(e), results[output][e]);
      ++output;
    }
    told_[mutant] |= worst_error(want, views).ratio > 1;
  }

  void judge_inputs(const std::string& mutant, const Reference& want, const Inputs& changed) {
    std::vector<std::vector<double>> results;
    for (const ReferenceOutput& o : reference(changed).outputs) results.push_back(o.value);
    judge(mutant, want, results);
  }

  void try_all(Values v) {
    const Inputs given = inputs(v, seed_);
    const Reference want = reference(given);
    judge_inputs("other inputs", want, inputs(v, seed_ + 50));
    std::vector<std::vector<double>> zeros, means, moved;
    for (const ReferenceOutput& o : want.outputs) {
      double sum = 0;
      for (const double x : o.value) sum += x;
      zeros.emplace_back(o.value.size(), 0.0);
      means.emplace_back(o.value.size(), sum / static_cast<double>(o.value.size()));
      moved.push_back(o.value);
      if (!o.value.empty())
        std::rotate(moved.back().begin(), moved.back().begin() + 1, moved.back().end());
    }
    judge("zeros", want, zeros);
    judge("the mean", want, means);
    judge("elements moved by one", want, moved);
    for (size_t i = 0; i < arguments_.size(); ++i) change_input(i, given, want);
  }

  void change_input(size_t i, const Inputs& given, const Reference& want) {
    const Argument& a = *arguments_[i];
    const auto with = [&](const std::string& how, const auto& f) {
      Inputs changed = given;
      for (size_t e = 0; e < changed[i].size(); ++e) changed[i][e] = f(e, changed[i][e]);
      judge_inputs(fmt::format("{} {}", a.name, how), want, changed);
    };
    with("zeroed", [](size_t, double) { return 0.0; });
    if (a.domain == Domain::sorted || !is_float(a.dtype)) return;
    with("scaled", [](size_t, double x) { return x * kScale; });
    int64_t inner = 1;
    for (size_t axis = a.dims.size(); axis-- > 0; inner *= a.dims[axis]) {
      const int64_t extent = a.dims[axis], kept = extent - extent / kPart;
      if (kept == extent) continue;
      with(fmt::format("without a tenth of axis {}", axis), [=](size_t e, double x) {
        return static_cast<int64_t>(e) / inner % extent < kept ? x : 0.0;
      });
    }
    if (a.dtype != f32 || want.accuracy.precision != Precision::ieee) return;
    with("in bf16", [](size_t, double x) { return shortened(x, 7); });
    with("in tf32", [](size_t, double x) { return shortened(x, 10); });
  }

  const Case& case_;
  uint64_t seed_;
  std::vector<const Argument*> arguments_;
  std::map<std::string, bool> told_;
};

}  // namespace

Audit audit(const Case& c, uint64_t seed) { return Auditor(c, seed).run(); }

}  // namespace tw::check
