#include <algorithm>
#include <csignal>
#include <unistd.h>

#include "tw/base/error.h"
#include "tw/measure/contestant.h"

namespace tw::measure {
namespace {

/// The script of the clock: contestants with a duration move it by that much in every call, and
/// take as much CPU time in truth, since the judge would notice a clock that is not its own. What
/// passes between two calls, or is too much of one, is part of the next.
struct Script {
  static constexpr double kPatience = 10e-3;
  bool moved = false;
  double now_s = 0, due_s = 0;
  void pass(double s) {
    const double start = seconds(CLOCK_THREAD_CPUTIME_ID);
    moved = true;
    now_s += s;
    due_s = start < due_s + kPatience ? std::max(due_s + s, start + s / 2) : start + s;
    while (seconds(CLOCK_THREAD_CPUTIME_ID) < due_s) continue;
  }
  double clock(clockid_t real) const { return moved ? now_s : seconds(real); }
};

/// Y = 2 X, in several ways that a judge must tell apart. `source` is the duration of a call in
/// nanoseconds on the scripted clock; 0: as long as it takes, on the real one.
class Doubler : public Contestant {
 public:
  Doubler(std::string kind, int nanoseconds, Script& script)
      : kind_(std::move(kind)), nanoseconds_(nanoseconds), script_(script) {}

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
    if (nanoseconds_ > 0) script_.pass(1e-9 * nanoseconds_);
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
  std::string kind_;
  int nanoseconds_;
  Script& script_;
  int64_t calls_ = 0;
  std::vector<TensorSet> sets_;
};

}  // namespace
}  // namespace tw::measure

int main(int argc, char** argv) {
  using namespace tw::measure;
  Script script;
  const auto make = [&](const ContestantSpec& spec, const Task&) -> std::unique_ptr<Contestant> {
    if (spec.kind == "nobody") return nullptr;
    return std::make_unique<Doubler>(spec.kind, std::stoi(spec.source), script);
  };
  return serve_worker(argc, argv, make, [&](clockid_t c) { return script.clock(c); }).value_or(1);
}
