#include <algorithm>
#include <bit>
#include <fmt/format.h>

#include "tw/emit/cpu/op_table.h"
#include "tw/emit/cpu/reduce_nest.h"

namespace tw::cpu {
namespace {

/// Bytes that one prefetch brings, and that a block of rows reads of each row between two of them.
constexpr int64_t kLine = 64;
/// Bytes that a row is fetched ahead of its steps: 512 to 2048 are equally good (Sapphire Rapids).
constexpr int64_t kAhead = 512;
/// Vectors of a group that are written out one after the other.
constexpr int64_t kWrittenOut = 4;

/// The extent of the last axis of those that a reshape on the way to v makes the axis of, when
/// there are several; else 0.
int64_t inner_extent(const Context& c, ValueId v, int axis) {
  const Op* op = c.storage.contains(v) ? nullptr : c.def[v];
  if (!op || !is_expression(c.program, *op) || op->code == Opcode::slice) return 0;
  if (op->code == Opcode::transpose) {
    return inner_extent(c, op->in[0], op->as<PermAttr>().perm[axis]);
  }
  const Extents& to = c.program.type(v).shape;
  if (op->code == Opcode::reshape) {
    const Extents& from = c.program.type(op->in[0]).shape;
    int64_t below = 1, here = 1;
    for (size_t k = axis + 1; k < to.size(); ++k) below *= to[k];
    size_t k = from.size();
    while (k > 0 && (here < below || from[k - 1] == 1)) here *= from[--k];
    if (k == 0 || here != below || to[axis] % from[k - 1] != 0) return 0;
    if (from[k - 1] < to[axis]) return from[k - 1];
    return inner_extent(c, op->in[0], static_cast<int>(k) - 1);
  }
  for (const ValueId x : op->in) {
    if (c.program.type(x).shape.size() != to.size() || c.program.type(x).shape[axis] == 1) continue;
    if (const int64_t inner = inner_extent(c, x, axis)) return inner;
  }
  return 0;
}

}  // namespace

// ---- how the nest is cut

void ReduceNest::split_groups() {
  if (custom_ || !stores_.empty() || items_.size() != 1) return;
  const int64_t inner = inner_extent(c_, items_[0].in, axis_);
  if (inner < 2 || inner >= k_.extent) return;
  whole_ = k_;
  groups_ = Axis{c_.new_loop("g", k_.extent / inner), k_.extent / inner, axis_};
  k_ = Axis{c_.new_loop("k", inner), inner, axis_};
  at_[axis_] = Expr::symbol(groups_->counter) * inner + Expr::symbol(k_.counter);
}

void ReduceNest::join_groups() {
  groups_.reset();
  k_ = whole_;
  at_[axis_] = Expr::symbol(k_.counter);
}

bool ReduceNest::keeps_groups(LaneChoice& lanes) {
  if (lanes.axis != k_loop()) return false;
  while (k_.extent % lanes.lanes != 0) lanes.lanes /= 2;
  if (lanes.lanes < 2) return false;
  lanes_ = lanes.lanes;
  std::vector<Limit> limits;
  reads(limits);
  return std::ranges::none_of(limits, [&](const Limit& l) { return l.loop == k_loop(); });
}

std::vector<Expression::Access> ReduceNest::reads(std::vector<Limit>& limits) {
  const Draft draft(c_);
  std::vector<Expression::Access> found;
  Expression e = make(false);
  e.survey = &found;
  e.set_limited(limited());
  e.assume(Assume::inside);
  for (const Item& i : items_) e.value(i.in, at_);
  limits = e.limits();
  return found;
}

bool ReduceNest::blocks_rows() {
  if (columns_ || lanes_ == 1 || custom_ || !stores_.empty() || items_.size() != 1) return false;
  if (axes_.empty() || axes_.back().extent < kRowBlock) return false;
  std::vector<Limit> limits;
  for (Expression::Access& a : reads(limits)) {
    if (a.param < 0 || a.loaded || bits(c_.program.params[a.param].dtype) != 8) continue;
    const int unit = c_.specialisation.params[a.param].unit_axis;
    bool along_k = false, along_rows = false;
    for (size_t axis = 0; axis < a.at.size(); ++axis) {
      const std::optional<int64_t> k = slope(a.at[axis], k_.counter, c_.facts);
      const std::optional<int64_t> row = slope(a.at[axis], axes_.back().counter, c_.facts);
      if (static_cast<int>(axis) == unit) along_k = k.value_or(0) > 0 && row == 0;
      if (static_cast<int>(axis) != unit) along_rows = along_rows || row.value_or(0) > 0;
    }
    if (!along_k || !along_rows) continue;
    fetch_step_ = *slope(a.at[unit], k_.counter, c_.facts);
    fetched_.push_back(std::move(a));
  }
  return !fetched_.empty();
}

// ---- text

void ReduceNest::emit_row(Writer& out) {
  acc_ = c_.fresh("acc");
  if (lanes_ == 1) return emit_scalar(out);
  emit_row_steps(out);
  if (blocked_) return emit_blocks(out);
  emit_pass(1, true, out);
}

void ReduceNest::emit_row_steps(Writer& out) {
  Expression e = make(false);
  e.set_limited(limited());
  e.assume(Assume::inside);
  step_ = c_.fresh("step");
  Writer text;
  emit_step(e, step_, false, text);
  read_limits(e);
  granted_ = {e.limits(), e.guards()};
  const bool may_fold = k_limited_ && uniform_ && (one_limit_ || blocked_ || guard_.empty());
  pad_ = may_fold ? beyond(out) : std::nullopt;
  writes_ = !custom_ && covers_stores(pad_.has_value());
  if (writes_) {
    text = Writer();
    Expression again = make(false);
    again.set_limited(limited());
    again.assume(Assume::inside);
    emit_step(again, step_, false, text);
  }
  out.append(text);
  edge_ = c_.fresh("edge");
  exact_ = k_full_.empty() && j_full_.empty() && guard_.empty() && k_.extent % lanes_ == 0;
  if (!exact_ || custom_) emit_edge(edge_, out);
  if (blocked_) emit_fetch(out);
  emit_wide(out);
}

void ReduceNest::emit_fetch(Writer& out) {
  fetch_ = c_.fresh("fetch");
  Expression e = make(false);
  e.set_lanes(-1, 1);
  for (const Expression::Access& a : fetched_) {
    const std::string pointer = e.address(a.param, a.at).pointer;
    e.body(e.depth()).line(
        fmt::format("__builtin_prefetch((const char*)({}) + {}, 0, 3);", pointer, kAhead));
  }
  emit_lambda(e, fetch_, counters(), out);
}

void ReduceNest::emit_blocks(Writer& out) {
  const std::string i = counter(axes_.back());
  const int64_t extent = axes_.back().extent;
  const bool ragged = !j_full_.empty() || !guard_.empty();
  out.line(fmt::format("i64 {} = 0;", i));
  out.line(fmt::format("const i64 {}_full = {};", i, ended(j_full_, extent)));
  // Rows far apart: a processor follows one stream in a page.
  out.line(fmt::format("const i64 {0}_apart = {0}_full / {1};", i, kRowBlock));
  out.open(fmt::format("for (; {0} < {0}_apart; ++{0}) {{", i));
  emit_pass(kRowBlock, true, out);
  out.close();
  out.line(fmt::format("{0} = {0}_apart * {1};", i, kRowBlock));
  if (ragged || extent % kRowBlock != 0) {
    out.open(fmt::format("for (; {0} < {0}_full; ++{0}) {{", i));
    emit_pass(1, true, out);
    out.close();
  }
  if (!ragged) return;
  out.open(fmt::format("for (; {0} < {1}; ++{0}) {{", i, extent));
  emit_pass(1, false, out);
  out.close();
}

void ReduceNest::emit_pass(int rows, bool inside, Writer& out) {
  const int64_t vectors = k_.extent / lanes_;
  int chains = custom_ ? 1 : blocked_ && rows > 1 ? kAccumulators / 2 : kAccumulators;
  if (vectors < chains && !groups_) chains = 1;
  while (groups_ && vectors % chains != 0) chains /= 2;
  if (custom_) {
    start_custom(edge_, out);
    out.line(fmt::format("i64 {} = {};", counter(k_), lanes_));
  } else {
    for (int a = 0; a < rows * chains; ++a) declare(prefix(a), lanes_, out);
    out.line(fmt::format("i64 {} = 0;", counter(span())));
  }
  declare_span(inside, out);
  if (inside && wide_ > 1) pass_wide(rows, chains, out);
  if (inside) groups_ ? pass_groups(rows, chains, out) : pass_flat(rows, chains, out);
  if (!exact_ || !inside) pass_edge(rows, chains, inside, out);
  if (!blocked_) return finish_row(0, chains, pad_.has_value(), out);
  const std::string i = counter(axes_.back());
  for (int r = 0; r < rows; ++r) {
    out.open("{");
    out.line(fmt::format("const i64 {0}_row = {1};", i, row(r)));
    out.open("{");
    out.line(fmt::format("const i64 {0} = {0}_row;", i));
    finish_row(r * chains, chains, inside && pad_.has_value(), out);
    out.close();
    out.close();
  }
}

void ReduceNest::declare_span(bool inside, Writer& out) {
  const std::string s = counter(span());
  const std::string all = std::to_string(span().extent);
  const std::string rows = k_full_.empty() ? all : fmt::format("max({}, 0)", k_full_);
  out.line(fmt::format("const i64 {}_full = {};", s,
                       !inside    ? "0"
                       : blocked_ ? rows
                                  : ended(k_full_, span().extent)));
  if (inside && pad_ && !one_limit_) {
    out.line(fmt::format("const i64 {}_end = min(max({}, 0), {});", s, c_.text(k_limit_.hi), all));
  }
}

std::string ReduceNest::span_end(bool inside) const {
  if (!inside || !pad_) return std::to_string(span().extent);
  return counter(span()) + (one_limit_ ? "_full" : "_end");
}

void ReduceNest::steps(int rows, int chains, int count, const std::string& at, Writer& out) {
  for (int u = 0; u < count; ++u) {
    for (int r = 0; r < rows; ++r) {
      std::string place;
      if (blocked_) place = row(r) + ", ";
      place += count == 1 ? at : fmt::format("{} + {}", at, u * lanes_);
      out.line(fmt::format("{}({}{});", step_, place, arguments(prefix(r * chains + u % chains))));
    }
  }
}

void ReduceNest::pass_flat(int rows, int chains, Writer& out) {
  const std::string k = counter(k_);
  const int step = chains * lanes_;
  if (rows > 1 && k_.extent >= kLine && kLine % step == 0) {
    out.open(fmt::format("for (; {0} + {1} <= {0}_full; {0} += {1}) {{", k, kLine));
    fetches(k, out);
    const std::string u = c_.fresh("u");
    out.open(fmt::format("for (i64 {0} = {1}; {0} < {1} + {2}; {0} += {3}) {{", u, k, kLine, step));
    steps(rows, chains, chains, u, out);
    out.close();
    out.close();
  } else if (chains > 1) {
    out.open(fmt::format("for (; {0} + {1} <= {0}_full; {0} += {1}) {{", k, step));
    steps(rows, chains, chains, k, out);
    out.close();
  }
  const std::string head = fmt::format("for (; {0} + {1} <= {0}_full; {0} += {1})", k, lanes_);
  if (!blocked_) {
    out.line(fmt::format("{} {}({}{});", head, step_, k, arguments(prefix(0))));
    return;
  }
  out.open(head + " {");
  steps(rows, chains, 1, k, out);
  out.close();
}

void ReduceNest::pass_groups(int rows, int chains, Writer& out) {
  const std::string g = counter(*groups_);
  const int64_t vectors = k_.extent / lanes_, bytes = k_.extent * fetch_step_;
  const auto one = [&](const std::string& group) {
    if (vectors <= kWrittenOut) {
      steps(rows, chains, static_cast<int>(vectors), group + ", 0", out);
      return;
    }
    const std::string k = counter(k_);
    out.open(
        fmt::format("for (i64 {0} = 0; {0} < {1}; {0} += {2}) {{", k, k_.extent, chains * lanes_));
    steps(rows, chains, chains, group + ", " + k, out);
    out.close();
  };
  const int64_t ahead = rows > 1 && bytes > 0 ? kLine / bytes : 0;
  if (ahead > 1) {
    out.open(fmt::format("for (; {0} + {1} <= {0}_full; {0} += {1}) {{", g, ahead));
    fetches(g + ", 0", out);
    const std::string each = c_.fresh("each");
    out.open(fmt::format("for (i64 {0} = {1}; {0} < {1} + {2}; ++{0}) {{", each, g, ahead));
    one(each);
    out.close();
    out.close();
  }
  out.open(fmt::format("for (; {0} < {0}_full; ++{0}) {{", g));
  for (int64_t at = 0; rows > 1 && ahead <= 1 && at < bytes; at += kLine) {
    fetches(fmt::format("{}, {}", g, at / fetch_step_), out);
  }
  one(g);
  out.close();
}

bool ReduceNest::Granted::cover(const Expression& e) const {
  const auto among = [](const auto& list) {
    return [&](const auto& x) { return std::ranges::find(list, x) != list.end(); };
  };
  return std::ranges::all_of(e.limits(), among(limits)) &&
         std::ranges::all_of(e.guards(), among(guards));
}

void ReduceNest::emit_wide(Writer& out) {
  if (!groups_ || custom_ || k_.extent != lanes_) return;
  const int64_t widest = std::max<int64_t>(bytes(register_type(held(0))), bytes(f32));
  const int64_t most = c_.machine.vector_bytes / widest;
  const int count = static_cast<int>(std::min(most / lanes_, groups_->extent));
  if (count < 2 || !std::has_single_bit(static_cast<unsigned>(count))) return;
  Draft draft(c_);
  const std::string name = c_.fresh("wide");
  Expression e = make(false);
  e.join(span_loop(), count);
  e.set_limited(limited());
  e.assume(Assume::inside);
  Writer text;
  emit_step(e, name, false, text);
  if (!e.joinable() || !granted_.cover(e)) return;
  draft.keep();
  wide_ = count;
  wide_step_ = name;
  wide_acc_ = c_.fresh("all");
  out.append(text);
}

void ReduceNest::pass_wide(int rows, int chains, Writer& out) {
  const std::string g = counter(*groups_);
  const int64_t bytes = k_.extent * fetch_step_ * wide_;
  const int64_t stride = wide_ * std::max<int64_t>(rows > 1 && bytes > 0 ? kLine / bytes : 1, 1);
  for (int r = 0; r < rows; ++r) declare(wide_prefix(r), wide_lanes(), out);
  out.open(fmt::format("for (; {0} + {1} <= {0}_full; {0} += {1}) {{", g, stride));
  for (int64_t at = 0; rows > 1 && at < std::max(bytes, kLine); at += kLine) {
    fetches(fmt::format("{}, {}", g, at / fetch_step_), out);
  }
  for (int64_t at = 0; at < stride; at += wide_) {
    for (int r = 0; r < rows; ++r) {
      out.line(fmt::format("{}({}{} + {}, 0{});", wide_step_, blocked_ ? row(r) + ", " : "", g, at,
                           arguments(wide_prefix(r))));
    }
  }
  out.close();
  for (int r = 0; r < rows; ++r) {
    Expression e = make(true);
    const Regs wide = folded(e, read(wide_prefix(r), wide_lanes()), wide_lanes(), lanes_);
    const Regs sum = combine(e, read(prefix(r * chains), lanes_), wide);
    for (const Writer& text : e.take_from(0)) out.append(text);
    for (size_t n = 0; n < sum.size(); ++n) {
      out.line(fmt::format("{}{} = {};", prefix(r * chains), n, sum[n].text));
    }
  }
}

void ReduceNest::fetches(const std::string& at, Writer& out) {
  for (int r = 0; r < kRowBlock; ++r) out.line(fmt::format("{}({}, {});", fetch_, row(r), at));
}

std::string ReduceNest::row(int r) const {
  const std::string i = counter(axes_.back());
  return r == 0 ? i : fmt::format("{0} + {1} * {0}_apart", i, r);
}

void ReduceNest::pass_edge(int rows, int chains, bool inside, Writer& out) {
  const std::string s = counter(span()), end = span_end(inside);
  const auto call = [&](int r, const std::string& at, const std::string& count) {
    const std::string place = blocked_ ? row(r) + ", " : "";
    return fmt::format("{}({}{}, {}{});", edge_, place, at, count, arguments(prefix(r * chains)));
  };
  if (!groups_ && rows == 1) {
    out.line(fmt::format("for (; {0} < {1}; {0} += {2}) {3}", s, end, lanes_,
                         call(0, s, fmt::format("{} - {}", end, s))));
    return;
  }
  const std::string k = counter(k_);
  out.open(groups_ ? fmt::format("for (; {0} < {1}; ++{0}) {{", s, end)
                   : fmt::format("for (; {0} < {1}; {0} += {2}) {{", s, end, lanes_));
  if (groups_) {
    out.open(fmt::format("for (i64 {0} = 0; {0} < {1}; {0} += {2}) {{", k, k_.extent, lanes_));
  }
  for (int r = 0; r < rows; ++r) {
    out.line(groups_ ? call(r, fmt::format("{}, {}", s, k), std::to_string(lanes_))
                     : call(r, s, fmt::format("{} - {}", end, s)));
  }
  if (groups_) out.close();
  out.close();
}

Regs ReduceNest::folded(Expression& e, Regs r, int from, int lanes) {
  for (; from > lanes; from /= 2) {
    Regs low, high;
    for (const Reg& x : r) {
      low.push_back(half(e, x, from, 0));
      high.push_back(half(e, x, from, 1));
    }
    e.set_lanes(static_cast<int>(axes_.size()), from / 2);
    r = combine(e, low, high);
  }
  return r;
}

void ReduceNest::finish_row(int first, int chains, bool folds_pad, Writer& out) {
  Expression e = make(true);
  Regs r = read(prefix(first), lanes_);
  for (int u = 1; u < chains; ++u) r = combine(e, r, read(prefix(first + u), lanes_));
  r = folded(e, std::move(r), lanes_, 1);
  e.set_lanes(-1, 1);
  for (const Writer& text : e.take_from(0)) out.append(text);
  std::string rest = fmt::format("{} - {}", span().extent, span_end(folds_pad));
  if (groups_) rest = fmt::format("({}) * {}", rest, k_.extent);
  for (size_t n = 0; folds_pad && n < r.size(); ++n) {
    const std::string total = c_.fresh("total");
    out.line(fmt::format("{} {} = {};", type_of(n, 1), total, r[n].text));
    fold_pad(n, total, (*pad_)[n], 1, rest, out);
    r[n].text = total;
  }
  write(e, r, "", out);
}

}  // namespace tw::cpu
