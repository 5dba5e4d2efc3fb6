#include "tw/graph/onnx/elements.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <optional>
#include <type_traits>

#include "tw/base/error.h"

namespace tw::graph::onnx {

namespace {

static_assert(std::endian::native == std::endian::little);

constexpr size_t kMostRank = 64;

/// The list of numbers that holds elements of a type, when bytes do not.
enum class Field : uint8_t { floats, doubles, int32s, int64s, uint64s };

struct ElementType {
  const char* name;
  std::optional<DType> dtype = {};
  Field field = Field::int32s;
};

/// By TensorProto::DataType.
constexpr ElementType kElementTypes[] = {
    {"undefined"},
    {"float", f32, Field::floats},
    {"uint8", u8},
    {"int8", i8},
    {"uint16", u16},
    {"int16", i16},
    {"int32", i32},
    {"int64", i64, Field::int64s},
    {"string"},
    {"bool", b1},
    {"float16", f16},
    {"double", f64, Field::doubles},
    {"uint32", u32, Field::uint64s},
    {"uint64", u64, Field::uint64s},
    {"complex64"},
    {"complex128"},
    {"bfloat16", bf16},
    {"float8e4m3fn", e4m3},
    {"float8e4m3fnuz"},
    {"float8e5m2", e5m2},
    {"float8e5m2fnuz"},
    {"uint4", u4},
    {"int4", i4},
    {"float4e2m1", e2m1},
    {"float8e8m0", e8m0},
    {"uint2", u2},
    {"int2", i2},
    {"float6e2m3", e2m3},
    {"float6e3m2", e3m2},
};

const ElementType* known_type(int type) {
  return type >= 0 && type < std::ssize(kElementTypes) ? &kElementTypes[type] : nullptr;
}

[[noreturn]] void fail_tensor(const Encoded& e, const std::string& what) {
  throw UserError(fmt::format("{} {}", e.title, what));
}

int64_t element_count(const Encoded& e) {
  const auto extents = [&] { return fmt::format("has extents [{}]", fmt::join(e.dims, ",")); };
  if (e.dims.size() > kMostRank)
    fail_tensor(e, fmt::format("has {} axes, wanted at most {}", e.dims.size(), kMostRank));
  bool empty = false;
  int64_t product = 1;  // without extents of 0: strides need it too
  for (int64_t d : e.dims) {
    if (d < 0) fail_tensor(e, extents() + ", wanted none below 0");
    empty |= d == 0;
    if (d > 0 && __builtin_mul_overflow(product, d, &product))
      fail_tensor(e, extents() + ", whose product is not below 2^63");
  }
  return empty ? 0 : product;
}

bool starts_rows_at_bytes(DType t, const std::vector<int64_t>& dims) {
  return !is_packed(t) || dims.empty() || dims.back() % elements_of_bytes(t) == 0 ||
         std::all_of(dims.begin(), dims.end() - 1, [](int64_t d) { return d == 1; });
}

/// A copy in which rows begin with a byte.
Tensor with_rows(DType t, const std::vector<int64_t>& dims, const char* bytes, int64_t count) {
  Tensor made = host_tensor(t, dims);
  std::memset(made.view().data, 0, static_cast<size_t>(byte_count(t, dims)));
  const int64_t row = dims.empty() ? 1 : dims.back();
  const std::vector<int64_t> strides = contiguous_strides(dims, t);
  const int64_t pitch = dims.size() < 2 ? row : strides[dims.size() - 2];
  // Contiguous rows: row r begins at the pitch of the last axis but one, times r.
  for (int64_t i = 0; i < count; ++i)
    store_bits(t, made.view().data, i / row * pitch + i % row, load_bits(t, bytes, i));
  return made;
}

bool is_aligned(const char* data, DType t) {
  return reinterpret_cast<uintptr_t>(data) % static_cast<uintptr_t>(bytes(t)) == 0;
}

bool is_truth(char c) { return c == 0 || c == 1; }

Tensor of_bytes(DType t, const Encoded& e, std::string_view raw) {
  const int64_t count = element_count(e);
  if (!starts_rows_at_bytes(t, e.dims)) return with_rows(t, e.dims, raw.data(), count);
  const bool keeps = e.raw_owner != nullptr && is_aligned(raw.data(), t) && count > 0 &&
                     (t != b1 || std::all_of(raw.begin(), raw.end(), is_truth));
  if (keeps)
    return {TensorView{const_cast<char*>(raw.data()), t, e.dims, contiguous_strides(e.dims, t)},
            e.raw_owner};
  Tensor made = host_tensor(t, e.dims);
  char* to = made.data<char>();
  if (t == b1)
    std::transform(raw.begin(), raw.end(), to, [](char c) { return static_cast<char>(c != 0); });
  else if (!raw.empty())
    std::memcpy(to, raw.data(), raw.size());
  return made;
}

template <class T>
std::string_view bytes_of(std::span<const T> numbers) {
  return {reinterpret_cast<const char*>(numbers.data()), numbers.size_bytes()};
}

/// The low bytes of each number, which is one that `width` bits can hold, signed or not.
template <class T>
std::string narrowed(const Encoded& e, std::span<const T> numbers, int64_t width) {
  const auto size = static_cast<size_t>((width + 7) / 8);
  std::string all;
  all.reserve(numbers.size() * size);
  for (size_t i = 0; i < numbers.size(); ++i) {
    const auto v = static_cast<int64_t>(numbers[i]);
    const int64_t least = std::is_signed_v<T> ? -(int64_t{1} << (width - 1)) : 0;
    if (v < least || v >= int64_t{1} << width)
      fail_tensor(e, fmt::format("holds {} at {}, which is too large for its type, {}", numbers[i],
                                 i, known_type(e.type)->name));
    all.append(reinterpret_cast<const char*>(&v), size);
  }
  return all;
}

/// Numbers of six bits each, as one run of bits.
std::string packed_sixes(const std::string& numbers) {
  std::string all((numbers.size() * 6 + 7) / 8, '\0');
  for (size_t i = 0; i < numbers.size(); ++i)
    store_bits(e2m3, all.data(), static_cast<int64_t>(i), static_cast<uint8_t>(numbers[i]));
  return all;
}

std::string narrow_list(const Encoded& e, DType t) {
  if (bits(t) == 6) return packed_sixes(narrowed(e, e.int32s, 6));
  return narrowed(e, e.int32s, std::max<int64_t>(bits(t), 8));
}

Tensor of_list(DType t, const Encoded& e, std::string_view list) {
  const int64_t want = raw_bytes(e);
  if (std::ssize(list) != want)
    fail_tensor(e, fmt::format("has {} bytes of elements, wanted {} for extents [{}]", list.size(),
                               want, fmt::join(e.dims, ",")));
  return of_bytes(t, e, list);
}

Tensor of_numbers(DType t, Field field, const Encoded& e) {
  switch (field) {
    case Field::floats:
      return of_list(t, e, bytes_of(e.floats));
    case Field::doubles:
      return of_list(t, e, bytes_of(e.doubles));
    case Field::int64s:
      return of_list(t, e, bytes_of(e.int64s));
    case Field::uint64s:
      return t == u64 ? of_list(t, e, bytes_of(e.uint64s))
                      : of_list(t, e, narrowed(e, e.uint64s, 32));
    case Field::int32s:
      return t == i32 ? of_list(t, e, bytes_of(e.int32s)) : of_list(t, e, narrow_list(e, t));
  }
  throw InternalError("a field of no kind");
}

}  // namespace

std::string type_fault(int type) {
  const ElementType* t = known_type(type);
  if (t != nullptr && t->dtype) return "";
  return fmt::format("has elements of type {}, which we lack",
                     t != nullptr ? t->name : std::to_string(type));
}

DType element_type(int type) { return known_type(type)->dtype.value(); }

int64_t raw_bytes(const Encoded& e) {
  const int64_t width = bits(element_type(e.type)), count = element_count(e);
  int64_t all = 0;
  if (__builtin_mul_overflow(count, width, &all) || __builtin_add_overflow(all, 7, &all))
    fail_tensor(e, fmt::format("has extents [{}], too many elements", fmt::join(e.dims, ",")));
  return all / 8;
}

Tensor decode(const Encoded& e) {
  if (const std::string fault = type_fault(e.type); !fault.empty()) fail_tensor(e, fault);
  const DType t = element_type(e.type);
  if (!e.is_raw) {
    Encoded numbers = e;
    numbers.raw_owner = nullptr;  // lists are copied
    return of_numbers(t, known_type(e.type)->field, numbers);
  }
  const size_t listed =
      e.floats.size() + e.doubles.size() + e.int32s.size() + e.int64s.size() + e.uint64s.size();
  if (listed > 0) fail_tensor(e, "gives its elements twice, as bytes and as numbers");
  return of_list(t, e, e.raw);
}

}  // namespace tw::graph::onnx
