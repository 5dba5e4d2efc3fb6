#include "examples/ladder/ladder.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <random>

#include "tw/emu/device.h"
#include "tw/jit/kernel.h"
#include "tw/runtime/cuda/cuda.h"

using namespace tw;

namespace ladder {

struct Bench::State {
  Device device;
  std::string eject;
  std::mt19937_64 random{1};

  bool cuda() const { return device.kind() == DeviceKind::cuda; }
  std::vector<Tensor> there(const std::vector<Tensor>& host) const {
    std::vector<Tensor> all;
    for (const Tensor& t : host) all.push_back(cuda() ? cuda::to_device(device, t) : copy(t));
    return all;
  }
  void finish() const {
    if (cuda()) cuda::synchronize(device);
  }
};

Bench::Bench(std::string device, std::string eject)
    : state_(new State{Device::open(device), std::move(eject)}) {}
Bench::~Bench() = default;

bool Bench::on_gpu() const { return state_->device.kind() != DeviceKind::cpu; }

int64_t Bench::size(int64_t usual, int64_t emulated) const {
  return state_->device.kind() == DeviceKind::emu ? emulated : usual;
}

Tensor Bench::zeros(DType t, const std::vector<int64_t>& dims) const {
  Tensor all = host_tensor(t, dims);
  std::fill_n(all.data<char>(), byte_count(t, dims), '\0');
  return all;
}

Tensor Bench::numbers(const std::vector<int64_t>& dims) {
  Tensor all = host_tensor(f32, dims);
  std::uniform_real_distribution<float> any(-1, 1);
  std::generate_n(all.data<float>(), all.count(), [&] { return any(state_->random); });
  return all;
}

Tensor Bench::integers(const std::vector<int64_t>& dims, int32_t below) {
  Tensor all = host_tensor(i32, dims);
  std::uniform_int_distribution<int32_t> any(0, below - 1);
  std::generate_n(all.data<int32_t>(), all.count(), [&] { return any(state_->random); });
  return all;
}

void Bench::run(const Program& p, const std::vector<Tensor>& in, const std::vector<Tensor>& out,
                double work, const std::string& unit) {
  const Kernel kernel = compile(p, state_->device);
  if (!state_->eject.empty()) kernel.eject(state_->eject);
  const std::vector<Tensor> inputs = state_->there(in), outputs = state_->there(out);
  const auto call = [&] {
    kernel(std::vector<TensorView>(inputs.begin(), inputs.end()),
           std::vector<TensorView>(outputs.begin(), outputs.end()));
    state_->finish();
  };
  call();
  for (size_t k = 0; k < out.size(); ++k) {
    const Tensor got = state_->cuda() ? cuda::to_host(state_->device, outputs[k]) : outputs[k];
    std::copy_n(got.data<char>(), byte_count(got.dtype(), got.dims()), out[k].data<char>());
  }
  if (state_->device.kind() == DeviceKind::emu) return std::printf("%-14s", p.name.c_str()), void();
  using Clock = std::chrono::steady_clock;
  std::vector<double> seconds;
  for (int k = 0; k < 9; ++k) {
    const auto start = Clock::now();
    call();
    seconds.push_back(std::chrono::duration<double>(Clock::now() - start).count());
  }
  std::ranges::sort(seconds);
  const double median = seconds[seconds.size() / 2];
  std::printf("%-14s %9.3f ms, %7.2f G%ss a second", p.name.c_str(), median * 1e3,
              work / median / 1e9, unit.c_str());
}

int Bench::check(const Tensor& got, const std::function<double(int64_t)>& wanted,
                 const std::function<double(int64_t)>& bound) {
  double worst = 0;
  for (int64_t i = 0; i < got.count(); ++i) {
    const double x = got.dtype() == i32 ? got.data<int32_t>()[i] : double{got.data<float>()[i]};
    const double want = wanted(i), most = bound(i), off = std::abs(x - want);
    if (off <= most) {
      worst = std::max(worst, most > 0 ? off / most : 0);
      continue;
    }
    std::printf("\n  wrong: element %lld is %.9g, wanted %.9g within %.3g\n",
                static_cast<long long>(i), x, want, most);
    return 1;
  }
  std::printf("  right: at most %.2f of the bound\n", worst);
  return 0;
}

}  // namespace ladder

namespace {

struct Example {
  const char* name;
  int (*run)(ladder::Bench&);
};
constexpr Example kExamples[] = {
    {"01_vector_add", ladder::vector_add}, {"02_softmax", ladder::softmax},
    {"03_transpose", ladder::transpose},   {"04_matmul", ladder::matmul},
    {"05_attention", ladder::attention},   {"06_histogram", ladder::histogram},
};

int run(const std::string& name, const std::string& device, const std::string& eject) {
  int status = 0;
  for (const Example& e : kExamples) {
    if (!name.empty() && name != e.name) continue;
    ladder::Bench bench(device, eject);
    status |= e.run(bench);
  }
  return status;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app(
      "Examples, one idea each: read examples/ladder/01_vector_add.cpp first. Each runs, "
      "is compared with plain code in double, and prints how long a call takes.");
  std::string name, device = "cpu:0", eject;
  std::vector<std::string> names;
  for (const Example& e : kExamples) names.emplace_back(e.name);
  app.add_option("example", name, "which; all when none is named")->check(CLI::IsMember(names));
  app.add_option("--device", device, "cpu:0, cuda:0, or emu:0 (small sizes, looks for races)");
  app.add_option("--eject", eject, "write its source to this file (.cpp; .cu for GPUs)");
  CLI11_PARSE(app, argc, argv);
  if (!eject.empty() && name.empty()) {
    std::fprintf(stderr, "--eject FILE: of which example? name one, as in 02_softmax\n");
    return 2;
  }
  register_emulator();
  try {
    return run(name, device, eject);
  } catch (const std::exception& e) {
    std::fprintf(stderr, "%s\n", e.what());
    return 2;
  }
}
