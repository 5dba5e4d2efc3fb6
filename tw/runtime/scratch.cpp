#include "tw/runtime/scratch.h"

#include <cstdlib>
#include <new>
#include <sys/mman.h>
#include <vector>

#include "tw/base/round.h"
#include "tw/tensor/tensor.h"

namespace tw {

namespace {

constexpr int64_t kHuge = 2 << 20;

struct Block {
  void* data = nullptr;
  int64_t size = 0;
};

struct Stack {
  std::vector<Block> blocks;
  size_t depth = 0;
  ~Stack() {
    for (Block& b : blocks) std::free(b.data);
  }
};

Stack& stack() {
  thread_local Stack s;
  return s;
}

void* grow(Block& b, int64_t bytes) {
  const int64_t page = bytes > kHuge ? kHuge : 4096;
  const int64_t size = round_up(bytes, page);
  void* p = nullptr;
  if (bytes > machine_memory()) return nullptr;  // an overcommitting kernel would grant it
  if (posix_memalign(&p, page, size) != 0) return nullptr;
  if (page == kHuge) madvise(p, size, MADV_HUGEPAGE);
  std::free(b.data);
  b = {p, size};
  return p;
}

}  // namespace

void* ThreadScratch::get(int64_t bytes) noexcept {
  Stack& s = stack();
  try {
    if (s.blocks.size() <= s.depth) s.blocks.resize(s.depth + 1);
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
  Block& b = s.blocks[s.depth];
  return b.size >= bytes ? b.data : grow(b, bytes);
}

ThreadScratch::Nested::Nested() { ++stack().depth; }
ThreadScratch::Nested::~Nested() { --stack().depth; }
bool ThreadScratch::nested() { return stack().depth > 0; }

}  // namespace tw
