#include <algorithm>
#include <cstring>
#include <fmt/format.h>
#include <numeric>
#include <random>
#include <string_view>
#include <sys/mman.h>

#include "tw/base/error.h"
#include "tw/base/round.h"
#include "tw/measure/impl/callee_worker.h"
#include "tw/measure/impl/confine.h"
#include "tw/measure/impl/exchange.h"

namespace tw::measure {

namespace {

using nlohmann::json;

/// The worker's own memory for all sets: ordinary pages, huge where the system grants them, as a
/// caller's would be. Each placement puts tensors at other lines and pages.
class Arena {
 public:
  explicit Arena(const Exchange& exchange) : exchange_(exchange) {
    bytes_ = kHuge;
    for (const auto* specs : {&exchange.inputs(), &exchange.outputs()})
      for (const TensorSpec& t : *specs) bytes_ += exchange.sets() * (span_bytes(t) + kRoom);
    void* at = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (at == MAP_FAILED) throw EnvError(fmt::format("cannot allocate {} bytes", bytes_));
    madvise(at, bytes_, MADV_HUGEPAGE);
    base_ = static_cast<char*>(at);
  }
  ~Arena() { munmap(base_, bytes_); }
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;

  /// Lays out every set anew and copies the inputs there.
  std::vector<TensorSet> place(uint64_t seed) {
    std::mt19937_64 random(seed);
    char* at = base_ + (kHuge - reinterpret_cast<uintptr_t>(base_) % kHuge) % kHuge;
    std::vector<TensorSet> sets(exchange_.sets());
    for (int s = 0; s < exchange_.sets(); ++s) {
      for (const TensorSpec& t : exchange_.inputs())
        sets[s].inputs.push_back(view_of(t, next(at, t, random)));
      for (const TensorSpec& t : exchange_.outputs())
        sets[s].outputs.push_back(view_of(t, next(at, t, random)));
      for (size_t i = 0; i < sets[s].inputs.size(); ++i)
        std::memcpy(sets[s].inputs[i].data, exchange_.input(s, static_cast<int>(i)).data,
                    span_bytes(exchange_.inputs()[i]));
    }
    return sets;
  }

 private:
  static constexpr int64_t kHuge = 2 << 20, kPage = 4096, kLine = 64, kRoom = 8 * kPage;

  static char* next(char*& at, const TensorSpec& t, std::mt19937_64& random) {
    char* here = at + static_cast<int64_t>(random() % (kRoom / kLine - 1)) * kLine;
    at += span_bytes(t) + kRoom;
    return here;
  }

  const Exchange& exchange_;
  size_t bytes_ = 0;
  char* base_ = nullptr;
};

class TimedWorker {
 public:
  TimedWorker(const json& m, const Factory& factory, const Clock& clock)
      : clock_(clock), exchange_(specs(m.at("inputs")), specs(m.at("outputs")), m.at("sets")) {
    exchange_.map_here();
    arena_.emplace(exchange_);
    contestant_ = make_contestant(m, factory, std::random_device{}());
  }

  /// Seeds: of the addresses and of what changes between calls.
  json place(const json& m) {
    sets_ = arena_->place(m.at("seed"));
    stirrers_.clear();
    for (size_t s = 0; s < sets_.size(); ++s)
      stirrers_.emplace_back(exchange_.inputs(), m.at("stir").get<uint64_t>() + s);
    return {{"about", contestant_->prepare(sets_)}};
  }

