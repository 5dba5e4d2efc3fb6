#include "tw/jit/kernel.h"

#include <charconv>
#include <mutex>
#include <set>

#include "tw/base/error.h"
#include "tw/capi/error.h"
#include "tw/capi/options.h"
#include "tw/capi/tensors.h"
#include "tw/kernels/entry.h"
#include "tw/runtime/cuda/cuda.h"
#include "tw/runtime/device.h"

struct tw_device {
  tw::Device device;
};

struct tw_kernel {
  tw::Device device;
  std::vector<tw::kernels::Argument> arguments;
  tw::Kernel kernel;
  std::string mapping;
  /// Texts that were given out.
  mutable std::mutex lock;
  mutable std::set<std::string> sources;
};

namespace tw::capi {

namespace {

using kernels::KernelEntry;
using kernels::Problem;

/// The pairs of "name=value,name=value". UserError that begins with `what` otherwise.
std::map<std::string, std::string> pairs_of(const char* list, const std::string& what) {
  std::map<std::string, std::string> pairs;
  std::string_view rest = list == nullptr ? "" : list;
  while (!rest.empty()) {
    const std::string_view item = rest.substr(0, rest.find(','));
    rest.remove_prefix(std::min(item.size() + 1, rest.size()));
    const size_t sign = item.find('=');
    if (sign == 0 || sign == std::string_view::npos || sign + 1 == item.size())
      throw UserError(fmt::format("{} has '{}'", what, item), "wanted name=value");
    const std::string name(item.substr(0, sign));
    if (!pairs.emplace(name, item.substr(sign + 1)).second)
      throw UserError(fmt::format("{} names '{}' twice", what, name));
  }
  return pairs;
}

int64_t extent(const std::string& axis, const std::string& text) {
  int64_t value = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc() || stop != end)
    throw UserError(fmt::format("shape has {}={}, wanted a whole number", axis, text));
  return value;
}

Problem problem_of(const KernelEntry& k, const char* shape, tw_dtype dtype, const char* choices) {
  Problem p;
  for (const auto& [axis, text] : pairs_of(shape, "shape")) p.shape[axis] = extent(axis, text);
  p.options = pairs_of(choices, "choices");
  p.dtype = dtype_of(dtype, fmt::format("kernel '{}'", k.name));
  return complete(k, std::move(p));
}

CompileOptions compile_options(const tw_kernel_options* given) {
  constexpr size_t kShortest = offsetof(tw_kernel_options, mapping) + sizeof(const char*);
  const tw_kernel_options known = known_options(given, kShortest);
  if (known.threads < 0)
    throw UserError(fmt::format("options have threads {}, wanted 0 or more", known.threads));
  CompileOptions options;
  options.threads = known.threads;
  if (known.mapping != nullptr) options.mapping = parse_mapping(known.mapping);
  return options;
}

/// The tensors of a call, as Kernel takes them.
struct Views {
  std::vector<TensorView> inputs, outputs;
};

Views views_of(const tw_kernel* k, const tw_tensor* tensors, size_t n) {
  need(k, "kernel");
  if (n != k->arguments.size())
    throw UserError(fmt::format("{} arguments, the kernel has {}", n, k->arguments.size()));
  need(tensors, "arguments");
  Views views;
  for (size_t i = 0; i < n; ++i) {
    const kernels::Argument& a = k->arguments[i];
    (a.output ? views.outputs : views.inputs)
        .push_back(view_of(tensors[i], fmt::format("argument '{}'", a.name)));
  }
  return views;
}

const kernels::Argument& argument(const tw_kernel* k, size_t i) {
  need(k, "kernel");
  if (i >= k->arguments.size())
    throw UserError(
        fmt::format("there is no argument {}, the kernel has {}", i, k->arguments.size()));
  return k->arguments[i];
}

tw_kernel* open(const Device& d, const KernelEntry& k, const Problem& p, CompileOptions options) {
  Program program = k.trace(p, d.target(options.threads));
  Kernel kernel = compile(std::move(program), d, std::move(options));
  std::string mapping = kernel.mapping();
  return new tw_kernel{d, k.arguments(p), std::move(kernel), std::move(mapping), {}, {}};
}

void launch(const tw_kernel* k, const tw_tensor* tensors, size_t n, void* stream) {
  const Views v = views_of(k, tensors, n);
  if (k->device.kind() == DeviceKind::cuda) {
    k->kernel.launch(cuda::Stream::of(k->device, stream), v.inputs, v.outputs);
    return;
  }
  if (stream != nullptr)
    throw UserError(fmt::format("{} has no streams", k->device.name()), "pass NULL");
  k->kernel(v.inputs, v.outputs);
}

}  // namespace

}  // namespace tw::capi

using tw::capi::guarded;
using tw::capi::need;

int tw_device_open(const char* name, tw_device** device) {
  return guarded([&] {
    need(name, "name");
    need(device, "device");
    *device = new tw_device{tw::Device::open(name)};
  });
}

void tw_device_free(tw_device* device) { delete device; }

int tw_kernel_open(const tw_device* device, const char* name, const char* shape, tw_dtype dtype,
                   const char* choices, const tw_kernel_options* options, tw_kernel** kernel) {
  return guarded([&] {
    need(device, "device");
    need(name, "name");
    need(kernel, "kernel");
    const tw::kernels::KernelEntry& entry = tw::kernels::kernel_named(name);
    *kernel =
        tw::capi::open(device->device, entry, tw::capi::problem_of(entry, shape, dtype, choices),
                       tw::capi::compile_options(options));
  });
}

void tw_kernel_free(tw_kernel* kernel) { delete kernel; }

int tw_kernel_argument_count(const tw_kernel* kernel, size_t* count) {
  return guarded([&] {
    need(kernel, "kernel");
    need(count, "count");
    *count = kernel->arguments.size();
  });
}

int tw_kernel_argument(const tw_kernel* kernel, size_t i, tw_argument* argument) {
  return guarded([&] {
    need(argument, "argument");
    const tw::kernels::Argument& a = tw::capi::argument(kernel, i);
    *argument = {a.name.c_str(), tw::capi::c_dtype(a.dtype), static_cast<int32_t>(a.dims.size()),
                 a.dims.data(), a.output ? 1 : 0};
  });
}

int tw_kernel_mapping(const tw_kernel* kernel, const char** mapping) {
  return guarded([&] {
    need(kernel, "kernel");
    need(mapping, "mapping");
    *mapping = kernel->mapping.c_str();
  });
}

int tw_kernel_prepare(const tw_kernel* kernel, const tw_tensor* arguments, size_t n) {
  return guarded([&] {
    const tw::capi::Views v = tw::capi::views_of(kernel, arguments, n);
    kernel->kernel.prepare(v.inputs, v.outputs);
  });
}

int tw_kernel_source(const tw_kernel* kernel, const tw_tensor* arguments, size_t n,
                     const char** source) {
  return guarded([&] {
    need(source, "source");
    const tw::capi::Views v = tw::capi::views_of(kernel, arguments, n);
    std::string text = kernel->kernel.source(v.inputs, v.outputs);
    const std::lock_guard guard(kernel->lock);
    *source = kernel->sources.insert(std::move(text)).first->c_str();
  });
}

int tw_kernel_launch(const tw_kernel* kernel, const tw_tensor* arguments, size_t n, void* stream) {
  return guarded([&] { tw::capi::launch(kernel, arguments, n, stream); });
}
