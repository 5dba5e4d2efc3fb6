#include "tw/check/staged.h"

#include <algorithm>
#include <cstring>
#include <fmt/format.h>
#include <thread>

#include "tw/base/error.h"
#include "tw/runtime/cuda/cuda.h"

namespace tw::check {
namespace {

constexpr int64_t kGuardBytes = 256, kLine = 256, kHostPage = 4096;

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

TensorView bytes_at(void* p, int64_t count) { return {p, u8, {count}, {1}}; }

}  // namespace

Staged::Staged(const Device& d, const std::vector<TensorView>& host) : device_(d) {
  std::vector<Range> ranges;
  for (const TensorView& t : host) ranges.push_back(range_of(t));
  const cuda::Stream s = cuda::Stream::standard(d);
  for (const Range& r : joined(ranges)) {
    const Block& b = blocks_.emplace_back(block(d, r.begin, r.end));
    const Tensor image = host_tensor(u8, b.all().dims);
    for (int64_t i = 0; i < image.count(); ++i) image.data<unsigned char>()[i] = guard_byte(i);
    if (b.size() > 0)
      std::memcpy(image.data<char>() + b.before, b.begin, static_cast<size_t>(b.size()));
    cuda::copy_in(s, b.all(), image);
  }
  for (const TensorView& t : host) {
    const Range r = range_of(t);
    const auto block = std::ranges::find_if(
        blocks_, [&](const Block& b) { return b.begin <= r.begin && r.end <= b.end; });
    TensorView view = t;
    view.data = block->memory->data() + block->at + (static_cast<char*>(t.data) - block->begin);
    views_.push_back(view);
  }
}

Staged::Block Staged::block(const Device& d, char* begin, char* end) {
  const auto place = [](const char* p, int64_t unit) {
    return static_cast<int64_t>(reinterpret_cast<uintptr_t>(p) % static_cast<uintptr_t>(unit));
  };
  const int64_t size = end - begin, line = place(begin, kLine);
  auto memory = std::make_shared<cuda::FencedMemory>(d, size + 2 * kLine + kGuardBytes);
  // The last place that has the same remainder by lines, or the first one. That of no bytes lies
  // in the memory, too.
  const int64_t last = (memory->bytes() - std::max<int64_t>(size, 1) - line) / kLine * kLine + line;
  const bool first = place(begin, kHostPage) == 0 && place(end, kHostPage) != 0;
  const int64_t at = first ? 0 : last, rest = memory->bytes() - at - size;
  Block b{
      begin, end, std::move(memory), at, std::min(at, kGuardBytes), std::min(rest, kGuardBytes)};
  b.taken = empty(d, u8, b.all().dims);
  return b;
}

TensorView Staged::Block::all() const {
  return bytes_at(memory->data() + at - before, before + size() + after);
}

void Staged::bring(const cuda::Stream& s) const {
  for (const Block& b : blocks_)
    cuda::copy_in(s, bytes_at(b.memory->data() + b.at, b.size()), bytes_at(b.begin, b.size()));
}

Tensor Staged::image(const Block& b, const cuda::Stream& s) {
  const Tensor all = host_tensor(u8, b.all().dims);
  cuda::copy_out(s, all, b.taken);
  for (int64_t i = 0; i < all.count(); ++i) {
    if (i == b.before) i += b.size();
    if (i >= all.count() || all.data<unsigned char>()[i] == guard_byte(i)) continue;
    throw DeviceError(fmt::format("byte {} of memory beside the tensors was written, {} bytes long",
                                  i - b.before, b.size()));
  }
  return all.slice(0, b.before, b.before + b.size());
}

void Staged::take(const cuda::Stream& s) const {
  cuda::Event done(device_);
  for (const Block& b : blocks_) cuda::copy_there(s, b.taken, b.all());
  done.record(s);
  while (!done.done()) std::this_thread::yield();
  s.synchronize();
}

void Staged::fetch(const cuda::Stream& s) const {
  take(s);
  for (const Block& b : blocks_) {
    const Tensor now = image(b, s);
    if (b.size() > 0) std::memcpy(b.begin, now.data<char>(), static_cast<size_t>(b.size()));
  }
}

bool Staged::unchanged(const cuda::Stream& s) const {
  take(s);
  return std::ranges::all_of(blocks_, [&](const Block& b) {
    const Tensor now = image(b, s);
    return b.size() == 0 ||
           std::memcmp(b.begin, now.data<char>(), static_cast<size_t>(b.size())) == 0;
  });
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
  staged.fetch(cuda::Stream::standard(d));
}

}  // namespace tw::check
