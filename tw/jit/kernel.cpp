#include "tw/jit/kernel.h"

#include <atomic>
#include <exception>
#include <filesystem>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <mutex>
#include <optional>
#include <thread>

#include "tw/base/env.h"
#include "tw/base/error.h"
#include "tw/emit/cpu/eject.h"
#include "tw/emit/cpu/emit_cpu.h"
#include "tw/ir/print.h"
#include "tw/jit/cache.h"
#include "tw/jit/compiler.h"
#include "tw/jit/emitter_version.h"
#include "tw/jit/story.h"
#include "tw/jit/variants.h"
#include "tw/passes/pipeline.h"
#include "tw/runtime/launch.h"
#include "tw/tensor/file.h"

namespace tw {

static Signature signature_of(const Program& p, const CpuMachine& machine) {
  auto check = [p](std::span<const int64_t> dims) { check_indices(p, dims); };
  return {p.name, launch_spec(p), machine, {dim_limit(p), check}};
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
        signature(signature_of(program, device.cpu())),
        messages(messages_of_program(program, options)),
        text(tw::print(program, {.lines = options.debug_info, .names = false})) {}

  const Program program;  // canonical
  const Device device;
  const CompileOptions options;
  const Signature signature;
  const Messages messages;
  const std::string text;  // of the program, as in keys
  Variants variants;

  Program lower(const Specialisation& s, const Story* story = nullptr) const {
    return lower(program, s, story);
  }
  Program lower(Program lowered, const Specialisation& s, const Story* story) const {
    const PassContext context{device.cpu(), options.mapping, s};
    if (story) story->add("00_canonical.tw", print(lowered, {.lines = true}));
    int step = 0;
    for (const Pass& pass : cpu_passes()) {
      run_passes(lowered, {&pass, 1}, context);
      if (story) {
        story->add(fmt::format("{:02}_{}.tw", ++step, pass.name), print(lowered, {.lines = true}));
      }
    }
    return lowered;
  }

  EmittedCpu emit(const Specialisation& s, const Story* story = nullptr) const {
    return emit_cpu(lower(s, story), s, device.cpu(), options.mapping, options.debug_info);
  }

  /// Without the facts of addresses and sizes, so that the text serves all.
  Ejected eject(Specialisation s, const EjectNames& names) const {
    s.fits32 = false;
    for (ParamFacts& facts : s.params) facts.aligned = false;
    // It has no host that could be told.
    Program silent = program;
    drop_messages(silent, true);
    canonicalize(silent);
    return eject_cpu(lower(std::move(silent), s, nullptr), s, device.cpu(), options.mapping, names);
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
    std::optional<EmittedCpu> emitted = emit_for_viewers(s, wanted);
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
    if (!emitted) emitted = emit(s);
    const std::string object =
        compile_shared(compiler, device.cpu(), emitted->text, options.debug_info);
    return cache->store(wanted, to_string(emitted->launch), object, emitted->text);
  }

  /// Whoever wants to see the steps sees them for variants that the cache has, too.
  std::optional<EmittedCpu> emit_for_viewers(const Specialisation& s,
                                             const std::string& key) const {
    const Story story(program.name + "_" + Cache::name(key).substr(0, 8));
    if (!story.wanted() && env(Env::dump).empty()) return std::nullopt;
    story.add("key.txt", key);
    EmittedCpu emitted = emit(s, &story);
    story.add("kernel.cpp", emitted.text);
    story.add("launch.txt", to_string(emitted.launch));
    return emitted;
  }

  Variant build(const Specialisation& s) const {
    Cache::Loaded loaded = load_or_compile(s);
    Variant v{loaded.module, nullptr, parse_launch_spec(loaded.metadata)};
    v.entry = reinterpret_cast<TwEntry>(v.module->symbol(v.launch.entry));
    if (!v.entry) {
      const std::string lack = "a compiled kernel lacks its entry " + v.launch.entry;
      if (env(Env::cxx).empty()) throw InternalError(lack);
      throw EnvError(fmt::format("{}, made by TW_CXX '{}'", lack, env(Env::cxx)),
                     "name a C++ compiler in TW_CXX, or unset it");
    }
    return v;
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
  check_mapping(o.mapping);
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
  const Call call(state().signature, inputs, outputs, dims);
  if (call.empty_grid()) return;
  const Variant& v = state().variant(call);
  call.run(v.entry, v.launch.scratch_bytes, state().device.pool(), state().options.threads,
           state().messages);
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

std::string Kernel::source_path(const std::vector<TensorView>& inputs,
                                const std::vector<TensorView>& outputs,
                                const std::vector<DimValue>& dims) const {
  const Call call(state().signature, inputs, outputs, dims);
  return Cache::of_environment()->source_path(state().key(call.specialisation(), find_compiler()));
}

std::string Kernel::explain_miss(const std::vector<TensorView>& inputs,
                                 const std::vector<TensorView>& outputs,
                                 const std::vector<DimValue>& dims) const {
  const Call call(state().signature, inputs, outputs, dims);
  return Cache::of_environment()->explain_miss(state().key(call.specialisation(), find_compiler()));
}

std::string Kernel::mapping() const { return to_string(state().options.mapping); }

void Kernel::eject_as(const std::string& path, const Specialisation& s,
                      const EjectOptions& options) const {
  std::filesystem::path file(path);
  if (file.extension() != ".cpp")
    throw UserError(fmt::format("eject: '{}' is no name of C++ source", path),
                    "wanted a file that ends in .cpp");
  const Ejected e = state().eject(s, {file.stem(), options.name, options.made_for});
  write_file(file, {e.source});
  write_file(file.replace_extension(".h"), {e.header});
}

void Kernel::eject(const std::string& path, const EjectOptions& options) const {
  Specialisation s = contiguous_facts(program());
  s.streaming = options.streaming;
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
