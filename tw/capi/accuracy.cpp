#include <map>
#include <string>

#include "tw/base/error.h"
#include "tw/capi/error.h"
#include "tw/capi/tensors.h"
#include "tw/check/reference.h"

namespace tw::capi {

static check::Family family_named(const std::string& name) {
  using check::Family;
  static const std::map<std::string, Family> all = {
      {"exact", Family::exact},     {"elementwise", Family::elementwise},
      {"gemm", Family::gemm},       {"norm", Family::norm},
      {"softmax", Family::softmax}, {"reduction", Family::reduction}};
  const auto found = all.find(name);
  if (found != all.end()) return found->second;
  std::vector<std::string> known;
  for (const auto& [text, family] : all) known.push_back(text);
  throw UserError(fmt::format("no family is called '{}'", name), did_you_mean(name, known));
}

static check::Accuracy accuracy_of(const tw_accuracy* given) {
  need(given, "accuracy");
  need(given->family, "accuracy.family");
  check::Accuracy a;
  a.family = family_named(given->family);
  a.out = dtype_of(given->dtype, "accuracy");
  a.accumulate = check::accumulator_of(a.out);
  a.terms = given->terms;
  a.function_ulps = given->ulps;
  return a;
}

}  // namespace tw::capi

int tw_error_bound(const tw_accuracy* accuracy, size_t n, const double* exact,
                   const double* sum_abs, double* bound) {
  return tw::capi::guarded([&] {
    const tw::check::Accuracy a = tw::capi::accuracy_of(accuracy);
    if (n == 0) return;
    tw::capi::need(exact, "exact");
    tw::capi::need(sum_abs, "sum_abs");
    tw::capi::need(bound, "bound");
    for (size_t i = 0; i < n; ++i) bound[i] = tw::check::bound(a, exact[i], sum_abs[i]);
  });
}
