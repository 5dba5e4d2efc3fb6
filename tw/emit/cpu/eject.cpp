#include "tw/emit/cpu/eject.h"

#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "tw/base/error.h"
#include "tw/emit/cpu/eject_function.h"
#include "tw/emit/cpu/pieces.h"
#include "tw/emit/cpu/task.h"

namespace tw {
namespace {

using cpu::Writer;
using ejected::Names;

const char* const kFileAbi = R"(// The arguments of a call.
struct TwArgs {
  void* const* data;
  const i64* dims;
  const i64* strides;
};
)";

const char* const kCodes = R"(/// Returns 0, or why not:
///   1  extents disagree, are negative or break a promise      (nothing was done)
///   2  a stride is not as above                               (nothing was done)
///   3  there is no memory for scratch                         (outputs are written in part)
///   4  this processor lacks instructions that are used here   (nothing was done)
///)";

const char* const kPar =
    R"(/// Calls fn(ctx, first, last) for ranges that cover [0, n) once, on any threads, and
/// returns when all are done. `pool` is what the caller gave.
typedef void (*TwPar)(void* pool, int64_t n, void (*fn)(void* ctx, int64_t first, int64_t last),
                      void* ctx);
)";

const char* const kRun = R"(// What the ranges of a call share.
struct Call {
  TwArgs args;
  int code;
};

static void run(void* ctx, i64 first, i64 last) {
  Call* const call = (Call*)ctx;
  void* const scratch = aligned_alloc(64, $bytes);
  if (!scratch) {
    __atomic_store_n(&call->code, 3, __ATOMIC_RELAXED);
    return;
  }
  task(&call->args, first, last, scratch);
  free(scratch);
}
)";

const char* const kRunWithoutScratch = R"(// What the ranges of a call share.
struct Call {
  TwArgs args;
  int code;
};

static void run(void* ctx, i64 first, i64 last) { task(&((Call*)ctx)->args, first, last, nullptr); }
)";

// ---- the instruction set

/// What a build needs beyond a plain compiler, and what the processor must have.
struct Isa {
  const char* name;
  const char* macro;                  ///< defined where the text compiles; nullptr: everywhere
  std::vector<const char*> features;  ///< beyond the usual ones; a pragma selects them
  bool vnni = false;                  ///< not part of what -march says
};

const Isa kIsas[] = {
    {"avx2", "__x86_64__", {"avx2", "fma", "bmi", "bmi2"}},
    {"avx512",
     "__x86_64__",
     {"avx2", "fma", "bmi", "bmi2", "avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"}},
    {"neon", "__aarch64__", {}},
    {"generic", nullptr, {}},
};

Isa isa_of(const CpuMachine& m, bool vnni) {
  const Isa* found = std::ranges::find(kIsas, m.isa, &Isa::name);
  if (found == std::end(kIsas)) throw InternalError("eject does not know the isa " + m.isa);
  Isa isa = *found;
  isa.vnni = vnni;
  if (vnni) isa.features.push_back("avx512vnni");
  return isa;
}

