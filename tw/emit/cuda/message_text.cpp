#include "tw/emit/cuda/prelude_cuda.h"

namespace tw::cuda {

/// MessagePart and MessageRecord of tw/target/launch_spec.h. Gives where the record's elements go,
/// -1 when there is no room.
static const char* const kTell =
    R"(__device__ inline i64 tw_tell(u8* part, i64 number, i64 pid0, i64 pid1, i64 pid2,
                              i64 element, i64 bytes) {
  u64* const head = (u64*)part;
  const u64 size = 48 + ((u64)bytes + 15) / 16 * 16;
  const u64 at = tw_atomic_add_relaxed_device(head, size);
  if (at + size > head[1]) {
    tw_atomic_add_relaxed_device(head + 2, (u64)1);
    return -1;
  }
  i64* const record = (i64*)(part + at);
  record[0] = (i64)size;
  record[1] = number;
  record[2] = pid0;
  record[3] = pid1;
  record[4] = pid2;
  record[5] = element;
  return (i64)at + 48;
})";

std::vector<ThreadFunction> message_functions() {
  return {{"tw_tell", "tw_atomic_add_relaxed_device", kTell, kTell}};
}

}  // namespace tw::cuda
