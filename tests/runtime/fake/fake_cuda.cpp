#include "tests/runtime/fake/fake_cuda.h"

#include <array>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <elf.h>
#include <memory>
#include <mutex>
#include <string_view>
#include <sys/mman.h>

using tw::test::FakeCuda;

namespace {

enum : int {
  kSuccess = 0,
  kInvalidValue = 1,
  kNoMemory = 2,
  kInvalidImage = 200,
  kInvalidContext = 201,
  kInvalidHandle = 400,
  kNotFound = 500,
  kCapturing = 900
};

constexpr size_t kMappedPage = 64 << 10;

struct Context {
  int device;
};
struct Stream {
  Context* context;
  std::vector<FakeCuda::Launch>* captured = nullptr;
};
struct Event {
  Context* context;
  uint64_t moment = 0;
};
struct Graph {
  Context* context;
  std::vector<FakeCuda::Launch> launches;
};
struct ModuleImage {
  std::string image;
  Context* context;
};
struct Function {
  Function(const char* n, Context* c) : name(n), context(c) {}
  std::string name;
  Context* context;
  std::atomic<int> shared_allowed = 48 << 10;
};

FakeCuda g_fake;

/// The driver takes back what is left when a process ends.
struct TakesBack {
  ~TakesBack() {
    for (const auto& [p, memory] : g_fake.allocated) std::free(p);
  }
} g_takes_back;
std::array<Context, 8> g_primary;
thread_local std::vector<void*> t_stack;
uint64_t g_moment = 0;

int failure(const char* symbol) { return g_fake.failing == symbol ? g_fake.code : kSuccess; }

/// The current context, when it is a device's.
Context* current() {
  if (t_stack.empty()) return nullptr;
  auto* c = static_cast<Context*>(t_stack.back());
  return c >= g_primary.data() && c < g_primary.data() + g_primary.size() ? c : nullptr;
}

/// Code of a call that needs a context.
int entered(const char* symbol) {
  if (const int code = failure(symbol)) return code;
  return current() ? kSuccess : kInvalidContext;
}

/// Threads call a driver at once.
std::mutex& lock() {
  static std::mutex mutex;
  return mutex;
}
/// As cuda.h has them: CUlaunchAttribute, CUlaunchConfig.
struct LaunchAttribute {
  int id;
  char padding[4];
  int value;
  char rest[60];
};
struct LaunchConfig {
  unsigned grid[3], block[3], shared_bytes;
  void* stream;
  const LaunchAttribute* attributes;
  unsigned attribute_count;
};

using Held = std::lock_guard<std::mutex>;

/// Code of a call with a handle that one device made: its context must be the current one. Zeros
/// are a stream that some other library made.
template <class T>
int entered_for(const char* symbol, const T* handle) {
  if (const int code = entered(symbol)) return code;
  const bool own = !handle || !handle->context || handle->context == current();
  return own ? kSuccess : kInvalidHandle;
}

size_t used(int device) {
  size_t sum = 0;
  for (const auto* all : {&g_fake.allocated, &g_fake.mapped})
    for (const auto& [p, m] : *all) sum += m.device == device ? m.bytes : 0;
  return sum;
}

size_t image_bytes(const void* image) {
  const auto& head = *static_cast<const Elf64_Ehdr*>(image);
  return head.e_shoff + size_t{head.e_shnum} * head.e_shentsize;
}

int attribute(int which) {
  switch (which) {
    case 16:
      return 132;
    case 36:
      return 3201000;
    case 37:
      return 6144;
    case 38:
      return 60 << 20;
    case 39:
      return 2048;
    case 75:
      return g_fake.major;
    case 81:
      return 228 << 10;
    case 82:
      return 64 << 10;
    case 97:
      return 227 << 10;
  }
  return 0;
}

const char* error_name_of(int code) {
  static const std::map<int, const char*> kNames = {
      {kInvalidValue, "CUDA_ERROR_INVALID_VALUE"},
      {kNoMemory, "CUDA_ERROR_OUT_OF_MEMORY"},
      {kInvalidImage, "CUDA_ERROR_INVALID_IMAGE"},
      {kInvalidContext, "CUDA_ERROR_INVALID_CONTEXT"},
      {kInvalidHandle, "CUDA_ERROR_INVALID_HANDLE"},
      {kCapturing, "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED"},
      {700, "CUDA_ERROR_ILLEGAL_ADDRESS"}};
  const auto found = kNames.find(code);
  return found == kNames.end() ? nullptr : found->second;
}

int copied(const char* symbol, void* to, const void* from, size_t bytes, const Stream* stream) {
  if (const int code = entered_for(symbol, stream)) return code;
  if (stream && stream->captured) return kCapturing;
  std::memcpy(to, from, bytes);
  return kSuccess;
}

}  // namespace

