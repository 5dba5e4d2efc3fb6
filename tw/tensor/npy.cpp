#include "tw/tensor/npy.h"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <string_view>

#include "tw/base/error.h"
#include "tw/tensor/file.h"

namespace tw {

namespace {

constexpr std::string_view kMagic("\x93NUMPY", 6);

struct Closer {
  void operator()(std::FILE* f) const { std::fclose(f); }
};
using File = std::unique_ptr<std::FILE, Closer>;

File open(const std::string& path) {
  std::error_code unknown;
  if (std::filesystem::is_directory(path, unknown)) fail_file(path, EISDIR);
  File f(std::fopen(path.c_str(), "rb"));
  if (!f) fail_file(path, errno);
  return f;
}

[[noreturn]] void damaged(const std::string& path, size_t offset, const std::string& what,
                          const std::string& wanted) {
  throw UserError(fmt::format("{}: byte {}: {}", path, offset, what), wanted);
}

/// The header's dictionary, e.g. {'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }, read
/// left to right; `offset` of the file stands in every message.
class HeaderParser {
 public:
  HeaderParser(std::string_view text, std::string path, size_t offset)
      : text_(text), path_(std::move(path)), offset_(offset) {}

  struct Header {
    std::string descr;
    size_t descr_at = 0;  ///< offset in the file
    bool fortran = false;
    std::vector<int64_t> dims;
  };

  Header parse() {
    Header h;
    bool descr = false, order = false, shape = false;
    expect('{');
    while (!accept('}')) {
      peek();
      const size_t key_at = at_;
      std::string key = quoted();
      expect(':');
      if (key == "descr") {
        peek();
        h.descr_at = offset_ + at_;
        h.descr = quoted();
        descr = true;
      } else if (key == "fortran_order") {
        h.fortran = boolean();
        order = true;
      } else if (key == "shape") {
        h.dims = tuple();
        shape = true;
      } else {
        at_ = key_at;
        fail(fmt::format("key '{}'", key), "wanted descr, fortran_order or shape");
      }
      if (!accept(',') && peek() != '}') fail("no ',' or '}'", "wanted one after a value");
    }
    if (!descr || !order || !shape) {
      fail("the header ends", "wanted the keys descr, fortran_order and shape");
    }
    if (peek(); at_ < text_.size()) fail("text after the header's '}'", "wanted spaces only");
    return h;
  }

 private:
  [[noreturn]] void fail(const std::string& what, const std::string& wanted) const {
    damaged(path_, offset_ + at_, what, wanted);
  }
  char peek() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n')) ++at_;
    return at_ < text_.size() ? text_[at_] : '\0';
  }
  bool accept(char c) {
    if (peek() != c) return false;
    ++at_;
    return true;
  }
  void expect(char c) {
    if (!accept(c)) fail(fmt::format("no '{}'", c), "wanted a numpy header");
  }
  std::string quoted() {
    char quote = peek();
    if (quote != '\'' && quote != '"') fail("no quoted text", "wanted a numpy header");
    size_t end = text_.find(quote, at_ + 1);
    if (end == std::string_view::npos) fail("an open quote", "wanted a numpy header");
    std::string s(text_.substr(at_ + 1, end - at_ - 1));
    at_ = end + 1;
    return s;
  }
  bool word(std::string_view w) {
    peek();
    if (text_.substr(at_, w.size()) != w) return false;
    at_ += w.size();
    return true;
  }
  bool boolean() {
    if (word("True")) return true;
    if (!word("False")) fail("fortran_order is no boolean", "wanted True or False");
    return false;
  }
  std::vector<int64_t> tuple() {
    std::vector<int64_t> dims;
    expect('(');
    while (!accept(')')) {
      peek();
      int64_t n = -1;
      auto [end, error] = std::from_chars(text_.data() + at_, text_.data() + text_.size(), n);
      if (error != std::errc() || n < 0) fail("shape holds no extent", "wanted integers >= 0");
      at_ = end - text_.data();
      dims.push_back(n);
      if (!accept(',') && peek() != ')') fail("no ',' or ')' in shape", "wanted one");
    }
    return dims;
  }