  /// `warm` calls, then `calls` timed ones through the sets in random order, between a message of
  /// the judge and one to it, whose times bound them. Before each `chunk` of calls the inputs
  /// change, while the clock stands. Outputs of the last call are copied away as it returned; where
  /// sets are called again and again, those of a few calls that follow, too, which nobody can tell
  /// from the timed ones.
  json run(const json& m) {
    const int64_t calls = m.at("calls"), warm = m.at("warm");
    pairs_ = m.at("pairs");
    turns_ = m.value("turns", false);
    random_.seed(m.at("seed").get<uint64_t>());
    const bool few_calls = calls <= exchange_.sets();
    const int64_t audits = few_calls ? 0 : Exchange::kSlots - 1;
    order_ = random_order(warm + calls + audits);
    next_ = 0;
    for (int64_t i = 0; i < warm; ++i) contestant_->run(next_set());
    const int last = set_after(calls - 1);
    // Long before the call: what lies in its outputs is in the caches, too. Calls between overwrite
    // it where sets are called again and again.
    tamper(last, INT64_MAX);

    send(kWorkerSocket, {{"mark", "start"}});
    receive(kWorkerSocket, -1);
    const double cpu = clock_(CLOCK_PROCESS_CPUTIME_ID), start = clock_(CLOCK_MONOTONIC);
    double wall = 0, beside = 0, pauses = 0;
    brought_ = 0;
    const int64_t chunk = m.at("chunk");
    for (int64_t done = 0; done < calls; done += chunk) {
      const int64_t n = std::min(chunk, calls - done);
      const double idle = clock_(CLOCK_PROCESS_CPUTIME_ID), pause = clock_(CLOCK_MONOTONIC);
      for (int64_t i = 0; i < std::min<int64_t>(n, exchange_.sets()); ++i)
        stir(set_after(i), turns_);
      if (!few_calls && done + n == calls) {
        tamper(last, kMostBeside);
        bring(last);
      }
      beside += clock_(CLOCK_PROCESS_CPUTIME_ID) - idle;
      pauses += clock_(CLOCK_MONOTONIC) - pause;
      wall += timed(n);
    }
    const double span = clock_(CLOCK_MONOTONIC) - start;
    const double cpu_span = clock_(CLOCK_PROCESS_CPUTIME_ID) - cpu;
    const double brought = brought_;
    send(kWorkerSocket, {{"mark", "end"}});
    json kept = json::array({keep(last, 0)});
    const double copying = clock_(CLOCK_PROCESS_CPUTIME_ID) - cpu - cpu_span;
    receive(kWorkerSocket, -1);
    for (int slot = 1; slot <= audits; ++slot) kept.push_back(audit(slot));
    contestant_->settle();
    return {
        {"wall", wall},     {"span", span},        {"brought", brought}, {"cpu", cpu_span - beside},
        {"pauses", pauses}, {"counted", cpu_span}, {"copying", copying}, {"kept", kept}};
  }

 private:
  static std::vector<TensorSpec> specs(const json& list) {
    std::vector<TensorSpec> out;
    for (const json& j : list) out.push_back(tensor_spec(j));
    return out;
  }

  double timed(int64_t calls) {
    const int last = set_after(calls - 1);
    const double start = clock_(CLOCK_MONOTONIC);
    for (int64_t i = 0; i < calls; ++i) contestant_->run(next_set());
    contestant_->deliver(last);
    touch(last);
    return clock_(CLOCK_MONOTONIC) - start;
  }

  /// Outputs are there when a call returns, not when someone looks.
  void touch(int set) const {
    constexpr int64_t kPage = 4096;
    for (size_t i = 0; i < exchange_.outputs().size(); ++i) {
      const auto* from = static_cast<const volatile char*>(sets_[set].outputs[i].data);
      for (int64_t at = 0; at < span_bytes(exchange_.outputs()[i]); at += kPage) (void)from[at];
    }
  }

  /// Whole rounds through all sets, each shuffled: long enough for the calls, or repeated by them.
  std::vector<int> random_order(int64_t calls) {
    const int sets = exchange_.sets();
    const int64_t rounds = std::min<int64_t>(ceil_div(calls, sets), 1024 / sets + 1);
    std::vector<int> order(rounds * sets);
    for (int64_t r = 0; r < rounds; ++r) {
      auto begin = order.begin() + r * sets;
      std::iota(begin, begin + sets, 0);
      std::shuffle(begin, begin + sets, random_);
    }
    return order;
  }
  int set_after(int64_t calls) const {
    return order_[(next_ + static_cast<size_t>(calls)) % order_.size()];
  }
  int next_set() {
    const int set = order_[next_];
    if (++next_ == order_.size()) next_ = 0;
    return set;
  }

  /// Changes all values or some.
  void stir(int set, bool all) {
    if (all) {
      std::vector<TensorView> first;
      for (size_t i = 0; i < exchange_.inputs().size(); ++i)
        first.push_back(exchange_.input(set, static_cast<int>(i)));
      stirrers_[set].turn(sets_[set].inputs, first);
    }
    stirrers_[set].step(sets_[set].inputs, pairs_);
    bring(set);
  }
  void bring(int set) {
    const double start = clock_(CLOCK_MONOTONIC);
    contestant_->bring(set);
    brought_ += clock_(CLOCK_MONOTONIC) - start;
  }

