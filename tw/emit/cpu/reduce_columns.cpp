#include <fmt/format.h>

#include "tw/emit/cpu/op_table.h"
#include "tw/emit/cpu/reduce_nest.h"

namespace tw::cpu {

void ReduceNest::emit_columns(Writer& out) {
  acc_ = c_.fresh("acc");
  Expression e = make(false);
  e.set_limited(limited());
  e.assume(Assume::inside);
  const std::string step = c_.fresh("step"), edge = c_.fresh("edge");
  const std::string j = counter(axes_[outer_]);
  emit_step(e, step, false, out);
  read_limits(e);
  pad_ = k_limited_ && uniform_ && one_limit_ ? beyond(out) : std::nullopt;
  const int64_t extent = axes_[outer_].extent;
  const bool ragged = !j_full_.empty() || !guard_.empty() || extent % lanes_ != 0;
  if (ragged || (k_limited_ && !pad_)) emit_edge(edge, out);
  out.line(fmt::format("i64 {} = 0;", j));
  out.line(fmt::format("const i64 {}_full = {};", j, ended(j_full_, extent)));
  if (extent >= kAccumulators * lanes_) column_block(kAccumulators, step, edge, out);
  column_block(1, step, edge, out);
  if (ragged) column_edge(edge, extent, out);
}

void ReduceNest::start_columns(int blocks, const std::string& edge, Writer& out) {
  if (!custom_) {
    for (int u = 0; u < blocks; ++u) declare(prefix(u), lanes_, out);
    return;
  }
  (void)edge;
  for (int u = 0; u < blocks; ++u) {
    const std::string j = counter(axes_[outer_]);
    for (size_t n = 0; n < items_.size(); ++n) {
      out.line(fmt::format("{} {}{};", type_of(n, lanes_), prefix(u), n));
    }
    Expression e = make(false);
    e.assume(Assume::nothing);
    e.set_active(fmt::format("{} - {}", extent_text(), j));
    const Regs first = terms(e);
    for (int d = 0; d <= outer_; ++d) out.append(e.body(d));
    out.open("{");
    out.line(fmt::format("const i64 {}_0 = {} + {};", j, j, u * lanes_));
    out.open("{");
    out.line(fmt::format("const i64 {0} = {0}_0, {1} = 0;", j, counter(k_)));
    for (int d = outer_ + 1; d <= e.depth(); ++d) out.append(e.body(d));
    for (size_t n = 0; n < items_.size(); ++n) {
      out.line(fmt::format("{}{} = {};", prefix(u), n, first[n].text));
    }
    out.close();
    out.close();
  }
}

void ReduceNest::column_block(int blocks, const std::string& step, const std::string& edge,
                              Writer& out) {
  const std::string j = counter(axes_[outer_]), k = counter(k_);
  out.open(fmt::format("for (; {0} + {1} <= {0}_full; {0} += {1}) {{", j, blocks * lanes_));
  start_columns(blocks, edge, out);
  out.line(fmt::format("i64 {} = {};", k, custom_ ? 1 : 0));
  out.line(fmt::format(
      "const i64 {}_full = {};", k,
      k_full_.empty() ? std::to_string(k_.extent) : fmt::format("max({}, 0)", k_full_)));
  out.open(fmt::format("for (; {0} < {0}_full; ++{0}) {{", k));
  for (int u = 0; u < blocks; ++u) {
    out.line(fmt::format("{}({} + {}, {}{});", step, j, u * lanes_, k, arguments(prefix(u))));
  }
  out.close();
  if (k_limited_ && !pad_) {
    out.open(fmt::format("for (; {0} < {1}; ++{0}) {{", k, k_.extent));
    for (int u = 0; u < blocks; ++u) {
      out.line(fmt::format("{}({} + {}, {}, {}{});", edge, j, u * lanes_, k, lanes_,
                           arguments(prefix(u))));
    }
    out.close();
  }
  for (int u = 0; u < blocks; ++u) finish_column(u, pad_, "", out);
  out.close();
}

void ReduceNest::column_edge(const std::string& edge, int64_t extent, Writer& out) {
  const std::string j = counter(axes_[outer_]), k = counter(k_);
  out.open(fmt::format("for (; {0} < {1}; {0} += {2}) {{", j, extent, lanes_));
  start_columns(1, edge, out);
  out.line(fmt::format("for (i64 {0} = {1}; {0} < {2}; ++{0}) {3}({4}, {0}, {5} - {4}{6});", k,
                       custom_ ? 1 : 0, k_.extent, edge, j, extent, arguments(prefix(0))));
  finish_column(0, std::nullopt, fmt::format("{} - {}", extent, j), out);
  out.close();
}

void ReduceNest::finish_column(int u, const std::optional<Regs>& pad, const std::string& active,
                               Writer& out) {
  const std::string j = counter(axes_[outer_]);
  out.open("{");
  out.line(fmt::format("const i64 {0}_block = {0} + {1};", j, u * lanes_));
  out.open("{");
  out.line(fmt::format("const i64 {0} = {0}_block;", j));
  Expression e = make(true);
  if (pad) {
    for (size_t n = 0; n < items_.size(); ++n) {
      fold_pad(n, fmt::format("{}{}", prefix(u), n), (*pad)[n], lanes_,
               fmt::format("{} - {}_full", k_.extent, counter(k_)), out);
    }
  }
  write(e, read(prefix(u), lanes_), active, out);
  out.close();
  out.close();
}

}  // namespace tw::cpu
