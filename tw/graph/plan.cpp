#include "tw/graph/plan.h"

#include <algorithm>
#include <cstring>
#include <fmt/format.h>
#include <limits>
#include <map>
#include <mutex>
#include <numeric>

#include "tw/base/error.h"
#include "tw/graph/constants.h"
#include "tw/graph/loops.h"
#include "tw/graph/memory.h"
#include "tw/graph/trace.h"
#include "tw/ir/print.h"

namespace tw::graph {

namespace {

/// Frames that are kept for the next calls.
constexpr size_t kMostFrames = 16;

}  // namespace

struct Plan::State {
  /// Where the elements of a tensor are.
  struct Place {
    enum class Kind : uint8_t { nowhere, input, constant, contents, workspace, output };
    Kind kind = Kind::nowhere;
    int index = 0;  // of an input, an output, or a buffer of the workspace
  };

  /// A tensor as a step sees it.
  struct Argument {
    TensorId tensor = 0;
    std::vector<Expr> dims;
    std::vector<Expr> strides = {};  // none: row-major
    Expr offset = 0;                 // of the first element
  };

  struct Step {
    Kernel kernel;
    std::vector<Argument> inputs;
    Argument output;
    std::vector<std::pair<std::string, Expr>> scalars;
    const Node* node = nullptr;
  };

  /// A step with addresses, for one shape of the inputs.
  struct Call {
    std::vector<TensorView> inputs;
    TensorView output;
    std::vector<DimValue> scalars;
  };

  /// Everything that one run of one shape writes to.
  struct Frame {
    std::vector<int64_t> sizes;
    Tensor workspace;
    std::vector<Tensor> contents;  // by tensor, those that follow from sizes
    std::vector<Call> calls;
  };

  State(Graph graph, const Device& device, const PlanOptions& o) : g(std::move(graph)), options(o) {
    lay_out_constants(g);
    place_tensors();
    std::map<std::string, Kernel> kernels;  // nodes of one form share one
    for (const Node& n : g.nodes())
      if (alias_of(n.out) == n.out) steps.push_back(step(n, device, kernels));
    find_lifetimes();
  }

  /// The tensor whose memory this one is: that of the operand, of a node that moves nothing.
  TensorId alias_of(TensorId t) const {
    while (alias[static_cast<size_t>(t)] != t) t = alias[static_cast<size_t>(t)];
    return t;
  }

  void place_tensors() {
    places.resize(g.tensors().size());
    alias.resize(g.tensors().size());
    std::iota(alias.begin(), alias.end(), 0);
    for (size_t i = 0; i < g.inputs().size(); ++i)
      places[static_cast<size_t>(g.inputs()[i])] = {Place::Kind::input, static_cast<int>(i)};
    for (size_t t = 0; t < places.size(); ++t) {
      if (g.tensors()[t].constant)
        places[t].kind = Place::Kind::constant;
      else if (g.tensors()[t].contents)
        places[t].kind = Place::Kind::contents;
    }
    for (const Node& n : g.nodes()) {
      places[static_cast<size_t>(n.out)].kind = Place::Kind::workspace;
      const auto& outputs = g.outputs();
      for (size_t i = 0; i < outputs.size(); ++i)
        if (outputs[i].second == n.out)
          places[static_cast<size_t>(n.out)] = {Place::Kind::output, static_cast<int>(i)};
      if (places[static_cast<size_t>(n.out)].kind != Place::Kind::output &&
          keeps_order(g, n.compute))
        alias[static_cast<size_t>(n.out)] = n.compute.operands[0];
    }
  }

  Step step(const Node& n, const Device& device, std::map<std::string, Kernel>& kernels) const {
    const Loops l = collapse(g, loops_of(g, n.compute));
    Traced t = trace(g, l, program_name(l.compute));
    const std::string text = print(t.program);
    auto at = kernels.find(text);
    if (at == kernels.end()) {
      CompileOptions o;
      o.threads = options.threads;
      at = kernels.emplace(text, compile(std::move(t.program), device, o)).first;
    }
    Step s{at->second, {}, {n.out, l.result_dims()}, std::move(t.scalars), &n};
    for (size_t j = 0; j < l.operand_dims.size(); ++j)
      s.inputs.push_back(
          {l.compute.operands[j], l.operand_dims[j], l.operand_strides[j], l.operand_offsets[j]});
    return s;
  }

