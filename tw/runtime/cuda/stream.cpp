#include <fmt/format.h>

#include "tw/base/error.h"
#include "tw/runtime/cuda/cuda.h"
#include "tw/runtime/impl/cuda_gpu.h"

namespace tw::cuda {

static StreamHandle handle_of(const Stream& s) { return static_cast<StreamHandle>(s.handle()); }
static EventHandle event_of(void* handle) { return static_cast<EventHandle>(handle); }

/// What one GPU made is used in its own streams.
static void check_same(const char* what, const Gpu& gpu, const char* use, const Stream& s) {
  if (&s.gpu() == &gpu) return;
  throw UserError(fmt::format("{} of {} {} a stream of {}", what, gpu.name(), use, s.gpu().name()));
}

int device_count() {
  try {
    int count = 0;
    return driver().device_count(&count) == 0 ? count : 0;
  } catch (const EnvError&) {
    return 0;
  }
}

Stream Stream::make(const Device& d) {
  Gpu& gpu = d.cuda();
  const Current current(gpu);
  StreamHandle handle = nullptr;
  gpu.check(gpu.api().stream_create(&handle, kNonBlocking), "to make a stream");
  return {gpu, handle, std::shared_ptr<void>(handle, [&gpu](void* p) {
            const CurrentAtEnd here(gpu);
            gpu.api().stream_synchronize(static_cast<StreamHandle>(p));
            gpu.api().stream_destroy(static_cast<StreamHandle>(p));
          })};
}

Stream Stream::standard(const Device& d) { return {d.cuda(), nullptr, nullptr}; }
Stream Stream::of(const Device& d, void* handle) { return {d.cuda(), handle, nullptr}; }

void Stream::synchronize() const {
  const Current current(*gpu_);
  gpu_->check(gpu_->api().stream_synchronize(handle_of(*this)), "to finish the work of a stream");
  gpu_->hear(this);
}

void synchronize(const Device& d) {
  const Current current(d.cuda());
  d.cuda().check(d.cuda().api().context_synchronize(), "to finish its work");
  d.cuda().hear(nullptr);
}

Event::Event(const Device& d) : gpu_(d.cuda()) {
  const Current current(gpu_);
  EventHandle handle = nullptr;
  gpu_.check(gpu_.api().event_create(&handle, 0), "to make an event");
  handle_ = handle;
}

Event::~Event() {
  const CurrentAtEnd current(gpu_);
  gpu_.api().event_destroy(event_of(handle_));
}

void Event::record(const Stream& s) {
  check_same("an event", gpu_, "is recorded in", s);
  const Current current(gpu_);
  gpu_.check(gpu_.api().event_record(event_of(handle_), handle_of(s)), "to record an event");
}

bool Event::done() const {
  const Current current(gpu_);
  const Result code = gpu_.api().event_query(event_of(handle_));
  if (code != kNotReady) gpu_.check(code, "before an event");
  return code == 0;
}

void Event::synchronize() const {
  const Current current(gpu_);
  gpu_.check(gpu_.api().event_synchronize(event_of(handle_)), "before an event");
}

void Event::hold(const Stream& s) const {
  const Current current(s.gpu());
  gpu_.check(gpu_.api().stream_wait(handle_of(s), event_of(handle_), 0), "to wait for an event");
}

double Event::milliseconds(const Event& begin, const Event& end) {
  if (&begin.gpu_ != &end.gpu_) {
    throw UserError(
        fmt::format("the time between events of {} and {}", begin.gpu_.name(), end.gpu_.name()),
        "wanted events of one GPU");
  }
  const Current current(end.gpu_);
  float ms = 0;
  end.gpu_.check(end.gpu_.api().event_elapsed(&ms, event_of(begin.handle_), event_of(end.handle_)),
                 "to tell the time between events");
  return ms;
}

/// Ends the capture, and throws what body() threw.
static GraphHandle captured(const Gpu& gpu, const Stream& s, const std::function<void()>& body) {
  const Api& api = gpu.api();
  GraphHandle graph = nullptr;
  gpu.check(api.capture_begin(handle_of(s), kCaptureOfThread), "to capture a stream");
  try {
    body();
  } catch (...) {
    if (api.capture_end(handle_of(s), &graph) == 0 && graph) api.graph_destroy(graph);
    throw;
  }
  gpu.check(api.capture_end(handle_of(s), &graph), "to capture a stream");
  return graph;
}

Graph::Graph(const Stream& s, const std::function<void()>& body) : gpu_(s.gpu()) {
  if (!s.handle())
    throw UserError("the default stream cannot be captured", "capture one of Stream::make()");
  const Current current(gpu_);
  const GraphHandle graph = captured(gpu_, s, body);
  GraphExecHandle exec = nullptr;
  const Result code = gpu_.api().graph_instantiate(&exec, graph, 0);
  gpu_.api().graph_destroy(graph);
  gpu_.check(code, "to make a graph");
  handle_ = exec;
}

Graph::~Graph() {
  const CurrentAtEnd current(gpu_);
  gpu_.api().graph_exec_destroy(static_cast<GraphExecHandle>(handle_));
}

void Graph::launch(const Stream& s) const {
  check_same("a graph", gpu_, "is launched on", s);
  const Current current(gpu_);
  gpu_.check(gpu_.api().graph_launch(static_cast<GraphExecHandle>(handle_), handle_of(s)),
             "to launch a graph");
}

}  // namespace tw::cuda
