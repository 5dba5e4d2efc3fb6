#include "tw/jit/kernel.h"

#include <atomic>
#include <exception>
#include <filesystem>
#include <fmt/format.h>
#include <mutex>
#include <optional>
#include <thread>

#include "tw/base/env.h"
#include "tw/base/error.h"
#include "tw/emit/cpu/eject.h"
#include "tw/emit/cuda/eject_cuda.h"
#include "tw/ir/print.h"
#include "tw/jit/backend.h"
#include "tw/jit/cache.h"
#include "tw/jit/emitter_version.h"
#include "tw/jit/story.h"
#include "tw/jit/variants.h"
#include "tw/passes/pipeline.h"
#include "tw/runtime/launch.h"
#include "tw/tensor/file.h"

namespace tw {

static Signature::DimCheck dim_check_of(const Program& p) {
  return {dim_limit(p), [p](std::span<const int64_t> dims) { check_indices(p, dims); }};
}

const char* scheme_of(DeviceKind kind) {
  switch (kind) {
    case DeviceKind::cpu:
      return "cpu1";
    case DeviceKind::cuda:
    case DeviceKind::emu:
      return "cuda1";
  }
  throw InternalError("a device of no kind");
}

static std::atomic<MakeBackend> emulated_backend{nullptr};

void set_emulated_backend(MakeBackend make) { emulated_backend = make; }

std::unique_ptr<const Backend> backend_of(const Device& d, const CompileOptions& options) {
  switch (d.kind()) {
    case DeviceKind::cpu:
      return cpu_backend(d, options);
    case DeviceKind::cuda:
      return cuda_backend(d, options);
    case DeviceKind::emu:
      return emulated_backend.load()(d, options);
  }
  throw InternalError("a device of no kind");
}

static Messages messages_of_program(const Program& p, const CompileOptions& o) {
  Messages m{{}, o.print};
  for (const Op* op : messages_of(p)) {
    const Type& t = p.type(op->in[0]);
    m.all.push_back(
        {op->at, op->as<MessageAttr>().text, op->code == Opcode::assert_, t.dtype, t.shape});
  }
  return m;
}

struct Kernel::State {
  State(Program p, const Device& d, CompileOptions o)
      : program(std::move(p)),
        device(d),
        options(std::move(o)),
        backend(backend_of(device, options)),
        signature(backend->signature(program, dim_check_of(program))),
        messages(messages_of_program(program, options)),
        text(tw::print(program, {.lines = options.debug_info, .names = false})) {}

  const Program program;  // canonical
  const Device device;
  const CompileOptions options;
  const std::unique_ptr<const Backend> backend;
  const Signature signature;
  const Messages messages;
  const std::string text;  // of the program, as in keys
  Variants variants;

  Program lower(Program lowered, const Specialisation& s, const Story* story = nullptr) const {
    const PassContext context{backend->machine_of_passes(), options.mapping, s};
    if (story) story->add("00_canonical.tw", print(lowered, {.lines = true}));
    int step = 0;
    for (const Pass& pass : backend->passes()) {
      run_passes(lowered, {&pass, 1}, context);
      if (story) {
        story->add(fmt::format("{:02}_{}.tw", ++step, pass.name), print(lowered, {.lines = true}));
      }
    }
    return lowered;
  }

  Emitted emit(const Specialisation& s, const Story* story = nullptr) const {
    return backend->emit(lower(program, s, story), s);
  }

  /// For tensors of any size and address. On GPUs the facts of addresses serve calls that have
  /// them.
  Ejected eject(Specialisation s, const EjectNames& names) const {
    s.fits32 = false;
    Specialisation any = s;
    for (ParamFacts& facts : any.params) facts.aligned = facts.whole = false;
    // It has no host that could be told.
    Program silent = program;
    drop_messages(silent, true);
    canonicalize(silent);
    switch (device.kind()) {
      case DeviceKind::cpu:
        return eject_cpu(lower(silent, any), any, device.cpu(), options.mapping, names);
      case DeviceKind::cuda:
      case DeviceKind::emu:
        return eject_cuda({lower(silent, s), s}, {lower(silent, any), any}, device.gpu(),
                          options.mapping, names);
    }
    throw InternalError("a device of no kind");
  }