#define FAKE extern "C" __attribute__((visibility("default"))) int
#define FAIL_AS_TOLD() \
  if (const int code = failure(__func__); code != kSuccess) return code
#define ENTER() \
  if (const int code = entered(__func__); code != kSuccess) return code
#define ENTER_FOR(handle) \
  if (const int code = entered_for(__func__, handle); code != kSuccess) return code

extern "C" __attribute__((visibility("default"))) FakeCuda* fake_cuda() { return &g_fake; }

FAKE cuInit(unsigned) {
  FAIL_AS_TOLD();
  for (size_t i = 0; i < g_primary.size(); ++i) g_primary[i].device = static_cast<int>(i);
  return g_fake.devices == 0 ? 100 : kSuccess;
}
FAKE cuDriverGetVersion(int* version) {
  *version = g_fake.version;
  return failure(__func__);
}
FAKE cuGetErrorName(int error, const char** name) {
  *name = error_name_of(error);
  return *name ? kSuccess : kInvalidValue;
}
FAKE cuGetErrorString(int, const char** text) {
  *text = "as the test wants";
  return kSuccess;
}
FAKE cuDeviceGetCount(int* count) {
  *count = g_fake.devices;
  return failure(__func__);
}
FAKE cuDeviceGet(int* device, int ordinal) {
  *device = ordinal;
  return failure(__func__);
}
FAKE cuDeviceGetName(char* name, int size, int device) {
  std::snprintf(name, static_cast<size_t>(size), "Fake %d", device);
  return failure(__func__);
}
FAKE cuDeviceTotalMem_v2(size_t* bytes, int) {
  *bytes = g_fake.memory;
  return failure(__func__);
}
FAKE cuDeviceGetAttribute(int* value, int which, int) {
  *value = attribute(which);
  return failure(__func__);
}

FAKE cuDevicePrimaryCtxRetain(void** context, int device) {
  *context = &g_primary[static_cast<size_t>(device)];
  return failure(__func__);
}
FAKE cuCtxGetCurrent(void** context) {
  *context = t_stack.empty() ? nullptr : t_stack.back();
  return failure(__func__);
}
FAKE cuCtxPushCurrent_v2(void* context) {
  FAIL_AS_TOLD();
  t_stack.push_back(context);
  const Held held(lock());
  ++g_fake.contexts_pushed;
  return kSuccess;
}
FAKE cuCtxPopCurrent_v2(void** context) {
  if (t_stack.empty()) return kInvalidContext;
  *context = t_stack.back();
  t_stack.pop_back();
  const Held held(lock());
  --g_fake.contexts_pushed;
  return failure(__func__);
}
FAKE cuCtxSynchronize() { return entered(__func__); }

FAKE cuMemGetInfo_v2(size_t* free, size_t* total) {
  ENTER();
  const Held held(lock());
  *total = g_fake.memory;
  *free = g_fake.memory - used(current()->device);
  return kSuccess;
}
FAKE cuMemAlloc_v2(void** p, size_t bytes) {
  ENTER();
  const int device = current()->device;
  const Held held(lock());
  if (used(device) + bytes > g_fake.memory) return kNoMemory;
  if (posix_memalign(p, 256, bytes) != 0) return kNoMemory;
  g_fake.allocated[*p] = {bytes, device};
  return kSuccess;
}
FAKE cuMemFree_v2(void* p) {
  ENTER();
  const Held held(lock());
  if (g_fake.allocated.erase(p) == 0) return kInvalidValue;
  std::free(p);
  return kSuccess;
}
#define FAKE_COPY(name)                                                 \
  FAKE name(void* to, const void* from, size_t bytes, Stream* stream) { \
    return copied(__func__, to, from, bytes, stream);                   \
  }
FAKE_COPY(cuMemcpyHtoDAsync_v2)
FAKE_COPY(cuMemcpyDtoHAsync_v2)
FAKE_COPY(cuMemcpyDtoDAsync_v2)

