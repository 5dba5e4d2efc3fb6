#include "tw/jit/kernel.h"

#include <atomic>
#include <exception>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <mutex>
#include <thread>

#include "tw/base/env.h"
#include "tw/base/error.h"
#include "tw/emit/cpu/emit_cpu.h"
#include "tw/ir/print.h"
#include "tw/jit/cache.h"
#include "tw/jit/compiler.h"
#include "tw/jit/emitter_version.h"
#include "tw/jit/variants.h"
#include "tw/passes/pipeline.h"
#include "tw/runtime/launch.h"

namespace tw {

static LaunchSpec signature_of(const Program& p) {
  LaunchSpec s;
  for (const Dim& d : p.dims) s.dims.push_back({d.name, d.multiple_of});
  for (const Param& a : p.params) {
    s.args.push_back({.name = a.name,
                      .dtype = a.dtype,
                      .rank = static_cast<int>(a.dims.size()),
                      .written = a.kind != ParamKind::in,
                      .read = a.kind != ParamKind::out,
                      .dims = a.dims});
  }
  s.grid = p.grid;
  return s;
}

struct Kernel::State {
  State(Program p, const Device& d, CompileOptions o)
      : program(std::move(p)),
        device(d),
        options(std::move(o)),
        signature(program.name, signature_of(program), device.cpu()),
        text(print(program, {.lines = options.debug_info, .names = false})) {}

  const Program program;  // canonical
  const Device device;
  const CompileOptions options;
  const Signature signature;
  const std::string text;  // of the program, as in keys
  Variants variants;

  EmittedCpu emit(const Specialisation& s) const {
    Program lowered = program;
    run_passes(lowered, cpu_passes(), {device.cpu(), options.mapping, s});
    return emit_cpu(lowered, s, device.cpu(), options.mapping, options.debug_info);
  }

  /// All that decides what the variant becomes, as lines of text.
  std::string key(const Specialisation& s, const Compiler& compiler) const {
    return fmt::format(
        "tilewright {}\ncompiler {}\nflags {}\nmachine {}\nmapping {}\nmode {}\n"
        "specialisation {}\n{}",
        emitter_version(), compiler.identity,
        fmt::join(compile_flags(compiler, device.cpu(), options.debug_info), " "),
        to_string(device.cpu()), to_string(options.mapping), static_cast<int>(options.mode),
        to_string(s, signature.arg_names()), text);
  }

  Cache::Loaded load_or_compile(const Specialisation& s) const {
    const Compiler compiler = find_compiler();
    const std::string wanted = key(s, compiler);
    const std::shared_ptr<Cache> cache = Cache::of_environment();
    if (auto found = cache->load(wanted)) return *found;
    if (env_on(Env::no_compile)) {
      throw UserError(fmt::format("TW_NO_COMPILE is set and '{}' is not in the cache '{}' as {}",
                                  program.name, cache->folder(), Cache::name(wanted)),
                      "prepare() it before, or unset TW_NO_COMPILE");
    }
    const Cache::Turn turn(*cache, wanted);
    if (turn.waited()) {
      if (auto found = cache->load(wanted)) return *found;
    }
    const EmittedCpu emitted = emit(s);
    const std::string object =
        compile_shared(compiler, device.cpu(), emitted.text, options.debug_info);
    return cache->store(wanted, to_string(emitted.launch), object, emitted.text);
  }

  Variant build(const Specialisation& s) const {
    Cache::Loaded loaded = load_or_compile(s);
    Variant v{loaded.module, nullptr, parse_launch_spec(loaded.metadata)};
    v.entry = reinterpret_cast<TwEntry>(v.module->symbol(v.launch.entry));
    if (!v.entry) throw InternalError("a compiled kernel lacks its entry " + v.launch.entry);
    return v;
  }

  const Variant& variant(const Call& call) {
    return variants.get(call.facts(), [&] { return build(call.specialisation()); });
  }
};

Kernel compile(Program p, const Device& d, CompileOptions o) {
  canonicalize(p);
  Kernel k;
  k.state_ = std::make_shared<Kernel::State>(std::move(p), d, std::move(o));
  return k;
}

void Kernel::operator()(const std::vector<TensorView>& inputs,
                        const std::vector<TensorView>& outputs,
                        const std::vector<DimValue>& dims) const {
  const Call call(state_->signature, inputs, outputs, dims);
  if (call.empty_grid()) return;
  const Variant& v = state_->variant(call);
  call.run(v.entry, v.launch.scratch_bytes, state_->device.pool(), state_->options.threads);
}

void Kernel::prepare(const std::vector<TensorView>& inputs, const std::vector<TensorView>& outputs,
                     const std::vector<DimValue>& dims) const {
  state_->variant(Call(state_->signature, inputs, outputs, dims));
}

const Program& Kernel::program() const { return state_->program; }

std::string Kernel::source(const std::vector<TensorView>& inputs,
                           const std::vector<TensorView>& outputs,
                           const std::vector<DimValue>& dims) const {
  return state_->emit(Call(state_->signature, inputs, outputs, dims).specialisation()).text;
}

std::string Kernel::source_path(const std::vector<TensorView>& inputs,
                                const std::vector<TensorView>& outputs,
                                const std::vector<DimValue>& dims) const {
  const Call call(state_->signature, inputs, outputs, dims);
  return Cache::of_environment()->source_path(state_->key(call.specialisation(), find_compiler()));
}

std::string Kernel::explain_miss(const std::vector<TensorView>& inputs,
                                 const std::vector<TensorView>& outputs,
                                 const std::vector<DimValue>& dims) const {
  const Call call(state_->signature, inputs, outputs, dims);
  return Cache::of_environment()->explain_miss(state_->key(call.specialisation(), find_compiler()));
}

std::string Kernel::mapping() const { return to_string(state_->options.mapping); }

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
