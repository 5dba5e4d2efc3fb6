#include "tests/emu/library_texts.h"

#include <algorithm>
#include <cstring>
#include <ctime>
#include <fmt/format.h>
#include <functional>
#include <iterator>

#include "tw/base/error.h"
#include "tw/emit/cpu/emit_cpu.h"
#include "tw/emit/cuda/emit_cuda.h"
#include "tw/emu/emulator.h"
#include "tw/emu/impl/text.h"
#include "tw/interp/interpreter.h"
#include "tw/ir/print.h"
#include "tw/passes/pipeline.h"
#include "tw/runtime/launch.h"

#include "tests/emu/own_strides.h"

namespace tw::test {

int64_t elements_of(const kernels::KernelEntry& entry, const kernels::Problem& p) {
  int64_t sum = 0;
  for (const check::Argument& a : entry.arguments(p)) {
    int64_t count = 1;
    for (const int64_t n : a.dims) count *= n;
    if (count <= 0) return -1;
    sum += count;
  }
  return sum;
}

namespace {

using kernels::KernelEntry;
using kernels::Problem;

/// Of a problem of the sweep.
constexpr int64_t kMostElements = 30'000;

bool is_tiny(const KernelEntry& entry, const Problem& p) {
  const int64_t n = elements_of(entry, p);
  return n > 0 && n <= kMostElements;
}

Program traced(const KernelEntry& entry, const Problem& p) {
  Program program = entry.trace(p, Target(gpu_named("sm_90a")));
  drop_messages(program, true);
  canonicalize(program);
  return program;
}

Views joined(const Views& a, const Views& b) {
  Views all = a;
  all.insert(all.end(), b.begin(), b.end());
  return all;
}

bool has_facts(const LibraryText& text, const Views& in, const Views& out) {
  return Call(text.signature, in, out, {}).specialisation() == text.facts;
}

/// A launch of the text on such tensors. Throws UserError where it does not serve them.
void launch(const LibraryText& text, const std::string& body, const Views& in, const Views& out,
            uint64_t seed) {
  const Call call(text.signature, in, out, {});
  if (!(call.specialisation() == text.facts)) throw UserError("other facts");
  Views args;
  std::vector<Tensor> workspace;
  for (size_t i = 0; i < text.launch.args.size(); ++i) {
    args.push_back(call.argument(i));
    if (!text.launch.args[i].workspace) continue;
    TensorView& t = args.back();
    workspace.push_back(host_tensor(t.dtype, t.dims));
    t.data = workspace.back().data<char>();
    std::memset(t.data, 0, static_cast<size_t>(byte_count(t.dtype, t.dims)));
  }
  const int64_t blocks = 2 * text.launch.cluster;
  const EmuReport report =
      run_emulated(text.prelude + body, text.launch, args, call.dims(),
                   {.seed = seed, .resident = static_cast<int>(blocks), .blocks = blocks});
  if (!report.clean()) throw DeviceError(report.text);
}

}  // namespace

std::string LibraryText::label() const {
  return fmt::format("{} {}", entry->name, to_string(made_for));
}

std::vector<LibraryForm> library_forms() {
  std::vector<LibraryForm> all;
  for (const KernelEntry& entry : kernels::kernel_list()) {
    for (const DType t : entry.dtypes)
      if (!small_problems({&entry, t}).empty()) all.push_back({&entry, t});
  }
  return all;
}

std::vector<Problem> small_problems(const LibraryForm& form) {
  std::vector<Problem> all;
  for (const Problem& listed : form.entry->sweep()) {
    if (listed.dtype != form.dtype) continue;
    const Problem p = complete(*form.entry, listed);
    if (is_tiny(*form.entry, p)) all.push_back(p);
  }
  return all;
}

namespace {

/// Tensors of a problem, without values.
struct Tensors {
  Tensors(const KernelEntry& entry, const Problem& p) {
    for (const check::Argument& a : entry.arguments(p)) {
      all.push_back(host_tensor(a.dtype, a.dims));
      (a.output ? out : in).push_back(all.back());
    }
  }
  std::vector<Tensor> all;
  Views in, out;
};

}  // namespace

LibraryText library_text(const KernelEntry& entry, const Problem& p,
                         const std::map<std::string, int64_t>& knobs) {
  Program program = traced(entry, p);
  const Tensors t(entry, p);
  LibraryText text{.entry = &entry,
                   .made_for = p,
                   .facts = {},
                   .prelude = {},
                   .body = {},
                   .cuda_prelude = {},
                   .launch = {},
                   .signature = {program.name, launch_spec(program), {}},
                   .problems = {}};
  text.facts = Call(text.signature, t.in, t.out, {}).specialisation();
  const Mapping mapping{"cuda1", knobs};
  run_passes(program, cuda_passes(), {machine_named("generic"), mapping, text.facts});
  const auto emitted = [&](cpu::Thread kind) {
    return emit_cuda_as("tw_kernel", program, text.facts, gpu_named("sm_90a"), mapping, false,
                        kind);
  };
  const auto prelude_of = [](const std::string& whole) {
    const char* const kBegin = "__device__ __forceinline__ void body(";
    return whole.substr(0, whole.find(kBegin, whole.find("struct Args {")));
  };
  const EmittedCuda e = emitted(cpu::Thread::emulated);
  text.launch = e.launch;
  text.prelude = prelude_of(e.text);
  text.body = e.text.substr(text.prelude.size());
  text.cuda_prelude = prelude_of(emitted(cpu::Thread::cuda).text);
  return text;
}

int64_t instances_of(const LibraryText& text, const Problem& p) {
  const Tensors t(*text.entry, p);
  return Call(text.signature, t.in, t.out, {}).instances();
}

std::string fault_of(const LibraryText& text, const Problem& p, const std::string& body,
                     uint64_t seed, std::span<const check::Values> all_values) {
  const uint64_t first = seed + 1;
  const auto run = [&](const Views& in, const Views& out) {
    const OwnStrides own(joined(in, out), text.facts);
    const Views own_in = own.views(0, in.size()),
                own_out = own.views(in.size(), in.size() + out.size());
    if (!has_facts(text, own_in, own_out)) return launch(text, body, in, out, seed++);
    launch(text, body, own_in, own_out, seed++);
    own.take_back();
  };
  const auto reference = [&](std::span<const TensorView> in) {
    return text.entry->reference(p, in);
  };
  for (const check::Values values : all_values) {
    check::Sweep sweep({.values = {values},
                        .layouts = {},
                        .refuses_aliases = false,
                        .whole = false,
                        .seed = first});
    try {
      sweep.add(to_string(p),
                {.arguments = text.entry->arguments(p), .run = run, .reference = reference});
    } catch (const DeviceError& e) {
      return e.what();
    }
    if (std::string fault = sweep.verdict(); !fault.empty()) return fault;
  }
  return "";
}

std::vector<check::Values> values_of(const KernelEntry& entry) {
  using enum check::Values;
  if (entry.family == check::Family::norm) return {uniform, integers, special, wide, scaled};
  return {uniform, integers, special, wide};
}

std::string fault_of(const LibraryText& text, const std::string& body, uint64_t turn) {
  const std::vector<check::Values> kinds = values_of(*text.entry);
  for (size_t i = 0; i < text.problems.size(); ++i) {
    const check::Values values[] = {kinds[(i + turn) % kinds.size()]};
    const auto fault = [&](const std::string& of) {
      return fault_of(text, text.problems[i], of, 100 * turn, values);
    };
    const std::string found = fault(body);
    if (found.empty()) continue;
    if (body == text.body || fault(text.body).empty()) return found;
  }
  return "";
}

namespace {

/// Whether a little more or less of an axis leaves the program as it is. Others, of a group or a
/// pad, are constants that no tensor need show.
bool is_open(const KernelEntry& entry, const Problem& p, const std::string& axis) {
  const std::string program = print(traced(entry, p));
  for (const int64_t by : {1, 2, 16, -1}) {
    Problem other = p;
    other.shape[axis] += by;
    try {
      if (print(traced(entry, other)) == program) return true;
    } catch (const UserError&) {
      continue;
    }
  }
  return false;
}

std::vector<std::string> open_axes(const LibraryText& text) {
  std::vector<std::string> all;
  for (const auto& [axis, extent] : text.made_for.shape)
    if (is_open(*text.entry, text.made_for, axis)) all.push_back(axis);
  return all;
}

bool serves(const LibraryText& text, const Problem& p, int64_t most_elements) {
  if (p.dtype != text.made_for.dtype) return false;
  try {
    const int64_t elements = elements_of(*text.entry, p);
    if (elements <= 0 || elements > most_elements) return false;
    const Tensors t(*text.entry, p);
    return has_facts(text, t.in, t.out) ||
           has_facts(text, with_own_strides(t.in, text.facts, 0),
                     with_own_strides(t.out, text.facts, t.in.size()));
  } catch (const UserError&) {  // constants of the text
    return false;
  }
}

double seconds_of(const std::function<void()>& what) {
  const std::clock_t begin = std::clock();
  what();
  return static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
}

}  // namespace

namespace {

/// Problems that a text serves, by axis: those that its tiles cut, and others, along which an
/// instance goes.
class Served {
 public:
  Served(const LibraryText& text, int64_t most_elements)
      : text_(text), most_(most_elements), longer_(text.made_for) {
    for (const auto& [axis, extent] : text.made_for.shape)
      if (may_change(axis)) tiles_[axis] = tile_of(axis);
    for (const auto& [axis, tile] : tiles_)
      if (tile <= 1) shorten(axis);
    lengthen_together();
    lengthen_ones();
    for (const auto& [axis, tile] : tiles_)
      if (tile > 0) lengthen(axis);
  }

