#include <fmt/format.h>

#include "tw/base/error.h"
#include "tw/runtime/cuda/cuda.h"
#include "tw/runtime/impl/cuda_gpu.h"

namespace tw::cuda {

/// Bytes that a copy moves.
static size_t copied_bytes(const TensorView& to, const TensorView& from) {
  if (to.dtype != from.dtype || to.count() != from.count() || !to.is_contiguous() ||
      !from.is_contiguous()) {
    throw UserError(fmt::format("copy of {} to {}: wanted contiguous tensors of one type and size",
                                to_string(from), to_string(to)));
  }
  return static_cast<size_t>(byte_count(to.dtype, to.dims));
}

static Pointer address(const void* p) { return reinterpret_cast<Pointer>(p); }

static void finish_copy(const Stream& s, Result code) {
  s.gpu().check(code, "to copy");
  s.synchronize();
}

static std::string fault_on(const Gpu& gpu, const void* p) {
  if (!p) return "";
  const Current current(gpu);
  unsigned type = 0, managed = 0;
  int ordinal = -1;
  int attributes[] = {kMemoryType, kIsManaged, kDeviceOrdinal};
  void* values[] = {&type, &managed, &ordinal};
  gpu.check(gpu.api().pointer_attributes(3, attributes, values, address(p)), "to tell of memory");
  if (managed || type == kPinnedMemory || (type == kDeviceMemory && ordinal == gpu.ordinal()))
    return "";
  return type == kDeviceMemory
             ? fmt::format("lies on cuda:{}: wanted memory of {}", ordinal, gpu.name())
             : fmt::format("lies in the host's memory: wanted memory of {}", gpu.name());
}

static void check_side(const Stream& s, const TensorView& t) {
  const std::string fault = fault_on(s.gpu(), t.data);
  if (!fault.empty())
    throw UserError(
        fmt::format("copy by a stream of {}: {} {}", s.gpu().name(), to_string(t), fault));
}

void copy_in(const Stream& s, const TensorView& to, const TensorView& from) {
  const size_t size = copied_bytes(to, from);
  if (size == 0) return;
  check_side(s, to);
  const Current current(s.gpu());
  finish_copy(s, s.gpu().api().copy_in(address(to.data), from.data, size,
                                       static_cast<StreamHandle>(s.handle())));
}

void copy_out(const Stream& s, const TensorView& to, const TensorView& from) {
  const size_t size = copied_bytes(to, from);
  if (size == 0) return;
  check_side(s, from);
  const Current current(s.gpu());
  finish_copy(s, s.gpu().api().copy_out(to.data, address(from.data), size,
                                        static_cast<StreamHandle>(s.handle())));
}

void copy_there(const Stream& s, const TensorView& to, const TensorView& from) {
  const size_t size = copied_bytes(to, from);
  if (size == 0) return;
  const Current current(s.gpu());
  s.gpu().check(s.gpu().api().copy_there(address(to.data), address(from.data), size,
                                         static_cast<StreamHandle>(s.handle())),
                "to copy");
}

Tensor to_device(const Device& d, const TensorView& host) {
  Tensor t = empty(d, host.dtype, host.dims);
  copy_in(Stream::standard(d), t, host.is_contiguous() ? Tensor(host, nullptr) : copy(host));
  return t;
}

Tensor to_host(const Device& d, const TensorView& t) {
  const ByteRange range = byte_range(t);
  const int64_t size = range.end - range.begin;
  const Tensor all = host_tensor(u8, {size});
  const TensorView there{static_cast<char*>(t.data) + range.begin, u8, {size}, {1}};
  copy_out(Stream::standard(d), all, there);
  TensorView here = t;
  here.data = all.data<char>() - range.begin;
  return copy(here);
}

std::string memory_fault(const Device& d, const void* p) { return fault_on(d.cuda(), p); }

}  // namespace tw::cuda
