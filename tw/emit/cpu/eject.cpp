#include "tw/emit/cpu/eject.h"

#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <iterator>
#include <set>
#include <sstream>

#include "tw/base/error.h"
#include "tw/emit/cpu/pieces.h"
#include "tw/emit/cpu/task.h"

namespace tw {
namespace {

using cpu::Writer;

const char* const kFileAbi = R"(// The arguments of a call.
struct TwArgs {
  void* const* data;
  const i64* dims;
  const i64* strides;
};
)";

const char* const kCodes =
    R"(/// NAME_dims and NAME_strides are extents, of any size, and strides in elements. An axis of
/// which nothing is said may have any stride, a negative one too; so may an axis of one element.
/// An address is any multiple of the size of an element. An output overlaps nothing, neither
/// itself nor an input nor another output. Elements that C++ has no type for (f16, bf16, e4m3,
/// e5m2) are their bits; b1 is 0 or 1.
///
/// Returns 0, or why not:
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

/// Words of C++, of the function, and macros: no parameter is called so.
const char* const kTaken =
    "alignas alignof and and_eq asm auto bitand bitor bool break case catch char char16_t char32_t "
    "char8_t class compl concept const const_cast consteval constexpr constinit continue co_await "
    "co_return co_yield decltype default delete do double dynamic_cast else enum explicit export "
    "extern false float for friend goto if inline int long main mutable namespace new noexcept not "
    "not_eq nullptr operator or or_eq private protected public register reinterpret_cast requires "
    "return short signed sizeof static static_assert static_cast struct switch template this "
    "thread_local throw true try typedef typeid typename union unsigned using virtual void "
    "volatile wchar_t while xor xor_eq "
    "int8_t int16_t int32_t int64_t uint8_t uint16_t uint32_t uint64_t TwPar par pool threads "
    "launch "
    "data dims strides "
    "BIG_ENDIAN BYTE_ORDER EXIT_FAILURE EXIT_SUCCESS FD_CLR FD_ISSET FD_SET FD_SETSIZE FD_ZERO "
    "LITTLE_ENDIAN MB_CUR_MAX NFDBITS NULL PDP_ENDIAN WCONTINUED WEXITED WEXITSTATUS WIFCONTINUED "
    "WIFEXITED WIFSIGNALED WIFSTOPPED WNOHANG WNOWAIT WSTOPPED WSTOPSIG WTERMSIG WUNTRACED alloca "
    "be16toh be32toh be64toh htobe16 htobe32 htobe64 htole16 htole32 htole64 le16toh le32toh "
    "le64toh i386 linux unix";

bool is_taken(const std::string& name) {
  static const std::set<std::string> words = [] {
    std::istringstream in(kTaken);
    return std::set<std::string>{std::istream_iterator<std::string>(in), {}};
  }();
  const bool of_stdint =
      name.ends_with("_MAX") || name.ends_with("_MIN") || name.ends_with("_WIDTH");
  return of_stdint || words.contains(name);
}

std::string untaken(const std::string& name) { return is_taken(name) ? name + '_' : name; }

/// Its names are those of parameters, and of variables in the task.
Program with_untaken_names(Program p) {
  for (Param& a : p.params) a.name = untaken(a.name);
  for (Dim& d : p.dims) d.name = untaken(d.name);
  return p;
}

/// The name of the function, where its owner chose one.
std::string checked(const std::string& name) {
  const auto digit = [](char c) { return c >= '0' && c <= '9'; };
  const auto plain = [&](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || digit(c);
  };
  if (name.empty() || digit(name[0]) || !std::ranges::all_of(name, plain) || is_taken(name)) {
    throw UserError(fmt::format("eject: '{}' is no name for a function", name),
                    "wanted letters, digits and _, and no word of C++");
  }
  return name;
}

/// The names of the program as the function has them.
struct Names {
  Names(const Program& p, const std::string& chosen) {
    function = chosen.empty() ? untaken(p.name) : checked(chosen);
    for (const Param& a : arguments(p)) tensors.push_back(take(a.name));
    for (const std::string& t : tensors) dims.push_back(take(t + "_dims"));
    for (const std::string& t : tensors) strides.push_back(take(t + "_strides"));
    for (size_t d = 0; d < given_dims(p); ++d) values.push_back(value_of(p, static_cast<int>(d)));
  }

  std::string take(std::string name) {
    while (is_taken(name) || !used.insert(name).second) name += '_';
    return name;
  }

