#include "tw/emu/ejected.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <filesystem>
#include <fmt/format.h>
#include <fstream>
#include <regex>
#include <sstream>

#include "tw/base/error.h"
#include "tw/emit/cpu/emit_cpu.h"
#include "tw/emit/cuda/eject_cuda.h"
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

/// As it stands in a string.
std::string escaped(const std::string& name) {
  std::string text;
  for (const char c : name) text += c == '"' || c == '\\' ? std::string{'\\', c} : std::string{c};
  return text;
}

/// The lines of the part without those of functions that have another form here, which must all be
/// there, in their order; what stands between them is the owner's.
std::string own_lines(const EjectedSource& source, const std::string& name, const Lines& lines,
                      const Part& part, const Lines& known) {
  std::string text = fmt::format("#line {} \"{}\"\n", part.begin + 1, escaped(name));
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

/// The text without its comments; all else stays on its line.
std::string without_comments(const std::string& text) {
  std::string left;
  for (size_t i = 0; i < text.size();) {
    const char c = text[i];
    size_t end = i + 1;
    if (c == '"' || c == '\'') {
      while (end < text.size() && text[end] != c && text[end] != '\n')
        end += text[end] == '\\' ? 2 : 1;
      end = std::min(end + 1, text.size());
      left += text.substr(i, end - i);
    } else if (text.compare(i, 2, "//") == 0) {
      end = std::min(text.find('\n', i), text.size());
    } else if (text.compare(i, 2, "/*") == 0) {
      end = std::min(text.find("*/", i), text.size() - 2) + 2;
      left.append(static_cast<size_t>(std::count(text.begin() + static_cast<long>(i),
                                                 text.begin() + static_cast<long>(end), '\n')),
                  '\n');
    } else {
      left += c;
    }
    i = end;
  }
  return left;
}

size_t line_at(const std::string& text, size_t at) {
  return static_cast<size_t>(std::count(text.begin(), text.begin() + static_cast<long>(at), '\n'));
}

/// What a kernel's declaration says.
struct Declared {
  std::string entry;
  int cluster = 1;
  int most_threads = 1024;
};

/// Of the one kernel between these lines of a text without comments.
Declared declared_in(const EjectedSource& source, const std::string& code, const Part& part,
                     const std::string& space) {
  const char* const kWanted =
      "wanted extern \"C\" __global__ void NAME(const __grid_constant__ Args args)";
  const Lines lines = lines_of(code);
  std::string text;
  for (size_t i = part.begin; i < part.end; ++i) text += lines[i] + "\n";
  const std::string mark = "__global__";
  const size_t at = text.find(mark), end = text.find("const __grid_constant__ Args", at);
  constexpr size_t kLongest = 500;  // from one to the other
  static const std::regex name(R"((\w+)\s*\(\s*$)"), bounds(R"(__launch_bounds__\(\s*(\d{1,5}))"),
      cluster(R"(__cluster_dims__\(\s*(\d{1,5}))");
  std::smatch found;
  const std::string head = at == std::string::npos ? "" : text.substr(at, end - at);
  if (end == std::string::npos || head.size() > kLongest || !std::regex_search(head, found, name))
    refuse_at(source, part.begin, fmt::format("namespace '{}' has no kernel", space), kWanted);
  Declared d{.entry = found[1]};
  if (std::regex_search(head, found, bounds)) d.most_threads = std::stoi(found[1]);
  if (std::regex_search(head, found, cluster)) d.cluster = std::stoi(found[1]);
  if (const size_t next = text.find(mark, end); next != std::string::npos)
    refuse_at(source, part.begin + line_at(text, next),
              fmt::format("namespace '{}' has another kernel, '{}'", space, d.entry),
              "one is launched, and judged");
  return d;
}

/// How the file's own function launches a kernel; `spec`: how it was ejected.
void read_launch(const EjectedSource& source, const Part& part, const std::string& space,
                 LaunchSpec& spec) {
  const std::string code = without_comments(source.text);
  const Declared d = declared_in(source, code, part, space);
  spec.entry = d.entry;
  const std::string wanted =
      fmt::format("launch((const void*){}::{}, blocks, THREADS, SHARED_BYTES, &args, stream)",
                  space, spec.entry);
  const std::string begin = wanted.substr(0, wanted.find(" blocks"));
  const size_t at = code.find(begin);
  if (at == std::string::npos)
    throw UserError(fmt::format("'{}' does not launch '{}'", source.path, spec.entry),
                    "wanted " + wanted);
  constexpr size_t kLongest = 200;
  static const std::regex numbers(R"(^\s*blocks,\s*(\d{1,9}),\s*(\d{1,9}),)");
  const std::string rest = code.substr(at + begin.size(), kLongest);
  std::smatch found;
  const auto refuse = [&](const std::string& what, const std::string& hint) {
    refuse_at(source, line_at(code, at), what, hint);
  };
  if (!std::regex_search(rest, found, numbers))
    refuse(fmt::format("'{}' is not launched with plain numbers", spec.entry), "wanted " + wanted);
  const GpuMachine& machine = gpu_named(source.arch);
  spec.threads = std::stoi(found[1]);
  spec.shared_bytes = std::stoll(found[2]);
  const int most = std::min(d.most_threads, 1024);
  if (spec.threads < 1 || spec.threads > most)
    refuse(fmt::format("a block of {} threads", spec.threads),
           fmt::format("wanted 1 to {}{}", most, most < 1024 ? ", by its __launch_bounds__" : ""));
  if (spec.shared_bytes > machine.shared_per_block)
    refuse(fmt::format("a block with {} bytes of shared memory", spec.shared_bytes),
           fmt::format("{} has at most {}", source.arch, machine.shared_per_block));
  if (d.cluster != spec.cluster)
    refuse(fmt::format("'{}' has clusters of {} blocks", spec.entry, d.cluster),
           fmt::format("wanted {}, as it was ejected: its grid is made for that", spec.cluster));
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
  for (size_t at = 0; (at = s.text.find("\r\n", at)) != std::string::npos;) s.text.erase(at, 1);
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
    std::array<emu::LoadedText, 2> loaded;  ///< by what locals hold that nothing has written
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

  /// By what its compiler said: "...: FILE:LINE:COLUMN: error: WHAT".
  [[noreturn]] void refuse_text(const std::string& said) const {
    const size_t at = said.find(file_name() + ":");
    throw UserError(fmt::format("the emulator cannot compile '{}': {}", source.path,
                                said.substr(at == std::string::npos ? 0 : at)));
  }

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
    read_launch(source, *part, space, k.launch);
    const std::string text = fmt::format(
        "#line {} \"tilewright\"\n{}\n#define __CUDACC__ 1\n#define __CUDA_ARCH__ {}\n{}",
        kPreludeLine, prelude_of(ours.text), arch_number(machine.arch),
        own_lines(source, file_name(), lines, *part, wanted));
    try {
      k.loaded[0] = emu::load_text(text, k.launch.entry);
      k.loaded[1] = emu::load_text(text, k.launch.entry, emu::Unset::zeros);
    } catch (const InternalError& e) {
      refuse_text(e.message());
    } catch (const EnvError& e) {  // a header that is not there
      if (e.message().find(file_name() + ":") == std::string::npos) throw;
      refuse_text(e.message());
    }
    for (emu::LoadedText& loaded : k.loaded) loaded.file = file_name();
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
  const uint64_t launch = state_->launches++;
  emu::run_call(kernel.loaded[launch % 2], state_->source.text, kernel.launch, call, launch);
}

}  // namespace tw
