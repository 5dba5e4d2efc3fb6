#include "tests/emu/library_texts.h"

#include <algorithm>
#include <cstring>
#include <ctime>
#include <fmt/format.h>

#include "tw/base/error.h"
#include "tw/base/round.h"
#include "tw/check/guarded.h"
#include "tw/emit/cpu/emit_cpu.h"
#include "tw/emit/cuda/emit_cuda.h"
#include "tw/emu/emulator.h"
#include "tw/passes/pipeline.h"
#include "tw/runtime/launch.h"

namespace tw::test {
namespace {

using check::Guarded;
using kernels::KernelEntry;
using kernels::Problem;
using Views = std::vector<TensorView>;

/// Of a problem of the sweep.
constexpr int64_t kMostElements = 30'000;

/// Of all tensors together; -1 where one has none.
int64_t elements_of(const KernelEntry& entry, const Problem& p) {
  int64_t sum = 0;
  for (const check::Argument& a : entry.arguments(p)) {
    int64_t count = 1;
    for (const int64_t n : a.dims) count *= n;
    if (count <= 0) return -1;
    sum += count;
  }
  return sum;
}

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

Signature signature_of(const Program& p) { return {p.name, launch_spec(p), {}}; }

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
void launch(const LibraryText& text, const Signature& signature, const std::string& body,
            const Views& in, const Views& out, uint64_t seed) {
  const Call call(signature, in, out, {});
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
      all.emplace_back(a.dtype, a.dims);
      (a.output ? out : in).push_back(all.back().view());
    }
  }
  std::vector<Guarded> all;
  Views in, out;
};

}  // namespace

LibraryText library_text(const KernelEntry& entry, const Problem& p,
                         const std::map<std::string, int64_t>& knobs) {
  Program program = traced(entry, p);
  const Signature signature = signature_of(program);
  const Tensors t(entry, p);
  LibraryText text{.entry = &entry,
                   .made_for = p,
                   .facts = Call(signature, t.in, t.out, {}).specialisation(),
                   .prelude = {},
                   .body = {},
                   .cuda_prelude = {},
                   .launch = {},
                   .problems = {}};
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

int64_t tiles_of_a_block(const LibraryText& text, const Problem& p) {
  const Signature signature = signature_of(traced(*text.entry, text.made_for));
  const Tensors t(*text.entry, p);
  return Call(signature, t.in, t.out, {}).instances() / 2;
}

std::string fault_of(const LibraryText& text, const Problem& p, const std::string& body,
                     uint64_t seed) {
  const Signature signature = signature_of(traced(*text.entry, text.made_for));
  using enum check::Values;
  check::Sweep sweep({.values = {uniform, integers, special},
                      .layouts = {},
                      .refuses_aliases = false,
                      .whole = false,
                      .seed = seed + 1});
  const auto run = [&](const Views& in, const Views& out) {
    const OwnStrides own(joined(in, out), text.facts);
    const Views own_in = own.views(0, in.size()),
                own_out = own.views(in.size(), in.size() + out.size());
    if (!(Call(signature, own_in, own_out, {}).specialisation() == text.facts))
      return launch(text, signature, body, in, out, seed++);
    launch(text, signature, body, own_in, own_out, seed++);
    own.take_back();
  };
  try {
    sweep.add(to_string(p), {.arguments = text.entry->arguments(p),
                             .run = run,
                             .reference = [&](std::span<const TensorView> in) {
                               return text.entry->reference(p, in);
                             }});
  } catch (const DeviceError& e) {
    return e.what();
  }
  return sweep.verdict();
}

std::string fault_of(const LibraryText& text, const std::string& body, uint64_t seed) {
  for (const Problem& p : text.problems) {
    if (std::string fault = fault_of(text, p, body, seed); !fault.empty()) return fault;
  }
  return "";
}

namespace {

/// Finds out what a text serves.
class Search {
 public:
  Search(LibraryText& text, const Effort& most) : text_(text), most_(most) {}

  bool full() const { return text_.problems.size() >= most_.problems || seconds_ > most_.seconds; }
  /// Whether the text serves the problem, which it then has.
  bool take(const Problem& p) {
    if (full() || p.options != text_.made_for.options) return false;
    if (std::ranges::find(text_.problems, p) != text_.problems.end()) return true;
    try {
      const std::clock_t begin = std::clock();
      const int64_t elements = elements_of(*text_.entry, p);
      if (elements <= 0 || elements > most_.elements) return false;
      if (!fault_of(text_, p, text_.body, 0).empty()) return false;
      const double took = static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
      if (took > most_.seconds / 3 && !text_.problems.empty()) return false;
      seconds_ += took;
    } catch (const UserError&) {  // constants of the text
      return false;
    }
    text_.problems.push_back(p);
    return true;
  }
  /// The problem with some axes as long as that.
  bool take_with(const std::vector<std::string>& axes, int64_t extent) {
    Problem p = text_.made_for;
    for (const std::string& axis : axes) p.shape[axis] = extent;
    return take(p);
  }

 private:
  LibraryText& text_;
  const Effort& most_;
  double seconds_ = 0;
};

}  // namespace

void find_problems(LibraryText& text, const std::vector<Problem>& form, const Effort& most) {
  Search search(text, most);
  if (!search.take(text.made_for)) return;
  // Axes that are no constants of the text. Extents lie next to whole tiles on either side, odd
  // ones and whole runs of 16 bytes.
  std::vector<std::string> axes;
  for (const auto& [axis, extent] : text.made_for.shape)
    if (search.take_with({axis}, 127) || search.take_with({axis}, 144)) axes.push_back(axis);
  for (const int64_t extent : {129, 128, 33}) search.take_with(axes, extent);
  for (const std::string& axis : axes)
    for (const int64_t extent : {1023, 1040, 2999, 2960, 129, 128})
      search.take_with({axis}, extent);
  for (const Problem& p : form) search.take(p);
}

}  // namespace tw::test
