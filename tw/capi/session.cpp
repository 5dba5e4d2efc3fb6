#include "tw/graph/session.h"

#include <charconv>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "tw/base/error.h"
#include "tw/capi/error.h"
#include "tw/capi/options.h"
#include "tw/capi/tensors.h"

/// A model with what its functions point into.
struct tw_session {
  struct Port {
    tw::graph::Port port;
    int32_t rank = -1;
    std::vector<int64_t> dims;
  };
  tw::graph::Session session;
  std::vector<Port> inputs, outputs;
};

namespace tw::capi {

namespace {

using SessionPort = tw_session::Port;

/// A whole number, else -1: names may have digits only, too, and more than a number holds.
int64_t extent_of(const std::string& text) {
  int64_t extent = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, extent);
  return error == std::errc() && stop == end && extent >= 0 ? extent : -1;
}

std::vector<SessionPort> ports_of(const std::vector<graph::Port>& ports) {
  std::vector<SessionPort> all;
  for (const graph::Port& p : ports) {
    SessionPort c{p, -1, {}};
    if (p.dims.empty() || p.dims.front() != "..") {
      for (const std::string& d : p.dims) c.dims.push_back(extent_of(d));
      c.rank = static_cast<int32_t>(c.dims.size());
    }
    all.push_back(std::move(c));
  }
  return all;
}

graph::SessionOptions options_of(const tw_session_options* given) {
  constexpr size_t kShortest = offsetof(tw_session_options, memory_limit) + sizeof(int64_t);
  const tw_session_options known = known_options(given, kShortest);
  if (known.threads < 0)
    throw UserError(fmt::format("options have threads {}, wanted 0 or more", known.threads));
  if (known.memory_limit < 0)
    throw UserError(
        fmt::format("options have memory_limit {}, wanted 0 or more", known.memory_limit));
  graph::SessionOptions options;
  options.threads = known.threads;
  options.memory_limit = known.memory_limit;
  return options;
}

enum class Role : uint8_t { input, output };

const char* role_name(Role r) { return r == Role::input ? "input" : "output"; }

const std::vector<SessionPort>& ports(const tw_session* s, Role r) {
  need(s, "session");
  return r == Role::input ? s->inputs : s->outputs;
}

const SessionPort& port(const tw_session* s, Role r, size_t i) {
  const auto& all = ports(s, r);
  if (i >= all.size())
    throw UserError(
        fmt::format("there is no {} {}, the model has {}", role_name(r), i, all.size()));
  return all[i];
}

int get_count(const tw_session* s, Role r, size_t* count) {
  return guarded([&] {
    need(count, "count");
    *count = ports(s, r).size();
  });
}

int get_name(const tw_session* s, Role r, size_t i, const char** name) {
  return guarded([&] {
    need(name, "name");
    *name = port(s, r, i).port.name.c_str();
  });
}

int get_dtype(const tw_session* s, Role r, size_t i, tw_dtype* dtype) {
  return guarded([&] {
    need(dtype, "dtype");
    *dtype = c_dtype(port(s, r, i).port.dtype);
  });
}

int get_dims(const tw_session* s, Role r, size_t i, int32_t* rank, const int64_t** dims) {
  return guarded([&] {
    need(rank, "rank");
    need(dims, "dims");
    const SessionPort& p = port(s, r, i);
    *rank = p.rank;
    *dims = p.dims.data();
  });
}

int get_dim_name(const tw_session* s, Role r, size_t i, int32_t axis, const char** name) {
  return guarded([&] {
    need(name, "name");
    const SessionPort& p = port(s, r, i);
    if (axis < 0 || axis >= p.rank)
      throw UserError(fmt::format("{} '{}' has no axis {}, its rank is {}", role_name(r),
                                  p.port.name, axis, p.rank));
    *name = p.port.dims[static_cast<size_t>(axis)].c_str();
  });
}

void check_tensors(const tw_session* s, Role r, const tw_tensor* tensors, size_t n) {
  const size_t want = ports(s, r).size();
  if (n != want) throw UserError(fmt::format("{} {}s, the model has {}", n, role_name(r), want));
  if (want > 0) need(tensors, r == Role::input ? "inputs" : "outputs");
}

TensorView checked_view(const SessionPort& p, Role r, const tw_tensor& t) {
  const std::string what = fmt::format("{} '{}'", role_name(r), p.port.name);
  TensorView v = view_of(t, what);
  if (v.dtype != p.port.dtype)
    throw UserError(fmt::format("{} is {}, wanted {}", what, name(v.dtype), name(p.port.dtype)));
  return v;
}

void run(const tw_session* s, const tw_tensor* inputs, size_t n_inputs, tw_tensor* outputs,
         size_t n_outputs) {
  check_tensors(s, Role::input, inputs, n_inputs);
  check_tensors(s, Role::output, outputs, n_outputs);
  std::vector<TensorView> from, to;
  graph::Session::Dims dims;
  for (size_t i = 0; i < n_inputs; ++i) {
    from.push_back(checked_view(s->inputs[i], Role::input, inputs[i]));
    dims[s->inputs[i].port.name] = from.back().dims;
  }
  const graph::Session::Prepared p = s->session.plan(dims);
  const auto extents = p.plan->output_dims(p.sizes);
  std::vector<tw_tensor> made(n_outputs);
  struct Release {
    std::vector<tw_tensor>& all;
    ~Release() {
      for (tw_tensor& t : all) tw_tensor_release(&t);
    }
  } release{made};
  for (size_t i = 0; i < n_outputs; ++i) {
    if (outputs[i].data != nullptr) {
      to.push_back(checked_view(s->outputs[i], Role::output, outputs[i]));
      continue;
    }
    Tensor t = host_tensor(s->outputs[i].port.dtype, extents[i]);
    to.push_back(t.view());
    made[i] = give(std::move(t));
  }
  p.plan->run(from, to);
  for (size_t i = 0; i < n_outputs; ++i)
    if (made[i].owner != nullptr) outputs[i] = std::exchange(made[i], {});
}

}  // namespace

}  // namespace tw::capi

