#include "tw/check/contestant.h"

#include "tw/ir/print.h"

namespace tw::check {

namespace {

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

}  // namespace

measure::ContestantSpec kernel_contestant(const std::string& name, const Program& p,
                                          const Mapping& mapping) {
  return {name, "kernel", to_string(mapping) + "\n" + print(p)};
}

std::unique_ptr<measure::Contestant> make_contestant(const measure::ContestantSpec& spec,
                                                     const measure::Task& task) {
  if (spec.kind != "kernel") return nullptr;
  const size_t line = spec.source.find('\n');
  CompileOptions options;
  options.mapping = parse_mapping(spec.source.substr(0, line));
  options.threads = task.threads;
  return std::make_unique<KernelContestant>(
      compile(parse(spec.source.substr(line + 1), spec.name), Device::open("cpu:0"), options));
}

}  // namespace tw::check
