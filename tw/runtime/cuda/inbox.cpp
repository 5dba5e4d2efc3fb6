#include <algorithm>
#include <cstring>
#include <exception>
#include <vector>

#include "tw/runtime/cuda/cuda.h"
#include "tw/runtime/impl/cuda_gpu.h"
#include "tw/runtime/launch.h"

namespace tw::cuda {

std::shared_ptr<Inbox> Inbox::make(const Stream& s, std::function<void(const void*)> hear) {
  const std::shared_ptr<Inbox> box(new Inbox(s, std::move(hear)));
  s.gpu().add(box);
  return box;
}

Inbox::Inbox(const Stream& s, std::function<void(const void*)> hear)
    : gpu_(s.gpu()), stream_(s.handle()), hear_(std::move(hear)) {
  memory_ = allocate(gpu_, kMessageBytes, "messages of a kernel");
  clear();
}

Inbox::~Inbox() { release(gpu_, memory_); }

/// By the default stream, as below.
void Inbox::clear() {
  std::vector<char> ready(kMessageBytes);
  clear_messages(ready.data());
  const Current current(gpu_);
  gpu_.check(gpu_.api().copy_in(memory_, ready.data(), ready.size(), nullptr), "to copy");
  gpu_.check(gpu_.api().stream_synchronize(nullptr), "to copy");
}

void Inbox::read() {
  std::vector<char> all(kMessageBytes);
  {
    const std::lock_guard guard(lock_);
    const Current current(gpu_);
    const auto copy = [&](int64_t from, size_t size) {
      const Pointer there = memory_ + static_cast<uint64_t>(from);
      gpu_.check(gpu_.api().copy_out(all.data() + from, there, size, nullptr), "to copy");
      gpu_.check(gpu_.api().stream_synchronize(nullptr), "to copy");
    };
    const auto used = [&](int64_t part) {
      MessagePart head;
      std::memcpy(&head, all.data() + part, sizeof head);
      return head.used;
    };
    copy(0, kCheckBytes + sizeof(MessagePart));
    constexpr uint64_t kNothing = sizeof(MessagePart);
    if (used(0) == kNothing && used(kCheckBytes) == kNothing) return;
    copy(kCheckBytes, std::min<size_t>(used(kCheckBytes), kMessageBytes - kCheckBytes));
    clear();
  }
  hear_(all.data());
}

void Gpu::add(const std::shared_ptr<Inbox>& box) {
  const std::lock_guard guard(lock_);
  std::erase_if(inboxes_, [](const std::weak_ptr<Inbox>& b) { return b.expired(); });
  inboxes_.push_back(box);
}

void Gpu::hear(const Stream* s) {
  std::vector<std::shared_ptr<Inbox>> boxes;
  {
    const std::lock_guard guard(lock_);
    for (const std::weak_ptr<Inbox>& b : inboxes_) {
      const std::shared_ptr<Inbox> box = b.lock();
      if (box && (!s || box->is_of(*s))) boxes.push_back(box);
    }
  }
  std::exception_ptr first;
  for (const std::shared_ptr<Inbox>& box : boxes) {
    try {
      box->read();
    } catch (...) {
      if (!first) first = std::current_exception();
    }
  }
  if (first) std::rethrow_exception(first);
}

}  // namespace tw::cuda