  /// All that decides what the variant becomes, as lines of text.
  std::string key(const Specialisation& s, const Toolchain& tools) const {
    return fmt::format("tilewright {}\n{}mapping {}\nmode {}\nspecialisation {}\n{}",
                       emitter_version(), tools.identity(), to_string(options.mapping),
                       static_cast<int>(options.mode), to_string(s, signature.arg_names()), text);
  }
  std::string key(const Call& call) const {
    return key(call.specialisation(), *backend->toolchain());
  }

  Variant build(const Specialisation& s) const {
    const std::unique_ptr<const Toolchain> tools = backend->toolchain();
    const std::string wanted = key(s, *tools);
    const std::shared_ptr<Cache> cache = Cache::of_environment();
    std::optional<Emitted> emitted = emit_for_viewers(s, wanted);
    if (auto found = backend->load(*cache, wanted)) return *found;
    if (env_on(Env::no_compile)) {
      throw UserError(fmt::format("TW_NO_COMPILE is set and '{}' is not in the cache '{}' as {}",
                                  program.name, cache->folder(), Cache::name(wanted)),
                      "prepare() it before, or unset TW_NO_COMPILE");
    }
    const Cache::Turn turn(*cache, wanted);
    if (turn.waited()) {
      if (auto found = backend->load(*cache, wanted)) return *found;
    }
    if (!emitted) emitted = emit(s);
    return backend->store(*cache, wanted, *emitted, tools->compile(emitted->text));
  }

  /// Whoever wants to see the steps sees them for variants that the cache has, too.
  std::optional<Emitted> emit_for_viewers(const Specialisation& s, const std::string& key) const {
    const Story story(program.name + "_" + Cache::name(key).substr(0, 8));
    if (!story.wanted() && env(Env::dump).empty()) return std::nullopt;
    story.add("key.txt", key);
    Emitted emitted = emit(s, &story);
    story.add(backend->text_file(), emitted.text);
    story.add("launch.txt", to_string(emitted.launch));
    return emitted;
  }

  void run(std::span<const TensorView> inputs, std::span<const TensorView> outputs,
           std::span<const DimValue> dims, const cuda::Stream* stream) {
    const Call call(signature, inputs, outputs, dims);
    if (call.empty_grid()) return;
    backend->run(call, variant(call), messages, stream);
  }

