#include "tw/check/staged.h"

#include <cstring>
#include <fmt/format.h>
#include <memory>

#include "tw/base/error.h"
#include "tw/runtime/cuda/cuda.h"

namespace tw::check {
namespace {

constexpr int64_t kGuardBytes = 256, kLine = 256;

unsigned char guard_byte(int64_t i) { return static_cast<unsigned char>(0xa5 + 59 * i); }

}  // namespace

Staged::Staged(const Device& d, const TensorView& host)
    : device_(d), host_(host), view_(host), range_(byte_range(host)) {
  const int64_t size = range_.end - range_.begin;
  const auto first = reinterpret_cast<uintptr_t>(host.data) + static_cast<uintptr_t>(range_.begin);
  begin_ = kGuardBytes + static_cast<int64_t>(first % kLine);
  const Tensor image = host_tensor(u8, {begin_ + size + kGuardBytes});
  for (int64_t i = 0; i < image.count(); ++i) image.data<unsigned char>()[i] = guard_byte(i);
  if (size > 0) {
    std::memcpy(image.data<char>() + begin_, static_cast<char*>(host.data) + range_.begin,
                static_cast<size_t>(size));
  }
  copy_ = cuda::to_device(d, image);
  view_.data = copy_.data<char>() + begin_ - range_.begin;
}

void Staged::fetch() const {
  const Tensor image = cuda::to_host(device_, copy_);
  const int64_t size = range_.end - range_.begin;
  for (int64_t i = 0; i < image.count(); ++i) {
    if (i >= begin_ && i < begin_ + size) continue;
    if (image.data<unsigned char>()[i] == guard_byte(i)) continue;
    throw DeviceError(
        fmt::format("byte {} beside {} was written", i - begin_ + range_.begin, to_string(host_)));
  }
  if (size > 0) {
    std::memcpy(static_cast<char*>(host_.data) + range_.begin, image.data<char>() + begin_,
                static_cast<size_t>(size));
  }
}

void run_on_host_tensors(const Kernel& kernel, const Device& d,
                         const std::vector<TensorView>& inputs,
                         const std::vector<TensorView>& outputs,
                         const std::vector<DimValue>& dims) {
  if (d.kind() != DeviceKind::cuda) return kernel(inputs, outputs, dims);
  std::vector<std::unique_ptr<Staged>> copies;
  const auto stage = [&](const std::vector<TensorView>& host) {
    std::vector<TensorView> views;
    for (const TensorView& t : host) {
      copies.push_back(std::make_unique<Staged>(d, t));
      views.push_back(copies.back()->view());
    }
    return views;
  };
  const std::vector<TensorView> in = stage(inputs), out = stage(outputs);
  kernel(in, out, dims);
  for (size_t k = inputs.size(); k < copies.size(); ++k) copies[k]->fetch();
}

}  // namespace tw::check