FAKE cuMemsetD8Async(void* p, unsigned char value, size_t bytes, Stream* stream) {
  ENTER_FOR(stream);
  if (!stream || !stream->captured) std::memset(p, value, bytes);
  return kSuccess;
}
FAKE cuMemGetAllocationGranularity(size_t* bytes, const void*, int) {
  ENTER();
  *bytes = kMappedPage;
  return kSuccess;
}
FAKE cuMemAddressReserve(void** p, size_t bytes, size_t, void*, unsigned long long) {
  ENTER();
  *p = mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  return *p == MAP_FAILED ? kNoMemory : kSuccess;
}
FAKE cuMemAddressFree(void* p, size_t bytes) {
  return munmap(p, bytes) == 0 ? entered(__func__) : kInvalidValue;
}
FAKE cuMemCreate(uint64_t* memory, size_t bytes, const void*, unsigned long long) {
  ENTER();
  const Held held(lock());
  *memory = bytes;
  return used(current()->device) + bytes > g_fake.memory ? kNoMemory : kSuccess;
}
FAKE cuMemRelease(uint64_t) { return entered(__func__); }
FAKE cuMemMap(void* p, size_t bytes, size_t, uint64_t memory, unsigned long long) {
  ENTER();
  if (bytes != memory || bytes % kMappedPage != 0) return kInvalidValue;
  const Held held(lock());
  g_fake.mapped[p] = {bytes, current()->device};
  return kSuccess;
}
FAKE cuMemSetAccess(void* p, size_t bytes, const void*, size_t) {
  ENTER();
  return mprotect(p, bytes, PROT_READ | PROT_WRITE) == 0 ? kSuccess : kInvalidValue;
}
FAKE cuMemUnmap(void* p, size_t bytes) {
  ENTER();
  const Held held(lock());
  if (g_fake.mapped.erase(p) == 0) return kInvalidValue;
  return mprotect(p, bytes, PROT_NONE) == 0 ? kSuccess : kInvalidValue;
}
FAKE cuPointerGetAttributes(unsigned count, int* which, void** values, char* p) {
  ENTER();
  const Held held(lock());
  const FakeCuda::Memory* found = nullptr;
  for (const auto* all : {&g_fake.allocated, &g_fake.mapped}) {
    auto after = all->upper_bound(p);
    if (after == all->begin()) continue;
    const auto& [begin, memory] = *--after;
    if (p < static_cast<char*>(begin) + memory.bytes) found = &memory;
  }
  for (unsigned i = 0; i < count; ++i) {
    if (which[i] == 2) *static_cast<unsigned*>(values[i]) = found ? 2 : 0;
    if (which[i] == 9) *static_cast<int*>(values[i]) = found ? found->device : -2;
  }
  return kSuccess;
}

FAKE cuStreamCreate(Stream** stream, unsigned) {
  ENTER();
  *stream = new Stream{current()};
  const Held held(lock());
  ++g_fake.streams;
  return kSuccess;
}
FAKE cuStreamDestroy_v2(Stream* stream) {
  delete stream;
  const Held held(lock());
  --g_fake.streams;
  return kSuccess;
}
FAKE cuStreamSynchronize(Stream* stream) {
  ENTER_FOR(stream);
  return stream && stream->captured ? kCapturing : kSuccess;
}
FAKE cuStreamWaitEvent(Stream* stream, Event* event, unsigned) {
  ENTER_FOR(stream);
  return event->moment == 0 ? kInvalidValue : kSuccess;
}
FAKE cuStreamBeginCapture_v2(Stream* stream, int) {
  ENTER_FOR(stream);
  if (stream->captured) return kCapturing;
  stream->captured = new std::vector<FakeCuda::Launch>;
  return kSuccess;
}
FAKE cuStreamEndCapture(Stream* stream, Graph** graph) {
  const std::unique_ptr<std::vector<FakeCuda::Launch>> captured(stream->captured);
  stream->captured = nullptr;
  ENTER_FOR(stream);
  *graph = new Graph{stream->context, *captured};
  const Held held(lock());
  ++g_fake.graphs;
  return kSuccess;
}
FAKE cuGraphInstantiateWithFlags(Graph** exec, Graph* graph, unsigned long long) {
  ENTER_FOR(graph);
  *exec = new Graph(*graph);
  const Held held(lock());
  ++g_fake.graphs;
  return kSuccess;
}
FAKE cuGraphLaunch(Graph* exec, Stream* stream) {
  ENTER_FOR(exec);
  ENTER_FOR(stream);
  const Held held(lock());
  for (FakeCuda::Launch l : exec->launches) {
    l.stream = stream;
    g_fake.launches.push_back(std::move(l));
  }
  return kSuccess;
}
FAKE cuGraphDestroy(Graph* graph) {
  delete graph;
  const Held held(lock());
  --g_fake.graphs;
  return kSuccess;
}
FAKE cuGraphExecDestroy(Graph* exec) { return cuGraphDestroy(exec); }

