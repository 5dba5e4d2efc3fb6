#include "tw/runtime/launch.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <fmt/format.h>
#include <mutex>

#include "tw/base/error.h"
#include "tw/base/round.h"
#include "tw/runtime/impl/told.h"
#include "tw/runtime/overlap.h"

namespace tw {

/// Written bytes from which stores that go around the caches win. Not more than 32 MB whatever a
/// hypervisor says of the last cache: on two cores that see 480 MB of it, y = 3 x (Xeon 6, AVX-512,
/// 1 and 2 threads) took the same time either way up to 32 MB and 1.5 to 1.8 times as long with
/// ordinary stores from 64 MB on.
static int64_t stream_from(const CpuMachine& m) {
  return std::min(m.l3 / std::max(m.cores, 1), int64_t{32} << 20);
}

bool streams(int64_t written_bytes, const CpuMachine& machine) {
  return written_bytes >= stream_from(machine);
}

Signature::Signature(std::string program, LaunchSpec spec, const CpuMachine& machine,
                     DimCheck dim_check)
    : Signature(std::move(program), std::move(spec), std::move(dim_check)) {
  stream_from_ = stream_from(machine);
  gpu_ = false;
}

class Signature::PassedDims {
 public:
  bool holds(std::span<const int64_t> dims) const {
    const std::lock_guard guard(lock_);
    return std::ranges::any_of(last_, [&](const auto& l) { return std::ranges::equal(l, dims); });
  }
  void add(std::span<const int64_t> dims) {
    const std::lock_guard guard(lock_);
    last_[next_++ % last_.size()].assign(dims.begin(), dims.end());
  }

 private:
  mutable std::mutex lock_;
  std::array<std::vector<int64_t>, 16> last_;
  size_t next_ = 0;
};

Signature::Signature(std::string program, LaunchSpec spec, DimCheck dim_check)
    : program_(std::move(program)),
      spec_(std::move(spec)),
      dim_check_(std::move(dim_check)),
      passed_(std::make_shared<PassedDims>()) {
  for (const LaunchSpec::Arg& a : spec_.args) {
    if (a.rank > kMaxRank) {
      throw UserError(fmt::format("{}: '{}' has rank {}: wanted at most {}", program_, a.name,
                                  a.rank, kMaxRank));
    }
    axes_ += a.rank;
    inputs_ += !a.written;
    given_ += !a.workspace;
    for (const Expr& e : a.dims) extents_.push_back(extent_of(e));
  }
  for (const Expr& e : spec_.grid) grid_.push_back(extent_of(e));
}

Signature::Extent Signature::extent_of(const Expr& e) {
  Extent x;
  x.other = e;
  const Expr* sum = &e;
  if (e.kind() == Expr::Kind::floordiv && e.rhs().is_constant() && e.rhs().constant() > 0) {
    x.by = e.rhs().constant();
    sum = &e.lhs();
  }
  if (sum->kind() == Expr::Kind::add && sum->rhs().is_constant()) {
    x.add = sum->rhs().constant();
    sum = &sum->lhs();
  }
  if (sum->kind() == Expr::Kind::symbol) x.dim = sum->symbol().id;
  return x;
}

static constexpr int64_t kWorkspaceAlign = 256, kMostWorkspace = int64_t{1} << 40;

std::vector<std::string> Signature::arg_names() const {
  std::vector<std::string> names;
  for (const LaunchSpec::Arg& a : spec_.args) names.push_back(a.name);
  return names;
}

/// One call's checks, in the order in which they rely on each other.
struct CallBinder {
  const Signature& s;
  Call& call;
  SmallArray<const TensorView*, 16> tensors;  // in declaration order
  SmallArray<ByteRange, 16> ranges;
  SmallArray<int, 16> source;  // of each dim: 1 + the arg that set it, -1 the caller, 0 nobody
  std::vector<TensorView> workspace;

  CallBinder(const Signature& signature, Call& c)
      : s(signature),
        call(c),
        tensors(signature.spec_.args.size()),
        ranges(signature.spec_.args.size()),
        source(signature.spec_.dims.size()) {}

  const LaunchSpec::Arg& arg(size_t i) const { return s.spec_.args[i]; }
  size_t count() const { return s.spec_.args.size(); }
  size_t given() const { return s.given_; }  // workspace comes after these