  static std::string program_name(const Compute& c) {
    return c.fold == Fold::none ? "elements" : fmt::format("fold_{}", tw::graph::name(c.fold));
  }

  void find_lifetimes() {
    for (int i = 0; i < static_cast<int>(steps.size()); ++i) {
      const Step& s = steps[static_cast<size_t>(i)];
      Place& out = places[static_cast<size_t>(s.output.tensor)];
      if (out.kind == Place::Kind::workspace) {
        out.index = static_cast<int>(buffers.size());
        buffers.push_back({s.output.tensor, i, i});
      }
      for (const Argument& a : s.inputs) {
        const Place& from = places[static_cast<size_t>(alias_of(a.tensor))];
        if (from.kind == Place::Kind::workspace) buffers[static_cast<size_t>(from.index)].last = i;
      }
    }
  }

  static std::vector<int64_t> numbers(const std::vector<Expr>& all,
                                      const std::vector<int64_t>& sizes) {
    std::vector<int64_t> found;
    for (const Expr& e : all) found.push_back(Graph::value(e, sizes));
    return found;
  }

  /// So many elements further; nowhere stays nowhere.
  static void* moved(const TensorView& v, int64_t elements) {
    if (v.data == nullptr || elements == 0) return v.data;
    return static_cast<char*>(v.data) + elements * bytes(v.dtype);
  }

  std::vector<int64_t> values(const std::vector<Expr>& dims,
                              const std::vector<int64_t>& sizes) const {
    std::vector<int64_t> all = numbers(dims, sizes);
    for (size_t k = 0; k < all.size(); ++k)
      if (all[k] < 0)
        throw UserError(
            fmt::format("an extent, {}, is {} for these inputs", g.text(dims[k]), all[k]));
    return all;
  }

  Layout layout(const std::vector<int64_t>& sizes) const {
    std::vector<Lifetime> lifetimes;
    for (const Buffer& b : buffers) {
      const TensorInfo& t = g.tensor(b.tensor);
      lifetimes.push_back({byte_count(t.dtype, values(t.dims, sizes)), b.first, b.last});
    }
    return place(lifetimes);
  }

  void check_memory(const std::vector<int64_t>& sizes, int64_t workspace) const {
    int64_t all = workspace;
    for (const auto& [name, t] : g.outputs()) {
      const TensorInfo& info = g.tensor(t);
      if (__builtin_add_overflow(all, byte_count(info.dtype, values(info.dims, sizes)), &all))
        all = std::numeric_limits<int64_t>::max();
    }
    const int64_t most = options.memory_limit > 0 ? options.memory_limit : machine_memory();
    if (all > most)
      throw UserError(fmt::format("a run on these inputs takes {} bytes, of {}", all, most),
                      options.memory_limit > 0 ? "raise the memory limit, or give smaller inputs"
                                               : "give smaller inputs");
  }

  Tensor contents(const TensorInfo& t, const std::vector<int64_t>& sizes) const {
    Tensor filled = host_tensor(t.dtype, values(t.dims, sizes));
    for (size_t i = 0; i < t.contents->size(); ++i)
      store_bits(t.dtype, filled.view().data, static_cast<int64_t>(i),
                 static_cast<uint64_t>(Graph::value((*t.contents)[i], sizes)));
    return filled;
  }

