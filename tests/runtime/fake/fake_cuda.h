#pragma once

#include <cstddef>
#include <cstdint>
#include <dlfcn.h>
#include <map>
#include <string>
#include <vector>

namespace tw::test {

/// A CUDA driver without GPUs: memory is the host's, streams are done at once, kernels are only
/// written down. What one device made is refused where another's context is current. A module's
/// image is an ELF file or a text that begins with "fake"; it has the functions whose names occur
/// in it. What tests see and set of it:
struct FakeCuda {
  struct Launch {
    std::string function;
    int device;
    unsigned grid, threads, shared_bytes;
    void* stream;
    std::vector<uint64_t> words;
    bool early;
  };
  struct Memory {
    size_t bytes;
    int device;
  };

  int version = 13000, devices = 2, major = 9;
  size_t memory = size_t{1} << 30;  ///< of a device
  std::string failing = {};         ///< the driver's function that fails from now on, with `code`
  int code = 0;
  bool recording = true;
  size_t parameter_words = 0;  ///< of kernels: so many are written down

  std::vector<Launch> launches = {};
  std::map<void*, Memory> allocated = {}, mapped = {};
  int streams = 0, events = 0, graphs = 0, modules = 0;  ///< alive
  int contexts_pushed = 0;                               ///< and not popped, of all threads
  int shared_grants = 0;
  std::vector<uint64_t> tensor_map = {};  ///< what the last one was made of, in order of parameters
};

/// That of the library, as it is after loading but for what is alive.
inline FakeCuda& fresh_fake(const char* path) {
  void* library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  FakeCuda& fake = *reinterpret_cast<FakeCuda* (*)()>(dlsym(library, "fake_cuda"))();
  FakeCuda fresh;
  fresh.allocated = fake.allocated;
  fresh.mapped = fake.mapped;
  fresh.streams = fake.streams;
  fresh.events = fake.events;
  fresh.graphs = fake.graphs;
  fresh.modules = fake.modules;
  fake = fresh;
  return fake;
}

}  // namespace tw::test