  template <class... A>
  [[noreturn]] void fail(fmt::format_string<A...> what, A&&... args) const {
    throw UserError(s.program_ + ": " + fmt::format(what, std::forward<A>(args)...));
  }

  const char* role(size_t i) const { return arg(i).written ? "output" : "input"; }
  std::string names(bool written) const {
    std::string text;
    for (const LaunchSpec::Arg& a : s.spec_.args) {
      if (a.written == written && !a.workspace) text += (text.empty() ? "" : ", ") + a.name;
    }
    return text.empty() ? "none" : text;
  }

  void order(std::span<const TensorView> inputs, std::span<const TensorView> outputs) {
    if (inputs.size() != s.inputs_) {
      fail("{} inputs: wanted {} ({})", inputs.size(), s.inputs_, names(false));
    }
    if (outputs.size() != given() - s.inputs_) {
      fail("{} outputs: wanted {} ({})", outputs.size(), given() - s.inputs_, names(true));
    }
    size_t in = 0, out = 0;
    for (size_t i = 0; i < given(); ++i) {
      tensors[i] = arg(i).written ? &outputs[out++] : &inputs[in++];
    }
  }

  void check_type(size_t i) const {
    const TensorView& t = *tensors[i];
    const LaunchSpec::Arg& a = arg(i);
    if (t.strides.size() != t.dims.size()) {
      fail("{} '{}' has {} strides for {} dims", role(i), a.name, t.strides.size(), t.dims.size());
    }
    if (t.dtype != a.dtype || t.rank() != a.rank) {
      fail("{} '{}' is {}: wanted {} of rank {}", role(i), a.name, to_string(t), name(a.dtype),
           a.rank);
    }
    for (int64_t d : t.dims) {
      if (d < 0) fail("{} '{}' is {}: wanted extents >= 0", role(i), a.name, to_string(t));
    }
    if (!is_packed(t.dtype)) return;
    if (const std::string fault = packing_fault(t); !fault.empty())
      fail("{} '{}' is {}", role(i), a.name, fault);
  }

  std::string origin(int source) const {
    return source < 0 ? "the call" : fmt::format("'{}'", arg(source - 1).name);
  }

  void bind(int dim, int64_t value, int from) {
    if (source[dim] == 0) {
      source[dim] = from;
      call.dims_[dim] = value;
    } else if (call.dims_[dim] != value) {
      fail("dim '{}' is {} in {} and {} in {}", s.spec_.dims[dim].name, call.dims_[dim],
           origin(source[dim]), value, origin(from));
    }
  }

  void bind_named(std::span<const DimValue> values) {
    for (const auto& [name, value] : values) {
      size_t d = 0;
      while (d < s.spec_.dims.size() && s.spec_.dims[d].name != name) ++d;
      if (d == s.spec_.dims.size()) fail("no dim '{}'", name);
      if (value < 0) fail("dim '{}' is {}: wanted >= 0", name, value);
      bind(static_cast<int>(d), value, -1);
    }
  }

  void bind_symbols() {
    const Signature::Extent* extent = s.extents_.data();
    for (size_t i = 0; i < given(); ++i) {
      for (int k = 0; k < arg(i).rank; ++k, ++extent) {
        if (extent->is_dim()) bind(extent->dim, tensors[i]->dims[k], static_cast<int>(i) + 1);
      }
    }
    for (size_t d = 0; d < s.spec_.dims.size(); ++d) {
      const LaunchSpec::Dim& dim = s.spec_.dims[d];
      if (source[d] == 0) {
        fail("dim '{}' is determined by no tensor: give its value by name", dim.name);
      }
      if (dim.multiple_of > 1 && call.dims_[d] % dim.multiple_of != 0) {
        fail("dim '{}' is {} in {}: promised a multiple of {}", dim.name, call.dims_[d],
             origin(source[d]), dim.multiple_of);
      }
    }
  }

  void check_dims() const {
    const std::span<const int64_t> dims{call.dims_.data(), s.spec_.dims.size()};
    const int64_t limit = s.dim_check_.limit;
    const bool small = std::ranges::none_of(dims, [&](int64_t d) { return d > limit; });
    if (small || s.passed_->holds(dims)) return;
    s.dim_check_.check(dims);
    s.passed_->add(dims);
  }

