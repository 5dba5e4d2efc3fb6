#include "tw/emit/cpu/emit_cpu.h"

#include <fmt/format.h>

#include "tw/base/error.h"
#include "tw/base/hash.h"
#include "tw/emit/cpu/nest.h"
#include "tw/ir/print.h"

namespace tw {
namespace {

using cpu::Context;
using cpu::Writer;

/// The body inside the nest of `par` loops; their axes outermost first.
const Region& inside_par(const Program& p, std::vector<int>& axes) {
  const Region* r = &p.body;
  while (r->ops.size() == 1 && r->ops[0].code == Opcode::par) {
    axes.push_back(r->ops[0].as<AxisAttr>().axis);
    r = &r->ops[0].regions[0];
  }
  return *r;
}

std::string stored(cpu::Prelude& prelude, DType t) {
  if (t == b1) return prelude.type(u8);
  return prelude.type(cpu::register_type(t) == t ? t : cpu::unsigned_of_bytes(bytes(t)));
}

/// Tensors, strides and dims as constants of the task.
void declare_arguments(Context& c, Writer& out) {
  const Program& p = c.program;
  for (size_t k = 0, stride = 0; k < p.params.size(); ++k) {
    const Param& a = p.params[k];
    const std::string type =
        fmt::format("{}{}", a.kind == ParamKind::in ? "const " : "", stored(c.prelude, a.dtype));
    out.line(fmt::format("{0}* const __restrict {1} = ({0}*)args->data[{2}];", type, a.name, k));
    const ParamFacts& facts = c.specialisation.params[k];
    for (size_t axis = 0; axis < a.dims.size(); ++axis, ++stride) {
      if (static_cast<int>(axis) == facts.unit_axis || (facts.zero_stride >> axis & 1)) continue;
      out.line(fmt::format("const i64 {}_s{} = args->strides[{}];", a.name, axis, stride));
    }
  }
  for (size_t k = 0; k < p.dims.size(); ++k) {
    out.line(fmt::format("const i64 {} = args->dims[{}];", p.dims[k].name, k));
  }
}

void declare_coordinates(Context& c, const std::vector<int>& axes, Writer& out) {
  if (axes.size() == 1) {
    out.line(fmt::format("const i64 pid{} = instance;", axes[0]));
    return;
  }
  std::string rest = "instance";
  for (size_t k = axes.size(); k-- > 0;) {
    const std::string extent = c.text(c.program.grid[axes[k]]);
    if (k == 0) {
      out.line(fmt::format("const i64 pid{} = {};", axes[k], rest));
    } else {
      out.line(fmt::format("const i64 pid{} = {} % ({});", axes[k], rest, extent));
      const std::string next = fmt::format("rest{}", k);
      out.line(fmt::format("const i64 {} = {} / ({});", next, rest, extent));
      rest = next;
    }
  }
}

LaunchSpec launch_spec(const Program& p, const std::string& entry, int64_t scratch) {
  LaunchSpec s;
  s.entry = entry;
  for (const Param& a : p.params) {
    s.args.push_back({a.name, a.dtype, static_cast<int>(a.dims.size()), a.kind != ParamKind::in,
                      a.kind != ParamKind::out, a.dims});
  }
  for (const Dim& d : p.dims) s.dims.push_back({d.name, d.multiple_of});
  s.grid = p.grid;
  s.scratch_bytes = scratch;
  return s;
}

void emit_task(Context& c, Writer& out) {
  std::vector<int> axes;
  const Region& body = inside_par(c.program, axes);
  Writer inner;
  emit_region(c, body, inner);
  out.open("static void task(void* ctx, i64 first, i64 last, void* scratch) {");
  out.line("const TwArgs* const args = (const TwArgs*)ctx;");
  out.line("(void)scratch;");
  declare_arguments(c, out);
  out.line();
  out.open("for (i64 instance = first; instance < last; ++instance) {");
  declare_coordinates(c, axes, out);
  out.append(inner);
  out.close();
  // Stores around the caches are ordered before the task's end.
  if (c.prelude.streamed()) out.line("__builtin_ia32_sfence();");
  out.close();
}

void emit_entry(Context& c, const std::string& entry, Writer& out) {
  out.open(fmt::format(
      "extern \"C\" __attribute__((visibility(\"default\"))) int {}(const TwArgs* args) {{",
      entry));
  for (size_t k = 0; k < c.program.dims.size(); ++k) {
    out.line(fmt::format("const i64 {} = args->dims[{}];", c.program.dims[k].name, k));
  }
  std::string instances = "1";
  for (const Expr& e : c.program.grid) {
    const std::string extent = fmt::format("({})", c.text(e));
    instances = instances == "1" ? extent : instances + " * " + extent;
  }
  out.line(fmt::format("const i64 instances = {};", instances));
  out.line("if (instances > 0) args->host->par(args->host, instances, task, (void*)args);");
  out.line("return 0;");
  out.close();
}

}  // namespace

EmittedCpu emit_cpu(const Program& lowered, const Specialisation& s, const CpuMachine& machine,
                    const Mapping& mapping, bool debug_lines) {
  Context c(lowered, s, machine, mapping);
  c.debug_lines = debug_lines;
  std::vector<std::string> names;
  for (const Param& a : lowered.params) names.push_back(a.name);
  const std::string key = print(lowered, {.lines = false, .names = false}) + to_string(s, names) +
                          machine.isa + to_string(mapping);
  const std::string entry = fmt::format("tw_{}_{}", lowered.name, hash_hex(key).substr(0, 8));
  Writer kernel;
  emit_task(c, kernel);
  kernel.line();
  emit_entry(c, entry, kernel);
  EmittedCpu out;
  out.text =
      fmt::format("// {}, {}\n", entry, machine.isa) + c.prelude.text() + "\n" + kernel.text();
  out.launch = launch_spec(lowered, entry, c.scratch_most);
  return out;
}

}  // namespace tw
