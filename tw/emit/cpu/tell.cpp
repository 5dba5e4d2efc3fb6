#include "tw/emit/cpu/tell.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace tw::cpu {

void emit_tell(Context& c, const Op& op, Writer& out) {
  const Storage& s = c.storage.at(op.in[0]);  // place_tiles kept it
  const int64_t elements = count(s.type.shape);
  std::vector<std::string> pids;
  for (size_t axis = 0; axis < c.program.grid.size(); ++axis)
    pids.push_back(fmt::format("pid{}", axis));
  const auto call = [&](const std::string& element, const std::string& data) {
    out.line(fmt::format("const i64 instance_at[] = {{{}}};", fmt::join(pids, ", ")));
    out.line(fmt::format("args->host->tell(args->host, {}, instance_at, {}, {});",
                         op.as<MessageAttr>().id, element, data));
    // What a failed check guards may not end.
    if (op.code == Opcode::assert_) out.line("return;");
  };
  if (op.code == Opcode::print) {
    out.open("{");
    call("-1", (s.variable() ? "&" : "") + s.name);
  } else if (s.variable()) {
    out.open(fmt::format("if (!{}) {{", s.name));
    call("0", "nullptr");
  } else {
    const std::string wrong = c.fresh("wrong");
    out.line(fmt::format("i64 {} = 0;", wrong));
    out.line(fmt::format("while ({0} < {1} && {2}[{0}]) ++{0};", wrong, elements, s.name));
    out.open(fmt::format("if ({} < {}) {{", wrong, elements));
    call(wrong, "nullptr");
  }
  out.close();
}

}  // namespace tw::cpu