FAKE cuEventCreate(Event** event, unsigned) {
  ENTER();
  *event = new Event{current()};
  const Held held(lock());
  ++g_fake.events;
  return kSuccess;
}
FAKE cuEventDestroy_v2(Event* event) {
  delete event;
  const Held held(lock());
  --g_fake.events;
  return kSuccess;
}
FAKE cuEventRecord(Event* event, Stream* stream) {
  ENTER_FOR(event);
  ENTER_FOR(stream);
  const Held held(lock());
  event->moment = ++g_moment;
  return kSuccess;
}
FAKE cuEventQuery(Event* event) { return entered_for(__func__, event); }
FAKE cuEventSynchronize(Event* event) { return entered_for(__func__, event); }
FAKE cuEventElapsedTime(float* ms, const Event* begin, const Event* end) {
  ENTER_FOR(begin);
  ENTER_FOR(end);
  *ms = static_cast<float>(end->moment - begin->moment);
  return kSuccess;
}

FAKE cuModuleLoadData(ModuleImage** module, const void* image) {
  ENTER();
  const auto* text = static_cast<const char*>(image);
  const bool elf = std::memcmp(text, ELFMAG, SELFMAG) == 0;
  if (!elf && std::strncmp(text, "fake", 4) != 0) return kInvalidImage;
  *module = new ModuleImage{{text, elf ? image_bytes(image) : std::strlen(text)}, current()};
  const Held held(lock());
  ++g_fake.modules;
  return kSuccess;
}
FAKE cuModuleUnload(ModuleImage* module) {
  ENTER_FOR(module);
  delete module;
  const Held held(lock());
  --g_fake.modules;
  return kSuccess;
}
FAKE cuModuleGetFunction(Function** function, ModuleImage* module, const char* name) {
  ENTER_FOR(module);
  if (module->image.find(name) == std::string::npos) return kNotFound;
  const Held held(lock());
  static auto& functions = *new std::vector<std::unique_ptr<Function>>;  // as long as the process
  functions.push_back(std::make_unique<Function>(name, module->context));
  *function = functions.back().get();
  return kSuccess;
}
FAKE cuFuncSetAttribute(Function* function, int which, int value) {
  ENTER_FOR(function);
  if (which != 8) return kInvalidValue;
  const Held held(lock());
  function->shared_allowed = value;
  ++g_fake.shared_grants;
  return kSuccess;
}
FAKE cuLaunchKernelEx(const LaunchConfig* config, Function* function, void** parameters, void**) {
  ENTER_FOR(function);
  auto* stream = reinterpret_cast<Stream*>(config->stream);
  ENTER_FOR(stream);
  const Held held(lock());
  if (static_cast<int>(config->shared_bytes) > function->shared_allowed) return kInvalidValue;
  if (!g_fake.recording) return kSuccess;
  const auto* words = static_cast<const uint64_t*>(parameters[0]);
  const bool early = config->attribute_count == 1 && config->attributes[0].id == 6 &&
                     config->attributes[0].value == 1;
  auto& list = stream && stream->captured ? *stream->captured : g_fake.launches;
  list.push_back({function->name,
                  current()->device,
                  config->grid[0],
                  config->block[0],
                  config->shared_bytes,
                  stream,
                  {words, words + g_fake.parameter_words},
                  early});
  return kSuccess;
}

FAKE cuTensorMapEncodeTiled(void* map, int type, unsigned rank, void* data, const uint64_t* dims,
                            const uint64_t* strides, const unsigned* box, const unsigned* steps,
                            int interleave, int swizzle, int promotion, int fill) {
  ENTER();
  auto& seen = g_fake.tensor_map;
  seen = {static_cast<uint64_t>(type), rank, reinterpret_cast<uint64_t>(data)};
  seen.insert(seen.end(), dims, dims + rank);
  seen.insert(seen.end(), strides, strides + rank - 1);
  seen.insert(seen.end(), box, box + rank);
  seen.insert(seen.end(), steps, steps + rank);
  for (const int n : {interleave, swizzle, promotion, fill})
    seen.push_back(static_cast<uint64_t>(n));
  std::memset(map, 0xab, 128);
  return kSuccess;
}
