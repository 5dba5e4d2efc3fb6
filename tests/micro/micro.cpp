#include "tests/micro/micro.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <set>

#include "tw/base/error.h"
#include "tw/check/bound.h"
#include "tw/emit/cuda/prelude_cuda.h"
#include "tw/emu/emulator.h"
#include "tw/num/codec.h"

namespace tw::test {

namespace {

struct Group {
  std::string name;
  std::function<std::vector<MicroKernel>()> make;
  std::vector<MicroKernel> kernels = {};
};

std::vector<Group>& all_groups() {
  static std::vector<Group> all = [] {
    std::vector<Group> list = {
        {"threads", thread_micros}, {"warps", warp_micros},       {"matrices", matrix_micros},
        {"atomics", atomic_micros}, {"barriers", barrier_micros}, {"clusters", cluster_micros},
        {"boxes", box_micros},      {"numbers", number_micros},   {"functions", function_micros}};
    constexpr int kOfGroup = 32, kMost = 256;
    for (int n = 8; n <= kMost; n += kOfGroup) {
      const std::string name = fmt::format("products n={}..{}", n, n + kOfGroup - 8);
      list.push_back({name, [=] { return product_micros(name, n, n + kOfGroup - 8); }});
    }
    return list;
  }();
  return all;
}

}  // namespace

std::vector<std::string> micro_groups() {
  std::vector<std::string> names;
  for (const Group& g : all_groups()) names.push_back(g.name);
  return names;
}

const std::vector<MicroKernel>& micro_group(const std::string& group) {
  for (Group& g : all_groups()) {
    if (g.name != group) continue;
    if (g.kernels.empty()) g.kernels = g.make();
    return g.kernels;
  }
  throw UserError(fmt::format("no group '{}' of micro kernels", group));
}

std::string text_of(std::span<const MicroKernel> kernels, cpu::Thread kind) {
  std::string programs;
  cpu::Prelude prelude(cpu::thread_machine(kind));
  for (const MicroKernel& k : kernels) {
    programs += kernels.size() == 1 ? k.program
                                    : fmt::format("namespace of_{} {{\n{}}}\n", k.name, k.program);
    for (const auto& [function, type] : k.scalars) prelude.use(function, type, 1);
  }
  std::set<std::string> used = prelude.outside();
  for (const std::string& name : cuda::thread_function_names()) {
    if (programs.find(name) != std::string::npos) used.insert(name);
  }
  return cuda::thread_prelude(used, kind) + prelude.text("") + programs;
}

std::vector<Tensor> fresh_tensors(const MicroKernel& k) {
  std::vector<Tensor> tensors;
  for (const Tensor& t : k.tensors) tensors.push_back(copy(t));
  return tensors;
}

std::string run_in_emulator(const MicroKernel& k, uint64_t seed) {
  const std::vector<Tensor> tensors = fresh_tensors(k);
  const std::vector<TensorView> views(tensors.begin(), tensors.end());
  const std::string text = text_of({&k, 1}, cpu::Thread::emulated);
  for (int i = 0; i < k.launches; ++i) {
    const EmuReport r = run_emulated(text, k.spec, views, {}, {.seed = seed});
    if (!r.clean()) return r.text;
  }
  return differences(k, tensors);
}

// ---- what differs

namespace {

bool same_number(DType t, uint64_t a, uint64_t b) {
  return a == b || (is_float(t) && std::isnan(decode(t, a)) && std::isnan(decode(t, b)));
}

/// Distance in units of the last place of t at what is wanted.
double ulps_between(DType t, double got, long double want) {
  const auto near =
      t == f32 ? static_cast<double>(static_cast<float>(want)) : static_cast<double>(want);
  if (std::isnan(got) || std::isnan(near))
    return std::isnan(got) == std::isnan(near) ? 0 : INFINITY;
  if (std::isinf(got) || std::isinf(near)) return got == near ? 0 : INFINITY;
  if (near == 0 && want == 0) return got == 0 && std::signbit(got) == std::signbit(near) ? 0 : 1e9;
  return static_cast<double>(std::fabs(static_cast<long double>(got) - want) / check::ulp(t, near));
}

/// Of one part: what is off first or most, and how many are.
struct Off {
  int64_t count = 0, at = -1;
  double worst = 0;
};

Off off_of(const MicroResult& r, const Tensor& got, int64_t begin, int64_t end) {
  Off off;
  const DType t = got.dtype();
  for (int64_t i = begin; i < end; ++i) {
    double by = 1;
    if (r.how == MicroResult::How::ulps) {
      by = ulps_between(t, get(got, i), r.exact[static_cast<size_t>(i)]);
      if (by <= r.ulps) continue;
    } else {
      const uint64_t a = load_bits(t, got.view().data, i), b = load_bits(t, r.want.view().data, i);
      if (r.how == MicroResult::How::bytes ? a == b : same_number(t, a, b)) continue;
    }
    ++off.count;
    if (by > off.worst) off.worst = by, off.at = i;
  }
  return off;
}

std::string value_text(DType t, uint64_t bits) {
  return is_float(t) ? fmt::format("{:#x} ({})", bits, decode(t, bits))
                     : fmt::format("{:#x}", bits);
}

std::string line_of(const MicroKernel& k, const MicroResult& r, size_t part, const Off& off,
                    const Tensor& got) {
  const DType t = got.dtype();
  const int64_t count = got.count() / static_cast<int64_t>(std::max<size_t>(1, r.parts.size()));
  const uint64_t bits = load_bits(t, got.view().data, off.at);
  const std::string want =
      r.how == MicroResult::How::ulps
          ? fmt::format("{} within {} ulps, off by {:.2f}",
                        static_cast<double>(r.exact[static_cast<size_t>(off.at)]), r.ulps,
                        off.worst)
          : value_text(t, load_bits(t, r.want.view().data, off.at));
  return fmt::format("{}{}: {} of {} differ, x{}[{}] is {}: wanted {}\n", k.name,
                     r.parts.empty() ? "" : " " + r.parts[part], off.count, count, r.arg,
                     off.at % count, value_text(t, bits), want);
}

}  // namespace

std::string differences(const MicroKernel& k, std::span<const Tensor> got) {
  std::string text;
  for (const MicroResult& r : k.results) {
    const Tensor& t = got[r.arg];
    const size_t parts = std::max<size_t>(1, r.parts.size());
    const int64_t each = t.count() / static_cast<int64_t>(parts);
    for (size_t p = 0; p < parts; ++p) {
      const Off off =
          off_of(r, t, static_cast<int64_t>(p) * each, static_cast<int64_t>(p + 1) * each);
      if (off.count > 0) text += line_of(k, r, p, off, t);
    }
  }
  return text;
}

}  // namespace tw::test
