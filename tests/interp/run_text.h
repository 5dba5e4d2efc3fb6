#pragma once

#include <string>
#include <vector>

#include "tw/interp/interpreter.h"
#include "tw/ir/print.h"
#include "tw/ir/verify.h"

namespace tw::test {

/// A contiguous tensor of these values, rounded to the dtype.
inline Tensor tensor(DType t, const std::vector<int64_t>& dims, const std::vector<double>& values) {
  Tensor r = host_tensor(t, dims);
  for (int64_t i = 0; i < r.count(); ++i) set(r, i, values[static_cast<size_t>(i)]);
  return r;
}

inline std::vector<double> values(const TensorView& t) {
  std::vector<double> r;
  for (int64_t i = 0; i < t.count(); ++i) r.push_back(get(t, i));
  return r;
}

/// Runs a program in text on inputs; its outputs start as zeros of the given types.
inline std::vector<Tensor> run_text(const std::string& text, const std::vector<Tensor>& inputs,
                                    const std::vector<Type>& outputs,
                                    const InterpretOptions& options = {},
                                    Interpretation* report = nullptr) {
  const Program p = parse(text, "test.tw");
  verify(p, "parse");
  std::vector<TensorView> in(inputs.begin(), inputs.end()), out;
  std::vector<Tensor> results;
  for (const Type& t : outputs) {
    results.push_back(tensor(t.dtype, t.shape, std::vector<double>(count(t.shape), 0)));
    out.push_back(results.back());
  }
  const Interpretation r = interpret(p, in, out, {}, options);
  if (report) *report = r;
  return results;
}

/// One op on whole vectors: `op` is its text with operands %0 and %1, e.g. "add %0, %1".
inline std::vector<double> run_op(const std::string& op, DType from, DType to,
                                  const std::vector<double>& a, std::vector<double> b = {},
                                  const InterpretOptions& options = {}) {
  const auto n = static_cast<int64_t>(a.size());
  if (b.empty()) b = a;
  const std::string size = "[" + std::to_string(n) + "]", in = name(from) + size;
  const std::string text = "program one\nin a: " + in + "\nin b: " + in + "\nout c: " + name(to) +
                           size + "\ngrid (1)\n\n%0 = load a{0} : " + in +
                           "\n%1 = load b{0} : " + in + "\n%2 = " + op + " : " + name(to) + size +
                           "\nstore %2 to c{0}\n";
  return values(
      run_text(text, {tensor(from, {n}, a), tensor(from, {n}, b)}, {{to, {n}}}, options)[0]);
}

}  // namespace tw::test
