#include <algorithm>
#include <fmt/format.h>
#include <limits>

#include "tw/base/error.h"
#include "tw/emit/cpu/nest.h"
#include "tw/emit/cpu/op_table.h"
#include "tw/emit/cpu/reduce_nest.h"

namespace tw::cpu {

ReduceNest::ReduceNest(Context& c, const std::vector<const Op*>& group) : c_(c) {
  for (const Op* op : group) {
    if (op->code == Opcode::store) {
      stores_.push_back(op);
      continue;
    }
    const ReduceAttr& how = op->as<ReduceAttr>();
    axis_ = how.axis;
    if (how.combiner == Combiner::custom) custom_ = op;
    for (size_t n = 0; n < op->in.size(); ++n) {
      items_.push_back({op->in[n], op->out[n], how.combiner});
    }
  }
  const Type& in = c.program.type(items_[0].in);
  axes_ = axes_of(c, in.shape, at_);
  out_at_ = at_;
  out_at_[axis_] = 0;
  const auto reduced =
      std::find_if(axes_.begin(), axes_.end(), [&](const Axis& a) { return a.tile_axis == axis_; });
  if (reduced != axes_.end()) {
    folds_ = true;
    k_ = *reduced;
    axes_.erase(reduced);
  }
}

void ReduceNest::emit(Writer& out) {
  for (const Item& i : items_) c_.reserve(i.out, out);
  if (!folds_) {
    store_apart(out);
    for (const Item& i : items_) {
      emit_elements(c_, i.in, {nullptr, &c_.storage.at(i.out)}, out);
    }
    return;
  }
  choose();
  if (columns_ || lanes_ == 1) store_apart(out);
  Writer nest;
  open(nest);
  if (columns_) {
    emit_columns(nest);
  } else {
    emit_row(nest);
  }
  for (int k = 0; k < outer_; ++k) nest.close();
  if (!columns_ && lanes_ > 1 && !writes_) store_apart(out);
  out.append(nest);
}

LaneChoice ReduceNest::survey() {
  std::vector<Axis> all = axes_;
  if (groups_) all.push_back(*groups_);
  all.push_back(k_);
  return choose_lanes(c_, all, [&](Expression& e) {
    for (const Item& i : items_) {
      e.value(i.in, at_);
      write_element(e, Reg{"0", c_.program.type(i.out).dtype, 1, 0, 0},
                    {nullptr, &c_.storage.at(i.out)}, out_at_, "");
    }
    for (const Op* op : stores_) e.value(op->in[0], at_);
  });
}

void ReduceNest::choose() {
  split_groups();
  LaneChoice lanes = survey();
  if (groups_ && !keeps_groups(lanes)) {
    join_groups();
    lanes = survey();
  }
  lanes_ = lanes.lanes;
  columns_ = lanes.axis >= 0 && lanes.axis < static_cast<int>(axes_.size());
  if (columns_) {
    std::rotate(axes_.begin() + lanes.axis, axes_.begin() + lanes.axis + 1, axes_.end());
  }
  blocked_ = blocks_rows();
  outer_ = static_cast<int>(axes_.size()) - (takes_row() ? 1 : 0);
}

void ReduceNest::store_apart(Writer& out) {
  for (const Op* op : stores_) {
    emit_elements(c_, op->in[0], {&op->as<ViewAttr>().view, nullptr}, out);
  }
}

bool ReduceNest::covers_stores(bool folded) const {
  for (const Op* op : stores_) {
    const View& view = op->as<ViewAttr>().view;
    Coords coords(view.origin.begin(), view.origin.end());
    for (size_t k = 0; k < view.axes.size(); ++k) {
      Expr& x = coords[view.axes[k]];
      x = simplify(x + at_[k], c_.facts);
    }
    const std::vector<Bound> open = open_bounds(c_, view.param, coords);
    if (!guard_.empty() || !one_limit_ || (k_limited_ && !folded) ||
        open.size() != (k_limited_ ? 1u : 0u)) {
      return false;
    }
    for (const Bound& b : open) {
      const Symbol k = k_.counter;
      const Expr rest = simplify(b.at - Expr::symbol(k.kind, k.id), c_.facts);
      if (b.low || mentions(rest, k) || simplify(b.dim - rest, c_.facts) != k_limit_.hi) {
        return false;
      }
    }
  }
  return !stores_.empty();
}

DType ReduceNest::held(size_t n) const {
  const DType t = c_.program.type(items_[n].in).dtype;
  return custom_ ? t : register_type(t);
}

std::string ReduceNest::type_of(size_t n, int lanes) {
  const DType t = held(n);
  return c_.prelude.type(t == b1 && lanes > 1 ? i32 : register_type(t), lanes);
}

Reg ReduceNest::accumulator(size_t n, const std::string& prefix, int lanes, uint32_t loops) const {
  return Reg{fmt::format("{}{}", prefix, n), held(n), lanes, loops,
             held(n) == b1 && lanes > 1 ? 4 : 0};
}

Regs ReduceNest::combine(Expression& e, const Regs& a, const Regs& b) {
  Regs r;
  if (!custom_) {
    for (size_t n = 0; n < items_.size(); ++n) {
      r.push_back(combine_pair(e, opcode_of(items_[n].combiner), a[n], b[n]));
    }
  } else {
    r = combine_tuples(e, custom_->regions[0], a, b);
  }
  for (Reg& x : r) {
    if (x.dtype == b1 && x.lanes > 1) x = e.mask_of(x, 4);
  }
  return r;
}

Regs ReduceNest::terms(Expression& e) {
  Regs r;
  for (size_t n = 0; n < items_.size(); ++n) {
    Reg x = e.value(items_[n].in, at_);
    x.dtype = held(n);
    if (lanes_ > 1) x = e.widen(x);
    if (x.dtype == b1 && x.lanes > 1) x = e.mask_of(x, 4);
    r.push_back(x);
  }
  return r;
}

Expression ReduceNest::make(bool post) {
  Expression e(c_);
  for (const Axis& a : axes_) e.add_loop(a.counter);
  if (!post && groups_) e.add_loop(groups_->counter);
  if (!post) e.add_loop(k_.counter);
  e.set_lanes(columns_ ? outer_ : post ? span_loop() : k_loop(), lanes_);
  return e;
}

void ReduceNest::open(Writer& out) {
  for (int k = 0; k < outer_; ++k) {
    const std::string i = c_.symbol_text(axes_[k].counter);
    out.open(fmt::format("for (i64 {0} = 0; {0} < {1}; ++{0}) {{", i, axes_[k].extent));
  }
}

void ReduceNest::emit_step(Expression& e, const std::string& name, bool edge, Writer& out) {
  const size_t n = items_.size();
  const uint32_t inner = 1u << k_loop();
  Regs acc;
  for (size_t i = 0; i < n; ++i) acc.push_back(accumulator(i, "a", e.lanes(), inner));
  Regs next = combine(e, acc, terms(e));
  if (writes_) {
    for (const Op* op : stores_) {
      write_element(e, e.value(op->in[0], at_), {&op->as<ViewAttr>().view, nullptr}, at_,
                    edge ? "count" : "");
    }
  }
  std::string parameters = counters();
  if (edge) parameters += ", i64 count";
  for (size_t i = 0; i < n; ++i) parameters += fmt::format(", {}& a{}", type_of(i, e.lanes()), i);
  Writer& body = e.body(e.depth());
  for (size_t i = 0; i < n; ++i) {
    Reg r = e.widen(next[i]);
    if (edge && !columns_) {
      const Reg mask{fmt::format("{}(count)", c_.prelude.use("below", i32, lanes_)), b1, lanes_,
                     inner, 4};
      r = select(e, mask, r, acc[i]);
    }
    next[i] = r;
  }
  for (size_t i = 0; i < n; ++i) body.line(fmt::format("a{} = {};", i, next[i].text));
  emit_lambda(e, name, parameters, out);
}

void ReduceNest::emit_lambda(Expression& e, const std::string& name, const std::string& parameters,
                             Writer& out) {
  for (int d = 0; d <= outer_; ++d) out.append(e.body(d));
  out.open(fmt::format("auto {} = [&]({}) __attribute__((always_inline)) {{", name, parameters));
  for (int d = outer_ + 1; d <= e.depth(); ++d) out.append(e.body(d));
  out.close("};");
}

std::string ReduceNest::counters() const {
  std::string text;
  if (takes_row()) text += fmt::format("i64 {}, ", counter(axes_[outer_]));
  if (groups_) text += fmt::format("i64 {}, ", counter(*groups_));
  return text + fmt::format("i64 {}", counter(k_));
}

std::optional<Regs> ReduceNest::beyond(Writer& out) {
  if (custom_) return std::nullopt;
  Expression e = make(false);
  e.set_limited(limited());
  e.assume(Assume::outside, k_limit_);
  Regs pads;
  for (size_t n = 0; n < items_.size(); ++n) {
    Reg x = e.value(items_[n].in, at_);
    if (x.loops >> span_loop() & 1 || x.loops >> k_loop() & 1) return std::nullopt;
    x.dtype = held(n);
    if (columns_) x = e.widen(x);
    if (columns_ && x.dtype == b1) x = e.mask_of(x, 4);
    pads.push_back(x);
  }
  beyond_text_ = Writer();
  for (int d = outer_ + 1; d <= e.depth(); ++d) beyond_text_.append(e.body(d));
  for (int d = 0; d <= outer_; ++d) out.append(e.body(d));
  return pads;
}

void ReduceNest::read_limits(const Expression& e) {
  const int k = span_loop();
  for (const Limit& l : e.limits()) {
    const int64_t extent = l.loop == k ? span().extent : axes_[l.loop].extent;
    std::string& end = l.loop == k ? k_full_ : j_full_;
    if (!prove_le(extent, l.hi, c_.facts)) {
      end = fmt::format("min({}, {})", end.empty() ? std::to_string(extent) : end, c_.text(l.hi));
      if (l.loop == k) {
        const Expr all = k_limited_ ? simplify(max(k_limit_.hi, l.end()), c_.facts) : l.end();
        one_limit_ = one_limit_ && !l.past && (!k_limited_ || k_limit_.hi == l.hi);
        k_limited_ = true;
        k_limit_ = {k, 0, all, {}};
      }
    }
    if (!prove_le(l.lo, 0, c_.facts)) {
      uniform_ = uniform_ && l.loop != k;  // elements before the limit are none of those past it
      guard_ += fmt::format("{}{} <= 0", guard_.empty() ? "" : " && ", c_.text(l.lo));
    }
  }
  // A false guard makes the whole range "beyond", which must then be so for every load.
  if (!blocked_) uniform_ = uniform_ && (e.guards().empty() || e.guarded_alike());
  for (const std::string& g : e.guards()) guard_ += (guard_.empty() ? "" : " && ") + g;
}

std::string ReduceNest::ended(const std::string& end, int64_t extent) const {
  std::string text = end.empty() ? std::to_string(extent) : fmt::format("max({}, 0)", end);
  return guard_.empty() ? text : fmt::format("{} ? {} : 0", guard_, text);
}

void ReduceNest::declare(const std::string& prefix, int lanes, Writer& out) {
  for (size_t n = 0; n < items_.size(); ++n) {
    Expression e(c_);
    const Reg start = e.literal(held(n), neutral(items_[n].combiner, held(n)));
    const std::string type = type_of(n, lanes);
    const std::string zero = held(n) == b1 ? fmt::format("-(i32){}", start.text) : start.text;
    out.line(lanes == 1 ? fmt::format("{} {}{} = {};", type, prefix, n, start.text)
                        : fmt::format("{0} {1}{2} = {3} - ({0}){{}};", type, prefix, n, zero));
  }
}

std::string ReduceNest::arguments(const std::string& prefix) const {
  std::string text;
  for (size_t n = 0; n < items_.size(); ++n) text += fmt::format(", {}{}", prefix, n);
  return text;
}

void ReduceNest::emit_edge(const std::string& edge, Writer& out) {
  Expression e = make(false);
  e.assume(Assume::nothing);
  e.set_active("count");
  emit_step(e, edge, true, out);
}

void ReduceNest::start_custom(const std::string&, Writer& out) {
  Expression e = make(false);
  e.assume(Assume::nothing);
  const Regs first = terms(e);
  for (size_t n = 0; n < items_.size(); ++n) {
    out.line(fmt::format("{} {}{};", type_of(n, lanes_), prefix(0), n));
  }
  for (int d = 0; d <= outer_; ++d) out.append(e.body(d));
  out.open("{");
  out.line(fmt::format("const i64 {} = 0;", counter(k_)));
  for (int d = outer_ + 1; d <= e.depth(); ++d) out.append(e.body(d));
  for (size_t n = 0; n < items_.size(); ++n) {
    out.line(fmt::format("{}{} = {};", prefix(0), n, first[n].text));
  }
  out.close();
}

Regs ReduceNest::read(const std::string& prefix, int lanes) const {
  Regs r;
  for (size_t n = 0; n < items_.size(); ++n) {
    r.push_back(accumulator(n, prefix, lanes, outer_mask()));
  }
  return r;
}

Reg ReduceNest::half(Expression& e, const Reg& r, int lanes, int which) {
  const DType t = r.dtype == b1 ? i32 : register_type(r.dtype);
  Reg h = r;
  h.lanes = lanes / 2;
  if (lanes == 2) {
    h.mask_bytes = 0;
    h.text = fmt::format("{}[{}]{}", r.text, which, r.dtype == b1 ? " != 0" : "");
    return e.define(h.dtype, 1, r.loops, h.text);
  }
  const std::string f = c_.prelude.use(which ? "high" : "low", t, lanes);
  return e.define(r.dtype, lanes / 2, r.loops, fmt::format("{}({})", f, r.text), r.mask_bytes);
}

void ReduceNest::fold_pad(size_t n, const std::string& total, const Reg& pad, int lanes,
                          const std::string& times, Writer& out) {
  const std::string rest = c_.fresh("rest");
  out.line(fmt::format("const i64 {} = {};", rest, times));
  out.open(fmt::format("if ({} > 0) {{", rest));
  out.append(beyond_text_);
  Reg acc = pad;
  acc.text = total;
  acc.lanes = lanes;
  Reg term = pad;
  if (items_[n].combiner == Combiner::sum) {
    const std::string element = c_.prelude.type(register_type(held(n)));
    if (is_float(held(n))) {
      term.text = fmt::format("({}){} * {}", element, rest, pad.text);
    } else {
      const std::string f = c_.prelude.use("mul", held(n), pad.lanes);
      const std::string type = c_.prelude.type(held(n), pad.lanes);
      term.text = pad.lanes > 1
                      ? fmt::format("{}(({}){} - ({}){{}}, {})", f, element, rest, type, pad.text)
                      : fmt::format("{}(({}){}, {})", f, element, rest, pad.text);
    }
    term.text = "(" + term.text + ")";
  }
  const bool repeated =
      items_[n].combiner == Combiner::prod || items_[n].combiner == Combiner::xor_;
  if (repeated) out.open(fmt::format("for (i64 n = 0; n < {}; ++n) {{", rest));
  Expression inner(c_);
  for (const Axis& a : axes_) inner.add_loop(a.counter);
  inner.set_lanes(lanes > 1 ? outer_ : -1, lanes);
  acc.loops = term.loops = 0;
  const Reg r = combine_pair(inner, opcode_of(items_[n].combiner), acc, term);
  for (int d = 0; d <= inner.depth(); ++d) out.append(inner.body(d));
  out.line(fmt::format("{} = {};", total, r.text));
  if (repeated) out.close();
  out.close();
}

void ReduceNest::write(Expression& e, const Regs& r, const std::string& active, Writer& out) {
  for (size_t n = 0; n < items_.size(); ++n) {
    Reg x = r[n];
    x.dtype = c_.program.type(items_[n].out).dtype;
    if (!custom_) x = e.rounded(x);
    write_element(e, x, {nullptr, &c_.storage.at(items_[n].out)}, out_at_, active);
  }
  for (const Writer& text : e.take_from(0)) out.append(text);
}

void ReduceNest::emit_scalar(Writer& out) {
  Expression e = make(false);
  const std::string k = counter(k_);
  const bool custom = custom_ != nullptr;
  if (custom) {
    start_custom("", out);
  } else {
    declare(prefix(0), lanes_, out);
  }
  const Regs next = combine(e, read(prefix(0), 1), terms(e));
  for (int d = 0; d <= outer_; ++d) out.append(e.body(d));
  out.open(fmt::format("for (i64 {0} = {1}; {0} < {2}; ++{0}) {{", k, custom ? 1 : 0, k_.extent));
  Writer& body = e.body(e.depth());
  std::vector<std::string> results;
  for (size_t n = 0; n < next.size(); ++n) {
    body.line(fmt::format("const {} next{} = {};", type_of(n, 1), n, next[n].text));
  }
  for (size_t n = 0; n < next.size(); ++n) {
    body.line(fmt::format("{}{} = next{};", prefix(0), n, n));
  }
  for (int d = outer_ + 1; d <= e.depth(); ++d) out.append(e.body(d));
  out.close();
  Expression post = make(true);
  post.set_lanes(-1, 1);
  write(post, read(prefix(0), 1), "", out);
}

void emit_reduce(Context& c, const Op& op, Writer& out) { ReduceNest(c, {&op}).emit(out); }

void emit_reduce_group(Context& c, const std::vector<const Op*>& group, Writer& out) {
  ReduceNest(c, group).emit(out);
}

}  // namespace tw::cpu
