#include "tw/emu/ejected.h"

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <fmt/format.h>
#include <fstream>
#include <regex>
#include <sstream>

#include "tw/base/error.h"
#include "tw/emit/cpu/emit_cpu.h"
#include "tw/emit/cuda/emit_cuda.h"
#include "tw/emu/impl/run.h"
#include "tw/passes/pipeline.h"
#include "tw/runtime/launch.h"
#include "tw/tensor/file.h"

namespace tw {
namespace {

using Lines = std::vector<std::string>;

/// Where the functions in front of a file's lines are numbered from, behind all that a file has.
constexpr int kPreludeLine = 1'000'000;

Lines lines_of(const std::string& text) {
  Lines all;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) all.push_back(line);
  return all;
}

[[noreturn]] void refuse_at(const EjectedSource& source, size_t line, const std::string& what,
                            const std::string& hint = "") {
  throw UserError(fmt::format("{}:{}: {}", source.path, line + 1, what), hint);
}

/// The lines between "namespace NAME {" and its end.
struct Part {
  size_t begin = 0, end = 0;
};
std::optional<Part> part_of(const Lines& lines, const std::string& space) {
  const auto open = std::ranges::find(lines, "namespace " + space + " {");
  const auto close = std::ranges::find(lines, "}  // namespace " + space);
  if (open == lines.end() || close <= open) return std::nullopt;
  return Part{static_cast<size_t>(open - lines.begin()) + 1,
              static_cast<size_t>(close - lines.begin())};
}

/// The lines of the part without those of functions that have another form here, which must all be
/// there, in their order; what stands between them is the owner's.
std::string own_lines(const EjectedSource& source, const std::string& name, const Lines& lines,
                      const Part& part, const Lines& known) {
  std::string text = fmt::format("#line {} \"{}\"\n", part.begin + 1, name);
  size_t next = 0, last = part.begin;
  bool before_args = true;
  for (size_t i = part.begin; i < part.end; ++i) {
    before_args &= lines[i] != "struct Args {";
    const bool same = before_args && next < known.size() && lines[i] == known[next];
    if (same) {
      ++next;
      last = i + 1;
    }
    text += same ? "\n" : lines[i] + "\n";
  }
  if (next < known.size())
    refuse_at(source, last, fmt::format("wanted '{}' as it was ejected", known[next]),
              "the emulator has its own form of the functions before 'struct Args'");
  return text;
}

/// How the file's own function launches a kernel.
void read_launch(const EjectedSource& source, const Lines& lines, const Part& part,
                 const std::string& space, LaunchSpec& spec) {
  static const std::regex entry(R"(.*__global__ void .*?(\w+)\(const __grid_constant__ Args.*)");
  static const std::regex cluster(R"(.*__cluster_dims__\((\d{1,2}),.*)");
  std::smatch found;
  spec.entry.clear();
  for (size_t i = part.begin; i < part.end && spec.entry.empty(); ++i) {
    if (!std::regex_match(lines[i], found, entry)) continue;
    spec.entry = found[1];
    spec.cluster = std::regex_match(lines[i], found, cluster) ? std::stoi(found[1]) : 1;
  }
  if (spec.entry.empty())
    refuse_at(source, part.begin, fmt::format("namespace '{}' has no kernel", space),
              "wanted extern \"C\" __global__ void NAME(const __grid_constant__ Args args)");
  const std::regex launch(
      fmt::format(R"(launch\(\(const void\*\){}::{},\s*blocks,\s*(\d{{1,4}}),\s*(\d{{1,7}}),)",
                  space, spec.entry));
  if (!std::regex_search(source.text, found, launch))
    throw UserError(fmt::format("'{}' does not launch '{}'", source.path, spec.entry),
                    fmt::format("wanted launch((const void*){}::{}, blocks, THREADS, SHARED_BYTES, "
                                "&args, stream)",
                                space, spec.entry));
  spec.threads = std::stoi(found[1]);
  spec.shared_bytes = std::stoll(found[2]);
}

/// The text before the arguments' struct: types and functions.
std::string prelude_of(const std::string& text) {
  return text.substr(0, text.find("struct Args {"));
}

bool multiple_of_16(int64_t elements, DType t) { return elements * bits(t) % 128 == 0; }

/// Whether the host's function would choose a kernel that relies on these facts.
bool has_addresses(const TensorView& t, const ParamFacts& facts) {
  if (!facts.aligned) return true;
  bool all = reinterpret_cast<uintptr_t>(t.data) % 16 == 0;
  for (int axis = 0; axis < t.rank(); ++axis)
    all &= axis == facts.unit_axis || multiple_of_16(t.strides[static_cast<size_t>(axis)], t.dtype);
  return all;
}

void expect_strides(const TensorView& t, const ParamFacts& facts, const std::string& name) {
  if (facts.unit_axis < 0) return;
  const auto axis = static_cast<size_t>(facts.unit_axis);
  if (t.dims[axis] > 1 && t.strides[axis] != 1)
    throw UserError(fmt::format("'{}' has stride {} along axis {}", name, t.strides[axis], axis),
                    "the file is of a kernel that wants stride 1 there");
}

}  // namespace

