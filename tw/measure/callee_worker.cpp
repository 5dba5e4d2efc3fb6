#include "tw/measure/impl/callee_worker.h"

#include <barrier>
#include <cfenv>
#include <csignal>
#include <cstring>
#include <fmt/format.h>
#include <random>
#include <sys/mman.h>
#include <thread>
#include <unistd.h>

#include "tw/base/error.h"
#include "tw/measure/impl/confine.h"

namespace tw::measure {

namespace {

using nlohmann::json;

/// Tells the judge from a signal handler and ends: nothing of the process can be relied on.
[[noreturn]] void last_message(const char* key, const std::string& value) {
  send(kWorkerSocket, json::parse(fmt::format("{{\"{}\":{}}}", key, value)));
  _exit(1);
}

void on_fault(int signal, siginfo_t* info, void*) {
  if (info->si_code > 0)
    last_message("fault", std::to_string(reinterpret_cast<uint64_t>(info->si_addr)));
  last_message("error", fmt::format("\"it sent itself signal {}\"", signal));
}

void on_forbidden(int, siginfo_t* info, void*) {
  last_message("error", fmt::format("\"it tried the system call {}, which a contestant may not\"",
                                    system_call_name(info->si_syscall)));
}

void handle(int signal, void (*handler)(int, siginfo_t*, void*)) {
  struct sigaction action = {};
  action.sa_sigaction = handler;
  action.sa_flags = SA_SIGINFO | SA_NODEFER;
  sigaction(signal, &action, nullptr);
}

/// Rounding and what becomes of subnormals.
uint64_t floating_point_mode() {
#if defined(__x86_64__)
  constexpr unsigned kStatus = 0x3f;
  return __builtin_ia32_stmxcsr() & ~kStatus;
#else
  return static_cast<uint64_t>(std::fegetround());
#endif
}

}  // namespace

std::unique_ptr<Contestant> make_contestant(const json& m, const Factory& factory, uint64_t key) {
  const ContestantSpec spec{m.at("name"), m.at("kind"), m.at("source")};
  const Task task{m.at("op"), m.at("options"), m.at("threads")};
  if (spec.kind == "peer") {
    handle(SIGSYS, on_forbidden);
    if (const std::string why = confine(key); !why.empty())
      throw EnvError("cannot confine a plug-in: " + why);
    return load_peer(spec, task);
  }
  auto made = factory(spec, task);
  if (made == nullptr) throw UserError("unknown kind of contestant '" + spec.kind + "'");
  return made;
}

CalleeWorker::CalleeWorker(const json& m, const Factory& factory) {
  memory_.map(kWorkerInputs, m.at("bytes"), true);
  handle(SIGSEGV, on_fault);
  handle(SIGBUS, on_fault);
  std::random_device random;
  key_ = uint64_t{random()} << 32 | random();
  contestant_ = make_contestant(m, factory, key_);
}

json CalleeWorker::opened() const { return {{"base", reinterpret_cast<uint64_t>(memory_.data())}}; }

json CalleeWorker::prepare(const json& m) {
  std::vector<TensorSet> sets;
  const auto views = [&](const json& list) {
    std::vector<TensorView> out;
    for (const json& t : list)
      out.push_back({memory_.data() + t.at("at").get<int64_t>(),
                     *dtype_named(t.at("dtype").get<std::string>()), t.at("dims"),
                     t.at("strides")});
    return out;
  };
  for (const json& s : m.at("sets"))
    sets.push_back({views(s.at("inputs")), views(s.at("outputs"))});
  const auto allow = [this](int64_t begin, int64_t end, int access) {
    if (protect(memory_.data() + begin, static_cast<size_t>(end - begin), access, key_) != 0)
      throw EnvError(fmt::format("cannot protect memory: {}", std::strerror(errno)));
  };
  allow(0, memory_.bytes(), PROT_READ | PROT_WRITE);
  for (const json& p : m.at("pages"))
    allow(p.at("begin"), p.at("end"), p.at("readable").get<bool>() ? PROT_READ : PROT_NONE);
  return {{"about", contestant_->prepare(sets)}};
}

json CalleeWorker::call(const json& m) {
  const std::vector<int> sets = m.at("sets");
  const uint64_t mode = floating_point_mode();
  std::vector<std::exception_ptr> failures(sets.size());
  std::vector<std::thread> others;
  // All begin when the last is ready, or they would not meet where it comes late.
  std::barrier together(static_cast<std::ptrdiff_t>(sets.size()));
  const auto one = [&](size_t i) {
    together.arrive_and_wait();
    try {
      contestant_->run(sets[i]);
      contestant_->deliver(sets[i]);
    } catch (...) {
      failures[i] = std::current_exception();
    }
  };
  for (const int set : sets) contestant_->bring(set);
  for (size_t i = 1; i < sets.size(); ++i) others.emplace_back(one, i);
  one(0);
  const bool changed = floating_point_mode() != mode;
  for (std::thread& t : others) t.join();
  for (const std::exception_ptr& failure : failures)
    if (failure) std::rethrow_exception(failure);
  contestant_->settle();
  return {{"mode", changed}};
}

}  // namespace tw::measure
