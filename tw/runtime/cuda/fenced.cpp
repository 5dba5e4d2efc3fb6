#include <algorithm>
#include <fmt/format.h>

#include "tw/base/error.h"
#include "tw/base/round.h"
#include "tw/runtime/cuda/cuda.h"
#include "tw/runtime/impl/cuda_gpu.h"

namespace tw::cuda {

FencedMemory::FencedMemory(const Device& d, int64_t bytes) : gpu_(d.cuda()) {
  const Api& api = gpu_.api();
  const Current current(gpu_);
  const MappedMemory what{.device = gpu_.ordinal()};
  size_t page = 0;
  gpu_.check(api.map_granularity(&page, &what, 0), "to tell of its pages");
  page_ = static_cast<int64_t>(page);
  bytes_ = round_up(std::max<int64_t>(bytes, 1), page_);
  const auto size = static_cast<size_t>(bytes_);
  gpu_.check(api.address_reserve(&fence_, size + 2 * page, 0, 0, 0), "to give addresses");
  uint64_t memory = 0;
  Result code = api.mapped_create(&memory, size, &what, 0);
  if (code == 0) {
    code = api.map(fence_ + page, size, 0, memory, 0);
    mapped_ = code == 0;
    api.mapped_release(memory);  // when it is mapped no more
  }
  const MappedAccess access{.device = gpu_.ordinal()};
  if (code == 0) code = api.map_access(fence_ + page, size, &access, 1);
  if (code == 0) return;
  give_back();
  if (code == kOutOfMemory)
    throw EnvError(fmt::format("no memory on {} for {} bytes between fences", gpu_.name(), bytes_));
  gpu_.fail(code, "to map memory");
}

FencedMemory::~FencedMemory() { give_back(); }

char* FencedMemory::data() const {
  return reinterpret_cast<char*>(fence_ + static_cast<uint64_t>(page_));
}

void FencedMemory::give_back() noexcept {
  const CurrentAtEnd current(gpu_);
  const auto size = static_cast<size_t>(bytes_), page = static_cast<size_t>(page_);
  if (mapped_) gpu_.api().unmap(fence_ + page, size);
  gpu_.api().address_free(fence_, size + 2 * page);
}

}  // namespace tw::cuda
