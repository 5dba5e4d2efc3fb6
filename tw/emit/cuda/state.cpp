#include "tw/emit/cuda/state.h"

#include <algorithm>
#include <fmt/format.h>
#include <numeric>
#include <utility>

#include "tw/base/error.h"
#include "tw/base/round.h"
#include "tw/emit/cpu/op_table.h"
#include "tw/emit/cuda/few_digits.h"

namespace tw::cuda {

using layout::ThreadValue;

namespace {

/// Of everything in a block's memory: what a vector access needs.
constexpr int64_t kMemoryAlign = 16;
/// Of shared memory: all banks together, and one.
constexpr int64_t kBankBytes = 128, kWord = 4;

bool any_meets(const std::vector<Touched>& a, const std::vector<Touched>& b) {
  return std::ranges::any_of(a, [&](const Touched& x) {
    return std::ranges::any_of(b, [&](const Touched& y) { return x.meets(y); });
  });
}

}  // namespace

void Footprint::add(const Footprint& o) {
  reads.insert(reads.end(), o.reads.begin(), o.reads.end());
  writes.insert(writes.end(), o.writes.begin(), o.writes.end());
}

bool Footprint::conflicts_with(const Footprint& before) const {
  return any_meets(writes, before.writes) || any_meets(writes, before.reads) ||
         any_meets(reads, before.writes);
}

State::State(Program p, const Specialisation& s, const GpuMachine& g, const Mapping& mapping,
             cpu::Thread kind, std::set<ValueId>& scattered_before, const Means& means)
    : own_(std::move(p)),
      c(own_, s, cpu::thread_machine(kind), mapping),
      gpu(g),
      placement(c, mapping, means.clusters ? g.most_cluster : 1, means.panels),
      scattered(scattered_before),
      cluster_thread(placement.cluster() > 1 ? c.fresh("thread") : ""),
      settled(scattered_before) {
  c.few_digits = values_of_few_digits(own_);
}

std::string State::call(const std::string& function) { return c.prelude.outside("tw_" + function); }

std::string State::digit(int64_t below, int64_t extent) {
  std::string text = thread();
  if (below > 1) text += fmt::format(" / {}", below);
  if (below * extent < placement.threads()) text += fmt::format(" % {}", extent);
  return text;
}

Expr State::base(const ThreadValue& l, size_t axis) {
  std::string text;
  int64_t below = 1, most = 0, multiple = 0;
  for (const ThreadValue::Mode& m : l.threads) {
    if (m.axis == static_cast<int>(axis)) {
      const std::string d = digit(below, m.extent);
      text += text.empty() ? "" : " + ";
      text += m.stride == 1 ? d : fmt::format("{} * {}", d, m.stride);
      most += (m.extent - 1) * m.stride;
      multiple = std::gcd(multiple, m.stride);
    }
    below *= m.extent;
  }
  if (text.empty()) return 0;
  const auto known = base_symbols.find(text);
  if (known != base_symbols.end()) return Expr::symbol(known->second);
  const std::string name = c.fresh("at");
  bases.line(fmt::format("const int {} = {};", name, text));
  const Symbol symbol = c.new_symbol(name, SymbolFact{{0, most}, multiple});
  base_symbols[text] = symbol;
  return Expr::symbol(symbol);
}

std::string State::first_copy(const ThreadValue& l) {
  std::string text;
  int64_t below = 1;
  for (const ThreadValue::Mode& m : l.threads) {
    if (m.axis < 0) {
      text += fmt::format("{}{} == 0", text.empty() ? "" : " && ", digit(below, m.extent));
    }
    below *= m.extent;
  }
  return text;
}

void State::declare_registers(const Tile& t, Writer& out, const std::string& note) {
  const std::string element = c.prelude.type(register_type(t.type.dtype));
  const std::string extent = t.variable() ? "" : fmt::format("[{}]", t.layout.registers());
  out.line(fmt::format("{} {}{};{}", element, t.name, extent, note));
}

const Tile& State::declare(ValueId v, Writer& out) {
  const Type& type = program().type(v);
  Tile& t = tiles[v];
  t = {c.name_of(v), type, placement.layout_of(type.shape)};
  declare_registers(t, out, fmt::format("  // {}", to_string(type)));
  return t;
}

int64_t State::beside_pending(int64_t size) const {
  constexpr int64_t kSmall = 1024;
  int64_t from = shared;
  const auto move_past = [&](const std::vector<Touched>& all) {
    bool moved = false;
    for (const Touched& t : all) {
      if (!t.meets({Touched::Space::shared, from, from + size})) continue;
      from = round_up(t.hi, kMemoryAlign);
      moved = true;
    }
    return moved;
  };
  while (size <= kSmall && (move_past(pending.reads) || move_past(pending.writes) ||
                            move_past(outside.reads) || move_past(outside.writes))) {
  }
  return from;
}

std::string State::reserve_bytes(const std::string& type, const std::string& wish, int64_t bytes,
                                 const std::string& comment, Writer& out, Touched& where,
                                 bool of_fold) {
  if (placement.cluster() > 1 && !of_fold) throw NoCluster{};
  const int64_t size = round_up(bytes, kMemoryAlign);
  if (const int64_t beside = beside_pending(size); beside + size <= gpu.shared_per_block)
    shared = beside;
  const bool fits = shared + size <= gpu.shared_per_block;
  int64_t& top = fits ? shared : workspace;
  int64_t& most = fits ? shared_most : workspace_most;
  where = {fits ? Touched::Space::shared : Touched::Space::workspace, top, top + size};
  const std::string name = c.fresh(wish);
  out.line(fmt::format("{0}* const {1} = ({0}*)({2} + {3});{4}", type, name,
                       fits ? "shared" : "workspace", top,
                       comment.empty() ? "" : "  // " + comment));
  top += size;
  most = std::max(most, top);
  return name;
}

const Storage& State::reserve(ValueId v, Writer& out, bool padded) {
  Type type = program().type(v);
  const DType reg = type.dtype == b1 ? u8 : register_type(type.dtype);
  if (padded && type.shape.size() > 1 && type.shape.back() * bytes(reg) % kBankBytes == 0)
    type.shape.back() += std::max<int64_t>(1, kWord / bytes(reg));
  const std::string name =
      reserve_bytes(c.prelude.type(reg), c.name_of(v) + "_all", count(type.shape) * bytes(reg),
                    to_string(program().type(v)), out, memory_of[v]);
  return c.storage[v] = memory_at(name, type);
}

Storage memory_at(const std::string& name, const Type& type) {
  return {count(type.shape) == 1 ? name + "[0]" : name, type};
}

std::string pointer_to(const Storage& s) { return (s.variable() ? "&" : "") + s.name; }

bool State::in_registers(ValueId v) const {
  return placement.in_registers(program().type(v).shape);
}

void State::scatter(ValueId v) {
  if (settled.contains(v))
    throw InternalError(
        fmt::format("value {} is read where neither a register nor memory has it", v));
  scattered.insert(v);
}

bool State::in_memory(ValueId v) const { return scattered.contains(v) || !in_registers(v); }

Footprint State::reads_of(ValueId v) const {
  Footprint f;
  std::set<ValueId> seen;
  const auto visit = [&](auto&& self, ValueId x) -> void {
    if (!seen.insert(x).second) return;
    const auto memory = memory_of.find(x);
    if (memory != memory_of.end() && !tiles.contains(x)) f.reads.push_back(memory->second);
    const Op* op = c.def[x];
    if (op == nullptr) return;
    const bool own = x == v;  // what computes v itself
    if (!own && placement.kept(*op)) return;
    if (const View* view = view_of(*op); view != nullptr) {
      const Param& p = program().params[view->param];
      if (p.kind != ParamKind::in) {
        f.reads.push_back({Touched::Space::tensor, view->param, view->param + 1});
      }
    }
    for (const ValueId in : op->in) self(self, in);
  };
  visit(visit, v);
  return f;
}

void State::barrier(Writer& out) {
  out.line(sync());
  pending = {};
  outside = {};
  met = true;
}

ValueId State::copy_of(ValueId v) {
  const ValueId copy = own_.new_value(own_.type(v), own_.values[v].at, own_.values[v].name);
  c.def.push_back(nullptr);
  return copy;
}

void State::append(const Footprint& known, const Writer& text, Writer& out) {
  Footprint f = known;
  f.add(std::exchange(drafted, {}));
  if (f.conflicts_with(pending)) barrier(out);
  if (f.conflicts_with(outside)) {
    before_loop = true;
    outside = {};
  }
  pending.add(f);
  if (!met) head.add(f);
  out.append(text);
}

}  // namespace tw::cuda
