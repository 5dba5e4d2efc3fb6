#include "tw/emit/cpu/eject_function.h"

#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <iterator>
#include <sstream>

#include "tw/base/error.h"
#include "tw/emit/cpu/pieces.h"

namespace tw::ejected {
namespace {

const char* const kArrays =
    R"(/// NAME_dims and NAME_strides are extents, of any size, and strides in elements. An axis of
/// which nothing is said may have any stride, a negative one too; so may an axis of one element.
/// An address is any multiple of the size of an element. An output overlaps nothing, neither
/// itself nor an input nor another output. Elements that C++ has no type for (f16, bf16, e4m3,
/// e5m2) are their bits; b1 is 0 or 1.
///)";

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
    "le64toh i386 linux unix "
    // of cuda_runtime.h
    "cudaError_t cudaStream_t stream workspace BUFSIZ CHAR_BIT EOF INFINITY L_tmpnam MAXFLOAT "
    "MAX_CANON MAX_INPUT NAN NZERO SNAN SNANF SNANL TIME_UTC assert math_errhandling offsetof "
    "stderr stdin stdout strdupa toascii";

bool is_taken(const std::string& name) {
  static const std::set<std::string> words = [] {
    std::istringstream in(kTaken);
    return std::set<std::string>{std::istream_iterator<std::string>(in), {}};
  }();
  for (const char* end : {"_MAX", "_MIN", "_WIDTH"}) {
    if (name.ends_with(end)) return true;
  }
  for (const char* begin : {"M_", "FP_", "HUGE_VAL", "CLOCK_", "CUDA", "cuda"}) {
    if (name.starts_with(begin)) return true;
  }
  return words.contains(name);
}

std::string untaken(const std::string& name) { return is_taken(name) ? name + '_' : name; }

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

std::string element_type(DType t) {
  if (t == f32) return "float";
  if (t == f64) return "double";
  return fmt::format("{}int{}_t", is_signed_int(t) && !is_packed(t) ? "" : "u", 8 * bytes(t));
}

/// An extent in the function, which stands outside the target that min and cdiv are built for.
std::string extent_text(const Expr& e, const Names& names) {
  if (e.is_constant()) return std::to_string(e.constant());
  if (e.kind() == Expr::Kind::symbol) return names.values[e.symbol().id];
  return fmt::format("({} + {}) / {}", extent_text(e.lhs().lhs(), names), e.lhs().rhs().constant(),
                     e.rhs().constant());
}

void describe_tensor(const Program& p, const ParamFacts& facts, size_t k, const Names& names,
                     Writer& out) {
  const Param& a = p.params[k];
  std::vector<std::string> extents;
  for (const Expr& e : a.dims) extents.push_back(dim_text(p, e));
  std::string text =
      fmt::format("///   {:<8} {} {}[{}]", names.tensors[k],
                  a.kind == ParamKind::in          ? "input"
                  : a.kind == ParamKind::out       ? "output"
                  : a.kind == ParamKind::workspace ? "workspace, all zeros before a call,"
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

}  // namespace

Program with_untaken_names(Program p) {
  for (Param& a : p.params) a.name = untaken(a.name);
  for (Dim& d : p.dims) d.name = untaken(d.name);
  return p;
}

Names::Names(const Program& p, const std::string& chosen, std::set<std::string> own)
    : used_(std::move(own)) {
  function = chosen.empty() ? untaken(p.name) : checked(chosen);
  for (const Param& a : arguments(p)) tensors.push_back(take(a.name));
  for (const std::string& t : tensors) dims.push_back(take(t + "_dims"));
  for (const std::string& t : tensors) strides.push_back(take(t + "_strides"));
  for (size_t d = 0; d < given_dims(p); ++d) values.push_back(value_of(p, static_cast<int>(d)));
}

std::string Names::take(std::string name) {
  while (is_taken(name) || !used_.insert(name).second) name += '_';
  return name;
}

/// The first extent that is the dim, or else a parameter of its own.
std::string Names::value_of(const Program& p, int dim) {
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

std::string signature(const std::string& result, const Program& p, const Names& names,
                      const std::string& last) {
  const std::string head = fmt::format("{} {}(", result, names.function);
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
  parts.push_back(last);
  return fmt::format("{}{})", head,
                     fmt::join(parts, fmt::format(",\n{}", std::string(head.size(), ' '))));
}

void refuse(const std::string& fault, const std::string& code, Writer& out) {
  out.line(fmt::format("if ({}) return {};", fault, code));
}

void check_extents(const Program& p, const Names& names, const std::string& code, Writer& out) {
  for (size_t d = 0; d < names.values.size(); ++d) {
    const std::string& value = names.values[d];
    refuse(value + " < 0", code, out);
    if (p.dims[d].multiple_of > 1) {
      refuse(fmt::format("{} % {} != 0", value, p.dims[d].multiple_of), code, out);
    }
  }
  for (size_t k = 0; k < arguments(p).size(); ++k) {
    for (size_t axis = 0; axis < p.params[k].dims.size(); ++axis) {
      const Expr& e = p.params[k].dims[axis];
      const std::string got = fmt::format("{}[{}]", names.dims[k], axis);
      const std::string want = extent_text(e, names);
      if (got != want) refuse(fmt::format("{} != {}", got, want), code, out);
    }
  }
}

void check_strides(const Specialisation& s, const Names& names, const std::string& code,
                   Writer& out) {
  for (size_t k = 0; k < s.params.size(); ++k) {
    const ParamFacts& facts = s.params[k];
    for (int axis = 0; axis < facts.rank; ++axis) {
      const bool unit = axis == facts.unit_axis;
      if (const int64_t whole = elements_of_bytes(facts.dtype); !unit && whole > 1) {
        refuse(fmt::format("{}[{}] > 1 && {}[{}] % {} != 0", names.dims[k], axis, names.strides[k],
                           axis, whole),
               code, out);
      }
      if (!unit && !(facts.zero_stride >> axis & 1)) continue;
      refuse(fmt::format("{0}[{2}] > 1 && {1}[{2}] != {3}", names.dims[k], names.strides[k], axis,
                         unit ? 1 : 0),
             code, out);
    }
  }
}

std::vector<std::string> addresses(const Program& p, const Names& names) {
  std::vector<std::string> all;
  for (size_t k = 0; k < arguments(p).size(); ++k)
    all.push_back((p.params[k].kind == ParamKind::in ? "(void*)" : "") + names.tensors[k]);
  return all;
}

std::vector<std::string> all_strides(const Program& p, const Names& names) {
  std::vector<std::string> all;
  for (size_t k = 0; k < arguments(p).size(); ++k) {
    std::vector<std::string> own;
    for (size_t axis = 0; axis < p.params[k].dims.size(); ++axis)
      own.push_back(fmt::format("{}[{}]", names.strides[k], axis));
    if (!own.empty()) all.push_back(fmt::format("{}", fmt::join(own, ", ")));
  }
  return all;
}

std::string dim_text(const Program& p, const Expr& e) {
  return to_string(e, [&](Symbol s) { return symbol_name(p, s); });
}

void describe_arguments(const Program& p, const Specialisation& s, const Names& names,
                        Writer& out) {
  out.line(fmt::format("/// Computes {} of", p.name));
  for (size_t k = 0; k < arguments(p).size(); ++k) describe_tensor(p, s.params[k], k, names, out);
  for (const std::string& dim : names.given)
    out.line(fmt::format("///   {:<8} an integer >= 0", dim));
  for (const Dim& d : p.dims) {
    if (d.multiple_of > 1)
      out.line(fmt::format("/// {} is promised to be a multiple of {}.", d.name, d.multiple_of));
  }
  out.line(kArrays);
}

std::string grid_text(const Program& p) {
  std::vector<std::string> grid;
  for (const Expr& e : p.grid) grid.push_back(dim_text(p, e));
  return grid.empty() ? "1" : fmt::format("{}", fmt::join(grid, " * "));
}

std::string title(const Program& p, const std::string& machine, const std::string& mapping) {
  return fmt::format("// {}, ejected by tilewright for {}, {}. It is yours.", p.name, machine,
                     mapping);
}

}  // namespace tw::ejected
