#include "tw/tensor/dlpack.h"

#include <array>
#include <fmt/format.h>

#include "tw/base/error.h"

namespace tw::dlpack {

namespace {

constexpr int32_t kHost = 1;

struct Format {
  DType dtype;
  uint8_t code;
};
constexpr std::array kFormats = {
    Format{b1, 6},   Format{i8, 0},    Format{i16, 0},   Format{i32, 0},
    Format{i64, 0},  Format{u8, 1},    Format{u16, 1},   Format{u32, 1},
    Format{u64, 1},  Format{e4m3, 10}, Format{e5m2, 12}, Format{f16, 2},
    Format{bf16, 4}, Format{f32, 2},   Format{f64, 2},   Format{e8m0, 14},
};

DType dtype_of(const DataType& d) {
  for (const Format& f : kFormats) {
    if (f.code == d.code && 8 * bytes(f.dtype) == d.bits && d.lanes == 1) return f.dtype;
  }
  throw UserError(
      fmt::format("a DLPack tensor of type code {}, {} bits, {} lanes has no dtype here", d.code,
                  d.bits, d.lanes));
}

TensorView view_of(const Array& a) {
  if (a.device.type != kHost) {
    throw UserError(
        fmt::format("a DLPack tensor on device type {}: wanted host memory (1)", a.device.type),
        "copy it to the host first");
  }
  TensorView v;
  v.dtype = dtype_of(a.dtype);
  if (a.ndim < 0 || (a.ndim > 0 && !a.shape)) {
    throw UserError(fmt::format("a DLPack tensor of {} axes without a shape", a.ndim));
  }
  v.dims.assign(a.shape, a.shape + a.ndim);
  byte_count(v.dtype, v.dims);
  v.strides = contiguous_strides(v.dims);
  if (a.strides) v.strides.assign(a.strides, a.strides + a.ndim);
  byte_range(v);
  if (a.data) v.data = static_cast<char*>(a.data) + a.byte_offset;
  if (!v.data && v.count() != 0) throw UserError("a DLPack tensor without data: " + to_string(v));
  if (reinterpret_cast<uintptr_t>(v.data) % bytes(v.dtype) != 0) {
    throw UserError(fmt::format("a DLPack tensor at {}: {} wants multiples of {} bytes", v.data,
                                name(v.dtype), bytes(v.dtype)),
                    "copy it first");
  }
  return v;
}

struct Exported {
  Tensor tensor;
  std::vector<int64_t> shape, strides;
  ManagedTensor managed;
};

void release(ManagedTensor* m) {
  if (m->deleter) m->deleter(m);
}

}  // namespace

Tensor import_tensor(ManagedTensor* m) {
  std::shared_ptr<void> owner(m, [](void* p) { release(static_cast<ManagedTensor*>(p)); });
  return Tensor(view_of(m->array), std::move(owner));
}

ManagedTensor* export_tensor(const Tensor& t) {
  if (is_packed(t.dtype())) {
    throw UserError(fmt::format("{} as a DLPack tensor: elements of less than a byte have no "
                                "strides there",
                                to_string(t.view())),
                    "export its bytes as u8");
  }
  auto* e = new Exported{t, t.view().dims, t.view().strides, {}};
  Array& a = e->managed.array;
  a.data = t.view().data;
  a.device = {kHost, 0};
  a.ndim = t.view().rank();
  a.dtype = {0, static_cast<uint8_t>(8 * bytes(t.dtype())), 1};
  for (const Format& f : kFormats) {
    if (f.dtype == t.dtype()) a.dtype.code = f.code;
  }
  a.shape = e->shape.data();
  a.strides = e->strides.data();
  a.byte_offset = 0;
  e->managed.context = e;
  e->managed.deleter = [](ManagedTensor* m) { delete static_cast<Exported*>(m->context); };
  return &e->managed;
}

}  // namespace tw::dlpack
