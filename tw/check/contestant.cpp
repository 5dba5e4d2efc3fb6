#include "tw/check/contestant.h"

#include "tw/ir/print.h"

namespace tw::check {

namespace {

/// A kernel and the tensors of its calls.
struct KernelCalls {
  Kernel kernel;
  std::vector<measure::TensorSet> sets = {};

  std::string prepare(const std::vector<measure::TensorSet>& those) {
    sets = those;
    for (const measure::TensorSet& s : sets) kernel.prepare(s.inputs, s.outputs);
    return kernel.mapping();
  }
};

class KernelContestant : public measure::Contestant {
 public:
  explicit KernelContestant(Kernel kernel) : calls_{std::move(kernel)} {}

  std::string prepare(const std::vector<measure::TensorSet>& sets) override {
    return calls_.prepare(sets);
  }
  void run(int set) override { calls_.kernel(calls_.sets[set].inputs, calls_.sets[set].outputs); }

 private:
  KernelCalls calls_;
};

class KernelOnDevice : public DeviceCallable {
 public:
  explicit KernelOnDevice(Kernel kernel) : calls_{std::move(kernel)} {}

  std::string prepare(const std::vector<measure::TensorSet>& sets) override {
    return calls_.prepare(sets);
  }
  void run(int set, const cuda::Stream& stream) override {
    calls_.kernel.launch(stream, calls_.sets[set].inputs, calls_.sets[set].outputs);
  }

 private:
  KernelCalls calls_;
};

}  // namespace

// Workers of earlier builds know sources without a device.
measure::ContestantSpec kernel_contestant(const std::string& name, const Program& p,
                                          const Mapping& mapping, const std::string& device) {
  const std::string line = device == kHost ? "" : "@" + device + "\n";
  return {name, "kernel", line + to_string(mapping) + "\n" + print(p)};
}

std::unique_ptr<measure::Contestant> make_contestant(const measure::ContestantSpec& spec,
                                                     const measure::Task& task) {
  if (spec.kind != "kernel") return nullptr;
  std::string_view rest = spec.source;
  const auto line = [&rest] {
    const std::string_view first = rest.substr(0, rest.find('\n'));
    rest.remove_prefix(first.size() + 1);
    return std::string(first);
  };
  const Device d = Device::open(rest.starts_with('@') ? line().substr(1) : kHost);
  CompileOptions options;
  options.mapping = parse_mapping(line());
  options.threads = task.threads;
  Kernel kernel = compile(parse(std::string(rest), spec.name), d, options);
  if (d.kind() == DeviceKind::cuda)
    return on_device(d, std::make_unique<KernelOnDevice>(std::move(kernel)));
  return std::make_unique<KernelContestant>(std::move(kernel));
}

}  // namespace tw::check