  /// First of each axis the one that shows most, then the second of each, and so on.
  std::vector<Problem> all(const std::vector<Problem>& form) {
    add(text_.made_for);
    for (const Problem& p : form) add_options(p);
    std::vector<std::vector<Problem>> by_axis;
    for (const auto& [axis, tile] : tiles_)
      by_axis.push_back(tile > 0 ? of_tiles(axis, tile) : along(axis));
    add(longer_);
    for (size_t i = 0; i < 16; ++i) {
      for (const std::vector<Problem>& some : by_axis)
        if (i < some.size()) add(some[i]);
    }
    for (const Problem& p : form) add(p);
    return std::move(all_);
  }

 private:
  bool serves_it(const Problem& p) const { return serves(text_, p, most_); }
  /// Not where another extent is another program that no tensor shows: of a pad, a step, a group.
  bool may_change(const std::string& axis) const {
    if (is_open(*text_.entry, text_.made_for, axis)) return true;
    for (const int64_t by : {1, 2, 8, 16, 48, 64, 256}) {
      const Problem p = with(text_.made_for, axis, text_.made_for.extent(axis) + by);
      if (serves_it(p)) return is_meant_for(text_, p);
    }
    return false;
  }
  /// To the fewest instances, two or more, along an axis that has one each.
  void shorten(const std::string& axis) {
    for (const int64_t extent : {2, 3, 4, 6}) {
      if (extent >= longer_.extent(axis)) return;
      const Problem p = with(longer_, axis, extent);
      if (!serves_it(p) || instances_of(text_, p) >= instances_of(text_, longer_)) continue;
      longer_ = p;
      return;
    }
  }
  void add(const Problem& p) {
    if (p.options == longer_.options && serves_it(p) && std::ranges::find(all_, p) == all_.end())
      all_.push_back(p);
  }
  /// Options of another problem, where they change no more than extents.
  void add_options(const Problem& other) {
    Problem p = longer_;
    p.options = other.options;
    if (p.options == longer_.options) return;
    try {
      if (print(traced(*text_.entry, p)) != print(traced(*text_.entry, longer_))) return;
    } catch (const UserError&) {
      return;
    }
    if (serves_it(p) && std::ranges::find(all_, p) == all_.end()) all_.push_back(p);
  }
  static Problem with(Problem p, const std::string& axis, int64_t extent) {
    p.shape[axis] = extent;
    return p;
  }
  int64_t instances(const std::string& axis, int64_t extent) const {
    try {
      constexpr int64_t kMostToAllocate = 400'000;
      const Problem p = with(text_.made_for, axis, extent);
      return elements_of(*text_.entry, p) > kMostToAllocate ? -1 : instances_of(text_, p);
    } catch (const UserError&) {
      return 0;
    }
  }
  /// The longest of an axis that has no more instances than 1 has; 0 where none has more.
  int64_t tile_of(const std::string& axis) const {
    const int64_t one = instances(axis, 1);
    int64_t low = 1, high = 4096;
    while (high > 2 && instances(axis, high) < 0) high /= 2;
    if (one == 0 || instances(axis, high) <= one) return 0;
    while (high - low > 1) {
      const int64_t middle = (low + high) / 2;
      (instances(axis, middle) > one ? high : low) = middle;
    }
    return low;
  }
  /// Axes that change only together, by their extent: channels of a depthwise convolution.
  void lengthen_together() {
    for (const auto& [axis, one] : text_.made_for.shape) {
      if (tiles_.contains(axis) || one == 1) continue;
      for (const int64_t more : {8, 1, 16}) {
        Problem p = longer_;
        for (auto& [other, extent] : p.shape)
          if (extent == one) extent += more;
        if (!serves_it(p) || !is_meant_for(text_, p)) continue;
        longer_ = p;
        return;
      }
    }
  }
  /// Axes of extent 1 all at once: alone one may be the fastest, which is another text.
  void lengthen_ones() {
    for (const int64_t more : {1, 8, 16}) {
      Problem p = longer_;
      for (auto& [axis, extent] : p.shape)
        if (extent == 1 && tiles_.contains(axis) && is_size(axis))
          extent = tiles_[axis] + (tiles_[axis] > 0 ? more : 32 + more);
      if (!serves_it(p)) continue;
      longer_ = p;
      return;
    }
  }
  /// Not a step or a distance.
  static bool is_size(const std::string& axis) {
    return !axis.starts_with("stride") && !axis.starts_with("dilation");
  }
  /// Two tiles along the axis, as few elements of them as the text serves.
  void lengthen(const std::string& axis) {
    const int64_t tile = tiles_[axis];
    for (const int64_t extent : {tile + 1, tile + 8, tile + 16, 2 * tile}) {
      if (longer_.extent(axis) > tile) return;
      const Problem p = with(longer_, axis, extent);
      if (!serves_it(p)) continue;
      longer_ = p;
      return;
    }
  }
  /// Three tiles with a rest; two whole ones, which more of a shorter tile would be; so many that
  /// fewer of a longer one would be. Where other axes have two tiles, the number decides which.
  /// More of instances that have one along the axis each tell little.
  std::vector<Problem> of_tiles(const std::string& axis, int64_t tile) const {
    if (tile == 1) return {with(longer_, axis, 3), with(text_.made_for, axis, 16)};
    std::vector<Problem> some;
    for (const int64_t extent :
         {2 * tile, 8 * tile + 8, 2 * tile + 1, 2 * tile + 8, 3 * tile - 1}) {
      const Problem p = with(longer_, axis, extent);
      some.push_back(serves_it(p) ? p : with(text_.made_for, axis, extent));
    }
    for (const int64_t extent : {3 * tile + 1, 3 * tile + 8})
      some.push_back(with(text_.made_for, axis, extent));
    return some;
  }
  /// Longer than an instance takes at once, with a rest and without.
  std::vector<Problem> along(const std::string& axis) const {
    std::vector<Problem> some;
    for (const int64_t extent :
         {1023, 1040, 33, 40, 8201, 8200, 129, 144, 2999, 2960, 128, 16, 5}) {
      some.push_back(with(longer_, axis, extent));
    }
    for (const int64_t extent : {129, 33, 16}) some.push_back(with(text_.made_for, axis, extent));
    std::erase_if(some, [&](const Problem& p) { return !serves_it(p); });
    return some;
  }