  int64_t value(const Signature::Extent& e) const {
    const int64_t* dims = call.dims_.data();
    int64_t sum = 0;
    if (e.dim >= 0 && !__builtin_add_overflow(dims[e.dim], e.add, &sum)) {
      return sum >= 0 ? sum / e.by : -((e.by - 1 - sum) / e.by);
    }
    return evaluate(e.other, [dims](Symbol symbol) { return dims[symbol.id]; });
  }

  /// Extents that are constants or expressions; symbols are bound already.
  void check_extents() const {
    const Signature::Extent* extent = s.extents_.data();
    for (size_t i = 0; i < given(); ++i) {
      for (int k = 0; k < arg(i).rank; ++k, ++extent) {
        if (extent->is_dim()) continue;
        const int64_t want = value(*extent), got = tensors[i]->dims[k];
        if (got == want) continue;
        const std::string text =
            to_string(extent->other, [&](Symbol symbol) { return s.spec_.dims[symbol.id].name; });
        fail("{} '{}' is {}: wanted {} = {} for axis {}", role(i), arg(i).name,
             to_string(*tensors[i]), text, want, k);
      }
    }
  }

  /// Its address is known when the launch has memory for it: until then 0 stands for it.
  void add_workspace() {
    if (given() == count()) return;
    const Signature::Extent* extent = s.extents_.data();
    for (size_t i = 0; i < given(); ++i) extent += arg(i).rank;
    for (size_t i = given(); i < count(); ++i) {
      std::vector<int64_t> dims;
      for (int k = 0; k < arg(i).rank; ++k, ++extent) dims.push_back(value(*extent));
      std::vector<int64_t> strides = contiguous_strides(dims);
      workspace.push_back({nullptr, arg(i).dtype, std::move(dims), std::move(strides)});
      ranges[i] = {0, workspace_bytes(i)};
      call.zeroed_bytes_ += round_up(ranges[i].end, kWorkspaceAlign);
    }
    for (size_t i = given(); i < count(); ++i) tensors[i] = &workspace[i - given()];
  }
  int64_t workspace_bytes(size_t i) const {
    int64_t size = bytes(arg(i).dtype);
    for (const int64_t d : workspace.back().dims)
      if (__builtin_mul_overflow(size, d, &size) || size > kMostWorkspace)
        fail("workspace '{}' takes more than {} bytes", arg(i).name, kMostWorkspace);
    return size;
  }

  void check_memory(size_t i) {
    const TensorView& t = *tensors[i];
    ranges[i] = byte_range(t);
    if (ranges[i] == ByteRange{}) return;
    if (!t.data) fail("{} '{}' is {} without memory", role(i), arg(i).name, to_string(t));
    const auto address = reinterpret_cast<uintptr_t>(t.data);
    if (address % bytes(t.dtype) != 0) {
      fail("{} '{}' lies at {}: wanted a multiple of {} bytes", role(i), arg(i).name, t.data,
           bytes(t.dtype));
    }
    ranges[i].begin += static_cast<int64_t>(address);
    ranges[i].end += static_cast<int64_t>(address);
    if (arg(i).written && overlaps_itself(t)) {
      fail("output '{}' is {}: its elements overlap", arg(i).name, to_string(t));
    }
  }

  void check_aliasing() const {
    for (size_t o = 0; o < given(); ++o) {
      if (!arg(o).written) continue;
      for (size_t i = 0; i < given(); ++i) {
        if (i == o || (arg(i).written && i < o)) continue;
        if (ranges[o].begin >= ranges[i].end || ranges[i].begin >= ranges[o].end) continue;
        if (interleave(*tensors[o], *tensors[i])) continue;
        fail("output '{}' overlaps {} '{}': outputs may overlap nothing", arg(o).name, role(i),
             arg(i).name);
      }
    }
  }