  /// The first extent that is the dim, or else a parameter of its own.
  std::string value_of(const Program& p, int dim) {
    for (size_t k = 0; k < arguments(p).size(); ++k) {
      for (size_t axis = 0; axis < p.params[k].dims.size(); ++axis) {
        const Expr& e = p.params[k].dims[axis];
        if (e.kind() == Expr::Kind::symbol && e.symbol().id == dim)
          return fmt::format("{}[{}]", dims[k], axis);
      }
    }
    given.push_back(take(p.dims[dim].name));
    return given.back();
  }

  std::string function;
  std::vector<std::string> tensors, dims, strides;
  std::vector<std::string> values;  ///< of every dim that is not chosen
  std::vector<std::string> given;   ///< dims that no tensor determines
  std::set<std::string> used;
};

std::string element_type(DType t) {
  if (t == f32) return "float";
  if (t == f64) return "double";
  return fmt::format("{}int{}_t", is_signed_int(t) && !is_packed(t) ? "" : "u", 8 * bytes(t));
}

std::string signature(const Program& p, const Names& names, bool declaration) {
  const std::string head = fmt::format("int {}(", names.function);
  std::vector<std::string> parts;
  for (size_t k = 0; k < arguments(p).size(); ++k) {
    const Param& a = p.params[k];
    const size_t rank = a.dims.size();
    parts.push_back(fmt::format("{}{}* {}", a.kind == ParamKind::in ? "const " : "",
                                element_type(a.dtype), names.tensors[k]));
    if (rank == 0) continue;
    parts.back() += fmt::format(", const int64_t (&{})[{}], const int64_t (&{})[{}]", names.dims[k],
                                rank, names.strides[k], rank);
  }
  for (const std::string& dim : names.given) parts.push_back("int64_t " + dim);
  parts.push_back(declaration ? "int threads = 1, TwPar par = nullptr, void* pool = nullptr"
                              : "int threads, TwPar par, void* pool");
  return fmt::format("{}{})", head,
                     fmt::join(parts, fmt::format(",\n{}", std::string(head.size(), ' '))));
}

void refuse(const std::string& fault, int code, Writer& out) {
  out.line(fmt::format("if ({}) return {};", fault, code));
}

/// An extent in the function, which stands outside the target that min and cdiv are built for.
std::string extent_text(const Expr& e, const Names& names) {
  if (e.is_constant()) return std::to_string(e.constant());
  if (e.kind() == Expr::Kind::symbol) return names.values[e.symbol().id];
  return fmt::format("({} + {}) / {}", extent_text(e.lhs().lhs(), names), e.lhs().rhs().constant(),
                     e.rhs().constant());
}

void check_extents(const Program& p, const Names& names, Writer& out) {
  for (size_t d = 0; d < names.values.size(); ++d) {
    const std::string& value = names.values[d];
    refuse(value + " < 0", 1, out);
    if (p.dims[d].multiple_of > 1) {
      refuse(fmt::format("{} % {} != 0", value, p.dims[d].multiple_of), 1, out);
    }
  }
  for (size_t k = 0; k < arguments(p).size(); ++k) {
    for (size_t axis = 0; axis < p.params[k].dims.size(); ++axis) {
      const Expr& e = p.params[k].dims[axis];
      const std::string got = fmt::format("{}[{}]", names.dims[k], axis);
      const std::string want = extent_text(e, names);
      if (got != want) refuse(fmt::format("{} != {}", got, want), 1, out);
    }
  }
}

void check_strides(const Specialisation& s, const Names& names, Writer& out) {
  for (size_t k = 0; k < s.params.size(); ++k) {
    const ParamFacts& facts = s.params[k];
    for (int axis = 0; axis < facts.rank; ++axis) {
      const bool unit = axis == facts.unit_axis;
      if (const int64_t whole = elements_of_bytes(facts.dtype); !unit && whole > 1) {
        refuse(fmt::format("{}[{}] > 1 && {}[{}] % {} != 0", names.dims[k], axis, names.strides[k],
                           axis, whole),
               2, out);
      }
      if (!unit && !(facts.zero_stride >> axis & 1)) continue;
      refuse(fmt::format("{0}[{2}] > 1 && {1}[{2}] != {3}", names.dims[k], names.strides[k], axis,
                         unit ? 1 : 0),
             2, out);
    }
  }
}

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
  out.open(signature(p, names, false) + " {");
  for (const char* f : isa.features) {
    refuse(fmt::format("!__builtin_cpu_supports(\"{}\")", f), 4, out);
  }
  check_extents(p, names, out);
  check_strides(s, names, out);
  std::vector<std::string> data, strides;
  for (size_t k = 0; k < arguments(p).size(); ++k) {
    data.push_back((p.params[k].kind == ParamKind::in ? "(void*)" : "") + names.tensors[k]);
    std::vector<std::string> own;
    for (size_t axis = 0; axis < p.params[k].dims.size(); ++axis) {
      own.push_back(fmt::format("{}[{}]", names.strides[k], axis));
    }
    if (!own.empty()) strides.push_back(fmt::format("{}", fmt::join(own, ", ")));
  }
  declare_array("void* const", "data", data, out);
  declare_array("const int64_t", "dims", names.values, out);
  declare_array("const int64_t", "strides", strides, out);
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

std::string dim_text(const Program& p, const Expr& e) {
  return to_string(e, [&](Symbol s) { return symbol_name(p, s); });
}

void describe_tensor(const Program& p, const ParamFacts& facts, size_t k, const Names& names,
                     Writer& out) {
  const Param& a = p.params[k];
  std::vector<std::string> extents;
  for (const Expr& e : a.dims) extents.push_back(dim_text(p, e));
  std::string text = fmt::format("///   {:<8} {} {}[{}]", names.tensors[k],
                                 a.kind == ParamKind::in    ? "input"
                                 : a.kind == ParamKind::out ? "output"
                                                            : "input and output",
                                 name(a.dtype), fmt::join(extents, ", "));
  for (int axis = 0; axis < facts.rank; ++axis) {
    if (axis == facts.unit_axis) text += fmt::format(", stride 1 along axis {}", axis);
    if (facts.zero_stride >> axis & 1) text += fmt::format(", stride 0 along axis {}", axis);
  }
  if (is_packed(a.dtype)) {
    text += fmt::format(
        ": its bytes, each row one stream of bits from the low ends up;\n///            other "
        "strides "
        "are multiples of {}",
        elements_of_bytes(a.dtype));
  }
  out.line(text);
}

void describe_run(const Program& p, const cpu::TaskText& t, const std::string& made_for,
                  Writer& out) {
  if (!made_for.empty()) {
    out.line(fmt::format("/// Its tiles were chosen for {}.", made_for));
  }
  if (cpu::chooses(p)) {
    out.line("/// The work is cut into pieces for `threads` threads, as many as `par` has.");
  } else {
    std::vector<std::string> grid;
    for (const Expr& e : p.grid) grid.push_back(dim_text(p, e));
    out.line(fmt::format("/// The work is n = {} instances.",
                         grid.empty() ? "1" : fmt::format("{}", fmt::join(grid, " * "))));
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
  out.line(fmt::format("/// Computes {} of", p.name));
  for (size_t k = 0; k < arguments(p).size(); ++k) describe_tensor(p, s.params[k], k, names, out);
  for (const std::string& dim : names.given) {
    out.line(fmt::format("///   {:<8} an integer >= 0", dim));
  }
  for (const Dim& d : p.dims) {
    if (d.multiple_of > 1) {
      out.line(fmt::format("/// {} is promised to be a multiple of {}.", d.name, d.multiple_of));
    }
  }
  out.line(kCodes);
  describe_run(p, t, words.made_for, out);
  out.line(signature(p, names, true) + ";");
  return out.text();
}

}  // namespace

Ejected eject_cpu(const Program& lowered, const Specialisation& s, const CpuMachine& machine,
                  const Mapping& mapping, const EjectNames& words) {
  const auto aligned = [](const ParamFacts& f) { return f.aligned; };
  if (s.fits32 || std::ranges::any_of(s.params, aligned)) {
    throw InternalError("eject: facts of addresses or sizes, which nothing would check");
  }
  const Program p = with_untaken_names(lowered);
  const Names names(p, words.function);
  const Program safe = cpu::with_safe_names(p);
  const cpu::TaskText t = cpu::emit_task(safe, s, machine, mapping, false, kFileAbi);
  const Isa isa = isa_of(machine, t.vnni);
  const std::string title = fmt::format("// {}, ejected by tilewright for {}, {}. It is yours.",
                                        p.name, machine.isa, to_string(mapping));
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
