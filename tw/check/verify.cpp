#include "tw/check/verify.h"

#include <algorithm>
#include <cmath>
#include <deque>
#include <fmt/format.h>

#include "tw/base/error.h"
#include "tw/check/guarded.h"
#include "tw/check/impl/values.h"

namespace tw::check {

namespace {

constexpr int kShownFaults = 10;
constexpr double kVacuous = 0.02;

/// The tensors of one call, in guarded memory.
struct Call {
  std::deque<Guarded> tensors;  // of all arguments, in order
  std::vector<TensorView> inputs, outputs;
  std::vector<Guarded*> guarded_inputs, guarded_outputs;

  Call(const Subject& s, Values values, Layout layout, uint64_t seed) {
    for (const Argument& a : s.arguments) {
      const int64_t shift = layout == Layout::unaligned ? bytes(a.dtype) : 0;
      Guarded& g = tensors.emplace_back(a.dtype, a.dims,
                                        strides_of(layout, a.dims, a.dtype, a.output), shift);
      (a.output ? outputs : inputs).push_back(g.view());
      (a.output ? guarded_outputs : guarded_inputs).push_back(&g);
      ++seed;
      if (a.output) continue;
      const std::vector<double> elements = input_values(a, values, seed);
      g.fill([&](int64_t i) { return elements[static_cast<size_t>(i)]; });
    }
  }

  std::vector<std::string> input_contents() const {
    std::vector<std::string> out;
    for (const Guarded* g : guarded_inputs) out.push_back(g->contents());
    return out;
  }
  std::vector<std::string> output_contents() const {
    std::vector<std::string> out;
    for (const Guarded* g : guarded_outputs) out.push_back(g->contents());
    return out;
  }
};

std::string position(int64_t index, const std::vector<int64_t>& dims) {
  std::string text;
  for (size_t k = dims.size(); k-- > 0; index /= dims[k])
    text = fmt::format("{}{}{}", index % dims[k], text.empty() ? "" : ",", text);
  return "[" + text + "]";
}

}  // namespace

void Sweep::add(const std::string& label, const Subject& subject) {
  for (Values v : options_.values) run(label, subject, v, Layout::contiguous);
  if (!options_.layouts.empty())
    run(label, subject, Values::uniform, options_.layouts[subjects_ % options_.layouts.size()]);
  if (options_.refuses_aliases) alias(label, subject);
  ++subjects_;
}

void Sweep::run(const std::string& label, const Subject& subject, Values values, Layout layout) {
  const std::string here = fmt::format("{}, {} {}", label, name(layout), name(values));
  Call call(subject, values, layout, options_.seed + 1000 * subjects_);
  const std::vector<std::string> before = call.input_contents();
  const Reference want = subject.reference(call.inputs);
  ++runs_;
  subject.run(call.inputs, call.outputs);
  size_t output = 0;
  for (size_t i = 0; i < subject.arguments.size(); ++i) {
    const Argument& a = subject.arguments[i];
    if (const std::string damage = call.tensors[i].damage(); !damage.empty())
      fault(here, a.name + ": " + damage);
    if (a.output) {
      compare(here, a, call.outputs[output], want, output);
      ++output;
    }
  }
  if (call.input_contents() != before) fault(here, "an input was changed");

  const std::vector<std::string> first = call.output_contents();
  for (Guarded* g : call.guarded_outputs) g->poison(0x7b);
  subject.run(call.inputs, call.outputs);
  if (call.output_contents() != first) fault(here, "a second run over other poison differs");
}

void Sweep::compare(const std::string& label, const Argument& a, const TensorView& got,
                    const Reference& want, size_t output) {
  const ReferenceOutput& r = want.outputs.at(output);
  Accuracy accuracy = want.accuracy;
  accuracy.out = a.dtype;
  const int64_t n = got.count();
  if (static_cast<int64_t>(r.value.size()) != n)
    throw InternalError(fmt::format("{}: the reference of {} has {} elements, wanted {}", label,
                                    a.name, r.value.size(), n));
  int64_t worst = -1;
  double worst_ratio = 1;
  for (int64_t i = 0; i < n; ++i) {
    const double room = bound(accuracy, r.value[i], r.sum_abs[i]);
    const double ratio = error_ratio(a.dtype, get(got, i), r.value[i], room);
    rounds_ |= room > 0 && r.value[i] != 0 && std::isfinite(r.value[i]);
    if (ratio > worst_) {
      worst_ = ratio;
      worst_case_ = fmt::format("{}: {}{}", label, a.name, position(i, got.dims));
    }
    if (ratio <= worst_ratio) continue;
    worst = i;
    worst_ratio = ratio;
  }
  elements_ += n;
  if (worst >= 0)
    fault(label,
          fmt::format("{}{} is {}, wanted {}: {:.3g} times the allowed error", a.name,
                      position(worst, got.dims), get(got, worst), r.value[worst], worst_ratio));
}

void Sweep::alias(const std::string& label, const Subject& subject) {
  Call call(subject, Values::uniform, Layout::contiguous, options_.seed);
  if (call.inputs.empty() || call.outputs.empty()) return;
  if (call.inputs[0].count() == 0 || call.outputs[0].count() == 0) return;
  std::vector<TensorView> outputs = call.outputs;
  // Room for both, so that only the overlap is wrong.
  const ByteRange in = byte_range(call.inputs[0]), out = byte_range(call.outputs[0]);
  Tensor memory = host_tensor(u8, {std::max(in.end - in.begin, out.end - out.begin)});
  std::vector<TensorView> inputs = call.inputs;
  inputs[0].data = outputs[0].data = memory.view().data;
  try {
    subject.run(inputs, outputs);
    fault(label, "an output that overlaps an input was accepted");
  } catch (const UserError&) {
  }
}

void Sweep::fault(const std::string& label, const std::string& what) {
  if (++fault_count_ <= kShownFaults) faults_.push_back(label + ": " + what);
}

std::string Sweep::verdict() const {
  std::string text;
  for (const std::string& f : faults_) text += f + "\n";
  if (fault_count_ > kShownFaults)
    text += fmt::format("and {} more faults\n", fault_count_ - kShownFaults);
  if (runs_ == 0) text += "nothing was run\n";
  if (options_.whole && fault_count_ == 0 && rounds_ && worst_ < kVacuous)
    text += fmt::format("vacuous: the largest error is {:.3g} of its bound, below {}\n", worst_,
                        kVacuous);
  return text;
}

}  // namespace tw::check
