#include "tw/check/staged.h"

#include <algorithm>
#include <cstring>
#include <fmt/format.h>

#include "tw/base/error.h"
#include "tw/runtime/cuda/cuda.h"

namespace tw::check {
namespace {

constexpr int64_t kGuardBytes = 256, kLine = 256;

unsigned char guard_byte(int64_t i) { return static_cast<unsigned char>(0xa5 + 59 * i); }

struct Range {
  char *begin, *end;
};

Range range_of(const TensorView& t) {
  const ByteRange r = byte_range(t);
  char* data = static_cast<char*>(t.data);
  return {data + r.begin, data + r.end};
}

/// Ranges that cover all, those that share bytes made one.
std::vector<Range> joined(std::vector<Range> all) {
  std::ranges::sort(all, {}, [](const Range& r) { return r.begin; });
  std::vector<Range> r;
  for (const Range& next : all) {
    if (!r.empty() && next.begin < r.back().end) {
      r.back().end = std::max(r.back().end, next.end);
    } else {
      r.push_back(next);
    }
  }
  return r;
}

}  // namespace

Staged::Staged(const Device& d, const std::vector<TensorView>& host) : device_(d) {
  std::vector<Range> ranges;
  for (const TensorView& t : host) ranges.push_back(range_of(t));
  for (const Range& r : joined(ranges)) {
    const int64_t size = r.end - r.begin;
    const int64_t before =
        kGuardBytes + static_cast<int64_t>(reinterpret_cast<uintptr_t>(r.begin) % kLine);
    const Tensor image = host_tensor(u8, {before + size + kGuardBytes});
    for (int64_t i = 0; i < image.count(); ++i) image.data<unsigned char>()[i] = guard_byte(i);
    if (size > 0) std::memcpy(image.data<char>() + before, r.begin, static_cast<size_t>(size));
    blocks_.push_back({r.begin, r.end, before, cuda::to_device(d, image)});
  }
  for (const TensorView& t : host) {
    const Range r = range_of(t);
    const auto block = std::ranges::find_if(
        blocks_, [&](const Block& b) { return b.begin <= r.begin && r.end <= b.end; });
    TensorView view = t;
    view.data =
        block->copy.data<char>() + block->before + (static_cast<char*>(t.data) - block->begin);
    views_.push_back(view);
  }
}

void Staged::fetch() const {
  for (const Block& b : blocks_) {
    const Tensor image = cuda::to_host(device_, b.copy);
    const int64_t size = b.end - b.begin;
    for (int64_t i = 0; i < image.count(); ++i) {
      if (i >= b.before && i < b.before + size) continue;
      if (image.data<unsigned char>()[i] == guard_byte(i)) continue;
      throw DeviceError(fmt::format(
          "byte {} of memory beside the tensors was written, {} bytes long", i - b.before, size));
    }
    if (size > 0) std::memcpy(b.begin, image.data<char>() + b.before, static_cast<size_t>(size));
  }
}

void run_on_host_tensors(const Kernel& kernel, const Device& d,
                         const std::vector<TensorView>& inputs,
                         const std::vector<TensorView>& outputs,
                         const std::vector<DimValue>& dims) {
  if (d.kind() != DeviceKind::cuda) return kernel(inputs, outputs, dims);
  std::vector<TensorView> all = inputs;
  all.insert(all.end(), outputs.begin(), outputs.end());
  const Staged staged(d, all);
  std::vector<TensorView> in, out;
  for (size_t k = 0; k < all.size(); ++k) (k < inputs.size() ? in : out).push_back(staged.view(k));
  kernel(in, out, dims);
  staged.fetch();
}

}  // namespace tw::check
