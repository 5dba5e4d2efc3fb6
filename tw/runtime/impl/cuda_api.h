#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace tw::cuda {

// What we use of the driver's C ABI (NVIDIA's CUDA Driver API Reference). Names are ours, layouts
// and numbers are theirs. Handles are told apart by types that nobody completes.
using Result = int;
using Pointer = uint64_t;
using ContextHandle = struct ContextOfDriver*;
using StreamHandle = struct StreamOfDriver*;
using EventHandle = struct EventOfDriver*;
using ModuleHandle = struct ModuleOfDriver*;
using FunctionHandle = struct FunctionOfDriver*;
using GraphHandle = struct GraphOfDriver*;
using GraphExecHandle = struct GraphExecOfDriver*;

inline constexpr Result kOutOfMemory = 2, kNoDevice = 100, kNotReady = 600;
inline constexpr unsigned kNonBlocking = 1;    // of streams: does not wait for the default one
inline constexpr int kCaptureOfThread = 1;     // other threads' calls do not break the capture
inline constexpr int kDynamicSharedBytes = 8;  // attribute of functions
inline constexpr int kPinnedMemory = 1, kDeviceMemory = 2;  // what kMemoryType says
inline constexpr int kReadWrite = 3;                        // access to mapped memory
inline constexpr int kMemoryType = 2, kIsManaged = 8, kDeviceOrdinal = 9;

/// Attributes of devices.
enum class Attribute : int {
  multiprocessors = 16,
  memory_clock_khz = 36,
  memory_bus_bits = 37,
  l2_bytes = 38,
  threads_per_multiprocessor = 39,
  major = 75,
  minor = 76,
  shared_per_multiprocessor = 81,
  registers_per_multiprocessor = 82,
  shared_per_block = 97,
};

/// The driver's CUlaunchAttribute, and its CUlaunchConfig.
struct LaunchAttribute {
  int id;
  alignas(8) int value;
  char unused[60] = {};
};
inline constexpr int kEarlyLaunch = 6;  // programmatic stream serialization
struct LaunchConfig {
  unsigned grid[3], block[3], shared_bytes;
  StreamHandle stream;
  LaunchAttribute* attributes;
  unsigned attribute_count;
};
static_assert(sizeof(LaunchAttribute) == 72 && sizeof(LaunchConfig) == 56);

/// The driver's CUmemAllocationProp: memory of a device, to be mapped.
struct MappedMemory {
  int type = 1, shared_as = 0;
  int location = 1, device = 0;
  void* unused = nullptr;
  char flags[8] = {};
};
/// And its CUmemAccessDesc.
struct MappedAccess {
  int location = 1, device = 0, access = kReadWrite;
};
static_assert(sizeof(MappedMemory) == 32 && sizeof(MappedAccess) == 12);

