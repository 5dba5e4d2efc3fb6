#include "tests/emu/library_texts.h"

#include <algorithm>
#include <cstring>
#include <ctime>
#include <fmt/format.h>
#include <functional>
#include <iterator>

#include "tw/base/error.h"
#include "tw/base/round.h"
#include "tw/check/guarded.h"
#include "tw/emit/cpu/emit_cpu.h"
#include "tw/emit/cuda/emit_cuda.h"
#include "tw/emu/emulator.h"
#include "tw/emu/impl/text.h"
#include "tw/interp/interpreter.h"
#include "tw/ir/print.h"
#include "tw/passes/pipeline.h"
#include "tw/runtime/launch.h"

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

using check::Guarded;
using kernels::KernelEntry;
using kernels::Problem;
using Views = std::vector<TensorView>;

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

/// Rows longer by as much as nobody else's, in steps that keep what the text may rely on.
std::vector<int64_t> own_strides(const TensorView& t, const ParamFacts& facts, int64_t number) {
  const int64_t rank = t.rank();
  if (rank < 2 || is_packed(t.dtype) || facts.unit_axis != rank - 1 || facts.zero_stride != 0)
    return t.strides;
  const int64_t run = 16 / bytes(t.dtype), step = facts.aligned ? run : 1;
  std::vector<int64_t> wider = t.dims;
  wider.back() = round_up(wider.back(), step) + step * number;
  if (!facts.aligned && wider.back() % run == 0) ++wider.back();
  for (size_t axis = 1; axis + 1 < wider.size(); ++axis) wider[axis] += number % 2;
  return contiguous_strides(wider, t.dtype);
}

/// Tensors of a call, copied to others whose gaps are poison, and back.
class OwnStrides {
 public:
  OwnStrides(const Views& all, const Specialisation& facts) : host_(all) {
    for (size_t i = 0; i < all.size(); ++i)
      copies_.push_back(std::make_unique<Guarded>(
          all[i].dtype, all[i].dims,
          own_strides(all[i], facts.params[i], static_cast<int64_t>(i) + 1)));
    for (size_t i = 0; i < all.size(); ++i) move(all[i], copies_[i]->view());
  }
  Views views(size_t begin, size_t end) const {
    Views some;
    for (size_t i = begin; i < end; ++i) some.push_back(copies_[i]->view());
    return some;
  }
  /// Also what was written beside the tensors.
  void take_back() const {
    for (size_t i = 0; i < host_.size(); ++i) {
      move(copies_[i]->view(), host_[i]);
      if (const std::string damage = copies_[i]->damage(); !damage.empty())
        throw DeviceError("between rows: " + damage);
    }
  }

 private:
  static void move(const TensorView& from, const TensorView& to) {
    for (int64_t i = 0; i < from.count(); ++i) {
      const uint64_t code = load_bits(from.dtype, from.data, offset(from, i));
      store_bits(to.dtype, to.data, offset(to, i), code);
    }
  }
  static int64_t offset(const TensorView& t, int64_t i) {
    int64_t at = 0;
    for (size_t axis = t.dims.size(); axis-- > 0; i /= t.dims[axis])
      at += i % t.dims[axis] * t.strides[axis];
    return at;
  }
  Views host_;
  std::vector<std::unique_ptr<Guarded>> copies_;
};