  const LibraryText& text_;
  const int64_t most_;
  std::map<std::string, int64_t> tiles_;  ///< 0: an instance goes along the axis
  Problem longer_;                        ///< two tiles of each axis that has some
  std::vector<Problem> all_;
};

}  // namespace

std::vector<Problem> served_problems(const LibraryText& text, const std::vector<Problem>& form,
                                     int64_t most_elements) {
  return Served(text, most_elements).all(form);
}

bool is_meant_for(const LibraryText& text, const Problem& p) {
  if (p == text.made_for) return true;
  const Program program = traced(*text.entry, text.made_for);
  check::Sweep sweep({.values = {check::Values::uniform},
                      .layouts = {},
                      .refuses_aliases = false,
                      .whole = false});
  sweep.add("", {.arguments = text.entry->arguments(p),
                 .run = [&](const Views& in, const Views& out) { interpret(program, in, out); },
                 .reference =
                     [&](std::span<const TensorView> in) { return text.entry->reference(p, in); }});
  return sweep.verdict().empty();
}

void find_problems(LibraryText& text, const std::vector<Problem>& form, const Effort& most) {
  emu::load_text(text.prelude + text.body, text.launch.entry);
  static constexpr check::Values kUniform[] = {check::Values::uniform};
  const std::vector<std::string> open = open_axes(text);
  // An axis that others change with, or a constant that no tensor shows: only if all values say so.
  const auto is_sure = [&](const Problem& p) {
    return std::ranges::all_of(p.shape, [&](const auto& axis) {
      return text.made_for.extent(axis.first) == axis.second ||
             std::ranges::count(open, axis.first);
    });
  };
  double seconds = 0, an_instance = 0;
  for (const Problem& p : served_problems(text, form, most.elements)) {
    if (text.problems.size() == most.problems || seconds > most.seconds) return;
    const auto instances = static_cast<double>(instances_of(text, p));
    if (instances * an_instance > most.seconds / 4) continue;
    std::string fault;
    const double took = seconds_of([&] { fault = fault_of(text, p, text.body, 0, kUniform); });
    if (an_instance == 0) an_instance = took / instances;
    if (took > most.seconds / 4 && !text.problems.empty()) continue;
    seconds += took;
    if (fault.empty() &&
        (is_sure(p) || fault_of(text, p, text.body, 0, values_of(*text.entry)).empty()))
      text.problems.push_back(p);
  }
}

}  // namespace tw::test