EjectedSource read_ejected(const std::string& path) {
  EjectedSource s;
  s.path = path;
  std::ifstream in(path, std::ios::binary);
  s.text.assign(std::istreambuf_iterator<char>(in), {});
  if (!in.is_open() || in.bad()) fail_file(fmt::format("cannot read '{}'", path), errno);
  static const std::regex title(
      R"(// (\w+), ejected by tilewright for (\w+), ([^.\n]*)\. It is yours\.\n)"
      R"((?:// Its tiles were chosen for ([^\n]*)\.\n)?)");
  std::smatch found;
  if (!std::regex_search(s.text, found, title, std::regex_constants::match_continuous) ||
      !found[2].str().starts_with("sm_"))
    throw UserError(fmt::format("'{}' does not begin as CUDA source that was ejected", path),
                    "wanted a file of 'tilewright eject KERNEL --device sm_90a --output FILE.cu'");
  s.program = found[1];
  s.arch = found[2];
  s.mapping = found[3];
  s.made_for = found[4];
  return s;
}

struct EjectedKernels::State {
  struct Compiled {
    Specialisation facts;
    LaunchSpec launch;
    emu::LoadedText loaded;
  };
  EjectedSource source;
  Signature signature;
  std::vector<Compiled> kernels = {};  ///< those that rely on more come first
  uint64_t launches = 0, ran = 0;

  State(const EjectedSource& s, const Program& p)
      : source(s), signature(p.name, launch_spec(p), {}) {
    if (s.program != p.name)
      throw UserError(fmt::format("'{}' was ejected from '{}'", s.path, s.program),
                      fmt::format("wanted a file that was ejected from '{}'", p.name));
    Specialisation facts = contiguous_facts(p);
    for (const bool aligned : {true, false}) {
      for (ParamFacts& f : facts.params) f.aligned = aligned;
      add(p, aligned ? "aligned" : "any", facts);
    }
  }

  /// What reports call the file: its name without the folder.
  std::string file_name() const { return std::filesystem::path(source.path).filename(); }

  void add(const Program& p, const std::string& space, const Specialisation& facts) {
    const Lines lines = lines_of(source.text);
    const std::optional<Part> part = part_of(lines, space);
    if (!part && space != "any") return;
    if (!part)
      throw UserError(fmt::format("'{}' has no 'namespace {} {{' with its end", source.path, space),
                      "keep the lines that eject wrote around each kernel");
    const Mapping mapping = parse_mapping(source.mapping);
    const GpuMachine& machine = gpu_named(source.arch);
    Program lowered = p;
    drop_messages(lowered, true);
    canonicalize(lowered);
    run_passes(lowered, cuda_passes(), {machine_named("generic"), mapping, facts});
    const auto emitted = [&](cpu::Thread kind) {
      return emit_cuda(lowered, facts, machine, mapping, false, kind);
    };
    const std::string known = emitted(cpu::Thread::cuda).text;
    EmittedCuda ours = emitted(cpu::Thread::emulated);
    Lines wanted = lines_of(prelude_of(known));
    wanted.erase(wanted.begin());  // a comment
    Compiled k{facts, std::move(ours.launch), {}};
    read_launch(source, lines, *part, space, k.launch);
    const std::string text =
        fmt::format("#line {} \"tilewright\"\n{}\n{}", kPreludeLine, prelude_of(ours.text),
                    own_lines(source, file_name(), lines, *part, wanted));
    try {
      k.loaded = emu::load_text(text, k.launch.entry);
    } catch (const InternalError& e) {
      // "...: FILE:LINE:COLUMN: error: WHAT"
      const size_t at = e.message().find(file_name() + ":");
      throw UserError(fmt::format("the emulator cannot compile '{}': {}", source.path,
                                  e.message().substr(at == std::string::npos ? 0 : at)));
    }
    k.loaded.file = file_name();
    kernels.push_back(std::move(k));
  }
};

EjectedKernels::EjectedKernels(const EjectedSource& source, const Program& p)
    : state_(std::make_unique<State>(source, p)) {}
EjectedKernels::~EjectedKernels() = default;

size_t EjectedKernels::count() const { return state_->kernels.size(); }
const std::string& EjectedKernels::name(size_t k) const { return state_->kernels[k].launch.entry; }
uint64_t EjectedKernels::ran() const { return state_->ran; }

void EjectedKernels::run(size_t k, const std::vector<TensorView>& inputs,
                         const std::vector<TensorView>& outputs) const {
  const Call call(state_->signature, inputs, outputs, {});
  if (call.empty_grid()) return;
  const LaunchSpec& spec = state_->signature.spec();
  size_t taken = k;
  for (size_t i = 0; i < spec.args.size(); ++i) {
    const TensorView t = call.argument(i);
    if (spec.args[i].workspace) continue;
    const ParamFacts& facts = state_->kernels[k].facts.params[i];
    expect_strides(t, facts, spec.args[i].name);
    if (!has_addresses(t, facts)) taken = state_->kernels.size() - 1;
  }
  const State::Compiled& kernel = state_->kernels[taken];
  state_->ran |= uint64_t{1} << taken;
  emu::run_call(kernel.loaded, state_->source.text, kernel.launch, call, state_->launches++);
}

}  // namespace tw
