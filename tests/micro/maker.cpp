#include <cstring>
#include <fmt/format.h>

#include "tw/base/error.h"

#include "tests/micro/micro.h"

namespace tw::test {

namespace {

constexpr int kNobodyWants = 0xa5;

/// The type by which text reads elements: bits of floats that are no f32 and no f64.
std::string register_name(DType t) {
  if (t == b1) return "u8";
  if (t == f32 || t == f64 || is_int(t)) return name(t);
  return bytes(t) == 1 ? "u8" : "u16";
}

}  // namespace

Tensor zeros(DType t, const std::vector<int64_t>& dims) {
  Tensor x = host_tensor(t, dims);
  std::memset(x.data<char>(), 0, static_cast<size_t>(byte_count(t, dims)));
  return x;
}

Tensor tensor_of(DType t, const std::vector<int64_t>& dims,
                 const std::function<double(int64_t)>& f) {
  Tensor x = host_tensor(t, dims);
  for (int64_t i = 0; i < x.count(); ++i) set(x, i, f(i));
  return x;
}

Tensor tensor_of_bits(DType t, const std::vector<int64_t>& dims,
                      const std::function<uint64_t(int64_t)>& f) {
  Tensor x = host_tensor(t, dims);
  for (int64_t i = 0; i < x.count(); ++i) store_bits(t, x.view().data, i, f(i));
  return x;
}

MicroMaker::MicroMaker(std::string group, std::string name, std::vector<std::string> of) {
  k_.group = std::move(group);
  k_.name = std::move(name);
  k_.of = std::move(of);
}

MicroMaker& MicroMaker::scalar(const std::string& function, DType t) {
  k_.scalars.emplace_back(function, t);
  return *this;
}

size_t MicroMaker::argument(const Tensor& t, bool read, bool written) {
  LaunchSpec::Arg a{};
  a.name = fmt::format("x{}", k_.tensors.size());
  a.dtype = t.dtype();
  a.rank = t.view().rank();
  a.written = written;
  a.read = read;
  k_.spec.args.push_back(a);
  k_.tensors.push_back(t);
  return k_.tensors.size() - 1;
}

MicroMaker& MicroMaker::input(const Tensor& t) {
  argument(t, true, false);
  return *this;
}

MicroMaker& MicroMaker::output(MicroResult r, DType t, const std::vector<int64_t>& dims) {
  Tensor x = host_tensor(t, dims);
  std::memset(x.data<char>(), kNobodyWants, static_cast<size_t>(byte_count(t, dims)));
  r.arg = argument(x, false, true);
  k_.results.push_back(std::move(r));
  return *this;
}

MicroMaker& MicroMaker::output(const Tensor& want, std::vector<std::string> parts,
                               MicroResult::How how) {
  return output({.how = how, .want = want, .parts = std::move(parts)}, want.dtype(), want.dims());
}

MicroMaker& MicroMaker::changed(const Tensor& before, const Tensor& want,
                                std::vector<std::string> parts) {
  const size_t arg = argument(before, true, true);
  k_.results.push_back({.arg = arg, .want = want, .parts = std::move(parts)});
  return *this;
}

MicroMaker& MicroMaker::map(size_t arg, int swizzle, std::vector<int> box) {
  k_.spec.tensor_maps.push_back({arg, swizzle, std::move(box)});
  return *this;
}

MicroMaker& MicroMaker::cluster(int blocks) {
  k_.spec.cluster = blocks;
  return *this;
}

MicroMaker& MicroMaker::shared(int64_t bytes) {
  k_.spec.shared_bytes = bytes;
  return *this;
}

MicroMaker& MicroMaker::early(int launches) {
  k_.spec.early = true;
  k_.launches = launches;
  return *this;
}

MicroMaker& MicroMaker::before(const std::string& text) {
  before_ += text;
  return *this;
}

MicroKernel MicroMaker::make(int64_t blocks, int threads, const std::string& body) {
  LaunchSpec& s = k_.spec;
  s.entry = "tw_k_" + k_.name;
  s.threads = threads;
  s.grid = {Expr(blocks / s.cluster)};
  size_t strides = 0;
  std::string pointers;
  for (size_t i = 0; i < s.args.size(); ++i) {
    const LaunchSpec::Arg& a = s.args[i];
    strides += static_cast<size_t>(a.rank);
    pointers += fmt::format("  {0}{1}* const x{2} = ({0}{1}*)args.data[{2}];\n",
                            a.written ? "" : "const ", register_name(a.dtype), i);
  }
  const std::string maps =
      s.tensor_maps.empty() ? "" : fmt::format(" TwTensorMap maps[{}];", s.tensor_maps.size());
  const std::string cluster =
      s.cluster > 1 ? fmt::format(" __cluster_dims__({}, 1, 1)", s.cluster) : "";
  k_.program = fmt::format(
      "struct Args {{ void* data[{}]; i64 strides[{}];{} }};\n{}"
      "extern \"C\" __global__ void __launch_bounds__({}, 1){} {}(const __grid_constant__ Args "
      "args) "
      "{{\n{}  const int t = tw_thread();\n{}}}\n",
      s.args.size(), strides, maps, before_, threads, cluster, s.entry, pointers, body);
  return std::move(k_);
}

}  // namespace tw::test
