#include <fmt/format.h>
#include <unistd.h>

#include "tw/base/error.h"
#include "tw/measure/contestant.h"
#include "tw/measure/impl/shared_memory.h"
#include "tw/measure/impl/worker_process.h"

namespace tw::measure {

struct Callee::State {
  SharedMemory memory;
  std::unique_ptr<WorkerProcess> process;
  double timeout_s = 0;
  uint64_t base = 0;  // of the memory in its process
  std::vector<Pages> pages;

  std::string place_of(uint64_t address) const {
    for (const Pages& p : pages) {
      const auto begin = base + static_cast<uint64_t>(p.begin);
      if (address < begin || address >= base + static_cast<uint64_t>(p.end)) continue;
      return p.access == Access::read ? "it wrote to " + p.name : "it touched " + p.name;
    }
    return "";
  }
};

Callee::Callee(const ContestantSpec& spec, const Task& task, const Settings& settings)
    : state_(std::make_unique<State>()) {
  State& s = *state_;
  s.memory.create(settings.bytes);
  s.timeout_s = settings.timeout_s;
  const int shared = s.memory.descriptor();
  s.process = std::make_unique<WorkerProcess>(settings.worker, spec.name,
                                              Descriptors{shared, shared}, settings.threads);
  const nlohmann::json reply = s.process->ask({{"do", "open callee"},
                                               {"name", spec.name},
                                               {"kind", spec.kind},
                                               {"source", spec.source},
                                               {"op", task.op},
                                               {"options", task.options},
                                               {"threads", task.threads},
                                               {"bytes", settings.bytes}},
                                              s.timeout_s);
  s.base = reply.at("base");
  s.process->place_of = [&s](uint64_t address) { return s.place_of(address); };
}

Callee::~Callee() = default;

char* Callee::memory() const { return state_->memory.data(); }
int64_t Callee::bytes() const { return state_->memory.bytes(); }
int64_t Callee::data_bytes() const { return state_->process->data_bytes(); }

std::string Callee::prepare(const std::vector<TensorSet>& sets, std::vector<Pages> pages) {
  nlohmann::json m = {
      {"do", "prepare"}, {"sets", nlohmann::json::array()}, {"pages", nlohmann::json::array()}};
  const auto list = [&](const std::vector<TensorView>& views) {
    nlohmann::json out = nlohmann::json::array();
    for (const TensorView& v : views)
      out.push_back({{"at", static_cast<const char*>(v.data) - memory()},
                     {"dtype", name(v.dtype)},
                     {"dims", v.dims},
                     {"strides", v.strides}});
    return out;
  };
  for (const TensorSet& s : sets)
    m["sets"].push_back({{"inputs", list(s.inputs)}, {"outputs", list(s.outputs)}});
  for (const Pages& p : pages)
    m["pages"].push_back(
        {{"begin", p.begin}, {"end", p.end}, {"readable", p.access == Access::read}});
  state_->pages = std::move(pages);
  state_->process->resume();
  return state_->process->ask(m, state_->timeout_s).at("about");
}

void Callee::run(const std::vector<int>& sets) {
  WorkerProcess& process = *state_->process;
  process.resume();
  const nlohmann::json reply = process.ask({{"do", "call"}, {"sets", sets}}, state_->timeout_s);
  process.stop();
  if (reply.at("mode").get<bool>())
    throw DeviceError("it changed how floating-point numbers are rounded, for its caller, too");
}

double Callee::linger(double for_s) {
  WorkerProcess& process = *state_->process;
  const double before = process.wanted_s();
  process.resume();
  usleep(static_cast<useconds_t>(for_s * 1e6));
  return process.wanted_s() - before;
}

}  // namespace tw::measure
