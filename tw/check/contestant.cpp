#include "tw/check/contestant.h"

#include "tw/ir/print.h"

namespace tw::check {

namespace {

constexpr const char* kDefault = "cpu:0";

class KernelContestant : public measure::Contestant {
 public:
  explicit KernelContestant(Kernel kernel) : kernel_(std::move(kernel)) {}

  std::string prepare(const std::vector<measure::TensorSet>& sets) override {
    sets_ = sets;
    for (const measure::TensorSet& s : sets_) kernel_.prepare(s.inputs, s.outputs);
    return kernel_.mapping();
  }
  void run(int set) override { kernel_(sets_[set].inputs, sets_[set].outputs); }

 private:
  Kernel kernel_;
  std::vector<measure::TensorSet> sets_;
};

class KernelOnDevice : public DeviceCallable {
 public:
  explicit KernelOnDevice(Kernel kernel) : kernel_(std::move(kernel)) {}

  std::string prepare(const std::vector<measure::TensorSet>& sets) override {
    sets_ = sets;
    for (const measure::TensorSet& s : sets_) kernel_.prepare(s.inputs, s.outputs);
    return kernel_.mapping();
  }
  void run(int set, const cuda::Stream& stream) override {
    kernel_.launch(stream, sets_[set].inputs, sets_[set].outputs);
  }

 private:
  Kernel kernel_;
  std::vector<measure::TensorSet> sets_;
};

}  // namespace

// Workers of earlier builds know sources without a device.
measure::ContestantSpec kernel_contestant(const std::string& name, const Program& p,
                                          const Mapping& mapping, const std::string& device) {
  const std::string line = device == kDefault ? "" : "@" + device + "\n";
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
  const Device d = Device::open(rest.starts_with('@') ? line().substr(1) : kDefault);
  CompileOptions options;
  options.mapping = parse_mapping(line());
  options.threads = task.threads;
  Kernel kernel = compile(parse(std::string(rest), spec.name), d, options);
  if (d.kind() == DeviceKind::cuda)
    return on_device(d, std::make_unique<KernelOnDevice>(std::move(kernel)));
  return std::make_unique<KernelContestant>(std::move(kernel));
}

}  // namespace tw::check
