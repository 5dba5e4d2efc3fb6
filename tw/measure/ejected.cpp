#include "tw/measure/impl/ejected.h"

#include <array>
#include <fmt/format.h>
#include <utility>

#include "tw/base/error.h"

namespace tw::measure {

namespace {

constexpr size_t kMostTensors = 16;

template <size_t>
using Pointer = const void*;

/// Each tensor is three pointers: data, extents, strides.
template <size_t... kIndex>
int call_with(void* function, const std::vector<const void*>& p, int threads,
              std::index_sequence<kIndex...>) {
  using Function = int (*)(Pointer<kIndex>..., int, const void*, const void*);
  return reinterpret_cast<Function>(function)(p[kIndex]..., threads, nullptr, nullptr);
}

template <size_t kTensors>
int call_of(void* function, const std::vector<const void*>& p, int threads) {
  return call_with(function, p, threads, std::make_index_sequence<3 * kTensors>());
}

template <size_t... kTensors>
constexpr auto calls(std::index_sequence<kTensors...>) {
  return std::array{call_of<kTensors>...};
}
constexpr auto kCalls = calls(std::make_index_sequence<kMostTensors + 1>());

class Ejected : public Contestant {
 public:
  Ejected(void* function, int threads) : function_(function), threads_(threads) {}

  std::string prepare(const std::vector<TensorSet>& sets) override {
    sets_ = sets;
    return "ejected";
  }

  void run(int set) override {
    const TensorSet& s = sets_[set];
    std::vector<const void*> pointers;
    for (const auto* views : {&s.inputs, &s.outputs})
      for (const TensorView& v : *views)
        pointers.insert(pointers.end(), {v.data, v.dims.data(), v.strides.data()});
    const size_t tensors = pointers.size() / 3;
    if (tensors > kMostTensors)
      throw UserError(fmt::format("{} tensors are more than {}", tensors, kMostTensors));
    const int code = kCalls[tensors](function_, pointers, threads_);
    constexpr int kNoMemory = 3;
    if (code == kNoMemory) throw DeviceError("the ejected function found no memory for scratch");
    if (code != 0) throw UserError(fmt::format("the ejected function refused with code {}", code));
  }

 private:
  void* function_;
  int threads_;
  std::vector<TensorSet> sets_;
};

}  // namespace

std::unique_ptr<Contestant> ejected_contestant(void* function, const Task& task) {
  return std::make_unique<Ejected>(function, task.threads);
}

}  // namespace tw::measure