  /// An overflowing count would start no instance, or a few.
  void count_instances() {
    bool overflows = false;
    int64_t instances = 1;
    for (const Signature::Extent& e : s.grid_) {
      const int64_t extent = value(e);
      call.empty_grid_ |= extent <= 0;
      overflows |= __builtin_mul_overflow(instances, extent, &instances);
    }
    if (overflows && !call.empty_grid_) fail_grid();
    call.instances_ = call.empty_grid_ ? 0 : instances;
  }
  [[noreturn]] void fail_grid() const {
    std::string extents;
    for (const Signature::Extent& e : s.grid_) extents += fmt::format(" x {}", value(e));
    fail("a grid of {} instances: wanted fewer than 2^63", extents.substr(3));
  }

  /// Fills strides, pointers and facts. An axis of extent 1 has no stride of its own: it gets the
  /// one it would have in a packed tensor, so that sizes of 1 select no other variant.
  void lay_out() {
    int64_t* strides = call.strides_.data();
    bool fits32 = !s.gpu_;
    int64_t written = 0;
    for (size_t i = 0; i < count(); ++i) {
      const TensorView& t = *tensors[i];
      call.data_[i] = t.data;
      for (int k = t.rank() - 1; k >= 0; --k) {
        strides[k] = t.strides[k];
        if (t.dims[k] != 1) continue;
        const bool last = k == t.rank() - 1;
        if (last) strides[k] = 1;
        if (!last && __builtin_mul_overflow(t.dims[k + 1], strides[k + 1], &strides[k])) {
          strides[k] = 0;
        }
      }
      call.facts_[i] = facts_of(t, strides);
      if (s.gpu_) call.facts_[i] |= whole_of(t, call.facts_[i]);
      const int64_t at = reinterpret_cast<int64_t>(t.data);
      if (ranges[i] != ByteRange{}) {
        fits32 &= ranges[i].begin - at >= INT32_MIN && ranges[i].end - at <= INT32_MAX;
      }
      if (arg(i).written && i < given()) written += ranges[i].end - ranges[i].begin;
      strides += t.rank();
    }
    call.facts_[count()] = fits32 | (written >= s.stream_from_) << 1;
  }

  /// Bit 7: rows are whole runs.
  static uint64_t whole_of(const TensorView& t, uint64_t facts) {
    const int unit = static_cast<int>(facts & 63) - 1;
    return uint64_t{unit >= 0 && t.dims[unit] * bits(t.dtype) % 128 == 0} << 7;
  }