using tw::capi::guarded;
using tw::capi::need;
using tw::capi::Role;

int tw_session_load(const char* path, const tw_session_options* options, tw_session** session) {
  return guarded([&] {
    need(path, "path");
    need(session, "session");
    auto loaded = tw::graph::Session::load(path, tw::capi::options_of(options));
    auto inputs = tw::capi::ports_of(loaded.inputs()),
         outputs = tw::capi::ports_of(loaded.outputs());
    *session = new tw_session{std::move(loaded), std::move(inputs), std::move(outputs)};
  });
}

void tw_session_free(tw_session* session) { delete session; }

int tw_session_input_count(const tw_session* session, size_t* count) {
  return tw::capi::get_count(session, Role::input, count);
}
int tw_session_input_name(const tw_session* session, size_t i, const char** name) {
  return tw::capi::get_name(session, Role::input, i, name);
}
int tw_session_input_dtype(const tw_session* session, size_t i, tw_dtype* dtype) {
  return tw::capi::get_dtype(session, Role::input, i, dtype);
}
int tw_session_input_dims(const tw_session* session, size_t i, int32_t* rank,
                          const int64_t** dims) {
  return tw::capi::get_dims(session, Role::input, i, rank, dims);
}
int tw_session_input_dim_name(const tw_session* session, size_t i, int32_t axis,
                              const char** name) {
  return tw::capi::get_dim_name(session, Role::input, i, axis, name);
}
int tw_session_output_count(const tw_session* session, size_t* count) {
  return tw::capi::get_count(session, Role::output, count);
}
int tw_session_output_name(const tw_session* session, size_t i, const char** name) {
  return tw::capi::get_name(session, Role::output, i, name);
}
int tw_session_output_dtype(const tw_session* session, size_t i, tw_dtype* dtype) {
  return tw::capi::get_dtype(session, Role::output, i, dtype);
}
int tw_session_output_dims(const tw_session* session, size_t i, int32_t* rank,
                           const int64_t** dims) {
  return tw::capi::get_dims(session, Role::output, i, rank, dims);
}
int tw_session_output_dim_name(const tw_session* session, size_t i, int32_t axis,
                               const char** name) {
  return tw::capi::get_dim_name(session, Role::output, i, axis, name);
}

int tw_session_run(const tw_session* session, const tw_tensor* inputs, size_t n_inputs,
                   tw_tensor* outputs, size_t n_outputs) {
  return guarded([&] { tw::capi::run(session, inputs, n_inputs, outputs, n_outputs); });
}
