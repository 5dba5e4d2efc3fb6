#include <cmath>
#include <cstdlib>
#include <gtest/gtest.h>
#include <limits>

#include "tw/check/guarded.h"
#include "tw/jit/kernel.h"
#include "tw/jit/temporary_folder.h"
#include "tw/kernels/entry.h"

#include "tests/jit/ejected.h"
#include "tests/jit/scale.h"

namespace tw {
namespace {

using check::Guarded;
using kernels::KernelEntry;
using kernels::Problem;

struct TensorSize {
  int64_t elements = 1, largest = 1;  ///< of its extents the largest
};
TensorSize size_of(const kernels::Argument& a) {
  TensorSize s;
  for (const int64_t d : a.dims) s = {s.elements * d, std::max(s.largest, d)};
  return s;
}

/// The last small problem of the kernel's sweep of that type without empty tensors, whose outputs
/// have several elements.
std::optional<Problem> small_problem(const KernelEntry& k, DType t) {
  constexpr int64_t kMost = 20'000;
  std::optional<Problem> found;
  for (const Problem& p : k.sweep()) {
    const Problem whole = complete(k, p);
    if (whole.dtype != t) continue;
    int64_t elements = 0, least = kMost;
    bool empty = false;
    for (const kernels::Argument& a : k.arguments(whole)) {
      const TensorSize size = size_of(a);
      elements += size.elements;
      empty = empty || size.elements == 0;
      if (a.output) least = std::min(least, size.largest);
    }
    if (!empty && least >= 3 && elements <= kMost) found = whole;
  }
  return found;
}

/// Values of both signs and many magnitudes, with NaN, infinities and zeros among them where the
/// domain allows.
double value(check::Domain domain, int64_t i) {
  if (domain == check::Domain::small) return std::sin(static_cast<double>(i));
  constexpr double kInf = std::numeric_limits<double>::infinity();
  constexpr double kSpecial[] = {kInf, -kInf, std::numeric_limits<double>::quiet_NaN(), -0.0, 0.0};
  if (i % 611 == 300 && domain == check::Domain::any)
    return kSpecial[i / 611 % std::size(kSpecial)];
  return std::sin(static_cast<double>(i)) * std::exp2(static_cast<double>(i % 9) - 4);
}

/// The first element whose bits differ and that is not NaN in both; empty when there is none.
std::string difference(const Guarded& a, const Guarded& b) {
  const int64_t size = bytes(a.view().dtype);
  const std::string x = a.contents(), y = b.contents();
  for (int64_t i = 0; i < a.view().count(); ++i) {
    if (x.compare(i * size, size, y, i * size, size) == 0) continue;
    const double p = get(a, i), q = get(b, i);
    if (!std::isnan(p) || !std::isnan(q)) return fmt::format("element {}: {} and {}", i, p, q);
  }
  return "";
}

class EjectedKernel : public testing::TestWithParam<KernelEntry> {
 protected:
  /// Ejects, builds with the compiler, and compares with the kernel as that compiler builds it,
  /// which may lie in the cache: sweeps have built many of them.
  void compare(const Problem& p, const char* cxx) const {
    SCOPED_TRACE(to_string(p) + " " + cxx);
    const test::ScopedEnv named("TW_CXX", cxx);
    const Device cpu = Device::open("cpu:0");
    const Kernel kernel = compile(GetParam().trace(p, cpu.target(1)), cpu, {.threads = 1});
    std::vector<Guarded> tensors, results;
    std::vector<TensorView> inputs, outputs, all;
    const auto arguments = GetParam().arguments(p);
    tensors.reserve(arguments.size());
    results.reserve(arguments.size());
    for (const kernels::Argument& a : arguments) {
      tensors.emplace_back(a.dtype, a.dims);
      const auto element = [&](int64_t i) {
        return a.dtype == e8m0 ? std::abs(value(a.domain, i)) : value(a.domain, i);
      };
      if (!a.output) tensors.back().fill(element);
      if (a.output) results.emplace_back(a.dtype, a.dims);
      all.push_back(tensors.back());
      (a.output ? outputs : inputs).push_back(a.output ? results.back() : tensors.back());
    }
    kernel(inputs, outputs);
    const std::string source = folder_.path() + "/kernel.cpp";
    kernel.eject(source, inputs, outputs);
    const test::EjectedFunction ejected(find_compiler(), kernel.program(), source);
    ASSERT_EQ(ejected(all), 0);
    for (size_t i = 0, o = 0; i < arguments.size(); ++i) {
      if (!arguments[i].output) continue;
      EXPECT_EQ(tensors[i].damage(), "");
      // The poison of what has no NaN, or only one that is meant, may be a result.
      const bool tells = has_nan(arguments[i].dtype) && arguments[i].dtype != e8m0;
      EXPECT_EQ(tells ? tensors[i].unwritten() : 0, 0);
      EXPECT_EQ(difference(tensors[i], results[o++]), "");
    }
  }
  const TemporaryFolder folder_;
};

TEST_P(EjectedKernel, GivesTheSameBits) {
  static const bool has_clang = std::system("clang++ --version >/dev/null 2>&1") == 0;
  int problems = 0;
  for (const DType t : {f32, bf16, u8}) {
    const std::optional<Problem> p = small_problem(GetParam(), t);
    if (!p) continue;
    ++problems;
    compare(*p, "g++");
    if (has_clang) compare(*p, "clang++");
  }
  EXPECT_GT(problems, 0);
}

INSTANTIATE_TEST_SUITE_P(Library, EjectedKernel, testing::ValuesIn(kernels::kernel_list()),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace tw
