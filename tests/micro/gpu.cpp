#include "tw/jit/nvrtc.h"
#include "tw/runtime/cuda/cuda.h"

#include "tests/micro/micro.h"

namespace tw::test {

namespace {

/// The parameter of a kernel on tensors of the GPU: as emulated text gets it.
std::vector<uint64_t> parameter_of(const Device& d, const MicroKernel& k,
                                   std::span<const Tensor> tensors) {
  std::vector<uint64_t> words;
  std::vector<TensorView> views;
  for (const Tensor& t : tensors) {
    views.push_back(t);
    words.push_back(reinterpret_cast<uint64_t>(t.view().data));
  }
  for (const TensorView& v : views) {
    for (const int64_t s : v.strides) words.push_back(static_cast<uint64_t>(s));
  }
  cuda::add_tensor_maps(d, k.spec, views, words);
  return words;
}

std::string run_one(const Device& d, const MicroKernel& k, const cuda::Module& module) {
  const std::shared_ptr<const cuda::Function> f = module.function(k.spec.entry);
  if (!f) return k.name + ": the module lacks it\n";
  std::vector<Tensor> there, back;
  for (const Tensor& t : k.tensors) there.push_back(cuda::to_device(d, t));
  const int64_t blocks = k.spec.grid[0].constant() * k.spec.cluster;
  const cuda::LaunchShape shape{blocks, k.spec.threads, k.spec.shared_bytes, k.spec.early};
  const std::vector<uint64_t> words = parameter_of(d, k, there);
  for (int i = 0; i < k.launches; ++i) cuda::launch(*f, words, shape, cuda::Stream::standard(d));
  for (const Tensor& t : there) back.push_back(cuda::to_host(d, t));
  return differences(k, back);
}

}  // namespace

void run_on_gpu(std::span<const MicroKernel> kernels, const std::string& device,
                const std::function<void(size_t, const std::string&)>& done) {
  const Device d = Device::open(device);
  const std::string text = text_of(kernels, cpu::Thread::cuda);
  const auto module =
      cuda::Module::load(d, compile_cubin(find_nvrtc(), d.gpu().arch, text, false).cubin);
  for (size_t i = 0; i < kernels.size(); ++i) done(i, run_one(d, kernels[i], *module));
}

}  // namespace tw::test
