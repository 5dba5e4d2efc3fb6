#include <algorithm>
#include <cstring>
#include <fmt/format.h>

#include "tw/emu/impl/machine.h"
#include "tw/num/codec.h"

namespace tw::emu {
namespace {

constexpr uint32_t kPoison = 0x7fc0dead;  // no number, and known when it is seen

/// Where element i of a thread's accumulators stands in the 64 rows.
size_t accumulator_at(size_t thread, size_t i, size_t n) {
  const size_t row = thread / kLanes * 16 + thread % kLanes / 4 + i % 4 / 2 * 8;
  return row * n + i / 4 * 8 + thread % 4 * 2 + i % 2;
}

size_t in_group(const Thread& t) { return static_cast<size_t>(t.text.thread % kGroupThreads); }

bool same_product(const TextWgmma& a, const TextWgmma& b) {
  return a.n == b.n && std::strcmp(a.type, b.type) == 0 && a.a_transposed == b.a_transposed &&
         a.b_transposed == b.b_transposed && a.adds == b.adds && a.a == b.a && a.b == b.b &&
         (a.registers[0] == nullptr) == (b.registers[0] == nullptr);
}

}  // namespace

// ---- what threads issue

void Machine::wgmma(const TextWgmma& product, int32_t line) {
  offer();
  Thread& t = *current_;
  if (grid_.threads % kGroupThreads != 0)
    misuse("comes to a product of four warps, which the block has not", line);
  if (!t.wgmma_fenced)
    fail(EmuFault::fence,
         fmt::format("{} comes to a product without tw_wgmma_fence in its group @0",
                     who(t.clock.now())),
         {at_line(line)});
  const size_t me = in_group(t);
  Wgmma& w = product_of(t.block->groups[static_cast<size_t>(t.text.thread / kGroupThreads)],
                        product, line);
  take_registers(w, product.d, line);
  for (size_t i = 0; product.registers[0] && i < 4; ++i) {
    w.a[me][i] = *product.registers[i];
    t.in_flight.push_back({reinterpret_cast<char*>(const_cast<uint32_t*>(product.registers[i])), 4,
                           false, w.group, line});
  }
  update_in_flight(t);
  if (t.wgmma_version != t.clock.version()) {
    t.wgmma_past = t.clock.release();
    t.wgmma_version = t.clock.version();
  }
  w.pasts[me] = t.wgmma_past;
  w.versions[me / kLanes] += t.wgmma_version;
  ++w.threads;
}

/// The product that the running thread issues next; its first thread makes it.
Wgmma& Machine::product_of(WarpGroup& group, const TextWgmma& product, int32_t line) {
  Thread& t = *current_;
  const uint64_t index = t.wgmmas++ - group.first;
  if (index == group.products.size()) {
    auto made = std::make_unique<Wgmma>();
    made->text = product;
    made->type = product.type;
    made->line = line;
    made->group = t.wgmma_groups;
    for (const auto& d : group.accumulators) {
      if (d->registers[in_group(t)] == product.d) made->d = d;
    }
    if (!made->d) {
      made->d = std::make_shared<Accumulators>();
      made->d->n = product.n;
      made->d->values.resize(64 * static_cast<size_t>(product.n));
      group.accumulators.push_back(made->d);
    }
    ++group.left[made->group];
    group.products.push_back(std::move(made));
  }
  Wgmma& w = *group.products[index];
  if (w.line != line || w.group != t.wgmma_groups || !same_product(w.text, product))
    fail(EmuFault::divergence,
         fmt::format("{} comes to a product @0\n  where others of its four warps come to another "
                     "one, or to other operands @1",
                     who(t.clock.now())),
         {at_line(line), at_line(w.line)});
  return w;
}

/// What the accumulators hold goes away until a wait.
void Machine::take_registers(Wgmma& w, float* d, int32_t line) {
  Thread& t = *current_;
  Accumulators& of = *w.d;
  const size_t me = in_group(t), n = static_cast<size_t>(of.n), count = n / 2;
  auto* begin = reinterpret_cast<char*>(d);
  const auto bytes = static_cast<int64_t>(count * sizeof(float));
  of.group[me] = w.group;
  for (InFlight& r : t.in_flight) {
    const bool overlaps = r.begin < begin + bytes && begin < r.begin + r.bytes;
    if (!overlaps) continue;
    const bool same = r.written && r.begin == begin && r.bytes == bytes && of.registers[me] == d;
    if (!same)
      fail(EmuFault::in_flight,
           fmt::format("{} gives a product registers @0\n  that another one uses @1",
                       who(t.clock.now())),
           {at_line(line), at_line(r.line)});
    r.group = w.group;
    r.line = line;
    return;
  }
  of.registers[me] = d;
  for (size_t i = 0; i < count; ++i) {
    of.values[accumulator_at(me, i, n)] = d[i];
    std::memcpy(d + i, &kPoison, sizeof(kPoison));
  }
  t.in_flight.push_back({begin, bytes, true, w.group, line});
}

void Machine::update_in_flight(Thread& t) {
  char *begin = nullptr, *end = nullptr;
  for (const InFlight& r : t.in_flight) {
    begin = begin ? std::min(begin, r.begin) : r.begin;
    end = std::max(end, r.begin + r.bytes);
  }
  t.text.in_flight = begin;
  t.text.in_flight_bytes = static_cast<uint64_t>(end - begin);
}

void Machine::touch_in_flight(char* address, uint64_t bytes, bool write, Place place) {
  for (const InFlight& r : current_->in_flight) {
    if (address >= r.begin + r.bytes || address + bytes <= r.begin || (!write && !r.written))
      continue;
    fail(EmuFault::in_flight,
         fmt::format("{} {} registers @0\n  that a product uses which is not waited for @1",
                     who(current_->clock.now()), write ? "writes" : "reads"),
         {place, at_line(r.line)});
  }
}

void Machine::wgmma_group(const char* kind, int32_t left, int32_t line) {
  offer();
  Thread& t = *current_;
  if (std::strcmp(kind, "tw_wgmma_commit") == 0) {
    ++t.wgmma_groups;
    t.wgmma_fenced = false;
    return;
  }
  const auto kept = static_cast<uint32_t>(left);
  if (t.wgmma_groups <= kept) return;
  const uint32_t until = t.wgmma_groups - kept;
  WarpGroup& group = t.block->groups[static_cast<size_t>(t.text.thread / kGroupThreads)];
  while (!group.left.empty() && group.left.begin()->first < until)
    wait_in(group.waiting, {kind, line});
  if (!group.done || group.done_until != until) {
    Knowledge done;
    done.threads.raise(group.agent, until);
    group.done = std::make_shared<Knowledge>(std::move(done));
    group.done_until = until;
  }
  learn(t, group.done);
  give_back(group, until);
}

void Machine::give_back(WarpGroup& group, uint32_t until) {
  Thread& t = *current_;
  const size_t me = in_group(t);
  for (const auto& d : group.accumulators) {
    float* registers = d->registers[me];
    if (!registers || d->group[me] >= until) continue;
    const size_t n = static_cast<size_t>(d->n);
    for (size_t i = 0; i < n / 2; ++i) registers[i] = d->values[accumulator_at(me, i, n)];
    d->registers[me] = nullptr;
    ++d->given_back;
  }
  std::erase_if(group.accumulators, [](const auto& d) { return d->given_back == kGroupThreads; });
  std::erase_if(t.in_flight, [&](const InFlight& r) { return r.group < until; });
  update_in_flight(t);
}

// ---- what happens later

Descriptor::Descriptor(uint64_t bits)
    : start(static_cast<uint32_t>(bits & 0x3fff) << 4),
      leading(static_cast<uint32_t>(bits >> 16 & 0x3fff) << 4),
      stride(static_cast<uint32_t>(bits >> 32 & 0x3fff) << 4) {
  constexpr int kSwizzles[] = {0, 128, 64, 32};
  swizzle = kSwizzles[bits >> 62];
}

uint32_t Descriptor::address(int r, int along, bool transposed, int element_bytes) const {
  const auto row = static_cast<uint32_t>(r), at = static_cast<uint32_t>(along);
  const auto bytes = static_cast<uint32_t>(element_bytes);
  const auto line = static_cast<uint32_t>(swizzle == 0 ? 16 : swizzle);
  uint32_t a = start;
  if (!transposed) {
    a += row / 8 * stride + row % 8 * line;
    a += swizzle == 0 ? at / 16 * leading + at % 16 : at;
  } else {
    const uint32_t elements = line / bytes;
    a += row / elements * (swizzle == 0 ? stride : leading);
    a += at / 8 * (swizzle == 0 ? leading : stride);
    a += at % 8 * line + row % elements * bytes;
  }
  return swizzled(a, swizzle);
}

namespace {

constexpr int kPieceBytes = 16, kKBytes = 32;

DType type_named(const std::string& name) {
  return name == "bf16" ? bf16 : name == "f16" ? f16 : e4m3;
}

float element_of(const char* p, DType t) {
  uint16_t code = 0;
  std::memcpy(&code, p, static_cast<size_t>(bytes(t)));
  if (t != bf16) return static_cast<float>(decode(t, code));
  const uint32_t bits = uint32_t{code} << 16;
  float x = 0;
  std::memcpy(&x, &bits, sizeof(x));
  return x;
}

/// A from registers: pairs of row l / 4 or the eighth behind it, of columns 2 (l % 4) or the eighth
/// behind them.
void a_from_registers(const Wgmma& w, DType type, std::vector<float>& a, size_t k) {
  for (size_t t = 0; t < kGroupThreads; ++t) {
    for (size_t i = 0; i < 4; ++i) {
      const size_t row = t / kLanes * 16 + t % kLanes / 4 + i % 2 * 8;
      const size_t column = t % 4 * 2 + i / 2 * 8;
      char word[4];
      std::memcpy(word, &w.a[t][i], sizeof(word));
      a[row * k + column] = element_of(word, type);
      a[row * k + column + 1] = element_of(word + 2, type);
    }
  }
}

/// c += a b of 64 rows, in single precision.
void multiply_rows(float* c, const float* a, const float* b, size_t n, size_t k) {
  for (size_t row = 0; row < 64; ++row) {
    for (size_t i = 0; i < k; i += 4) {
      const float *x = a + row * k + i, *y = b + i * n;
      float* z = c + row * n;
      for (size_t j = 0; j < n; ++j)
        z[j] += x[0] * y[j] + x[1] * y[n + j] + x[2] * y[2 * n + j] + x[3] * y[3 * n + j];
    }
  }
}

}  // namespace

/// Elements of A as [row][k], of B as [k][row]; false when something is wrong. `clocks` are one for
/// all rows, or one for each 16.
bool Machine::read_operand(Block& block, const Wgmma& w, bool is_a, std::span<AsyncClock> clocks,
                           std::vector<float>& out) {
  const DType type = type_named(w.type);
  const int size = static_cast<int>(bytes(type)), k = kKBytes / size, per = kPieceBytes / size;
  const int rows = is_a ? 64 : w.text.n;
  const bool transposed = is_a ? w.text.a_transposed : w.text.b_transposed;
  const Descriptor from(is_a ? w.text.a : w.text.b);
  Place place = at_line(w.line);
  place.bits |= Place::kAsync;
  const int row_step = transposed ? per : 1, along_end = transposed ? k : kKBytes;
  for (int r = 0; r < rows; r += row_step) {
    AsyncClock& clock = clocks[clocks.size() == 1 ? 0 : static_cast<size_t>(r / 16)];
    for (int along = 0; along < along_end; along += transposed ? 1 : kPieceBytes) {
      const char* p =
          shared_at(block, int64_t{from.address(r, along, transposed, size)} - grid_.shared_base);
      if (!check_async(clock, p, kPieceBytes, false, place)) return false;
      for (int e = 0; e < per; ++e) {
        const int row = transposed ? r + e : r, column = transposed ? along : along / size + e;
        out[static_cast<size_t>(is_a ? row * k + column : column * rows + row)] =
            element_of(p + e * size, type);
      }
    }
  }
  return true;
}

/// What the four warps know, kept while they learn nothing.
void Machine::find_behind(WarpGroup& group, const Wgmma& w) {
  for (size_t i = 0; i < group.behind.size(); ++i) {
    if (group.behind[i] && group.versions[i] == w.versions[i]) continue;
    group.behind[i] = knowledge_of(join_, std::span(w.pasts).subspan(i * kLanes, kLanes));
    group.versions[i] = w.versions[i];
  }
}

void Machine::run_wgmma(Block& block, WarpGroup& group) {
  Wgmma& w = *group.products[group.executed - group.first];
  find_behind(group, w);
  if (group.moment == 0 || group.moment_group != w.group) {
    group.moment_group = w.group;
    group.moment = memory_.add_moment(
        {.thread = group.agent, .warp = group.agent, .block = group.agent, .releases = w.group});
  }
  std::vector<AsyncClock> of_warp;
  for (const KnowledgePtr& k : group.behind)
    of_warp.emplace_back(group.moment, group.agent, std::vector{k});
  AsyncClock of_all(group.moment, group.agent, {group.behind.begin(), group.behind.end()});
  const DType type = type_named(w.type);
  const size_t n = static_cast<size_t>(w.text.n), k = kKBytes / static_cast<size_t>(bytes(type));
  std::vector<float> a(64 * k), b(k * n);
  if (w.text.registers[0]) {
    a_from_registers(w, type, a, k);
  } else if (!read_operand(block, w, true, of_warp, a)) {
    return;
  }
  if (!read_operand(block, w, false, std::span(&of_all, 1), b)) return;
  std::vector<float>& c = w.d->values;
  if (!w.text.adds) std::fill(c.begin(), c.end(), 0.0f);
  multiply_rows(c.data(), a.data(), b.data(), n, k);
  ++group.executed;
  if (--group.left[w.group] == 0) {
    group.left.erase(w.group);
    wake(group.waiting);
  }
  group.products.pop_front();
  ++group.first;
}

}  // namespace tw::emu