  /// Bits 0..5 unit axis + 1, bit 6 aligned, bits 32.. axes of stride 0.
  static uint64_t facts_of(const TensorView& t, const int64_t* strides) {
    int unit = -1;
    for (int k = 0; k < t.rank(); ++k) {
      // The last axis of stride 1 whose extent is not 1, else the last of stride 1.
      if (strides[k] == 1 && (unit < 0 || t.dims[k] != 1 || t.dims[unit] == 1)) unit = k;
    }
    uint64_t zero = 0;
    bool aligned = reinterpret_cast<uintptr_t>(t.data) % 16 == 0;
    for (int k = 0; k < t.rank(); ++k) {
      zero |= uint64_t{strides[k] == 0 && t.dims[k] != 1} << k;
      if (k != unit) aligned &= strides[k] * bits(t.dtype) % 128 == 0;
    }
    return zero << 32 | uint64_t{aligned} << 6 | static_cast<uint64_t>(unit + 1);
  }
};

Call::Call(const Signature& s, std::span<const TensorView> inputs,
           std::span<const TensorView> outputs, std::span<const DimValue> dims)
    : signature_(s),
      data_(s.spec_.args.size()),
      strides_(s.axes_),
      dims_(s.spec_.dims.size()),
      facts_(s.spec_.args.size() + 1) {
  CallBinder b(s, *this);
  b.order(inputs, outputs);
  for (size_t i = 0; i < b.given(); ++i) b.check_type(i);
  b.bind_named(dims);
  b.bind_symbols();
  b.check_dims();
  b.check_extents();
  for (size_t i = 0; i < b.given(); ++i) b.check_memory(i);
  b.check_aliasing();
  b.add_workspace();
  b.lay_out();
  b.count_instances();
}

void* Call::address(size_t i, void* zeroed) const {
  if (i < signature_.given_) return data_[i];
  auto* at = static_cast<char*>(zeroed);
  for (size_t k = signature_.given_; k < i; ++k) {
    const TensorView t = argument(k);
    at += round_up(byte_count(t.dtype, t.dims), kWorkspaceAlign);
  }
  return at;
}

size_t Call::grid_axes() const { return signature_.spec_.grid.size(); }
const std::string& Call::program() const { return signature_.program_; }

void Call::write_words(std::span<uint64_t> out, const Memory& memory) const {
  uint64_t* to = out.data();
  for (size_t i = 0; i < data_.size(); ++i)
    *to++ = reinterpret_cast<uint64_t>(address(i, reinterpret_cast<void*>(memory.zeroed)));
  for (int64_t n : dims_) *to++ = static_cast<uint64_t>(n);
  for (int64_t n : strides_) *to++ = static_cast<uint64_t>(n);
  *to++ = memory.workspace;
  *to = memory.messages;
}

TensorView Call::argument(size_t i) const {
  const auto& args = signature_.spec_.args;
  const int64_t* strides = strides_.data();
  for (size_t k = 0; k < i; ++k) strides += args[k].rank;
  TensorView t{data_[i], args[i].dtype, {}, {strides, strides + args[i].rank}};
  for (const Expr& e : args[i].dims)
    t.dims.push_back(evaluate(e, [this](Symbol symbol) { return dims_[symbol.id]; }));
  return t;
}

void Call::check_addresses(const std::function<std::string(const void*)>& fault) const {
  for (size_t i = 0; i < signature_.given_; ++i) {
    const std::string why = fault(data_[i]);
    if (why.empty()) continue;
    const LaunchSpec::Arg& a = signature_.spec_.args[i];
    throw UserError(fmt::format("{}: {} '{}' {}", signature_.program_,
                                a.written ? "output" : "input", a.name, why),
                    "copy it there with cuda::to_device()");
  }
}

Specialisation Call::specialisation() const {
  Specialisation s;
  const auto& args = signature_.spec_.args;
  for (size_t i = 0; i < args.size(); ++i) {
    const uint64_t w = facts_[i];
    s.params.push_back({.dtype = args[i].dtype,
                        .rank = args[i].rank,
                        .unit_axis = static_cast<int>(w & 63) - 1,
                        .zero_stride = static_cast<uint32_t>(w >> 32),
                        .aligned = (w >> 6 & 1) != 0,
                        .whole = (w >> 7 & 1) != 0});
  }
  s.fits32 = facts_[args.size()] & 1;
  s.streaming = facts_[args.size()] >> 1 & 1;
  return s;
}

namespace {

/// The host that emitted text sees, with what its callbacks need behind it.
struct Host : TwHost {
  ThreadPool& pool;
  int64_t scratch_bytes;
  int threads;
  Told& told;
};

void par(const TwHost* host, int64_t n, void (*task)(void*, int64_t, int64_t, void*), void* ctx) {
  const Host& h = static_cast<const Host&>(*host);
  h.pool.run(n, task, ctx, h.scratch_bytes, h.threads);
}

void tell(const TwHost* host, int64_t number, const int64_t* instance, int64_t element,
          const void* elements) {
  static_cast<const Host&>(*host).told.hear(number, instance, element, elements);
}

}  // namespace

void Call::run(TwEntry entry, int64_t scratch_bytes, ThreadPool& pool, int threads,
               const Messages& messages) const {
  if (empty_grid_) return;
  ThreadPool::reserve_scratch(scratch_bytes);
  Told told(messages, signature_.spec_.grid.size());
  if (signature_.spec_.in_order) threads = 1;  // each waits only for what was run before it
  const Host host{{par, pool.usable(threads), tell}, pool, scratch_bytes, threads, told};
  Tensor zeroed;
  SmallArray<void*, 16> data(data_.size());
  if (zeroed_bytes_ > 0) {
    zeroed = host_tensor(u8, {zeroed_bytes_});
    std::memset(zeroed.data<char>(), 0, static_cast<size_t>(zeroed_bytes_));
  }
  for (size_t i = 0; i < data_.size(); ++i)
    data[i] = address(i, zeroed_bytes_ > 0 ? zeroed.data<char>() : nullptr);
  const TwArgs args{data.data(), dims_.data(), strides_.data(), &host};
  if (const int code = entry(&args); code != 0) {
    throw InternalError(fmt::format("{}: the kernel returned {}", signature_.program_, code));
  }
  told.rethrow();
}

}  // namespace tw
