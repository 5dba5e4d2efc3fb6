#include "tw/emit/cuda/emit_cuda.h"

#include <algorithm>
#include <fmt/format.h>
#include <limits>

#include "tw/base/error.h"
#include "tw/base/hash.h"
#include "tw/base/round.h"
#include "tw/emit/cpu/emit_cpu.h"
#include "tw/emit/cpu/task.h"
#include "tw/emit/cuda/prelude_cuda.h"
#include "tw/emit/cuda/state.h"
#include "tw/ir/print.h"

namespace tw {
namespace cuda {
namespace {

/// Tensors, strides and dims as constants of the kernel.
void declare_arguments(State& s, Writer& out) {
  const Program& p = s.program();
  for (size_t k = 0, stride = 0; k < arguments(p).size(); ++k) {
    const Param& a = p.params[k];
    const std::string type = cpu::pointer_type(s.c.prelude, a.dtype, a.kind != ParamKind::in);
    if (is_packed(a.dtype)) {
      out.line(fmt::format("const {} {} = {{(u8*)args.data[{}], 0}};", type, a.name, k));
    } else {
      out.line(fmt::format("{0} const __restrict__ {1} = ({0})args.data[{2}];", type, a.name, k));
    }
    const ParamFacts& facts = s.c.specialisation.params[k];
    for (size_t axis = 0; axis < a.dims.size(); ++axis, ++stride) {
      if (static_cast<int>(axis) == facts.unit_axis || (facts.zero_stride >> axis & 1)) continue;
      out.line(fmt::format("const i64 {}_s{} = args.strides[{}];", a.name, axis, stride));
    }
  }
  for (size_t k = 0; k < p.dims.size(); ++k)
    out.line(fmt::format("const i64 {} = args.dims[{}];", p.dims[k].name, k));
}

void declare_coordinates(State& s, Writer& out) {
  const std::vector<Expr>& grid = s.program().grid;
  std::string rest = "instance";
  for (size_t k = grid.size(); k-- > 0;) {
    const std::string extent = s.c.text(grid[k]);
    if (k == 0) {
      out.line(fmt::format("const i64 pid0 = {};", rest));
    } else {
      out.line(fmt::format("const i64 pid{} = {} % ({});", k, rest, extent));
      out.line(fmt::format("const i64 rest{} = {} / ({});", k, rest, extent));
      rest = fmt::format("rest{}", k);
    }
  }
}

/// Scratch of the program: memory of the block, zero when an instance begins.
void declare_scratch(State& s, Writer& declared, Writer& cleared) {
  const Program& p = s.program();
  for (const auto& [param, unused] : s.c.scratch_at) {
    const Param& a = p.params[param];
    const std::string type = cpu::pointer_type(s.c.prelude, a.dtype, true);
    Touched where;
    const int64_t bytes = scratch_bytes(a);
    const std::string words = s.reserve_bytes("u8", "scratch", bytes, a.name, declared, where);
    declared.line(fmt::format("{0} const {1} = ({0}){2};", type, a.name, words));
    int64_t stride = 1;
    for (size_t axis = a.dims.size(); axis-- > 0; stride *= a.dims[axis].constant()) {
      if (axis + 1 < a.dims.size())
        declared.line(fmt::format("const i64 {}_s{} = {};", a.name, axis, stride));
    }
    cleared.line(fmt::format("for (i64 i = {0}(); i < {1}; i += {2}) {3}[i] = 0;", s.call("thread"),
                             bytes, s.placement.threads(), words));
    s.pending.writes.push_back({Touched::Space::tensor, param, param + 1});
  }
}

std::string args_struct(const Program& p) {
  size_t strides = 0;
  for (const Param& a : arguments(p)) strides += a.dims.size();
  std::string text = "struct Args {\n";
  if (!arguments(p).empty()) text += fmt::format("  void* data[{}];\n", arguments(p).size());
  if (!p.dims.empty()) text += fmt::format("  i64 dims[{}];\n", p.dims.size());
  if (strides != 0) text += fmt::format("  i64 strides[{}];\n", strides);
  text += "  u8* workspace;\n";
  if (!messages_of(p).empty()) text += "  u8* messages;\n";
  return text + "};\n";
}

struct Drafted {
  std::string text;
  int threads = 0, cluster = 1;
  int64_t shared_bytes = 0, workspace_bytes = 0;
};

/// The loop over the instances that a block does. With a ticket the block's next instance is the
/// first that no block has begun: whoever waits for a smaller one waits for a block that runs.
/// Returns where the number lies, which threads may not read any more when the next is written.
std::string open_instances(State& s, Writer& out) {
  const int cluster = s.placement.cluster();
  const bool alone = s.program().ticket || !messages_of(s.program()).empty();
  if (cluster > 1 && alone) throw NoCluster{};
  if (!s.program().ticket) {
    const std::string each = cluster > 1 ? fmt::format(" / {}", cluster) : "";
    out.open(
        fmt::format("for (i64 instance = {0}(){2}; instance < instances; instance += {1}(){2}) {{",
                    s.call("block"), s.call("blocks"), each));
    return "";
  }
  const auto param = static_cast<size_t>(*s.program().ticket);
  const int64_t at = round_up(s.shared_most, 16);
  s.shared_most = at + 16;
  s.c.prelude.outside("tw_atomic_add_relaxed_device");
  out.line(fmt::format("u64* const ticket = (u64*)({}() + {});", s.call("shared"), at));
  out.open("for (;;) {");
  out.line(fmt::format("if ({}() == 0)", s.call("thread")));
  out.line(fmt::format("  *ticket = tw_atomic_add_relaxed_device((u64*)args.data[{}], 1);", param));
  out.line(s.call("sync") + "();");
  out.line("const i64 instance = (i64)*ticket;");
  out.line("if (instance >= instances) break;");
  return "ticket";
}

/// The kernel's name in text; hashed names differ where texts do.
Drafted write(State& s, const std::string& entry, cpu::Thread kind) {
  const Program& p = s.program();
  Writer declared, cleared, body, out;
  declare_scratch(s, declared, cleared);
  emit_region(s, p.body, body);
  out.line(args_struct(p));
  out.open(
      "__device__ __forceinline__ void body(const Args& args, i64 instance, u8* shared, u8* "
      "workspace) {");
  declare_arguments(s, out);
  declare_coordinates(s, out);
  if (s.placement.cluster() > 1)
    out.line(fmt::format("const int {} = {}() * {} + {}();", s.thread(), s.call("cluster_rank"),
                         s.placement.block_threads(), s.call("thread")));
  out.append(declared);
  out.append(s.bases);
  out.append(cleared);
  out.append(body);
  out.close();
  out.line();
  const int threads = s.placement.block_threads(), cluster = s.placement.cluster();
  const int blocks = std::max<int>(1, s.placement.threads_wanted() / threads);
  out.line("// how many blocks of a multiprocessor: they share its registers");
  out.line("#ifndef TW_BLOCKS");
  out.line(fmt::format("#define TW_BLOCKS {}", blocks));
  out.line("#endif");
  const std::string together =
      cluster > 1 ? fmt::format("__cluster_dims__({}, 1, 1) ", cluster) : "";
  out.open(
      fmt::format("extern \"C\" __global__ void {}__launch_bounds__({}, TW_BLOCKS) {}(const "
                  "__grid_constant__ Args args) {{",
                  together, threads, entry));
  if (s.gpu.early_launch) out.line(s.call("grid_dependency_sync") + "();");
  cpu::declare_instances(p, "args.dims", out);
  // A block must have begun before others write to its memory.
  if (cluster > 1) out.line(s.sync());
  const std::string ticket = open_instances(s, out);
  const std::string workspace = s.workspace_most == 0
                                    ? "nullptr"
                                    : fmt::format("args.workspace + {}() * {}", s.call("block"),
                                                  round_up(s.workspace_most, 16));
  out.line(fmt::format("body(args, instance, {}(), {});", s.call("shared"), workspace));
  if (!ticket.empty())
    out.line(
        fmt::format("if ({}() >= instances) break;  // there is one for each", s.call("blocks")));
  const bool memory = s.shared_most > 0 || s.workspace_most > 0;
  if (memory) out.line(s.sync());
  out.close();
  out.close();
  const std::string functions = thread_prelude(s.c.prelude.outside(), kind);
  return {fmt::format("{}\n{}\n{}", functions, s.c.prelude.text(""), out.text()), threads, cluster,
          s.shared_most, round_up(s.workspace_most, 16)};
}

}  // namespace
}  // namespace cuda

EmittedCuda emit_cuda(const Program& lowered, const Specialisation& s, const GpuMachine& machine,
                      const Mapping& mapping, bool debug_lines, cpu::Thread kind) {
  std::vector<std::string> names;
  for (const Param& a : lowered.params) names.push_back(a.name);
  const std::string key = print(lowered, {.lines = false, .names = false}) + to_string(s, names) +
                          machine.arch + to_string(mapping);
  const std::string entry = fmt::format("tw_{}_{}", lowered.name, hash_hex(key).substr(0, 8));
  EmittedCuda e = emit_cuda_as(entry, lowered, s, machine, mapping, debug_lines, kind);
  e.text = fmt::format("// {}, {}\n{}", entry, machine.arch, e.text);
  return e;
}

EmittedCuda emit_cuda_as(const std::string& entry, const Program& lowered, const Specialisation& s,
                         const GpuMachine& machine, const Mapping& mapping, bool debug_lines,
                         cpu::Thread kind) {
  const Program p = cpu::with_safe_names(lowered);
  std::set<ValueId> scattered;
  cuda::Means means;
  for (;;) {
    const size_t before = scattered.size();
    cuda::State state(p, s, machine, mapping, kind, scattered, means);
    state.c.debug_lines = debug_lines;
    cuda::Drafted t;
    try {
      t = cuda::write(state, entry, kind);
    } catch (const cuda::NoRoomForPanels&) {
      means.panels = false;
      scattered.clear();
      continue;
    } catch (const cuda::NoCluster&) {
      means.clusters = false;
      scattered.clear();
      continue;
    }
    if (scattered.size() != before) continue;
    LaunchSpec launch = launch_spec(lowered);
    launch.entry = entry;
    launch.threads = t.threads;
    launch.cluster = t.cluster;
    launch.shared_bytes = t.shared_bytes;
    launch.scratch_bytes = t.workspace_bytes;
    launch.early = machine.early_launch;
    launch.messages = !messages_of(lowered).empty();
    return {t.text, launch};
  }
}

int64_t most_blocks(const LaunchSpec& l, const GpuMachine& m) {
  if (l.scratch_bytes == 0) return std::numeric_limits<int32_t>::max() / l.cluster * l.cluster;
  return m.multiprocessors * std::clamp(m.max_threads / std::max(l.threads, 1), 1, 4);
}

}  // namespace tw
