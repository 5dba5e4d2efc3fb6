#include "tw/emit/cpu/task.h"

#include <algorithm>
#include <fmt/format.h>
#include <set>

#include "tw/emit/cpu/nest.h"
#include "tw/emit/cpu/pieces.h"

namespace tw::cpu {
namespace {

/// Names of emitted text begin with a small letter, Tw or TW; none of its words ends in '_'.
bool may_hide(const std::string& name) {
  const bool capital = name[0] >= 'A' && name[0] <= 'Z';
  return !capital || name.starts_with("Tw") || name.starts_with("TW_");
}

/// The body inside the nest of `par` loops; their axes outermost first.
const Region& inside_par(const Program& p, std::vector<int>& axes) {
  const Region* r = &p.body;
  while (r->ops.size() == 1 && r->ops[0].code == Opcode::par) {
    axes.push_back(r->ops[0].as<AxisAttr>().axis);
    r = &r->ops[0].regions[0];
  }
  return *r;
}

/// Memory of the instance at hand; all instances of the range have it one after the other.
void declare_scratch(Context& c, Writer& out) {
  for (const auto& [param, at] : c.scratch_at) {
    const Param& a = c.program.params[param];
    const std::string type = pointer_type(c.prelude, a.dtype, true);
    out.line(
        fmt::format("{0} const __restrict {1} = ({0})((char*)scratch + {2});", type, a.name, at));
    int64_t stride = 1;
    for (size_t axis = a.dims.size(); axis-- > 0; stride *= a.dims[axis].constant()) {
      if (axis + 1 < a.dims.size())
        out.line(fmt::format("const i64 {}_s{} = {};", a.name, axis, stride));
    }
  }
}

void clear_scratch(const Context& c, Writer& out) {
  for (const auto& [param, at] : c.scratch_at) {
    const Param& a = c.program.params[param];
    out.line(fmt::format("__builtin_memset({}, 0, {});", a.name, scratch_bytes(a)));
  }
}

/// Tensors, strides and dims as constants of the task.
void declare_arguments(Context& c, Writer& out) {
  const Program& p = c.program;
  for (size_t k = 0, stride = 0; k < arguments(p).size(); ++k) {
    const Param& a = p.params[k];
    const std::string type = pointer_type(c.prelude, a.dtype, a.kind != ParamKind::in);
    if (is_packed(a.dtype)) {
      out.line(fmt::format("const {} {} = {{(u8*)args->data[{}], 0}};", type, a.name, k));
    } else {
      out.line(fmt::format("{0} const __restrict {1} = ({0})args->data[{2}];", type, a.name, k));
    }
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

}  // namespace

Program with_safe_names(Program p) {
  std::set<std::string> taken;
  const auto claim = [&](std::string& name, size_t rank) {
    if (may_hide(name)) name += '_';
    for (;; name += '_') {
      std::set<std::string> own{name};
      for (size_t axis = 0; axis < rank; ++axis) own.insert(fmt::format("{}_s{}", name, axis));
      if (std::ranges::none_of(own, [&](const std::string& n) { return taken.contains(n); })) {
        taken.merge(own);
        return;
      }
    }
  };
  for (Param& a : p.params) claim(a.name, a.dims.size());
  for (Dim& d : p.dims) claim(d.name, 0);
  return p;
}

TaskText emit_task(const Program& p, const Specialisation& s, const CpuMachine& machine,
                   const Mapping& mapping, bool debug_lines, std::string_view abi) {
  Context c(p, s, machine, mapping);
  c.debug_lines = debug_lines;
  std::vector<int> axes;
  const Region& body = inside_par(p, axes);
  Writer inner, out;
  emit_region(c, body, inner);
  out.open("static void task(void* ctx, i64 first, i64 last, void* scratch) {");
  out.line("const TwArgs* const args = (const TwArgs*)ctx;");
  out.line("(void)scratch;");
  declare_arguments(c, out);
  declare_scratch(c, out);
  out.line();
  out.open("for (i64 instance = first; instance < last; ++instance) {");
  declare_coordinates(c, axes, out);
  clear_scratch(c, out);
  out.append(inner);
  out.close();
  // Stores around the caches are ordered before the task's end.
  if (c.prelude.streamed()) out.line("__builtin_ia32_sfence();");
  out.close();
  if (chooses(p)) {
    out.line();
    emit_choose(c, out);
  }
  return {c.prelude.text(abi), out.text(), c.scratch_most, c.prelude.streamed(), c.prelude.vnni()};
}

void declare_instances(const Program& p, const std::string& dims, Writer& out) {
  std::set<int> used;
  std::string product;
  for (const Expr& extent : p.grid) {
    for_each_symbol(extent, [&](Symbol s) { used.insert(s.id); });
    const std::string text = to_string(extent, [&](Symbol s) { return symbol_name(p, s); });
    product += fmt::format("{}max({}, 0)", product.empty() ? "" : " * ", text);
  }
  for (const int d : used) {
    out.line(fmt::format("const i64 {} = {}[{}];", p.dims[d].name, dims, d));
  }
  out.line(fmt::format("const i64 instances = {};", product.empty() ? "1" : product));
}

}  // namespace tw::cpu