  /// Of these, some see few values change, which tells who looks at few.
  json audit(int slot) {
    const int set = next_set();
    tamper(set, INT64_MAX);
    stir(set, turns_ && random_() % 2 == 0);
    contestant_->run(set);
    contestant_->deliver(set);
    return keep(set, slot);
  }

  /// Before a call whose outputs will be looked at: they are left as they are, or hold what another
  /// set's do, or NaN; whichever, nobody can tell by them that it is such a call. Up to `most`
  /// bytes of each, somewhere.
  void tamper(int set, int64_t most) {
    const auto how = random_() % 3;
    const int other = static_cast<int>(random_() % static_cast<uint64_t>(exchange_.sets()));
    for (size_t i = 0; how > 0 && i < exchange_.outputs().size(); ++i) {
      const int64_t all = span_bytes(exchange_.outputs()[i]), bytes = std::min(all, most);
      const auto at = static_cast<int64_t>(random_() % static_cast<uint64_t>(all - bytes + 1));
      char* to = static_cast<char*>(sets_[set].outputs[i].data) + at;
      if (how == 1)
        std::memmove(to, static_cast<char*>(sets_[other].outputs[i].data) + at, bytes);
      else
        std::memset(to, 0xff, bytes);
    }
  }

  /// Copies outputs away: what a thread writes after its call returned comes too late.
  json keep(int set, int slot) {
    for (size_t i = 0; i < exchange_.outputs().size(); ++i)
      std::memcpy(exchange_.output(slot, static_cast<int>(i)).data, sets_[set].outputs[i].data,
                  span_bytes(exchange_.outputs()[i]));
    const Stirrer::State& state = stirrers_[set].state();
    return {{"set", set},
            {"pairs", state.pairs},
            {"turns", state.turns},
            {"pairs_then", state.pairs_then}};
  }

  static constexpr int64_t kMostBeside = 1 << 20;  // bytes of an output changed between calls

  const Clock& clock_;
  Exchange exchange_;
  std::optional<Arena> arena_;
  std::unique_ptr<Contestant> contestant_;
  std::vector<TensorSet> sets_;
  std::vector<Stirrer> stirrers_;
  int64_t pairs_ = 0;
  bool turns_ = false;  // all values change between calls
  double brought_ = 0;  // seconds in which tensors were brought to where it computes
  std::mt19937_64 random_;
  std::vector<int> order_;
  size_t next_ = 0;
};

/// Serves a judge: holds one contestant, to be timed or to be called.
class Server {
 public:
  Server(const Factory& factory, const Clock& clock) : factory_(factory), clock_(clock) {}

  json answer(const json& m) {
    const std::string what = m.at("do");
    if (what == "open") {
      timed_.emplace(m, factory_, clock_);
      return json::object();
    }
    if (what == "open callee") {
      callee_ = std::make_unique<CalleeWorker>(m, factory_);
      return callee_->opened();
    }
    if (what == "ceilings") return ceilings_here(m.at("threads"), m.at("repeats"));
    if (what == "place") return timed_->place(m);
    if (what == "run") return timed_->run(m);
    if (what == "prepare") return callee_->prepare(m);
    return callee_->call(m);
  }

 private:
  const Factory& factory_;
  const Clock& clock_;
  std::optional<TimedWorker> timed_;
  std::unique_ptr<CalleeWorker> callee_;
};

}  // namespace

std::optional<int> serve_worker(int argc, char** argv, const Factory& factory, const Clock& clock) {
  if (argc < 2 || std::string_view(argv[1]) != kWorkerFlag) return {};
  look_ordinary(argc, argv);
  Server server(factory, clock);
  while (const std::optional<json> message = receive(kWorkerSocket, -1)) {
    json reply;
    try {
      reply = server.answer(*message);
    } catch (const UserError& e) {
      reply = {{"refusal", e.what()}};
    } catch (const EnvError& e) {
      reply = {{"unusable", e.message()}, {"hint", e.hint()}};
    } catch (const std::exception& e) {
      reply = {{"error", e.what()}};
    }
    if (!send(kWorkerSocket, reply)) break;
  }
  return 0;
}

}  // namespace tw::measure