  std::unique_ptr<Frame> frame(const std::vector<int64_t>& sizes) const {
    const Layout l = layout(sizes);
    check_memory(sizes, l.bytes);
    auto f = std::make_unique<Frame>();
    f->sizes = sizes;
    f->workspace = host_tensor(u8, {std::max<int64_t>(l.bytes, 1)});
    f->contents.resize(places.size());
    for (size_t t = 0; t < places.size(); ++t)
      if (places[t].kind == Place::Kind::contents) f->contents[t] = contents(g.tensors()[t], sizes);
    const auto seen = [&](const Argument& a) {
      const DType t = g.tensor(a.tensor).dtype;
      TensorView v{nullptr, t, values(a.dims, sizes), {}};
      v.strides = a.strides.empty() ? contiguous_strides(v.dims, t) : numbers(a.strides, sizes);
      const TensorId base = alias_of(a.tensor);
      const Place& p = places[static_cast<size_t>(base)];
      if (p.kind == Place::Kind::workspace)
        v.data = f->workspace.data<char>() + l.offsets[static_cast<size_t>(p.index)];
      if (p.kind == Place::Kind::constant) v.data = g.tensor(base).constant->view().data;
      if (p.kind == Place::Kind::contents)
        v.data = f->contents[static_cast<size_t>(base)].view().data;
      v.data = moved(v, Graph::value(a.offset, sizes));
      return v;
    };
    for (const Step& s : steps) {
      Call c;
      for (const Argument& a : s.inputs) c.inputs.push_back(seen(a));
      c.output = seen(s.output);
      for (const auto& [name, e] : s.scalars) c.scalars.push_back({name, Graph::value(e, sizes)});
      f->calls.push_back(std::move(c));
    }
    return f;
  }

  /// Addresses of what the caller gave.
  void bind(Frame& f, const std::vector<TensorView>& inputs,
            const std::vector<TensorView>& outputs) const {
    const auto given = [&](const Argument& a, TensorView& v) {
      const Place& p = places[static_cast<size_t>(alias_of(a.tensor))];
      if (p.kind != Place::Kind::input && p.kind != Place::Kind::output) return;
      const auto& callers = p.kind == Place::Kind::input ? inputs : outputs;
      v.data = callers[static_cast<size_t>(p.index)].data;
      v.data = moved(v, Graph::value(a.offset, f.sizes));
    };
    for (size_t i = 0; i < steps.size(); ++i) {
      for (size_t j = 0; j < steps[i].inputs.size(); ++j)
        given(steps[i].inputs[j], f.calls[i].inputs[j]);
      given(steps[i].output, f.calls[i].output);
    }
  }

  std::unique_ptr<Frame> take(const std::vector<int64_t>& sizes) {
    {
      const std::lock_guard lock(mutex);
      for (auto& f : frames)
        if (f->sizes == sizes) {
          std::swap(f, frames.back());
          std::unique_ptr<Frame> found = std::move(frames.back());
          frames.pop_back();
          return found;
        }
    }
    return frame(sizes);
  }

  void give_back(std::unique_ptr<Frame> f) {
    const std::lock_guard lock(mutex);
    if (frames.size() >= kMostFrames) frames.erase(frames.begin());
    frames.push_back(std::move(f));
  }

  /// Outputs that no step writes: inputs, constants, sizes, and second names of one tensor.
  void copy_rest(const Frame& f, const std::vector<TensorView>& inputs,
                 const std::vector<TensorView>& outputs) const {
    for (size_t i = 0; i < g.outputs().size(); ++i) {
      const TensorId t = alias_of(g.outputs()[i].second);
      const Place& p = places[static_cast<size_t>(t)];
      const void* from = nullptr;
      if (p.kind == Place::Kind::input) from = inputs[static_cast<size_t>(p.index)].data;
      if (p.kind == Place::Kind::constant) from = g.tensor(t).constant->view().data;
      if (p.kind == Place::Kind::contents) from = f.contents[static_cast<size_t>(t)].view().data;
      if (p.kind == Place::Kind::output && p.index != static_cast<int>(i))
        from = outputs[static_cast<size_t>(p.index)].data;
      const int64_t n = byte_count(outputs[i].dtype, outputs[i].dims);
      if (from != nullptr && n > 0) std::memcpy(outputs[i].data, from, static_cast<size_t>(n));
    }
  }

