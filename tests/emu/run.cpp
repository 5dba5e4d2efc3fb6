#include "tests/emu/run.h"

#include <algorithm>
#include <set>
#include <stdexcept>

#include "tw/emit/cuda/prelude_cuda.h"

namespace tw::test {

std::string with_prelude(const std::string& program) {
  std::set<std::string> used;
  for (const std::string& name : cuda::thread_function_names()) {
    if (program.find(name) != std::string::npos) used.insert(name);
  }
  return cuda::thread_prelude(used, cpu::Thread::emulated) + program;
}

Case make_case(const std::string& program, int64_t blocks, int threads, int64_t shared_bytes,
               std::vector<Tensor> tensors, const std::string& uses, std::vector<int64_t> dims) {
  Case c{program, {}, std::move(tensors), std::move(dims)};
  c.spec.entry = "tw_k";
  c.spec.threads = threads;
  c.spec.shared_bytes = shared_bytes;
  c.spec.grid = {Expr(blocks)};
  for (size_t i = 0; i < c.dims.size(); ++i) {
    c.spec.dims.push_back({"d" + std::to_string(i), 1});
  }
  for (size_t i = 0; i < c.tensors.size(); ++i) {
    LaunchSpec::Arg a{};
    a.name = std::string(1, "xyzw"[i]);
    a.dtype = c.tensors[i].dtype();
    a.rank = c.tensors[i].view().rank();
    a.written = uses[i] != 'r';
    a.read = uses[i] != 'w';
    c.spec.args.push_back(a);
  }
  return c;
}

static Tensor filled(DType t, std::vector<int64_t> dims, int64_t period) {
  Tensor x = host_tensor(t, std::move(dims));
  for (int64_t i = 0; i < x.count(); ++i) set(x, i, static_cast<double>(i * 7 % period));
  return x;
}

Case softmax_case(int64_t rows, int64_t n) {
  return make_case(kSoftmaxText, rows, 256, 32,
                   {filled(f32, {rows, n}, 5), filled(f32, {rows, n}, 1)}, "rw", {rows, n});
}

Case transpose_case(int64_t m, int64_t n) {
  return make_case(kTransposeText, (m + 31) / 32 * ((n + 31) / 32), 128, 32 * 33 * 2,
                   {filled(u16, {m, n}, 60000), filled(u16, {n, m}, 1)}, "rw", {m, n});
}

Case matmul_case(int64_t m, int64_t n, int64_t k) {
  return make_case(kMatmulText, m / 32 * (n / 8), 64, 2 * 640 * 2,
                   {filled(bf16, {m, k}, 11), filled(bf16, {n, k}, 13), filled(f32, {m, n}, 1)},
                   "rrw", {m, n, k});
}

Case histogram_case(int64_t n, int64_t bins) {
  return make_case(kHistogramText, (n + 63) / 64, 64, bins * 4,
                   {filled(i32, {n}, bins), filled(i32, {bins}, 1)}, "rb", {n, bins});
}

Case chain_case(int64_t n) {
  return make_case(kChainText, n, 32, 0,
                   {filled(i32, {n}, 9), filled(i32, {n}, 1), filled(i32, {n + 1}, 1)}, "rwb", {n});
}

EmuReport run(const Case& c, const EmuOptions& options, std::vector<Tensor>* out) {
  std::vector<Tensor> tensors;
  std::vector<TensorView> views;
  for (const Tensor& t : c.tensors) tensors.push_back(copy(t));
  for (const Tensor& t : tensors) views.push_back(t);
  EmuReport report = run_emulated(with_prelude(c.program), c.spec, views, c.dims, options);
  if (out) *out = std::move(tensors);
  return report;
}

Case changed(Case c, const std::string& part, const std::string& by) {
  const size_t at = c.program.find(part);
  if (at == std::string::npos || c.program.find(part, at + 1) != std::string::npos)
    throw std::runtime_error("the text does not have once: " + part);
  c.program.replace(at, part.size(), by);
  return c;
}

int line_with(const Case& c, const std::string& part) {
  const std::string text = with_prelude(c.program);
  const size_t at = text.find(part, text.size() - c.program.size());
  if (at == std::string::npos) throw std::runtime_error("the text does not have: " + part);
  return 1 + static_cast<int>(std::count(text.begin(), text.begin() + static_cast<long>(at), '\n'));
}

}  // namespace tw::test
