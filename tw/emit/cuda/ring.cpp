#include "tw/emit/cuda/ring.h"

#include <algorithm>
#include <fmt/format.h>

#include "tw/ir/infer.h"

namespace tw::cuda {
namespace {

constexpr int64_t kMostStages = 4;
constexpr int64_t kFoldBytes = 4 << 10;
/// Of a thread that multiplies, beside its sums.
constexpr int64_t kOtherRegisters = 80;

}  // namespace

View with_counter(View view, Symbol counter, Symbol other) {
  for (Expr& e : view.origin) {
    e = substitute(e, [&](Symbol s) -> std::optional<Expr> {
      return s == counter ? std::optional<Expr>(Expr::symbol(other)) : std::nullopt;
    });
  }
  return view;
}

Ring::Ring(State& s, const Op& loop) : s_(s), loop_(loop) {
  for (const Op& op : loop.regions[0].ops) {
    if (op.code != Opcode::load || !s.placement.in_panel_only(op.out[0])) continue;
    if (copies_async(s, op, panel_of(s, op.out[0]))) loads_.push_back(&op);
  }
  stages_ = choose_stages();
  if (stages_ < 2) loads_.clear();
}

Ring::~Ring() {
  for (const Op* op : loads_) s_.panels.erase(op->out[0]);
}

/// What a block needs beside the rings: panels of the program's other operands, parts of folds.
int64_t Ring::other_bytes() const {
  int64_t bytes = kFoldBytes;
  for (const ValueId v : s_.placement.operands().bases()) {
    const auto loads = [v](const Op* op) { return op->out[0] == v; };
    if (std::ranges::none_of(loads_, loads)) bytes += panel_of(s_, v).bytes();
  }
  return bytes;
}

/// Whether registers leave room for one block on a multiprocessor only.
bool Ring::alone() const {
  int64_t sums = 0;
  walk(s_.program(), [&](const Op& op) {
    if (op.code != Opcode::dot) return;
    const Extents& shape = s_.program().type(op.out[0]).shape;
    sums = std::max(sums, s_.placement.layout_of(shape).registers());
  });
  return 2 * (sums + kOtherRegisters) * s_.placement.threads() > s_.gpu.registers;
}

/// Two blocks to a multiprocessor where that leaves two stages, else one.
int64_t Ring::choose_stages() const {
  int64_t bytes = 0;
  for (const Op* op : loads_) bytes += panel_of(s_, op->out[0]).bytes();
  if (bytes == 0) return 0;
  const auto& knobs = s_.c.mapping.knobs;
  const int64_t used = s_.shared + other_bytes();
  const int64_t all = std::max<int64_t>(0, s_.gpu.shared_per_block - used) / bytes;
  const int64_t half = std::max<int64_t>(0, s_.gpu.shared_per_multiprocessor / 2 - used) / bytes;
  if (knobs.contains("stages")) return std::min(knobs.at("stages"), all);
  return std::min(kMostStages, half >= 2 && !alone() ? half : all);
}

void Ring::begin(Writer& out) {
  for (const Op* op : loads_) memory_.push_back(reserve_panel(s_, op->out[0], stages_, out));
  Writer text;
  const LoopAttr& a = loop_.as<LoopAttr>();
  const std::string i = s_.c.loop_names.at(a.loop);
  for (int64_t ahead = 0; ahead + 1 < stages_; ++ahead) {
    const Expr at = simplify(a.lo + a.step * ahead, s_.c.facts);
    copy(s_.c.text(at), std::to_string(ahead), text);
  }
  stage_ = s_.c.fresh("stage");
  text.line(fmt::format("int {} = 0;", stage_));
  Footprint f;
  for (const PanelMemory& m : memory_) f.writes.push_back(m.where);
  s_.append(f, text, out);
}

/// The copies of the iteration with that counter, where there is one; they are one group.
void Ring::copy(const std::string& iteration, const std::string& stage, Writer& out) {
  const LoopAttr& a = loop_.as<LoopAttr>();
  const Symbol counter{SymbolKind::loop, a.loop};
  const std::string name = s_.c.fresh("ahead");
  const Symbol ahead = s_.c.new_symbol(name, s_.c.facts.at(counter));
  out.open("{");
  out.line(fmt::format("const i64 {} = {};", name, iteration));
  out.open(fmt::format("if ({} < {}_end) {{", name, s_.c.loop_names.at(a.loop)));
  for (size_t k = 0; k < loads_.size(); ++k) {
    const View view = with_counter(loads_[k]->as<ViewAttr>().view, counter, ahead);
    PanelMemory to = memory_[k];
    to.name = fmt::format("({} + {} * {})", memory_[k].name, stage, memory_[k].form.elements());
    copy_panel(s_, *loads_[k], view, to, out);
  }
  out.close();
  out.line(s_.call("copy_async_commit") + "();");
  out.close();
}

void Ring::next(Writer& out) {
  const LoopAttr& a = loop_.as<LoopAttr>();
  out.line(fmt::format("{}<{}>();", s_.call("copy_async_wait"), stages_ - 2));
  s_.barrier(out);
  const std::string i = s_.c.loop_names.at(a.loop);
  const Expr later =
      simplify(Expr::symbol(SymbolKind::loop, a.loop) + a.step * (stages_ - 1), s_.c.facts);
  const std::string free = fmt::format("({0} == 0 ? {1} : {0} - 1)", stage_, stages_ - 1);
  copy(s_.c.text(later), free, out);
  for (size_t k = 0; k < loads_.size(); ++k) {
    PanelMemory here = memory_[k];
    here.name = s_.c.fresh(memory_[k].name + "_now");
    out.line(fmt::format("const auto* const {} = {} + {} * {};", here.name, memory_[k].name, stage_,
                         here.form.elements()));
    s_.panels[loads_[k]->out[0]] = here;
  }
  out.line(fmt::format("{0} = {0} + 1 == {1} ? 0 : {0} + 1;", stage_, stages_));
}

void Ring::end() {
  Footprint f;
  for (const PanelMemory& m : memory_) f.reads.push_back(m.where);
  s_.pending.add(f);
  if (s_.recorded != nullptr) s_.recorded->add(f);
}

}  // namespace tw::cuda