  std::string_view text_;
  std::string path_;
  size_t offset_, at_ = 0;
};

std::string read_exactly(std::FILE* f, size_t n, const std::string& path, size_t offset,
                         const char* what) {
  std::string s(n, '\0');
  const size_t got = std::fread(s.data(), 1, n, f);
  if (got != n) {
    damaged(path, offset + got, fmt::format("the file ends inside {}", what),
            fmt::format("wanted {} bytes more", n - got));
  }
  return s;
}

DType dtype_of(const HeaderParser::Header& h, std::optional<DType> as, const std::string& path) {
  std::optional<DType> found;
  for (int i = 0; i < kDTypeCount && !found; ++i) {
    // Formats that numpy lacks share the string of an unsigned integer, which comes first.
    if (h.descr == info(static_cast<DType>(i)).numpy) found = static_cast<DType>(i);
  }
  if (!found) {
    damaged(path, h.descr_at, fmt::format("descr '{}'", h.descr),
            "wanted a little-endian type such as '<f4'");
  }
  // Exact: equal sizes are not enough, or the bits of integers would be read as floats. What numpy
  // lacks has the string of an unsigned integer.
  if (as && h.descr != info(*as).numpy) {
    damaged(path, h.descr_at, fmt::format("elements of type '{}'", h.descr),
            fmt::format("wanted {} ('{}')", name(*as), info(*as).numpy));
  }
  return as.value_or(*found);
}

/// Reads so many bytes into t. Rows of packed elements are longer in t than in the file where they
/// do not end with a whole group of elements.
void read_rows(std::FILE* f, const std::string& path, int64_t size, const Tensor& t) {
  const TensorView v = t.view();
  int64_t rows = 1, pitch = size;
  if (is_packed(v.dtype) && v.rank() > 1 && size > 0) {
    for (int64_t axis = 0; axis + 1 < v.rank(); ++axis) rows *= v.dims[axis];
    pitch = v.strides[v.rank() - 2] * bits(v.dtype) / 8;
  }
  const auto each = static_cast<size_t>(size / rows);
  for (int64_t r = 0; r < rows; ++r) {
    if (std::fread(t.data<char>() + r * pitch, 1, each, f) != each) fail_file(path, errno);
  }
}

}  // namespace

Tensor read_npy(const std::string& path, std::optional<DType> as) {
  File f = open(path);
  std::string start = read_exactly(f.get(), 8, path, 0, "the magic");
  if (start.compare(0, 6, kMagic) != 0) damaged(path, 0, "no .npy magic", "wanted \\x93NUMPY");
  const int version = start[6];
  if (version < 1 || version > 3) {
    damaged(path, 6, fmt::format("format version {}", version), "wanted 1, 2 or 3");
  }
  const size_t width = version == 1 ? 2 : 4;
  std::string size_bytes = read_exactly(f.get(), width, path, 8, "the header size");
  uint32_t size = 0;
  std::memcpy(&size, size_bytes.data(), width);
  const size_t begin = 8 + width;
  if (size > (1u << 20)) {
    damaged(path, 8, fmt::format("a header of {} bytes", size), "wanted at most 1048576");
  }
  std::string text = read_exactly(f.get(), size, path, begin, "the header");
  HeaderParser::Header h = HeaderParser(text, path, begin).parse();
  const DType dtype = dtype_of(h, as, path);

  if (h.fortran && is_packed(dtype)) {
    damaged(path, begin, "packed elements in Fortran order", "wanted rows of bytes");
  }
  if (h.fortran) std::reverse(h.dims.begin(), h.dims.end());
  const int64_t data_bytes = byte_count(is_packed(dtype) ? u8 : dtype, h.dims);
  // Sizes are compared before memory is asked for: a damaged shape must not ask for a terabyte.
  std::fseek(f.get(), 0, SEEK_END);
  const int64_t there = std::ftell(f.get()) - static_cast<int64_t>(begin + size);
  if (there < data_bytes) {
    damaged(path, begin + size + std::max<int64_t>(there, 0), "the file ends inside the data",
            fmt::format("wanted {} bytes more", data_bytes - there));
  }
  std::fseek(f.get(), static_cast<long>(begin + size), SEEK_SET);
  if (is_packed(dtype) && !h.dims.empty()) h.dims.back() = h.dims.back() * 8 / bits(dtype);
  Tensor t = host_tensor(dtype, h.dims);
  read_rows(f.get(), path, data_bytes, t);
  if (!h.fortran) return t;
  TensorView v = t.view();
  std::reverse(v.dims.begin(), v.dims.end());
  std::reverse(v.strides.begin(), v.strides.end());
  return Tensor(v, std::make_shared<Tensor>(t));
}

void write_npy(const std::string& path, const TensorView& t) {
  std::vector<int64_t> dims = t.dims;
  if (is_packed(t.dtype) && !dims.empty()) dims.back() = byte_count(t.dtype, {dims.back()});
  std::string header =
      fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': ({}{}), }}",
                  info(t.dtype).numpy, fmt::join(dims, ", "), t.rank() == 1 ? "," : "");
  const size_t unpadded = kMagic.size() + 4 + header.size() + 1;
  header.append((64 - unpadded % 64) % 64, ' ');
  header.append(1, '\n');

  Tensor packed = copy(t);
  const size_t data_bytes = byte_count(t.dtype, t.dims);
  const uint16_t size = static_cast<uint16_t>(header.size());
  std::string start(kMagic);
  start.append("\x01\x00", 2);
  start.append(reinterpret_cast<const char*>(&size), 2);
  start.append(header);
  write_file(path, {start, {packed.data<char>(), data_bytes}});
}

}  // namespace tw