/// From here on the text has its instructions and its contraction of a * b + c, whatever flags the
/// compiler was given.
void open_target(const Isa& isa, const CpuMachine& machine, Writer& out) {
  if (isa.macro) {
    out.line(fmt::format("#if !defined({})\n#error \"this kernel was ejected for {}\"\n#endif",
                         isa.macro, isa.name));
  }
  out.line(R"(#if defined(__FAST_MATH__) || (defined(__FINITE_MATH_ONLY__) && __FINITE_MATH_ONLY__)
#error "this kernel keeps NaN, infinities and signed zeros: build it without -ffast-math"
#endif
#if defined(__clang__)
#pragma clang fp contract(fast))");
  const std::string target =
      fmt::format("target(\"arch={}{}\")", machine.march, isa.vnni ? ",avx512vnni" : "");
  if (!isa.features.empty()) {
    out.line(fmt::format("#pragma clang attribute push(__attribute__(({})), apply_to = function)",
                         target));
  }
  out.line("#else\n#pragma GCC push_options");
  if (!isa.features.empty()) out.line("#pragma GCC " + target);
  out.line(R"(#pragma GCC optimize("O2", "fp-contract=fast", "no-trapping-math")
#endif
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wunused-parameter"
#pragma GCC diagnostic ignored "-Wunused-variable"
)");
}

void close_target(const Isa& isa, Writer& out) {
  out.line("#pragma GCC diagnostic pop");
  if (isa.features.empty()) {
    out.line("#if !defined(__clang__)");
  } else {
    out.line("#if defined(__clang__)\n#pragma clang attribute pop\n#else");
  }
  out.line("#pragma GCC pop_options\n#endif\n");
}

// ---- the function

void declare_array(const std::string& type, const std::string& name,
                   const std::vector<std::string>& items, Writer& out) {
  if (items.empty()) {
    out.line(fmt::format("{}* const {} = nullptr;", type, name));
    return;
  }
  const std::string head = fmt::format("{} {}[] = {{", type, name);
  const std::string between = ",\n" + std::string(head.size(), ' ');
  out.line(fmt::format("{}{}}};", head, fmt::join(items, between)));
}

void emit_function(const Program& p, const Specialisation& s, const Isa& isa, const Names& names,
                   Writer& out) {
  out.open(ejected::signature("int", p, names, "int threads, TwPar par, void* pool") + " {");
  for (const char* f : isa.features) {
    ejected::refuse(fmt::format("!__builtin_cpu_supports(\"{}\")", f), "4", out);
  }
  ejected::check_extents(p, names, "1", out);
  ejected::check_strides(s, names, "2", out);
  declare_array("void* const", "data", ejected::addresses(p, names), out);
  declare_array("const int64_t", "dims", names.values, out);
  declare_array("const int64_t", "strides", ejected::all_strides(p, names), out);
  out.line("return launch({data, dims, strides}, threads, par, pool);");
  out.close();
}

/// The instances of a call, each range with scratch of its own.
void emit_launch(const Program& safe, int64_t scratch, Writer& out) {
  out.line(scratch > 0 ? kRun : kRunWithoutScratch, {{"bytes", std::to_string(scratch)}});
  const bool chooses = cpu::chooses(safe);
  out.open(fmt::format("static int launch(const TwArgs& {}, i64 threads, TwPar par, void* pool) {{",
                       chooses ? "given" : "args"));
  if (chooses) {
    cpu::choose_dims(safe, "given.dims", "max(threads, 1)", out);
    out.line("const TwArgs args = {given.data, dims, given.strides};");
  }
  cpu::declare_instances(safe, "args.dims", out);
  out.line("Call call = {args, 0};");
  out.open("if (par && instances > 0) {");
  out.line("par(pool, instances, run, &call);");
  out.close("} else if (instances > 0) {");
  out.deeper();
  out.line("run(&call, 0, instances);");
  out.close();
  out.line("return call.code;");
  out.close();
  out.line();
}

// ---- the contract

void describe_run(const Program& p, const cpu::TaskText& t, const std::string& made_for,
                  Writer& out) {
  if (!made_for.empty()) {
    out.line(fmt::format("/// Its tiles were chosen for {}.", made_for));
  }
  if (cpu::chooses(p)) {
    out.line("/// The work is cut into pieces for `threads` threads, as many as `par` has.");
  } else {
    out.line(fmt::format("/// The work is n = {} instances.", ejected::grid_text(p)));
  }
  if (t.scratch_bytes > 0) {
    out.line(fmt::format("/// Each range of them takes {} bytes from aligned_alloc meanwhile.",
                         t.scratch_bytes));
  }
  if (t.streams) {
    out.line("/// Stores go around the caches: it is made for outputs larger than the last one.");
  }
  out.line("/// Without `par` the caller's thread does all; with it results are the same bits.");
}

std::string header_text(const Program& p, const Specialisation& s, const cpu::TaskText& t,
                        const Names& names, const std::string& title, const EjectNames& words) {
  Writer out;
  out.line(title);
  out.line(fmt::format(
      "// Build: g++ -std=c++17 -O2 -c {}.cpp, or clang++; any later standard does.", words.stem));
  out.line("#pragma once\n\n#include <stdint.h>\n");
  out.line(kPar);
  ejected::describe_arguments(p, s, names, out);
  out.line(kCodes);
  describe_run(p, t, words.made_for, out);
  out.line(ejected::signature("int", p, names,
                              "int threads = 1, TwPar par = nullptr, void* pool = nullptr") +
           ";");
  return out.text();
}

}  // namespace

Ejected eject_cpu(const Program& lowered, const Specialisation& s, const CpuMachine& machine,
                  const Mapping& mapping, const EjectNames& words) {
  const auto aligned = [](const ParamFacts& f) { return f.aligned; };
  if (s.fits32 || std::ranges::any_of(s.params, aligned)) {
    throw InternalError("eject: facts of addresses or sizes, which nothing would check");
  }
  const Program p = ejected::with_untaken_names(lowered);
  const Names names(p, words.function);
  const Program safe = cpu::with_safe_names(p);
  const cpu::TaskText t = cpu::emit_task(safe, s, machine, mapping, false, kFileAbi);
  const Isa isa = isa_of(machine, t.vnni);
  const std::string title = ejected::title(p, machine.isa, to_string(mapping));
  Writer before, after;
  before.line(title);
  before.line(fmt::format("#include \"{}.h\"\n\n#include <stdlib.h>\n", words.stem));
  open_target(isa, machine, before);
  before.line("namespace {\n");
  emit_launch(safe, t.scratch_bytes, after);
  after.line("}  // namespace\n");
  close_target(isa, after);
  emit_function(p, s, isa, names, after);
  return {header_text(p, s, t, names, title, words),
          before.text() + t.prelude + "\n" + t.task + "\n" + after.text()};
}

}  // namespace tw
