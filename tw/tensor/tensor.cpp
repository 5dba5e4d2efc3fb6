#include "tw/tensor/tensor.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tw/base/error.h"
#include "tw/base/round.h"
#include "tw/num/codec.h"

namespace tw {

static std::string list(const std::vector<int64_t>& v) {
  return fmt::format("[{}]", fmt::join(v, ","));
}

int64_t TensorView::count() const {
  int64_t n = 1;
  for (int64_t d : dims) n *= d;
  return n;
}

bool TensorView::is_contiguous() const {
  if (count() == 0) return true;
  const std::vector<int64_t> want = contiguous_strides(dims, dtype);
  for (int k = 0; k < rank(); ++k) {
    if (dims[k] != 1 && strides[k] != want[k]) return false;
  }
  return true;
}

std::vector<int64_t> contiguous_strides(const std::vector<int64_t>& dims, DType t) {
  std::vector<int64_t> strides(dims.size());
  int64_t stride = 1;
  for (size_t k = dims.size(); k-- > 0;) {
    strides[k] = stride;
    stride *= std::max<int64_t>(dims[k], 1);
    if (k + 1 == dims.size()) stride = round_up(stride, elements_of_bytes(t));
  }
  return strides;
}

std::string packing_fault(const TensorView& t) {
  if (!is_packed(t.dtype)) return "";
  for (int k = t.rank() - 1; k >= 0; --k) {
    if (t.dims[k] == 1) continue;
    if (k + 1 == t.rank() && t.strides[k] != 1) {
      return fmt::format("{}: packed elements need stride 1 along the last axis", to_string(t));
    }
    if (k + 1 < t.rank() && t.strides[k] % elements_of_bytes(t.dtype) != 0) {
      return fmt::format(
          "{}: rows of packed elements begin with a byte, so stride {} must be a "
          "multiple of {}",
          to_string(t), t.strides[k], elements_of_bytes(t.dtype));
    }
  }
  return "";
}

/// Where an element of less than a byte lies: its first byte, its first bit there, and whether it
/// goes on in the next.
struct PackedAt {
  int64_t byte;
  int shift;
  bool two;
  PackedAt(DType t, int64_t offset) {
    const int64_t bit = offset * bits(t);
    byte = bit >> 3;
    shift = static_cast<int>(bit & 7);
    two = shift + bits(t) > 8;
  }
};

uint64_t load_bits(DType t, const void* data, int64_t offset) {
  const auto* from = static_cast<const unsigned char*>(data);
  if (!is_packed(t)) {
    uint64_t code = 0;
    std::memcpy(&code, from + offset * bytes(t), static_cast<size_t>(bytes(t)));
    return code;
  }
  const PackedAt at(t, offset);
  unsigned word = from[at.byte];
  if (at.two) word |= unsigned{from[at.byte + 1]} << 8;
  return word >> at.shift & ((1u << bits(t)) - 1);
}

void store_bits(DType t, void* data, int64_t offset, uint64_t code) {
  auto* to = static_cast<unsigned char*>(data);
  if (!is_packed(t)) {
    std::memcpy(to + offset * bytes(t), &code, static_cast<size_t>(bytes(t)));
    return;
  }
  const PackedAt at(t, offset);
  const unsigned mask = ((1u << bits(t)) - 1) << at.shift;
  const unsigned word = static_cast<unsigned>(code) << at.shift & mask;
  to[at.byte] = static_cast<unsigned char>((to[at.byte] & ~mask) | word);
  if (!at.two) return;
  to[at.byte + 1] = static_cast<unsigned char>((to[at.byte + 1] & ~(mask >> 8)) | word >> 8);
}

std::string to_string(const TensorView& t) {
  return fmt::format("{}{} strides {}", name(t.dtype), list(t.dims), list(t.strides));
}

int64_t byte_count(DType t, const std::vector<int64_t>& dims) {
  int64_t n = is_packed(t) ? 1 : bytes(t);
  bool overflow = false, empty = false;
  for (size_t k = 0; k < dims.size(); ++k) {
    int64_t d = dims[k];
    if (is_packed(t) && k + 1 == dims.size() && d >= 0) {
      const int64_t group = elements_of_bytes(t);
      overflow |= d > (INT64_MAX - 7 * group) / group;
      d = overflow ? 1 : ceil_div(d, group) * (group * bits(t) / 8);
    }
    if (d < 0) {
      throw UserError(fmt::format("shape {} has the negative extent {}", list(dims), d));
    }
    empty |= d == 0;
    // Zero extents are left out so that [0, 2^62, 2^62], whose strides overflow, is refused too.
    overflow |= __builtin_mul_overflow(n, std::max<int64_t>(d, 1), &n);
  }
  if (overflow) {
    throw UserError(fmt::format("{}{} takes more than 2^63 bytes", name(t), list(dims)));
  }
  return empty ? 0 : n;
}

ByteRange byte_range(const TensorView& t) {
  for (int64_t d : t.dims) {
    if (d == 0) return {};
  }
  // Packed elements are counted in bits first.
  const int64_t unit = is_packed(t.dtype) ? bits(t.dtype) : bytes(t.dtype);
  ByteRange r{0, unit};
  bool overflow = false;
  for (int k = 0; k < t.rank(); ++k) {
    int64_t reach = 0;
    overflow |= __builtin_mul_overflow(t.dims[k] - 1, t.strides[k], &reach);
    overflow |= __builtin_mul_overflow(reach, unit, &reach);
    int64_t& side = reach < 0 ? r.begin : r.end;
    overflow |= __builtin_add_overflow(side, reach, &side);
  }
  if (is_packed(t.dtype) && !overflow) r = {r.begin >> 3, r.end / 8 + (r.end % 8 != 0)};
  if (overflow) throw UserError(to_string(t) + " reaches past 2^63 bytes");
  return r;
}

static void check_axis(const TensorView& t, int axis, const char* what) {
  if (axis >= 0 && axis < t.rank()) return;
  throw UserError(
      fmt::format("{} of axis {} of {}, which has {} axes", what, axis, to_string(t), t.rank()));
}

Tensor Tensor::transpose(int a, int b) const {
  check_axis(view_, a, "transpose");
  check_axis(view_, b, "transpose");
  TensorView v = view_;
  std::swap(v.dims[a], v.dims[b]);
  std::swap(v.strides[a], v.strides[b]);
  return {v, owner_};
}

Tensor Tensor::slice(int axis, int64_t begin, int64_t end, int64_t step) const {
  check_axis(view_, axis, "slice");
  const int64_t n = view_.dims[axis];
  if (begin < 0 || end < begin || end > n || step < 1) {
    throw UserError(
        fmt::format("slice [{}:{}:{}] of axis {} of {}: wanted 0 <= begin <= end <= {} "
                    "and step >= 1",
                    begin, end, step, axis, to_string(view_), n));
  }
  TensorView v = view_;
  v.dims[axis] = ceil_div(end - begin, step);
  v.strides[axis] *= step;
  if (v.count() == 0) return {v, owner_};
  const int64_t offset = begin * view_.strides[axis];
  if (offset % elements_of_bytes(v.dtype) != 0) {
    throw UserError(fmt::format("slice [{}:{}:{}] of axis {} of {} begins inside a byte", begin,
                                end, step, axis, to_string(view_)),
                    fmt::format("begin at a multiple of {}", elements_of_bytes(v.dtype)));
  }
  v.data = static_cast<char*>(v.data) +
           (is_packed(v.dtype) ? offset * bits(v.dtype) / 8 : offset * bytes(v.dtype));
  return {v, owner_};
}

Tensor Tensor::reshape(std::vector<int64_t> dims) const {
  TensorView v = view_;
  v.dims = std::move(dims);
  v.strides = contiguous_strides(v.dims, v.dtype);
  byte_count(v.dtype, v.dims);
  if (v.count() != view_.count()) {
    throw UserError(fmt::format("reshape of {} to {}: {} elements are not {}", to_string(view_),
                                list(v.dims), view_.count(), v.count()));
  }
  if (!view_.is_contiguous()) {
    throw UserError(fmt::format("reshape of {}: it has gaps", to_string(view_)), "copy() it first");
  }
  const auto padded = [](const TensorView& t) {
    return t.rank() > 0 && t.dims.back() % elements_of_bytes(t.dtype) != 0;
  };
  if (v.dims != view_.dims && (padded(v) || padded(view_))) {
    throw UserError(
        fmt::format("reshape of {} to {}: rows end inside a byte", to_string(view_), list(v.dims)));
  }
  return {v, owner_};
}

Tensor Tensor::expand(std::vector<int64_t> dims) const {
  TensorView v = view_;
  bool fits = dims.size() == v.dims.size();
  for (size_t k = 0; fits && k < dims.size(); ++k) {
    if (v.dims[k] == dims[k]) continue;
    fits = v.dims[k] == 1 && dims[k] >= 0;
    v.strides[k] = 0;
  }
  if (!fits) {
    throw UserError(
        fmt::format("expand of {} to {}: only extents of 1 stretch", to_string(view_), list(dims)));
  }
  v.dims = std::move(dims);
  byte_count(v.dtype, v.dims);
  return {v, owner_};
}

Tensor Tensor::bitcast(DType t) const {
  if (bits(t) != bits(view_.dtype)) {
    throw UserError(fmt::format("bitcast of {} to {}: elements of {} bits are not elements of {}",
                                to_string(view_), name(t), bits(view_.dtype), bits(t)));
  }
  TensorView v = view_;
  v.dtype = t;
  return {v, owner_};
}

/// 2 MB pages spare large tensors most TLB misses; the kernel gives them where it can.
static void* allocate(int64_t size) {
  constexpr int64_t kHuge = 2 << 20;
  const bool large = size >= 2 * kHuge;
  void* p = nullptr;
  if (posix_memalign(&p, large ? kHuge : 64, std::max<int64_t>(size, 64)) != 0) return nullptr;
  if (large) madvise(p, size, MADV_HUGEPAGE);
  return p;
}

int64_t machine_memory() {
  return static_cast<int64_t>(sysconf(_SC_PHYS_PAGES)) * sysconf(_SC_PAGESIZE);
}

Tensor host_tensor(DType t, std::vector<int64_t> dims) {
  TensorView v{nullptr, t, std::move(dims), {}};
  const int64_t size = byte_count(t, v.dims);
  v.strides = contiguous_strides(v.dims, t);
  // Asking first: an overcommitting kernel grants any size and kills the process when it is used.
  const int64_t memory = machine_memory();
  if (size < memory) v.data = allocate(size);
  if (!v.data) {
    throw EnvError(fmt::format("no memory for {}{}: it takes {:.1f} GB, the machine has {:.1f} GB",
                               name(t), list(v.dims), double(size) * 1e-9, double(memory) * 1e-9));
  }
  return {v, std::shared_ptr<void>(v.data, std::free)};
}

/// Calls row(offset, n, stride) for each run along the last axis, in row-major order.
template <class F>
static void for_each_row(const TensorView& t, F&& row) {
  if (t.count() == 0) return;
  const int last = t.rank() - 1;
  if (last < 0) return row(int64_t{0}, int64_t{1}, int64_t{1});
  std::vector<int64_t> index(t.rank(), 0);
  int64_t offset = 0;
  for (;;) {
    row(offset, t.dims[last], t.strides[last]);
    int k = last - 1;
    for (; k >= 0; --k) {
      offset += t.strides[k];
      if (++index[k] < t.dims[k]) break;
      offset -= t.strides[k] * t.dims[k];
      index[k] = 0;
    }
    if (k < 0) return;
  }
}

/// Bits of the last byte of a row that are no element's become 0.
static void copy_packed(const TensorView& t, const TensorView& to) {
  std::memset(to.data, 0, static_cast<size_t>(byte_count(to.dtype, to.dims)));
  int64_t row = 0;
  for_each_row(t, [&](int64_t offset, int64_t n, int64_t stride) {
    for (int64_t i = 0; i < n; ++i)
      store_bits(t.dtype, to.data, row + i, load_bits(t.dtype, t.data, offset + i * stride));
    row += round_up(n, elements_of_bytes(t.dtype));
  });
}

Tensor copy(const TensorView& t) {
  Tensor out = host_tensor(t.dtype, t.dims);
  if (is_packed(t.dtype)) {
    copy_packed(t, out);
    return out;
  }
  const int64_t size = bytes(t.dtype);
  const char* from = static_cast<const char*>(t.data);
  char* to = out.data<char>();
  for_each_row(t, [&](int64_t offset, int64_t n, int64_t stride) {
    if (stride == 1) {
      std::memcpy(to, from + offset * size, n * size);
      to += n * size;
      return;
    }
    for (int64_t i = 0; i < n; ++i, to += size) {
      std::memcpy(to, from + (offset + i * stride) * size, size);
    }
  });
  return out;
}

int64_t TensorView::offset(int64_t index) const {
  int64_t sum = 0;
  for (int k = rank() - 1; k >= 0; --k) {
    sum += index % dims[k] * strides[k];
    index /= dims[k];
  }
  return sum;
}

static int64_t offset_of(const TensorView& t, int64_t index) {
  if (index < 0 || index >= t.count()) {
    throw UserError(fmt::format("element {} of {}, which has {}", index, to_string(t), t.count()));
  }
  return t.offset(index);
}

static double load(const TensorView& t, int64_t offset) {
  if (t.dtype == f32) {  // what most tensors hold, and references read whole ones
    float value;
    std::memcpy(&value, static_cast<const float*>(t.data) + offset, sizeof value);
    return value;
  }
  const uint64_t code = load_bits(t.dtype, t.data, offset);
  if (is_float(t.dtype)) return decode(t.dtype, code);
  if (!is_signed_int(t.dtype)) return static_cast<double>(code);
  const int unused = 64 - static_cast<int>(bits(t.dtype));
  return static_cast<double>(static_cast<int64_t>(code << unused) >> unused);
}

double get(const TensorView& t, int64_t index) { return load(t, offset_of(t, index)); }

void set(const TensorView& t, int64_t index, double value) {
  const uint64_t code = is_float(t.dtype) ? encode(t.dtype, value) : encode_int(t.dtype, value);
  store_bits(t.dtype, t.data, offset_of(t, index), code);
}

std::vector<double> to_doubles(const TensorView& t) {
  std::vector<double> all;
  all.reserve(static_cast<size_t>(t.count()));
  for_each_row(t, [&](int64_t offset, int64_t n, int64_t stride) {
    for (int64_t i = 0; i < n; ++i) all.push_back(load(t, offset + i * stride));
  });
  return all;
}

}  // namespace tw
