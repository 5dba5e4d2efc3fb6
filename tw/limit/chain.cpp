#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <map>

#include "tw/limit/impl/sizes.h"

namespace tw {

namespace {

constexpr double kNever = -std::numeric_limits<double>::infinity();

/// Many of these may be done in any grouping.
constexpr std::array kRegrouped = {Opcode::add,  Opcode::mul,     Opcode::min,
                                   Opcode::max,  Opcode::min_num, Opcode::max_num,
                                   Opcode::and_, Opcode::or_,     Opcode::xor_};

int64_t uses_of(const Region& r, ValueId v) {
  int64_t n = std::ranges::count(r.yields, v);
  walk(r, [&](const Op& op) {
    n += std::ranges::count(op.in, v);
    for (const Region& inner : op.regions) n += std::ranges::count(inner.yields, v);
  });
  return n;
}

/// The op of `r` itself that takes `v`; null where one of an inner region does.
const Op* taker(const Region& r, ValueId v) {
  const auto found = std::ranges::find_if(
      r.ops, [&](const Op& op) { return std::ranges::find(op.in, v) != op.in.end(); });
  return found == r.ops.end() ? nullptr : &*found;
}

/// Whether a loop only adds to its carried value (or takes the largest, ..) and looks at it
/// nowhere else.
bool is_gathered(const Region& body, size_t carried) {
  ValueId v = body.args[carried];
  for (std::optional<Opcode> kind; v != body.yields[carried];) {
    const Op* op = uses_of(body, v) == 1 ? taker(body, v) : nullptr;
    if (op == nullptr) return false;
    const bool adds = op->code == Opcode::dot && op->in[2] == v;
    const Opcode code = adds ? Opcode::add : op->code;
    if (std::ranges::find(kRegrouped, code) == kRegrouped.end()) return false;
    if (kind.value_or(code) != code) return false;
    kind = code;
    v = op->out[0];
  }
  return true;
}

/// When values are there at the earliest.
class Chain {
 public:
  Chain(const Program& p, const Sizes& sizes, const Latency& latency, Residence where)
      : p_(p), sizes_(sizes), latency_(latency), where_(where) {}

  double us(const Coordinates& at) {
    end_ = 0;
    region(p_.body, at);
    return end_;
  }

 private:
  double when(ValueId v) const {
    const auto found = times_.find(v);
    return found == times_.end() ? 0 : found->second;
  }

  double load_us() const {
    return where_ == Residence::memory ? latency_.memory_us : latency_.cache_us;
  }

  /// From the last operand to the result.
  double step_us(const Op& op) const {
    if (op.code == Opcode::load || op.code == Opcode::gather || op.code == Opcode::atomic)
      return reads_given(op) ? load_us() : 0;
    if (op.code == Opcode::dot) return latency_.matrix_us;
    const OpCost cost = cost_of(p_, op);
    if (cost.count == 0) return 0;
    const double once = cost.unit == Unit::special ? latency_.special_us : latency_.arithmetic_us;
    if (!is_fold(op.code)) return once;
    const int64_t extent = p_.type(op.in[0]).shape[static_cast<size_t>(fold_of(op).axis)];
    return once * std::ceil(std::log2(static_cast<double>(extent)));
  }

  bool reads_given(const Op& op) const {
    return p_.params[static_cast<size_t>(view_of(op)->param)].kind < ParamKind::workspace;
  }

  void region(const Region& r, const Coordinates& at) {
    for (const Op& op : r.ops) one(op, at);
  }

  void one(const Op& op, const Coordinates& at) {
    if (op.code == Opcode::for_) return loop(op, at);
    if (op.code == Opcode::if_) return branch(op, at);
    if (op.code == Opcode::while_) return;  // of what it gives nothing is known
    double begin = 0;
    for (ValueId v : op.in) begin = std::max(begin, when(v));
    const double end = begin + step_us(op);
    for (ValueId v : op.out) times_[v] = end;
    if (info(op.code).effect == Effect::write) end_ = std::max(end_, end);
  }

  void branch(const Op& op, const Coordinates& at) {
    const auto& c = op.as<CondAttr>();
    const bool taken = holds(c.kind, sizes_.value(c.a, at), sizes_.value(c.b, at));
    const Region& side = op.regions[taken ? 0 : 1];
    region(side, at);
    for (size_t i = 0; i < op.out.size(); ++i) times_[op.out[i]] = when(side.yields[i]);
  }

  void loop(const Op& op, Coordinates at) {
    const int64_t trips = sizes_.trips(op.as<LoopAttr>(), at);
    const Region& body = op.regions[0];
    for (size_t i = 0; i < op.out.size(); ++i) times_[op.out[i]] = when(op.in[i]);
    if (trips == 0) return;
    for (size_t i = 0; i < op.in.size(); ++i) times_[body.args[i]] = when(op.in[i]);
    at[{SymbolKind::loop, op.as<LoopAttr>().loop}] = sizes_.value(op.as<LoopAttr>().lo, at);
    region(body, at);
    for (size_t i = 0; i < op.out.size(); ++i)
      times_[op.out[i]] =
          when(body.yields[i]) + static_cast<double>(trips - 1) * carried_us(body, i);
  }

  /// From a carried value to what the next trip gets, along the ops of the body itself.
  double carried_us(const Region& body, size_t carried) const {
    if (is_gathered(body, carried)) return 0;
    std::map<ValueId, double> since = {{body.args[carried], 0}};
    const auto at = [&](ValueId v) {
      const auto found = since.find(v);
      return found == since.end() ? kNever : found->second;
    };
    for (const Op& op : body.ops) {
      double begin = kNever;
      for (ValueId v : op.in) begin = std::max(begin, at(v));
      if (begin == kNever || !op.regions.empty()) continue;
      for (ValueId v : op.out) since[v] = begin + step_us(op);
    }
    return std::max(0.0, at(body.yields[carried]));
  }

  const Program& p_;
  const Sizes& sizes_;
  const Latency& latency_;
  const Residence where_;
  std::map<ValueId, double> times_;
  double end_ = 0;
};

}  // namespace

double chain_us(const Program& p, std::span<const int64_t> dims, const Latency& latency,
                Residence where) {
  const Sizes sizes(p, dims);
  const int64_t n = sizes.instances();
  double longest = 0;
  for (int64_t i : {int64_t{0}, n - 1})
    if (n > 0) longest = std::max(longest, Chain(p, sizes, latency, where).us(sizes.instance(i)));
  return longest;
}

}  // namespace tw
