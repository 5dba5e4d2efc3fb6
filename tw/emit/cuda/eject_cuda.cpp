#include "tw/emit/cuda/eject_cuda.h"

#include <algorithm>
#include <charconv>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "tw/base/error.h"
#include "tw/emit/cpu/eject_function.h"
#include "tw/emit/cpu/task.h"
#include "tw/emit/cuda/emit_cuda.h"

namespace tw {
namespace cuda {
namespace {

using cpu::Writer;
using ejected::Names;

const char* const kResult =
    R"(/// Returns what cudaLaunchKernel() does, cudaSuccess where there is nothing to compute, or
/// cudaErrorInvalidValue when extents disagree, are negative or break a promise, or a stride is not
/// as above: then nothing is launched. Addresses are of memory that the GPU reaches. It allocates
/// nothing and returns when the work is in the stream.
///)";

const char* const kIndexFunctions = R"(typedef long i64;
inline i64 min(i64 a, i64 b) { return a < b ? a : b; }
inline i64 max(i64 a, i64 b) { return a > b ? a : b; }
inline i64 floordiv(i64 a, i64 b) { return b == 0 ? 0 : a / b - (a % b != 0 && (a ^ b) < 0); }
inline i64 mod(i64 a, i64 b) { return b == 0 ? 0 : a - floordiv(a, b) * b; }
inline i64 cdiv(i64 a, i64 b) { return floordiv(a + b - 1, b); }
)";

const char* const kLaunch = R"(// One parameter: the words of Args.
cudaError_t launch(const void* kernel, int64_t blocks, int threads, int shared_bytes, void* args,
                   cudaStream_t stream) {
  constexpr int kWithoutAsking = 48 << 10;
  if (shared_bytes > kWithoutAsking) {
    const cudaError_t code = cudaFuncSetAttribute(
        kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, shared_bytes);
    if (code != cudaSuccess) return code;
  }
  void* parameters[] = {args};
  return cudaLaunchKernel(kernel, dim3((unsigned)blocks), dim3((unsigned)threads), parameters,
                          (size_t)shared_bytes, stream);
}
)";

/// A kernel of the source, in a namespace of its own.
struct Variant {
  std::string space;  ///< of its kernel, tensors and functions
  const LoweredFor* lowered;
  EmittedCuda emitted;
  int64_t most_blocks = 0;
};

void open_file(const GpuMachine& machine, Writer& out) {
  out.line(fmt::format(R"(#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < {}
#error "this kernel was ejected for {}"
#endif
#if defined(__USE_FAST_MATH__)
#error "this kernel keeps NaN, infinities and small numbers: build it without -use_fast_math"
#endif
#if defined(__CUDACC__)
#pragma nv_diag_suppress 177, 550  // names that nothing reads
#endif
static_assert(sizeof(long) == 8, "long has 64 bits here, as it has under Linux");

namespace {{
)",
                       arch_number(machine.arch), machine.arch));
}

void emit_variant(const Variant& v, Writer& out) {
  out.line(fmt::format("namespace {} {{\n", v.space));
  out.line(v.emitted.text);
  out.line(fmt::format("}}  // namespace {}\n#undef TW_BLOCKS\n", v.space));
}

/// The count of instances on the host, by functions of the same names as the kernel's.
void emit_count(const Program& safe, Writer& out) {
  out.line("#undef min\n#undef max\n\nnamespace host {\n");
  out.line(kIndexFunctions);
  out.open("i64 count(const int64_t* dims) {");
  out.line("(void)dims;");
  cpu::declare_instances(safe, "dims", out);
  out.line("return instances;");
  out.close();
  out.line("\n}  // namespace host\n");
  out.line(kLaunch);
  out.line("}  // namespace\n");
}

/// When a call has the facts of addresses and of rows that are whole runs.
std::string condition(const Program& p, const Specialisation& s, const Names& names) {
  std::string text;
  for (size_t k = 0; k < s.params.size(); ++k) {
    const ParamFacts& facts = s.params[k];
    if (!facts.aligned) continue;
    text +=
        fmt::format("{}(uintptr_t){} % 16 == 0", text.empty() ? "" : " &&\n    ", names.tensors[k]);
    const int64_t run = 128 / bits(p.params[k].dtype);
    if (facts.whole)
      text += fmt::format(" && {}[{}] % {} == 0", names.dims[k], facts.unit_axis, run);
    for (int axis = 0; axis < facts.rank; ++axis) {
      if (axis == facts.unit_axis || (facts.zero_stride >> axis & 1)) continue;
      text += fmt::format(" && {}[{}] % {} == 0", names.strides[k], axis, run);
    }
  }
  return text;
}

void emit_call(const Variant& v, const Program& p, const Names& names, Writer& out) {
  std::vector<std::string> parts;
  for (const auto& items :
       {ejected::addresses(p, names), names.values, ejected::all_strides(p, names)}) {
    if (!items.empty()) parts.push_back(fmt::format("{{{}}}", fmt::join(items, ", ")));
  }
  const LaunchSpec& l = v.emitted.launch;
  parts.push_back(l.scratch_bytes > 0 ? fmt::format("({}::u8*)workspace", v.space) : "nullptr");
  out.line(fmt::format("{}::Args args = {{{}}};", v.space, fmt::join(parts, ",\n    ")));
  const std::string each = l.cluster > 1 ? fmt::format(" * {}", l.cluster) : "";
  out.line(fmt::format("const int64_t blocks = instances < {} ? instances{} : {};",
                       v.most_blocks / l.cluster, each, v.most_blocks));
  out.line(fmt::format("return launch((const void*){}::{}, blocks, {}, {}, &args, stream);",
                       v.space, l.entry, l.threads, l.shared_bytes));
}

int64_t workspace_bytes(const std::vector<Variant>& all) {
  int64_t most = 0;
  for (const Variant& v : all)
    most = std::max(most, v.emitted.launch.scratch_bytes * v.most_blocks);
  return most;
}

std::string last_parameters(int64_t workspace, bool declaration) {
  return fmt::format("{}cudaStream_t stream{}", workspace > 0 ? "void* workspace, " : "",
                     declaration ? " = nullptr" : "");
}

void emit_host(const std::vector<Variant>& all, const Program& p, const Names& names, Writer& out) {
  const int64_t workspace = workspace_bytes(all);
  if (workspace > 0) {
    out.line(
        fmt::format("size_t {}_workspace_bytes() {{ return {}; }}\n", names.function, workspace));
  }
  const Specialisation& usual = all[0].lowered->facts;
  out.open(ejected::signature("cudaError_t", p, names, last_parameters(workspace, false)) + " {");
  ejected::check_extents(p, names, "cudaErrorInvalidValue", out);
  ejected::check_strides(usual, names, "cudaErrorInvalidValue", out);
  if (names.values.empty())
    out.line("const int64_t* const dims = nullptr;");
  else
    out.line(fmt::format("const int64_t dims[] = {{{}}};", fmt::join(names.values, ", ")));
  out.line("const int64_t instances = host::count(dims);");
  out.line("if (instances == 0) return cudaSuccess;");
  if (all.size() > 1) {
    out.open(fmt::format("if ({}) {{", condition(p, usual, names)));
    emit_call(all[0], p, names, out);
    out.close();
  }
  emit_call(all.back(), p, names, out);
  out.close();
}

std::string header_of(const std::vector<Variant>& all, const Program& p, const Names& names,
                      const GpuMachine& machine, const std::string& title,
                      const EjectNames& words) {
  const int64_t workspace = workspace_bytes(all);
  Writer out;
  out.line(title);
  out.line(fmt::format("// Build: nvcc -std=c++17 -arch={} -c {}.cu; any later standard does.",
                       machine.arch, words.stem));
  out.line("#pragma once\n\n#include <cuda_runtime.h>\n#include <stdint.h>\n");
  if (workspace > 0) {
    out.line(
        fmt::format("/// How much memory of the GPU `workspace` is: 16-byte aligned, for one "
                    "call at a time.\nsize_t {}_workspace_bytes();\n",
                    names.function));
  }
  ejected::describe_arguments(p, all.back().lowered->facts, names, out);
  out.line(kResult);
  if (!words.made_for.empty())
    out.line(fmt::format("/// Its tiles were chosen for {}.", words.made_for));
  out.line(fmt::format("/// The work is n = {} instances; a block does one, or several.",
                       ejected::grid_text(p)));
  out.line(
      "/// Where ptxas tells of spills (-Xptxas -v), a smaller TW_BLOCKS leaves registers enough.");
  if (all.size() > 1) {
    out.line(
        "/// It is faster where addresses, strides other than 1 and, where it was ejected for "
        "such, "
        "rows\n/// are multiples of 16 bytes.");
  }
  out.line(ejected::signature("cudaError_t", p, names, last_parameters(workspace, true)) + ";");
  return out.text();
}

}  // namespace
}  // namespace cuda

