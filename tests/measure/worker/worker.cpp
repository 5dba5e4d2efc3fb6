#include <csignal>
#include <unistd.h>

#include "tw/base/error.h"
#include "tw/measure/contestant.h"

namespace tw::measure {
namespace {

/// Y = 2 X, in several ways that a judge must tell apart. `source` is a number: how much work a
/// call does before it writes.
class Doubler : public Contestant {
 public:
  Doubler(std::string kind, int work) : kind_(std::move(kind)), work_(work) {}

  std::string prepare(const std::vector<TensorSet>& sets) override {
    if (kind_ == "refuses") throw UserError("this contestant does no such thing");
    sets_ = sets;
    return "doubler " + kind_;
  }

  void run(int set) override {
    ++calls_;
    if (kind_ == "crashes" && calls_ > 3) raise(SIGSEGV);
    if (kind_ == "exits" && calls_ > 3) _exit(7);
    if (kind_ == "hangs" && calls_ > 3)
      while (true) pause();
    if (kind_ == "throws" && calls_ > 3) throw DeviceError("the device is on fire");
    spin();
    if (kind_ == "skips" && calls_ % 2 == 0) return;
    if (kind_ == "stops" && calls_ > 10) return;
    const TensorSet& from = sets_[kind_ == "remembers" ? 0 : set];
    const auto* x = static_cast<const float*>(from.inputs[0].data);
    const int64_t step = from.inputs[0].strides[0];
    auto* y = static_cast<float*>(sets_[set].outputs[0].data);
    const int64_t n = sets_[set].outputs[0].dims[0];
    for (int64_t i = 0; i < n; ++i) y[i] = 2 * x[i * step];
    if (kind_ == "forgets" && n > 0) y[n - 1] = 0;
  }

 private:
  /// A chain of dependent steps: time is proportional to `work_` on any processor.
  void spin() {
    double v = 1;
    for (int i = 0; i < work_; ++i) {
      v = v * 0.999 + 1e-3;
      asm volatile("" : "+x"(v));
    }
  }

  std::string kind_;
  int work_;
  int64_t calls_ = 0;
  std::vector<TensorSet> sets_;
};

std::unique_ptr<Contestant> make(const ContestantSpec& spec, const Task&) {
  if (spec.kind == "nobody") return nullptr;
  return std::make_unique<Doubler>(spec.kind, std::stoi(spec.source));
}

}  // namespace
}  // namespace tw::measure

int main(int argc, char** argv) {
  return tw::measure::serve_worker(argc, argv, tw::measure::make).value_or(1);
}
