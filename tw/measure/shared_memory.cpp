#include "tw/measure/impl/shared_memory.h"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tw/base/error.h"

namespace tw::measure {

SharedMemory::~SharedMemory() {
  if (base_ != nullptr) munmap(base_, static_cast<size_t>(bytes_));
  if (descriptor_ >= 0) close(descriptor_);
}

void SharedMemory::create(int64_t bytes) {
  const int made = memfd_create("shared", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  if (made < 0 || ftruncate(made, bytes) != 0)
    throw EnvError(
        fmt::format("cannot make {} bytes of shared memory: {}", bytes, std::strerror(errno)));
  map(made, bytes, true);
}

void SharedMemory::seal() {
  if (fcntl(descriptor_, F_ADD_SEALS, F_SEAL_FUTURE_WRITE | F_SEAL_SHRINK | F_SEAL_GROW) != 0)
    throw EnvError(fmt::format("cannot seal shared memory: {}", std::strerror(errno)),
                   "Linux 5.1 or later can");
}

void SharedMemory::map(int descriptor, int64_t bytes, bool writable) {
  descriptor_ = descriptor;
  bytes_ = bytes;
  const int access = writable ? PROT_READ | PROT_WRITE : PROT_READ;
  void* at = mmap(nullptr, static_cast<size_t>(bytes), access, MAP_SHARED, descriptor, 0);
  if (at == MAP_FAILED)
    throw EnvError(
        fmt::format("cannot map {} bytes of shared memory: {}", bytes, std::strerror(errno)));
  base_ = static_cast<char*>(at);
}

}  // namespace tw::measure