int arch_number(const std::string& arch) {
  int n = 0;
  const size_t at = arch.find('_') + 1;
  std::from_chars(arch.data() + at, arch.data() + arch.size(), n);
  return 10 * n;
}

Ejected eject_cuda(const LoweredFor& usual, const LoweredFor& other, const GpuMachine& machine,
                   const Mapping& mapping, const EjectNames& words) {
  using namespace cuda;
  const auto aligned = [](const ParamFacts& f) { return f.aligned; };
  if (usual.facts.fits32 || std::ranges::any_of(other.facts.params, aligned))
    throw InternalError("eject: facts of addresses or sizes, which nothing would check");
  const Program p = ejected::with_untaken_names(other.program);
  const Names names(p, words.function, {"stream", "workspace", "instances", "blocks", "args"});
  const auto variant = [&](const char* space, const LoweredFor& l, const char* suffix) {
    EmittedCuda e = emit_cuda_as(names.function + suffix, ejected::with_untaken_names(l.program),
                                 l.facts, machine, mapping, false, cpu::Thread::cuda);
    const int64_t most = most_blocks(e.launch, machine);
    return Variant{space, &l, std::move(e), most};
  };
  std::vector<Variant> all = {variant("aligned", usual, "_kernel"),
                              variant("any", other, "_kernel")};
  if (all[0].emitted.text == all[1].emitted.text)
    all.erase(all.begin());
  else
    all[0] = variant("aligned", usual, "_aligned_kernel");
  const std::string title = ejected::title(p, machine.arch, to_string(mapping));
  Writer out;
  out.line(title);
  if (!words.made_for.empty())
    out.line(fmt::format("// Its tiles were chosen for {}.", words.made_for));
  out.line(fmt::format("#include \"{}.h\"\n", words.stem));
  open_file(machine, out);
  for (const Variant& v : all) emit_variant(v, out);
  emit_count(cpu::with_safe_names(p), out);
  emit_host(all, p, names, out);
  return {header_of(all, p, names, machine, title, words), out.text()};
}

}  // namespace tw