  /// Steps may write an output before all inputs are read: it overlaps nothing.
  void check_outputs(const std::vector<TensorView>& inputs, const std::vector<TensorView>& outputs,
                     const std::vector<std::vector<int64_t>>& dims) const {
    if (outputs.size() != dims.size())
      throw UserError(fmt::format("{} outputs, wanted {}", outputs.size(), dims.size()));
    std::vector<std::pair<std::string, TensorView>> others;
    for (size_t i = 0; i < inputs.size(); ++i)
      others.emplace_back(fmt::format("input '{}'", g.tensor(g.inputs()[i]).name), inputs[i]);
    for (size_t i = 0; i < outputs.size(); ++i) {
      const DType t = g.tensor(g.outputs()[i].second).dtype;
      const std::string what = fmt::format("output '{}'", g.outputs()[i].first);
      if (outputs[i].dtype != t || outputs[i].dims != dims[i] || !outputs[i].is_contiguous())
        throw UserError(fmt::format("{} is {}, wanted {}[{}] without gaps", what,
                                    to_string(outputs[i]), tw::name(t), fmt::join(dims[i], ",")));
      for (const auto& [other, view] : others)
        if (share_bytes(outputs[i], view))
          throw UserError(fmt::format("{} overlaps {}: outputs may overlap nothing", what, other));
      others.emplace_back(what, outputs[i]);
    }
  }

  struct Buffer {
    TensorId tensor = 0;
    int first = 0, last = 0;
  };

