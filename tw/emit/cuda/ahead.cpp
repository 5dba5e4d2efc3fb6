#include "tw/emit/cuda/ahead.h"

#include <algorithm>
#include <fmt/format.h>

#include "tw/emit/cuda/ring.h"
#include "tw/ir/infer.h"

namespace tw::cuda {
namespace {

/// Bytes that are on their way to a thread where memory is kept busy (40 KB of a multiprocessor by
/// 1024 threads), and the most registers that they may take.
constexpr int64_t kBytesWanted = 40, kMostBytes = 16 * 4;
constexpr int64_t kMostAhead = 4;

bool contains(const Op& loop, Opcode code) {
  bool found = false;
  walk(loop.regions[0], [&](const Op& op) { found = found || op.code == code; });
  return found;
}

bool mentions_counter(const View& view, Symbol counter) {
  return std::ranges::any_of(view.origin, [&](const Expr& e) { return mentions(e, counter); });
}

}  // namespace

Ahead::Ahead(State& s, const Op& loop) : s_(s), loop_(loop) {
  const LoopAttr& a = loop.as<LoopAttr>();
  const Expr trips = simplify(cdiv(a.hi - a.lo, a.step), s.c.facts);
  // Its registers are taken whichever way an instance goes.
  if (s.branches > 0 || contains(loop, Opcode::dot) || prove_le(trips, 1, s.c.facts)) return;
  find_loads();
  choose_stages();
  for (const Load& l : loads_) s_.fetched.insert(l.op->out[0]);
}

Ahead::~Ahead() {
  for (const Load& l : loads_) s_.fetched.erase(l.op->out[0]);
}

void Ahead::find_loads() {
  for (const Op& op : loop_.regions[0].ops) {
    if (op.code != Opcode::load || !may_move(op)) continue;
    const layout::ThreadValue& l = s_.placement.layout_of(s_.program().type(op.out[0]).shape);
    if (const auto run = run_of(s_, l, op.as<ViewAttr>().view)) loads_.push_back({&op, *run});
  }
}

/// Whether an earlier iteration may do the load: nothing that the loop does changes what it reads,
/// nor lets others change it.
bool Ahead::may_move(const Op& load) const {
  const ValueId v = load.out[0];
  const View& view = load.as<ViewAttr>().view;
  const Symbol counter{SymbolKind::loop, loop_.as<LoopAttr>().loop};
  if (!s_.in_registers(v) || s_.in_memory(v) || s_.placement.operands().bases().contains(v) ||
      !s_.placement.kept(load) || !mentions_counter(view, counter))
    return false;
  const ParamKind kind = s_.program().params[view.param].kind;
  if (kind == ParamKind::in || kind == ParamKind::scratch) return kind == ParamKind::in;
  bool still = true;
  walk(loop_.regions[0], [&](const Op& op) {
    const View* other = view_of(op);
    const bool writes = effect(s_.program(), op) == Effect::write && other != nullptr;
    still = still && op.code != Opcode::atomic && !(writes && other->param == view.param);
  });
  return still;
}

int64_t Ahead::bytes_of(const Load& l) const {
  const int64_t elements =
      s_.placement.layout_of(s_.program().type(l.op->out[0]).shape).registers();
  return elements * bytes(s_.program().params[l.op->as<ViewAttr>().view.param].dtype);
}

/// What all instances read is near, in caches: one iteration is enough for it.
void Ahead::choose_stages() {
  const auto own = [](const Load& l) { return is_own(l.op->as<ViewAttr>().view); };
  std::stable_partition(loads_.begin(), loads_.end(), own);  // clang 14 lacks that of ranges
  int64_t all = 0, far = 0;
  const auto too_many = std::ranges::find_if(loads_, [&](const Load& l) {
    all += bytes_of(l);
    return all > kMostBytes;
  });
  loads_.erase(too_many, loads_.end());
  all = 0;
  for (const Load& l : loads_) {
    all += bytes_of(l);
    if (own(l)) far += bytes_of(l);
  }
  if (far == 0) return;
  const int64_t room = (kMostBytes - all) / far + 1;
  const int64_t stages = std::clamp(kBytesWanted / far, int64_t{1}, std::min(room, kMostAhead));
  for (Load& l : loads_) {
    if (own(l)) l.stages = stages;
  }
}

std::set<int64_t> Ahead::stage_counts() const {
  std::set<int64_t> counts;
  for (const Load& l : loads_) counts.insert(l.stages);
  return counts;
}

std::string Ahead::stage_of(const Load& l, const std::string& stage) const {
  return l.stages == 1 ? l.raw : fmt::format("{}[{}]", l.raw, stage);
}

/// The loads of so many stages for the iteration with that counter, where there is one.
void Ahead::fetch(const std::string& iteration, int64_t stages, const std::string& stage,
                  Writer& out) {
  const LoopAttr& a = loop_.as<LoopAttr>();
  const Symbol counter{SymbolKind::loop, a.loop};
  const std::string name = s_.c.fresh("ahead");
  const Symbol ahead = s_.c.new_symbol(name, s_.c.facts.at(counter));
  out.line(fmt::format("const i64 {} = {};", name, iteration));
  out.open(fmt::format("if ({} < {}_end) {{", name, s_.c.loop_names.at(a.loop)));
  for (Load& l : loads_) {
    if (l.stages != stages) continue;
    ViewAttr from = l.op->as<ViewAttr>();
    from.view = with_counter(from.view, counter, ahead);
    l.partial = read_runs(s_, *l.op, from, l.run, stage_of(l, stage), out);
  }
  out.close();
}

void Ahead::begin(Writer& out) {
  const LoopAttr& a = loop_.as<LoopAttr>();
  Writer text;
  Footprint reads;
  for (Load& l : loads_) {
    l.raw = declare_runs(s_, *l.op, l.run, l.stages, text);
    reads.add(s_.reads_of(l.op->out[0]));
  }
  for (const int64_t stages : stage_counts()) {
    if (stages == 1) {
      text.open("{");
      fetch(s_.c.text(a.lo), stages, "0", text);
    } else {
      const Symbol stage = s_.c.new_loop("stage", stages);
      const std::string name = s_.c.symbol_text(stage);
      text.line("#pragma unroll");
      text.open(fmt::format("for (int {0} = 0; {0} < {1}; ++{0}) {{", name, stages));
      fetch(s_.c.text(simplify(a.lo + a.step * Expr::symbol(stage), s_.c.facts)), stages, name,
            text);
    }
    text.close();
  }
  s_.append(reads, text, out);
}

/// The next iteration's loads take the place of this one's, and so on.
void Ahead::shift(int64_t stages, Writer& out) {
  const std::string stage = s_.c.symbol_text(s_.c.new_loop("stage", stages));
  out.line("#pragma unroll");
  out.open(fmt::format("for (int {0} = 0; {0} < {1}; ++{0}) {{", stage, stages - 1));
  for (const Load& l : loads_) {
    if (l.stages != stages) continue;
    const Extents& shape = s_.program().type(l.op->out[0]).shape;
    const int64_t packs = s_.placement.layout_of(shape).registers() / l.run.count;
    const std::string pack = s_.c.symbol_text(s_.c.new_loop("r", packs));
    out.line(fmt::format("for (int {0} = 0; {0} < {1}; ++{0}) {2}[{3}][{0}] = {2}[{3} + 1][{0}];",
                         pack, packs, l.raw, stage));
  }
  out.close();
}

void Ahead::next(Writer& out) {
  const LoopAttr& a = loop_.as<LoopAttr>();
  Footprint reads;
  for (const Load& l : loads_) reads.add(s_.reads_of(l.op->out[0]));
  Writer text;
  for (const Load& l : loads_) unpack_runs(s_, *l.op, l.run, stage_of(l, "0"), l.partial, text);
  for (const int64_t stages : stage_counts()) {
    if (stages > 1) shift(stages, text);
    text.open("{");
    const Expr later = Expr::symbol(SymbolKind::loop, a.loop) + a.step * stages;
    fetch(s_.c.text(simplify(later, s_.c.facts)), stages, std::to_string(stages - 1), text);
    text.close();
  }
  s_.append(reads, text, out);
}

}  // namespace tw::cuda
