#include "tw/emit/cpu/emit_cpu.h"

#include <fmt/format.h>

#include "tw/base/hash.h"
#include "tw/emit/cpu/pieces.h"
#include "tw/emit/cpu/task.h"
#include "tw/ir/print.h"

namespace tw {
namespace {

const char* const kHostAbi = R"(// The text ABI: what the host passes.
struct TwHost {
  void (*par)(const TwHost*, i64 n, void (*task)(void*, i64 lo, i64 hi, void* scratch), void* ctx);
  i64 threads;
  void (*tell)(const TwHost*, i64 number, const i64* instance, i64 element, const void* elements);
};
struct TwArgs {
  void* const* data;
  const i64* dims;
  const i64* strides;
  const TwHost* host;
};
)";

std::string entry_text(const Program& p, const std::string& entry) {
  cpu::Writer out;
  const bool chooses = cpu::chooses(p);
  out.open(fmt::format(
      "extern \"C\" __attribute__((visibility(\"default\"))) int {}(const TwArgs* {}) {{", entry,
      chooses ? "given" : "args"));
  if (chooses) {
    cpu::choose_dims(p, "given->dims", "given->host->threads", out);
    out.line("const TwArgs own = {given->data, dims, given->strides, given->host};");
    out.line("const TwArgs* const args = &own;");
  }
  cpu::declare_instances(p, "args->dims", out);
  out.line("if (instances > 0) args->host->par(args->host, instances, task, (void*)args);");
  out.line("return 0;");
  out.close();
  return out.text();
}

}  // namespace

LaunchSpec launch_spec(const Program& p) {
  LaunchSpec s;
  for (const Param& a : arguments(p)) {
    s.args.push_back({.name = a.name,
                      .dtype = a.dtype,
                      .rank = static_cast<int>(a.dims.size()),
                      .written = a.kind != ParamKind::in,
                      .read = a.kind != ParamKind::out,
                      .dims = a.dims,
                      .workspace = a.kind == ParamKind::workspace});
  }
  for (const Dim& d : p.dims) {
    if (!d.chosen()) s.dims.push_back({d.name, d.multiple_of});
  }
  for (const Expr& extent : p.grid) s.grid.push_back(cpu::most_pieces(p, extent));
  s.in_order = p.ticket.has_value();
  return s;
}

EmittedCpu emit_cpu(const Program& lowered, const Specialisation& s, const CpuMachine& machine,
                    const Mapping& mapping, bool debug_lines) {
  std::vector<std::string> names;
  for (const Param& a : lowered.params) names.push_back(a.name);
  const std::string key = print(lowered, {.lines = false, .names = false}) + to_string(s, names) +
                          machine.isa + to_string(mapping);
  const std::string entry = fmt::format("tw_{}_{}", lowered.name, hash_hex(key).substr(0, 8));
  const Program p = cpu::with_safe_names(lowered);
  const cpu::TaskText t = cpu::emit_task(p, s, machine, mapping, debug_lines, kHostAbi);
  LaunchSpec launch = launch_spec(lowered);
  launch.entry = entry;
  launch.scratch_bytes = t.scratch_bytes;
  return {fmt::format("// {}, {}\n{}\n{}\n{}", entry, machine.isa, t.prelude, t.task,
                      entry_text(p, entry)),
          launch};
}

}  // namespace tw
