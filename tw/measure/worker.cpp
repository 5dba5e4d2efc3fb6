#include <algorithm>
#include <cstring>
#include <fmt/format.h>
#include <numeric>
#include <random>
#include <set>
#include <string_view>
#include <sys/mman.h>

#include "tw/base/error.h"
#include "tw/base/round.h"
#include "tw/measure/impl/message.h"

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

class Worker {
  static constexpr size_t kAudits = 3;

 public:
  Worker(const json& m, const Factory& factory, const Clock& clock)
      : clock_(clock), exchange_(specs(m.at("inputs")), specs(m.at("outputs")), m.at("sets")) {
    exchange_.map(kWorkerExchange);
    arena_.emplace(exchange_);
    const ContestantSpec spec{m.at("name"), m.at("kind"), m.at("source")};
    const Task task{m.at("op"), m.at("options"), m.at("threads")};
    contestant_ = spec.kind == "peer" ? load_peer(spec, task) : factory(spec, task);
    if (contestant_ == nullptr) throw UserError("unknown kind of contestant '" + spec.kind + "'");
  }

  json place(const json& m) {
    sets_ = arena_->place(m.at("seed"));
    return {{"about", contestant_->prepare(sets_)}};
  }

  /// `warm` calls, then `calls` timed ones through the sets in random order. Outputs of the last
  /// call's set and of a secret one are wiped before the timed calls, so what lies there afterwards
  /// was computed in them; but where sets were called again and again, maybe not by the last call.
  /// There a few calls follow on wiped sets, which a contestant that skips calls cannot tell from
  /// the timed ones.
  json run(const json& m) {
    const int64_t calls = m.at("calls"), warm = m.at("warm");
    std::mt19937_64 random(m.at("seed").get<uint64_t>());
    const std::vector<int> order = random_order(calls, random);
    const int last = order[(calls - 1) % order.size()];
    const int secret = order[random() % std::min<uint64_t>(calls, order.size())];
    for (int64_t i = 0; i < warm; ++i) contestant_->run(order[i % order.size()]);
    wipe(secret);
    wipe(last);
    const double cpu = clock_(CLOCK_PROCESS_CPUTIME_ID), wall = clock_(CLOCK_MONOTONIC);
    size_t next = 0;
    for (int64_t i = 0; i < calls; ++i) {
      contestant_->run(order[next]);
      if (++next == order.size()) next = 0;
    }
    const double wall_end = clock_(CLOCK_MONOTONIC), cpu_end = clock_(CLOCK_PROCESS_CPUTIME_ID);
    std::set<int> check = {last, secret};
    if (calls > exchange_.sets()) audit(random, check);
    return {{"wall", wall_end - wall}, {"cpu", cpu_end - cpu}, {"check", check}};
  }

  json keep(const json& m) {
    const int set = m.at("set");
    for (size_t i = 0; i < exchange_.outputs().size(); ++i)
      std::memcpy(exchange_.output(static_cast<int>(i)).data, sets_[set].outputs[i].data,
                  span_bytes(exchange_.outputs()[i]));
    return json::object();
  }

 private:
  static std::vector<TensorSpec> specs(const json& list) {
    std::vector<TensorSpec> out;
    for (const json& j : list) out.push_back(tensor_spec(j));
    return out;
  }

  /// Whole rounds through all sets, each shuffled: long enough for the calls, or repeated by them.
  std::vector<int> random_order(int64_t calls, std::mt19937_64& random) const {
    const int sets = exchange_.sets();
    const int64_t rounds = std::min<int64_t>(ceil_div(calls, sets), 1024 / sets + 1);
    std::vector<int> order(rounds * sets);
    for (int64_t r = 0; r < rounds; ++r) {
      auto begin = order.begin() + r * sets;
      std::iota(begin, begin + sets, 0);
      std::shuffle(begin, begin + sets, random);
    }
    return order;
  }

  /// Calls on wiped sets that stay wiped when the call does nothing.
  void audit(std::mt19937_64& random, std::set<int>& check) {
    std::vector<int> sets(exchange_.sets());
    std::iota(sets.begin(), sets.end(), 0);
    std::shuffle(sets.begin(), sets.end(), random);
    sets.resize(std::min<size_t>(sets.size(), kAudits));
    for (int set : sets) {
      wipe(set);
      contestant_->run(set);
      check.insert(set);
    }
  }

  void wipe(int set) {
    for (size_t i = 0; i < exchange_.outputs().size(); ++i)
      std::memset(sets_[set].outputs[i].data, 0xff, span_bytes(exchange_.outputs()[i]));
  }

  const Clock& clock_;
  Exchange exchange_;
  std::optional<Arena> arena_;
  std::unique_ptr<Contestant> contestant_;
  std::vector<TensorSet> sets_;
};

json answer(std::optional<Worker>& worker, const json& m, const Factory& factory,
            const Clock& clock) {
  const std::string what = m.at("do");
  if (what == "open") {
    worker.emplace(m, factory, clock);
    return json::object();
  }
  if (what == "ceilings") return ceilings_here(m.at("threads"), m.at("repeats"));
  if (what == "place") return worker->place(m);
  if (what == "run") return worker->run(m);
  return worker->keep(m);
}

}  // namespace

std::optional<int> serve_worker(int argc, char** argv, const Factory& factory, const Clock& clock) {
  if (argc < 2 || std::string_view(argv[1]) != kWorkerFlag) return {};
  std::optional<Worker> worker;
  while (const std::optional<json> message = receive(kWorkerSocket, -1)) {
    json reply;
    try {
      reply = answer(worker, *message, factory, clock);
    } catch (const UserError& e) {
      reply = {{"refusal", e.what()}};
    } catch (const std::exception& e) {
      reply = {{"error", e.what()}};
    }
    if (!send(kWorkerSocket, reply)) break;
  }
  return 0;
}

}  // namespace tw::measure
