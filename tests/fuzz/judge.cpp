#include "tests/fuzz/judge.h"

#include <cmath>
#include <cstring>
#include <exception>
#include <fmt/format.h>

#include "tw/interp/interpreter.h"

namespace tw::test {

namespace {

/// Elements in row-major order.
std::vector<Scalar> elements(const TensorView& t) {
  const Tensor c = copy(t);
  std::vector<Scalar> list;
  const auto size = static_cast<size_t>(bytes(t.dtype));
  for (int64_t i = 0; i < c.count(); ++i) {
    uint64_t bits = 0;
    std::memcpy(&bits, c.data<char>() + i * static_cast<int64_t>(size), size);
    list.push_back(from_bits(t.dtype, bits));
  }
  return list;
}

bool right(const Scalar& want, const Scalar& got) {
  if (want.undecided) return true;
  if (std::isnan(want.f) || std::isnan(got.f)) return std::isnan(want.f) && std::isnan(got.f);
  if (want.bound > 0) return std::fabs(got.f - want.f) <= want.bound;
  return want.i == got.i && want.f == got.f && std::signbit(want.f) == std::signbit(got.f);
}

std::string text(DType t, const Scalar& s) {
  if (s.undecided) return "undecided";
  if (!is_float(t)) return std::to_string(s.i);
  return s.bound > 0 ? fmt::format("{} +- {:.3g}", s.f, s.bound) : fmt::format("{}", s.f);
}

std::string place(int64_t linear, const std::vector<int64_t>& dims) {
  std::string s;
  for (size_t k = dims.size(); k-- > 0; linear /= dims[k])
    s = std::to_string(linear % dims[k]) + (s.empty() ? "" : ", ") + s;
  return "[" + s + "]";
}

void compare(Verdict& v, const std::string& name, const TensorView& t,
             const std::vector<Scalar>& want) {
  const std::vector<Scalar> got = elements(t);
  int64_t wrong = 0;
  std::string first;
  for (size_t i = 0; i < want.size(); ++i) {
    ++v.elements;
    v.undecided += want[i].undecided;
    v.exact += !want[i].undecided && want[i].bound == 0;
    if (right(want[i], got[i])) continue;
    if (wrong++ == 0)
      first = fmt::format("{}{} is {}, wanted {}", name, place(static_cast<int64_t>(i), t.dims),
                          text(t.dtype, got[i]), text(t.dtype, want[i]));
  }
  if (wrong > 0 && v.fault.empty())
    v.fault = fmt::format("{} ({} of {} elements of {} {})", first, wrong, want.size(), name,
                          to_string(t));
}

}  // namespace

Verdict judge(const RandomProgram& r, const Subject& subject) {
  const Arguments ours = arguments(r), theirs = arguments(r);
  const Interpretation want =
      interpret(r.program, ours.inputs, ours.outputs, r.dims, {InterpretMode::bounded, {}});
  Verdict v;
  try {
    subject(r, theirs);
  } catch (const std::exception& e) {
    v.fault = e.what();
    return v;
  }
  size_t output = 0;
  for (size_t i = 0; i < theirs.tensors.size(); ++i) {
    const Param& p = r.program.params[i];
    if (const std::string d = theirs.tensors[i].damage(); !d.empty() && v.fault.empty())
      v.fault = p.name + ": " + d;
    if (p.kind != ParamKind::in)
      compare(v, p.name, theirs.tensors[i].view(), want.outputs[output++]);
    else if (v.fault.empty())
      compare(v, p.name, theirs.tensors[i].view(), elements(ours.tensors[i].view()));
  }
  return v;
}

}  // namespace tw::test