// X(member, symbol, parameters)
#define TW_CUDA_DRIVER(X)                                                                          \
  X(init, "cuInit", (unsigned flags))                                                              \
  X(driver_version, "cuDriverGetVersion", (int* version))                                          \
  X(error_name, "cuGetErrorName", (Result error, const char** name))                               \
  X(error_text, "cuGetErrorString", (Result error, const char** text))                             \
  X(device_count, "cuDeviceGetCount", (int* count))                                                \
  X(device_get, "cuDeviceGet", (int* device, int ordinal))                                         \
  X(device_name, "cuDeviceGetName", (char* name, int size, int device))                            \
  X(device_memory, "cuDeviceTotalMem_v2", (size_t * bytes, int device))                            \
  X(device_attribute, "cuDeviceGetAttribute", (int* value, Attribute attribute, int device))       \
  X(context_retain, "cuDevicePrimaryCtxRetain", (ContextHandle * context, int device))             \
  X(context_current, "cuCtxGetCurrent", (ContextHandle * context))                                 \
  X(context_push, "cuCtxPushCurrent_v2", (ContextHandle context))                                  \
  X(context_pop, "cuCtxPopCurrent_v2", (ContextHandle * context))                                  \
  X(context_synchronize, "cuCtxSynchronize", ())                                                   \
  X(memory_info, "cuMemGetInfo_v2", (size_t * free, size_t * total))                               \
  X(memory_alloc, "cuMemAlloc_v2", (Pointer * p, size_t bytes))                                    \
  X(memory_free, "cuMemFree_v2", (Pointer p))                                                      \
  X(copy_in, "cuMemcpyHtoDAsync_v2",                                                               \
    (Pointer to, const void* from, size_t bytes, StreamHandle stream))                             \
  X(copy_out, "cuMemcpyDtoHAsync_v2", (void* to, Pointer from, size_t bytes, StreamHandle stream)) \
  X(copy_there, "cuMemcpyDtoDAsync_v2",                                                            \
    (Pointer to, Pointer from, size_t bytes, StreamHandle stream))                                 \
  X(memory_set, "cuMemsetD8Async",                                                                 \
    (Pointer p, unsigned char value, size_t bytes, StreamHandle stream))                           \
  X(map_granularity, "cuMemGetAllocationGranularity",                                              \
    (size_t * bytes, const MappedMemory* what, int option))                                        \
  X(address_reserve, "cuMemAddressReserve",                                                        \
    (Pointer * p, size_t bytes, size_t alignment, Pointer wanted, unsigned long long flags))       \
  X(address_free, "cuMemAddressFree", (Pointer p, size_t bytes))                                   \
  X(mapped_create, "cuMemCreate",                                                                  \
    (uint64_t * memory, size_t bytes, const MappedMemory* what, unsigned long long flags))         \
  X(mapped_release, "cuMemRelease", (uint64_t memory))                                             \
  X(map, "cuMemMap",                                                                               \
    (Pointer p, size_t bytes, size_t offset, uint64_t memory, unsigned long long flags))           \
  X(map_access, "cuMemSetAccess",                                                                  \
    (Pointer p, size_t bytes, const MappedAccess* access, size_t count))                           \
  X(unmap, "cuMemUnmap", (Pointer p, size_t bytes))                                                \
  X(pointer_attributes, "cuPointerGetAttributes",                                                  \
    (unsigned count, int* attributes, void** values, Pointer p))                                   \
  X(stream_create, "cuStreamCreate", (StreamHandle * stream, unsigned flags))                      \
  X(stream_destroy, "cuStreamDestroy_v2", (StreamHandle stream))                                   \
  X(stream_synchronize, "cuStreamSynchronize", (StreamHandle stream))                              \
  X(stream_wait, "cuStreamWaitEvent", (StreamHandle stream, EventHandle event, unsigned flags))    \
  X(capture_begin, "cuStreamBeginCapture_v2", (StreamHandle stream, int mode))                     \
  X(capture_end, "cuStreamEndCapture", (StreamHandle stream, GraphHandle * graph))                 \
  X(graph_instantiate, "cuGraphInstantiateWithFlags",                                              \
    (GraphExecHandle * exec, GraphHandle graph, unsigned long long flags))                         \
  X(graph_launch, "cuGraphLaunch", (GraphExecHandle exec, StreamHandle stream))                    \
  X(graph_destroy, "cuGraphDestroy", (GraphHandle graph))                                          \
  X(graph_exec_destroy, "cuGraphExecDestroy", (GraphExecHandle exec))                              \
  X(event_create, "cuEventCreate", (EventHandle * event, unsigned flags))                          \
  X(event_destroy, "cuEventDestroy_v2", (EventHandle event))                                       \
  X(event_record, "cuEventRecord", (EventHandle event, StreamHandle stream))                       \
  X(event_query, "cuEventQuery", (EventHandle event))                                              \
  X(event_synchronize, "cuEventSynchronize", (EventHandle event))                                  \
  X(event_elapsed, "cuEventElapsedTime", (float* ms, EventHandle begin, EventHandle end))          \
  X(module_load, "cuModuleLoadData", (ModuleHandle * module, const void* image))                   \
  X(module_unload, "cuModuleUnload", (ModuleHandle module))                                        \
  X(module_function, "cuModuleGetFunction",                                                        \
    (FunctionHandle * function, ModuleHandle module, const char* name))                            \
  X(function_set, "cuFuncSetAttribute", (FunctionHandle function, int attribute, int value))       \
  X(launch, "cuLaunchKernelEx",                                                                    \
    (const LaunchConfig* config, FunctionHandle function, void** parameters, void** extra))        \
  X(tensor_map, "cuTensorMapEncodeTiled",                                                          \
    (void* map, int type, unsigned rank, void* data, const uint64_t* dims,                         \
     const uint64_t* strides, const unsigned* box, const unsigned* steps, int interleave,          \
     int swizzle, int promotion, int fill))

/// The driver's functions.
struct Api {
  std::string path;  ///< of the file they were found in
#define TW_CUDA_MEMBER(member, symbol, parameters) Result(*member) parameters = nullptr;
  TW_CUDA_DRIVER(TW_CUDA_MEMBER)
#undef TW_CUDA_MEMBER
};

/// The driver that TW_CUDA_DRIVER names, or libcuda.so.1; loaded once, initialised, never unloaded.
/// Throws EnvError when there is none, none that sees a GPU, or an older one than texts need.
const Api& driver();

/// "CUDA_ERROR_X (what it says)".
std::string text_of(const Api& api, Result code);

}  // namespace tw::cuda
