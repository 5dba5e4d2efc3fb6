// Folds along an axis of tiles in the block's memory, a thread for each line along the axis.
#include <fmt/format.h>

#include "tw/emit/cpu/combine.h"
#include "tw/emit/cpu/nest.h"
#include "tw/emit/cuda/scan.h"

namespace tw::cuda {

using cpu::Regs;

namespace {

/// Copies the elements of v into memory that the results of an op get.
void copy_into(State& s, ValueId v, ValueId result, Writer& out) {
  s.reserve(result, out, false);
  const Storage storage = s.c.storage.at(result);
  s.c.storage.erase(result);
  fill_memory(
      s, s.placement.layout_of(storage.type.shape), storage, s.memory_of.at(result),
      [v](Nest& n) { return n.value(v); }, s.reads_of(v), out);
  s.c.storage[result] = storage;
}

/// Lines of `length` elements along an axis, cut from a shape of before x length x after.
struct Lines {
  int64_t before = 1, length = 1, after = 1;
  Lines(const Extents& shape, int axis) {
    for (size_t a = 0; a < shape.size(); ++a) {
      const int here = static_cast<int>(a);
      (here < axis ? before : here > axis ? after : length) *= shape[a];
    }
  }
  int64_t count() const { return before * after; }
};

/// "for (int line = tw_thread(); line < LINES; line += THREADS) {".
std::string open_lines(State& s, const Lines& lines, Writer& out) {
  const std::string line = s.c.fresh("line");
  out.open(fmt::format("for (int {0} = {1}(); {0} < {2}; {0} += {3}) {{", line, s.call("thread"),
                       lines.count(), s.placement.threads()));
  return line;
}

Reg read_register(State& s, const std::string& place, DType t) {
  return Reg{
      fmt::format("{}({})", s.c.prelude.use("load", t == b1 ? b1 : register_type(t), 1), place), t,
      1, 0, 0};
}

void scan_line(State& s, const Op& op, const Lines& lines, const std::string& line, Writer& out) {
  const ScanAttr& how = op.as<ScanAttr>();
  const bool custom = how.fold.combiner == Combiner::custom;
  const std::string first = s.c.fresh("first"), k = s.c.fresh("k");
  out.line(fmt::format("const i64 {} = (i64)({} / {}) * {} + {} % {};", first, line, lines.after,
                       lines.length * lines.after, line, lines.after));
  Regs acc;
  const auto place = [&](size_t n, const std::string& step) {
    const std::string at = how.reverse ? fmt::format("({} - {})", lines.length - 1, step) : step;
    return fmt::format("{} + {} + {} * {}", pointer_to(s.c.storage.at(op.out[n])), first, at,
                       lines.after);
  };
  for (size_t n = 0; n < op.in.size(); ++n) {
    const DType t = s.program().type(op.in[n]).dtype;
    const DType held = custom ? t : register_type(t);
    acc.push_back({s.c.fresh("acc"), held, 1, 0, 0});
    const std::string type = s.c.prelude.type(register_type(held));
    out.line(
        fmt::format("{} {} = {};", type, acc[n].text, read_register(s, place(n, "0"), t).text));
  }
  out.open(fmt::format("for (int {0} = 1; {0} < {1}; ++{0}) {{", k, lines.length));
  Expression e(s.c);
  Regs x;
  for (size_t n = 0; n < op.in.size(); ++n) {
    const Reg r = read_register(s, place(n, k), s.program().type(op.in[n]).dtype);
    x.push_back(e.define(acc[n].dtype, 1, 0, r.text));
  }
  const bool reverse = how.reverse;
  const Regs& left = reverse ? x : acc;
  const Regs& right = reverse ? acc : x;
  const Regs next =
      custom ? cpu::combine_tuples(e, op.regions[0], left, right)
             : Regs{cpu::combine_pair(e, opcode_of(how.fold.combiner), left[0], right[0])};
  Regs named;
  for (const Reg& r : next) named.push_back(e.define(r.dtype, 1, 0, r.text, 0, "next"));
  out.append(e.body(0));
  for (size_t n = 0; n < acc.size(); ++n) {
    out.line(fmt::format("{} = {};", acc[n].text, named[n].text));
    const DType t = s.program().type(op.in[n]).dtype;
    Expression round(s.c);
    Reg r = acc[n];
    r.dtype = t;
    const Reg rounded = custom ? r : round.rounded(r);
    out.append(round.body(0));
    out.line(fmt::format("{}({}, {});",
                         s.c.prelude.use("store", t == b1 ? b1 : register_type(t), 1), place(n, k),
                         rounded.text));
  }
  out.close();
}

}  // namespace

void emit_scan(State& s, const Op& op, Writer& out) {
  if (scans_in_registers(s, op)) return emit_register_scan(s, op, out);
  for (size_t k = 0; k < op.in.size(); ++k) copy_into(s, op.in[k], op.out[k], out);
  const Lines lines(s.program().type(op.in[0]).shape, op.as<ScanAttr>().fold.axis);
  if (lines.length == 1) return;
  Writer text;
  const std::string line = open_lines(s, lines, text);
  scan_line(s, op, lines, line, text);
  text.close();
  Footprint f;
  for (const ValueId v : op.out) {
    f.reads.push_back(s.memory_of.at(v));
    f.writes.push_back(s.memory_of.at(v));
  }
  s.append(f, text, out);
}

namespace {

/// One part of the operands of a top_k in memory: values, indices, elements of a row.
struct Part {
  Storage values, indices;
  int64_t length = 1;
};

Part part_in_memory(State& s, const Op& op, size_t part, Footprint& f, Writer& out) {
  Part p;
  const auto keep = [&](ValueId v) {
    const Type& type = s.program().type(v);
    const DType reg = register_type(type.dtype);
    Touched where;
    const std::string name =
        s.reserve_bytes(s.c.prelude.type(reg), "pairs", count(type.shape) * bytes(reg),
                        to_string(type), out, where);
    const Storage storage = memory_at(name, type);
    fill_memory(
        s, s.placement.layout_of(type.shape), storage, where, [v](Nest& n) { return n.value(v); },
        s.reads_of(v), out);
    f.reads.push_back(where);
    return storage;
  };
  p.values = keep(op.in[part]);
  p.indices = keep(op.in[part + 1]);
  p.length = p.values.type.shape.back();
  return p;
}

}  // namespace

void emit_top_k(State& s, const Op& op, Writer& out) {
  Footprint f;
  std::vector<Part> parts;
  for (const ValueId v : op.out) s.reserve(v, out, false);
  const MemoryScope scope(s);
  for (size_t part = 0; part < op.in.size(); part += 2)
    parts.push_back(part_in_memory(s, op, part, f, out));
  const DType t = register_type(s.program().type(op.out[0]).dtype);
  const std::string insert = cpu::use_insert(s.c.prelude, t);
  const int64_t k = op.as<TopKAttr>().k;
  const Extents& shape = s.program().type(op.out[0]).shape;
  const Lines rows(shape, static_cast<int>(shape.size()) - 1);
  Writer text;
  const std::string row = open_lines(s, rows, text);
  text.line("i64 held = 0;");
  for (const Part& p : parts) {
    text.open(fmt::format("for (int e = 0; e < {}; ++e) {{", p.length));
    const std::string at = fmt::format("(i64){} * {} + e", row, p.length);
    const auto list = [&](ValueId v) {
      return fmt::format("{} + (i64){} * {}", pointer_to(s.c.storage.at(v)), row, k);
    };
    text.line(fmt::format("held = {}({}, {}, held, {}, ({})[{}], ({})[{}]);", insert,
                          list(op.out[0]), list(op.out[1]), k, pointer_to(p.values), at,
                          pointer_to(p.indices), at));
    text.close();
  }
  text.close();
  for (const ValueId v : op.out) f.writes.push_back(s.memory_of.at(v));
  s.append(f, text, out);
}

}  // namespace tw::cuda