  Graph g;
  PlanOptions options;
  std::vector<Place> places;    // by tensor
  std::vector<TensorId> alias;  // by tensor
  std::vector<Step> steps;
  std::vector<Buffer> buffers;
  std::mutex mutex;
  std::vector<std::unique_ptr<Frame>> frames;
};

Plan::Plan(Graph g, const Device& device, const PlanOptions& options)
    : state_(std::make_unique<State>(std::move(g), device, options)) {}
Plan::~Plan() = default;
Plan::Plan(Plan&&) noexcept = default;

const Graph& Plan::graph() const { return state_->g; }

std::vector<StepInfo> Plan::steps() const {
  std::vector<StepInfo> all;
  for (const State::Step& s : state_->steps)
    all.push_back({s.node->name, s.kernel.program().name, to_string(state_->g, *s.node), s.node});
  return all;
}

std::vector<int64_t> Plan::sizes(const std::vector<std::vector<int64_t>>& input_dims) const {
  const Graph& g = state_->g;
  std::vector<int64_t> sizes(g.dim_names().size(), -1);
  for (size_t i = 0; i < g.inputs().size(); ++i) {
    const TensorInfo& t = g.tensor(g.inputs()[i]);
    const std::vector<int64_t>& got = input_dims.at(i);
    bool fits = got.size() == t.dims.size();
    for (size_t k = 0; fits && k < got.size(); ++k) {
      const Expr& e = t.dims[k];
      if (e.is_constant()) {
        fits = e.constant() == got[k];
        continue;
      }
      if (got[k] > Graph::kLargestDim)
        throw NeedsSizes(fmt::format("dim '{}' of input '{}' is {}, wanted at most {}", g.text(e),
                                     t.name, got[k], Graph::kLargestDim));
      int64_t& size = sizes[static_cast<size_t>(e.symbol().id)];
      if (size >= 0 && size != got[k])
        throw UserError(fmt::format("dim '{}' of input '{}' is {}, elsewhere it is {}", g.text(e),
                                    t.name, got[k], size));
      size = got[k];
    }
    if (fits) continue;
    std::vector<std::string> want;
    for (const Expr& e : t.dims) want.push_back(g.text(e));
    throw UserError(fmt::format("input '{}' has extents [{}], wanted [{}]", t.name,
                                fmt::join(got, ","), fmt::join(want, ",")));
  }
  for (const Requirement& r : g.requirements())
    if (Graph::value(r.a, sizes) != Graph::value(r.b, sizes))
      throw NeedsSizes(fmt::format("{}: {} is {}, {} is {}, wanted equal ones", r.what, g.text(r.a),
                                   Graph::value(r.a, sizes), g.text(r.b),
                                   Graph::value(r.b, sizes)));
  return sizes;
}

std::vector<std::vector<int64_t>> Plan::output_dims(const std::vector<int64_t>& sizes) const {
  std::vector<std::vector<int64_t>> all;
  for (const auto& [name, t] : state_->g.outputs())
    all.push_back(state_->values(state_->g.tensor(t).dims, sizes));
  return all;
}

int64_t Plan::workspace(const std::vector<int64_t>& sizes) const {
  return state_->layout(sizes).bytes;
}

void Plan::prepare(const std::vector<int64_t>& sizes) const {
  std::unique_ptr<State::Frame> f = state_->take(sizes);
  std::vector<Preparation> all;
  // Inputs and outputs get addresses that no memory has, as aligned as any allocation is; each its
  // own, because outputs overlap nothing.
  uintptr_t next = uintptr_t{1} << 60;
  const auto give_address = [&](TensorView& v) {
    if (v.data != nullptr) return;
    const ByteRange r = byte_range(v);
    const auto rounded = [](int64_t n) { return (n / kAlignment + 1) * kAlignment; };
    next += static_cast<uintptr_t>(rounded(-r.begin));
    v.data = reinterpret_cast<void*>(next);
    next += static_cast<uintptr_t>(rounded(r.end));
  };
  for (size_t i = 0; i < state_->steps.size(); ++i) {
    State::Call c = f->calls[i];
    for (TensorView& v : c.inputs) give_address(v);
    give_address(c.output);
    if (c.output.count() == 0) continue;
    all.push_back({state_->steps[i].kernel, c.inputs, {c.output}, c.scalars});
  }
  prepare_all(all);
  state_->give_back(std::move(f));
}

std::vector<Tensor> Plan::run(const std::vector<TensorView>& inputs) const {
  std::vector<std::vector<int64_t>> dims;
  for (const TensorView& v : inputs) dims.push_back(v.dims);
  const std::vector<int64_t> at = sizes(dims);
  state_->give_back(state_->take(at));  // refused, before outputs are made, where memory lacks
  std::vector<Tensor> made;
  std::vector<TensorView> outputs;
  const auto extents = output_dims(at);
  for (size_t i = 0; i < extents.size(); ++i) {
    const DType t = state_->g.tensor(state_->g.outputs()[i].second).dtype;
    outputs.push_back(made.emplace_back(host_tensor(t, extents[i])).view());
  }
  run(inputs, outputs);
  return made;
}

void Plan::run(const std::vector<TensorView>& inputs, const std::vector<TensorView>& outputs,
               const std::function<void(size_t)>& done) const {
  const Graph& g = state_->g;
  if (inputs.size() != g.inputs().size())
    throw UserError(fmt::format("{} inputs, wanted {}", inputs.size(), g.inputs().size()));
  std::vector<Tensor> packed;
  std::vector<TensorView> dense;
  std::vector<std::vector<int64_t>> dims;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const TensorInfo& t = g.tensor(g.inputs()[i]);
    if (inputs[i].dtype != t.dtype)
      throw UserError(fmt::format("input '{}' is {}, wanted {}", t.name, tw::name(inputs[i].dtype),
                                  tw::name(t.dtype)));
    dims.push_back(inputs[i].dims);
    dense.push_back(inputs[i].is_contiguous() ? inputs[i]
                                              : packed.emplace_back(copy(inputs[i])).view());
  }
  const std::vector<int64_t> at = sizes(dims);
  state_->check_outputs(inputs, outputs, output_dims(at));
  std::unique_ptr<State::Frame> f = state_->take(at);
  state_->bind(*f, dense, outputs);
  for (size_t i = 0; i < f->calls.size(); ++i) {
    const State::Call& c = f->calls[i];
    if (c.output.count() > 0) state_->steps[i].kernel(c.inputs, {c.output}, c.scalars);
    if (done) done(i);
  }
  state_->copy_rest(*f, dense, outputs);
  state_->give_back(std::move(f));
}

}  // namespace tw::graph
