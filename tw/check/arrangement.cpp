#include "tw/check/impl/arrangement.h"

#include <fmt/format.h>

#include "tw/base/error.h"
#include "tw/base/round.h"
#include "tw/check/impl/values.h"

namespace tw::check {

namespace {

constexpr int64_t kPage = 4096;
// Of one tensor after the other where layouts are mixed.
constexpr Layout kMixed[] = {Layout::transposed, Layout::contiguous, Layout::padded,
                             Layout::spread};
constexpr Layout kLayouts[] = {Layout::contiguous, Layout::unaligned, Layout::padded,
                               Layout::transposed, Layout::spread,    Layout::reversed,
                               Layout::expanded};

TensorView view_laid(const Argument& a, Layout layout) {
  return {nullptr, a.dtype, a.dims, strides_of(layout, a.dims, a.dtype, a.output)};
}

/// Bytes of the tensor's pages: all of it, and an element more, that it may be moved by.
int64_t page_bytes(const Argument& a, Layout layout) {
  const ByteRange r = byte_range(view_laid(a, layout));
  return round_up(r.end - r.begin + bytes(a.dtype), kPage);
}

}  // namespace

int64_t Arrangement::bytes(const std::vector<Argument>& arguments, int sets) {
  int64_t sum = kPage;
  for (const Argument& a : arguments) {
    int64_t most = 0;
    for (const Layout layout : kLayouts) most = std::max(most, page_bytes(a, layout));
    sum += most + kPage;
  }
  return sum * sets;
}

Arrangement::Arrangement(char* memory, const std::vector<Argument>& arguments, Layout layout,
                         Side side, int sets)
    : memory_(memory), arguments_(arguments) {
  int64_t at = kPage;
  for (int s = 0; s < sets; ++s) {
    sets_.emplace_back();
    for (size_t i = 0; i < arguments_.size(); ++i)
      place(arguments_[i], layout == Layout::mixed ? kMixed[i % std::size(kMixed)] : layout, side,
            at);
  }
}

void Arrangement::place(const Argument& a, Layout layout, Side side, int64_t& at) {
  TensorView view = view_laid(a, layout);
  const ByteRange r = byte_range(view);
  const int64_t size = r.end - r.begin, end = at + page_bytes(a, layout);
  const int64_t shift = layout == Layout::unaligned ? tw::bytes(a.dtype) : 0;
  const int64_t first = side == Side::begin ? at + shift : end - size - shift;
  view.data = memory_ + first - r.begin;
  Place p{&a, at, end, first, first + size, std::vector<bool>(static_cast<size_t>(end - at))};
  for (int64_t i = 0; i < view.count(); ++i) {
    const int64_t bit = 8 * (first - r.begin - at) + view.offset(i) * bits(view.dtype);
    for (int64_t b = bit >> 3; b <= (bit + bits(a.dtype) - 1) >> 3; ++b)
      p.element[static_cast<size_t>(b)] = true;
  }
  for (int64_t b = 0; b < end - at; ++b)
    memory_[at + b] = static_cast<char>(p.element[static_cast<size_t>(b)] ? 0xff : pattern(b));
  places_.push_back(std::move(p));
  (a.output ? sets_.back().outputs : sets_.back().inputs).push_back(std::move(view));
  at = end + kPage;
}

std::vector<measure::Callee::Pages> Arrangement::pages() const {
  using Access = measure::Callee::Access;
  std::vector<measure::Callee::Pages> out;
  const Place* before = nullptr;
  for (const Place& p : places_) {
    const std::string& name = p.argument->name;
    if (!p.argument->output)
      out.push_back({p.begin, p.end, Access::read, fmt::format("input '{}'", name)});
    out.push_back({p.begin - kPage, p.begin, Access::none,
                   before == nullptr ? fmt::format("memory before '{}'", name)
                                     : fmt::format("memory between '{}' and '{}'",
                                                   before->argument->name, name)});
    before = &p;
  }
  const Place& last = places_.back();
  out.push_back({last.end, last.end + kPage, Access::none,
                 fmt::format("memory after '{}'", last.argument->name)});
  return out;
}

void Arrangement::fill(int set, Values values, uint64_t seed) {
  size_t input = 0;
  for (const Argument& a : arguments_) {
    ++seed;
    if (a.output) continue;
    const TensorView& view = sets_[static_cast<size_t>(set)].inputs[input++];
    const std::vector<double> elements = input_values(a, values, seed);
    for (size_t i = 0; i < elements.size(); ++i)
      tw::set(view, static_cast<int64_t>(i), elements[i]);
  }
}

void Arrangement::poison(int set, unsigned char with) {
  for (const TensorView& view : sets_[static_cast<size_t>(set)].outputs)
    for (int64_t i = 0; i < view.count(); ++i)
      store_bits(view.dtype, view.data, view.offset(i), with * uint64_t{0x0101010101010101});
}

std::vector<std::string> Arrangement::contents(int set) const {
  std::vector<std::string> out;
  for (const TensorView& view : sets_[static_cast<size_t>(set)].outputs) {
    std::string& text = out.emplace_back();
    for (int64_t i = 0; i < view.count(); ++i) {
      const uint64_t code = load_bits(view.dtype, view.data, view.offset(i));
      text.append(reinterpret_cast<const char*>(&code), static_cast<size_t>(tw::bytes(view.dtype)));
    }
  }
  return out;
}

std::string Arrangement::damage() const {
  for (const Place& p : places_)
    for (int64_t b = p.begin; b < p.end; ++b) {
      const int64_t within = b - p.begin;
      const bool kept = static_cast<unsigned char>(memory_[b]) == pattern(within);
      if (p.element[static_cast<size_t>(within)] || kept) continue;
      const std::string where = b < p.first   ? fmt::format("{} bytes before", p.first - b)
                                : b >= p.last ? fmt::format("{} bytes after the end of", b - p.last)
                                              : "between the elements of";
      return fmt::format("it wrote {} '{}'", where, p.argument->name);
    }
  return "";
}

}  // namespace tw::check
