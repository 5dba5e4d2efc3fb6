#include "tw/check/impl/errors.h"

#include <algorithm>
#include <cmath>

namespace tw::check {

namespace {

/// check::bound where roundings fall to either side: the terms of a sum, and its roundings, add up
/// like steps of a random walk. Errors of single elements may be larger, their mean square not.
double usual_bound(const Accuracy& a, double reference, double sum_abs) {
  const double walk = sum_abs / std::sqrt(static_cast<double>(std::max<int64_t>(a.terms, 1)));
  return bound(a, reference, std::min(sum_abs, std::fabs(reference) + walk));
}

/// Root mean square of the distances from the elementwise mean over inputs.
double spread(const std::vector<std::vector<double>>& inputs) {
  double sum = 0, count = 0;
  for (size_t i = 0; i < inputs[0].size(); ++i) {
    double mean = 0;
    for (const std::vector<double>& x : inputs) mean += x[i] / static_cast<double>(inputs.size());
    for (const std::vector<double>& x : inputs) sum += (x[i] - mean) * (x[i] - mean), ++count;
  }
  return count > 0 ? std::sqrt(sum / count) : 0;
}

}  // namespace

void ErrorSample::add(const Reference& want, std::span<const TensorView> outputs) {
  outputs_.resize(outputs.size());
  for (size_t o = 0; o < outputs.size(); ++o) {
    const ReferenceOutput& exact = want.outputs.at(o);
    Accuracy accuracy = want.accuracy;
    accuracy.out = outputs[o].dtype;
    const std::vector<double> got = to_doubles(outputs[o]);
    Output& to = outputs_[o];
    std::vector<double>& value = to.want.emplace_back(exact.value);
    std::vector<double>& error = to.error.emplace_back(got.size());
    for (size_t i = 0; i < got.size(); ++i) {
      if (!std::isfinite(value[i]) || !std::isfinite(got[i])) {
        value[i] = 0;
        continue;
      }
      error[i] = std::fabs(got[i] - value[i]);
      const double room = usual_bound(accuracy, value[i], exact.sum_abs[i]);
      to.allowed += room * room;
      ++to.count;
    }
  }
}

std::vector<OutputErrors> ErrorSample::found() const {
  std::vector<OutputErrors> all;
  for (const Output& o : outputs_) {
    OutputErrors& e = all.emplace_back();
    if (o.count == 0) continue;
    const double s = spread(o.want);
    double squares = 0;
    std::vector<double> parts;
    for (size_t n = 0; n < o.want.size(); ++n)
      for (size_t i = 0; i < o.want[n].size(); ++i) {
        const double error = o.error[n][i], whole = std::max(std::fabs(o.want[n][i]), s);
        squares += error * error;
        parts.push_back(whole > 0 ? error / whole : 0);
      }
    const double rms = std::sqrt(squares / static_cast<double>(o.count));
    const double allowed = std::sqrt(o.allowed / static_cast<double>(o.count));
    e.e2 = s > 0 ? rms / s : 0;
    e.of_allowed = allowed > 0 ? rms / allowed : 0;
    std::ranges::sort(parts);
    e.most = parts.back();
    e.e9999 = parts[(parts.size() - 1) * 9999 / 10000];
  }
  return all;
}

}  // namespace tw::check