  const Variant& variant(const Call& call) {
    return variants.get(call.facts(), [&] { return build(call.specialisation()); });
  }
};

Kernel::State& Kernel::state() const {
  if (!state_) throw UserError("an empty Kernel is used", "make it with compile()");
  return *state_;
}

Kernel compile(Program p, const Device& d, CompileOptions o) {
  if (o.mapping == Mapping{}) o.mapping.scheme = scheme_of(d.kind());
  check_mapping(o.mapping);
  if (o.mapping.scheme != scheme_of(d.kind())) {
    throw UserError(fmt::format("mapping: scheme '{}' on device '{}'", o.mapping.scheme, d.name()),
                    fmt::format("wanted '{}'", scheme_of(d.kind())));
  }
  if (o.threads < 0) {
    throw UserError(fmt::format("compile: options.threads is {}", o.threads),
                    "wanted a count, or 0 for all of the pool's");
  }
  if (o.checked)
    check_divisions(p);
  else
    drop_messages(p, false);
  canonicalize(p);
  Kernel k;
  k.state_ = std::make_shared<Kernel::State>(std::move(p), d, std::move(o));
  return k;
}

void Kernel::operator()(const std::vector<TensorView>& inputs,
                        const std::vector<TensorView>& outputs,
                        const std::vector<DimValue>& dims) const {
  state().run(inputs, outputs, dims, nullptr);
}

void Kernel::launch(const cuda::Stream& stream, const std::vector<TensorView>& inputs,
                    const std::vector<TensorView>& outputs,
                    const std::vector<DimValue>& dims) const {
  state().run(inputs, outputs, dims, &stream);
}

void Kernel::prepare(const std::vector<TensorView>& inputs, const std::vector<TensorView>& outputs,
                     const std::vector<DimValue>& dims) const {
  state().variant(Call(state().signature, inputs, outputs, dims));
}

const Program& Kernel::program() const { return state().program; }

std::string Kernel::source(const std::vector<TensorView>& inputs,
                           const std::vector<TensorView>& outputs,
                           const std::vector<DimValue>& dims) const {
  return state().emit(Call(state().signature, inputs, outputs, dims).specialisation()).text;
}

LaunchSpec Kernel::launch_spec(const std::vector<TensorView>& inputs,
                               const std::vector<TensorView>& outputs,
                               const std::vector<DimValue>& dims) const {
  return state().emit(Call(state().signature, inputs, outputs, dims).specialisation()).launch;
}

std::string Kernel::source_path(const std::vector<TensorView>& inputs,
                                const std::vector<TensorView>& outputs,
                                const std::vector<DimValue>& dims) const {
  const Call call(state().signature, inputs, outputs, dims);
  return Cache::of_environment()->source_path(state().key(call), state().backend->form());
}

std::string Kernel::explain_miss(const std::vector<TensorView>& inputs,
                                 const std::vector<TensorView>& outputs,
                                 const std::vector<DimValue>& dims) const {
  const Call call(state().signature, inputs, outputs, dims);
  return Cache::of_environment()->explain_miss(state().key(call));
}

std::string Kernel::mapping() const { return to_string(state().options.mapping); }

void Kernel::eject_as(const std::string& path, const Specialisation& s,
                      const EjectOptions& options) const {
  std::filesystem::path file(path);
  const Backend& backend = *state().backend;
  const std::string extension = std::filesystem::path(backend.text_file()).extension();
  if (file.extension() != extension) {
    throw UserError(fmt::format("eject: '{}' is no name of {} source", path, backend.language()),
                    fmt::format("wanted a file that ends in {}", extension));
  }
  const Ejected e = state().eject(s, {file.stem(), options.name, options.made_for});
  write_file(file, {e.source});
  write_file(file.replace_extension(".h"), {e.header});
}

void Kernel::eject(const std::string& path, const EjectOptions& options) const {
  Specialisation s = contiguous_facts(program());
  s.streaming = options.streaming;
  for (ParamFacts& facts : s.params) facts.aligned = true;
  eject_as(path, s, options);
}

void Kernel::eject(const std::string& path, const std::vector<TensorView>& inputs,
                   const std::vector<TensorView>& outputs, const std::vector<DimValue>& dims,
                   const EjectOptions& options) const {
  eject_as(path, Call(state().signature, inputs, outputs, dims).specialisation(), options);
}

void prepare_all(const std::vector<Preparation>& all) {
  std::atomic<size_t> next{0};
  std::mutex lock;
  std::exception_ptr first;
  auto work = [&] {
    for (size_t i = next++; i < all.size(); i = next++) {
      try {
        all[i].kernel.prepare(all[i].inputs, all[i].outputs, all[i].dims);
      } catch (...) {
        std::lock_guard guard(lock);
        if (!first) first = std::current_exception();
      }
    }
  };
  std::vector<std::thread> threads;
  const size_t wanted = std::min<size_t>(usable_cores(), all.size());
  for (size_t i = 1; i < wanted; ++i) threads.emplace_back(work);
  work();
  for (std::thread& t : threads) t.join();
  if (first) std::rethrow_exception(first);
}

}  // namespace tw
