#include <fmt/format.h>
#include <fmt/ranges.h>

#include "tw/emit/cpu/nest.h"
#include "tw/emit/cuda/statements.h"
#include "tw/target/launch_spec.h"

namespace tw::cuda {
namespace {

/// The call that takes a record of a part of the messages.
std::string taken(State& s, const Op& op, int64_t part, const std::string& element, int64_t bytes) {
  s.c.prelude.outside("tw_tell");
  std::vector<std::string> pids;
  for (size_t axis = 0; axis < 3; ++axis)
    pids.push_back(axis < s.program().grid.size() ? fmt::format("pid{}", axis) : "0");
  return fmt::format("tw_tell(args.messages + {}, {}, {}, {}, {})", part, op.as<MessageAttr>().id,
                     fmt::join(pids, ", "), element, bytes);
}

}  // namespace

void emit_assert(State& s, const Op& op, Writer& out) {
  // All threads know the number of the first false element; one tells.
  const ValueId v = op.in[0], wrong = s.copy_of(v);
  keep_elements(
      s, wrong, [&](Nest& n) { return n.value(v); }, s.reads_of(v), out);
  const std::string& name = s.tiles.at(wrong).name;
  out.open(fmt::format("if ({} != {}l) {{", name, kAllTrue));
  out.line(fmt::format("if ({}() == 0) {};", s.call("thread"), taken(s, op, 0, name, 0)));
  // What a failed check guards may not end; but what others wait for must come.
  if (!s.program().ticket) out.line("return;");
  out.close();
}

void emit_print(State& s, const Op& op, Writer& out) {
  // One thread takes a record, then each writes the elements that it holds.
  const ValueId v = op.in[0];
  const Type& type = s.program().type(v);
  const DType held = type.dtype == b1 ? u8 : register_type(type.dtype);
  Touched where;
  const std::string told = s.reserve_bytes("i64", "told", 16, "", out, where);
  Footprint f;
  f.writes.push_back(where);
  Writer text;
  text.line(fmt::format("if ({}() == 0) {}[0] = {};", s.call("thread"), told,
                        taken(s, op, kCheckBytes, "-1", count(type.shape) * bytes(held))));
  s.append(f, text, out);
  s.barrier(out);
  out.open(fmt::format("if ({}[0] >= 0) {{", told));
  const std::string element = s.c.prelude.type(held), data = s.c.fresh("data");
  out.line(fmt::format("{0}* const {1} = ({0}*)(args.messages + {2} + {3}[0]);", element, data,
                       kCheckBytes, told));
  Footprint reads = s.reads_of(v);
  reads.reads.push_back(where);
  fill_memory(
      s, s.placement.layout_of(type.shape), memory_at(data, type), {},
      [&](Nest& n) { return n.value(v); }, reads, out);
  out.close();
}

}  // namespace tw::cuda