Views joined(const Views& a, const Views& b) {
  Views all = a;
  all.insert(all.end(), b.begin(), b.end());
  return all;
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
    if (!(Call(text.signature, own_in, own_out, {}).specialisation() == text.facts))
      return launch(text, body, in, out, seed++);
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

std::string fault_of(const LibraryText& text, const std::string& body, uint64_t turn) {
  for (size_t i = 0; i < text.problems.size(); ++i) {
    const check::Values values[] = {kLibraryValues[(i + turn) % std::size(kLibraryValues)]};
    std::string fault = fault_of(text, text.problems[i], body, 100 * turn, values);
    if (!fault.empty()) return fault;
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

bool serves(const LibraryText& text, const std::vector<std::string>& open, const Problem& p,
            int64_t most_elements) {
  if (p.options != text.made_for.options || p.dtype != text.made_for.dtype) return false;
  for (const auto& [axis, extent] : text.made_for.shape)
    if (p.extent(axis) != extent && std::ranges::count(open, axis) == 0) return false;
  try {
    const int64_t elements = elements_of(*text.entry, p);
    if (elements <= 0 || elements > most_elements) return false;
    const Tensors t(*text.entry, p);
    return Call(text.signature, t.in, t.out, {}).specialisation() == text.facts;
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

/// Collects the problems that a text serves.
class Served {
 public:
  Served(const LibraryText& text, int64_t most_elements)
      : text_(text), most_(most_elements), open_(open_axes(text)) {}

  const std::vector<std::string>& open() const { return open_; }
  std::vector<Problem> all() { return std::move(all_); }

  bool add(const Problem& p) {
    if (!serves(text_, open_, p, most_)) return false;
    if (std::ranges::find(all_, p) == all_.end()) all_.push_back(p);
    return true;
  }
  Problem with(const std::string& axis, int64_t extent) const {
    Problem p = text_.made_for;
    p.shape[axis] = extent;
    return p;
  }
  /// The shortest of an axis with so many times the instances that there are; 0 where none has.
  int64_t extent_with(const std::string& axis, int64_t times) const {
    const int64_t wanted = times * instances_of(text_, text_.made_for);
    std::vector<int64_t> extents = {2,  3,  5,  8,   9,   16,  17,  24,  33, 40,
                                    65, 72, 97, 129, 136, 193, 200, 257, 264};
    for (const int64_t more : {64, 128, 192, 256})  // what divides it may matter
      extents.push_back(text_.made_for.extent(axis) + more);
    std::ranges::sort(extents);
    for (const int64_t extent : extents)
      if (const Problem p = with(axis, extent);
          serves(text_, open_, p, most_) && instances_of(text_, p) >= wanted)
        return extent;
    return 0;
  }

 private:
  const LibraryText& text_;
  const int64_t most_;
  const std::vector<std::string> open_;
  std::vector<Problem> all_;
};

}  // namespace

std::vector<Problem> served_problems(const LibraryText& text, const std::vector<Problem>& form,
                                     int64_t most_elements) {
  Served served(text, most_elements);
  served.add(text.made_for);
  // An axis of tiles becomes as long as three of them with a rest, as two whole ones, and all of
  // them together as two; another, along which an instance goes, longer than it takes at once.
  Problem longer = text.made_for;
  std::vector<std::string> along;
  for (const std::string& axis : served.open()) {
    const int64_t two = served.extent_with(axis, 2), three = served.extent_with(axis, 3);
    if (two == 0) along.push_back(axis);
    if (three != 0) served.add(served.with(axis, three));
    if (two != 0) longer.shape[axis] = two;
    if (two > 16) served.add(served.with(axis, two / 16 * 32));
    if (two > 32) served.add(served.with(axis, 520));     // 9 of 64 and 8 of 65
    if (two > 32 && !served.add(served.with(axis, 191)))  // 3 of 64 and 4 of 63
      served.add(served.with(axis, 190));
  }
  for (const std::string& axis : along) {
    for (const int64_t extent : {129, 144, 1023, 1040, 33, 40}) {
      Problem p = longer;
      p.shape[axis] = extent;
      served.add(p);
      served.add(served.with(axis, extent));
    }
    if (!served.add(served.with(axis, 8201))) served.add(served.with(axis, 8200));
  }
  served.add(longer);
  for (const std::string& axis : served.open())
    for (const int64_t extent : {2999, 2960, 128}) served.add(served.with(axis, extent));
  for (const Problem& p : form) served.add(p);
  return served.all();
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
    if (fault.empty()) text.problems.push_back(p);
  }
}

}  // namespace tw::test
