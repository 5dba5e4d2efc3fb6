#pragma once

#include <functional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "tw/emit/cpu/prelude.h"
#include "tw/target/launch_spec.h"
#include "tw/tensor/tensor.h"

namespace tw::test {

/// What an argument must be after a launch. It is made of parts of equal size, each the work of one
/// function or of one way to call it.
struct MicroResult {
  enum class How : uint8_t {
    bytes,    ///< every bit of `want`
    numbers,  ///< of `want`, but that any NaN is a NaN
    ulps      ///< within so many units of the last place of `exact`
  };
  size_t arg = 0;
  How how = How::bytes;
  Tensor want = {};
  std::vector<long double> exact = {};
  double ulps = 0;
  std::vector<std::string> parts = {};
};

/// A small kernel that shows what functions of the prelude do. Its text runs on a GPU and in the
/// emulator, and what comes out is known without either.
struct MicroKernel {
  std::string name, group;
  std::vector<std::string> of;                         ///< functions whose work it shows
  std::vector<std::pair<std::string, DType>> scalars;  ///< of one element, as Prelude knows them
  std::string program;                                 ///< without the prelude
  LaunchSpec spec;
  std::vector<Tensor> tensors;  ///< as the launch finds them
  std::vector<MicroResult> results;
  int launches = 1;  ///< one behind the other, on what the one before left
};

/// Names of the groups, and the kernels of one, made when they are asked for.
std::vector<std::string> micro_groups();
const std::vector<MicroKernel>& micro_group(const std::string& group);

/// One text of these kernels, with what they use of the prelude.
std::string text_of(std::span<const MicroKernel> kernels, cpu::Thread kind);

/// What differs in the arguments after a launch, a line a part; empty when all is as it must be.
std::string differences(const MicroKernel& k, std::span<const Tensor> got);

/// Copies of the arguments.
std::vector<Tensor> fresh_tensors(const MicroKernel& k);

/// Runs the kernels in one module; done(i, what differs) for each. Throws what launches throw.
void run_on_gpu(std::span<const MicroKernel> kernels, const std::string& device,
                const std::function<void(size_t, const std::string&)>& done);

/// What differs after a run in the emulator, or its report.
std::string run_in_emulator(const MicroKernel& k, uint64_t seed);

// ---- how they are made

/// Collects the arguments of a kernel, whose text sees them as pointers x0, x1, ..
class MicroMaker {
 public:
  MicroMaker(std::string group, std::string name, std::vector<std::string> of);
  MicroMaker& scalar(const std::string& function, DType t);
  /// An argument that is read.
  MicroMaker& input(const Tensor& t);
  /// One that is written: before it are bytes that nobody wants.
  MicroMaker& output(MicroResult r, DType t, const std::vector<int64_t>& dims);
  MicroMaker& output(const Tensor& want, std::vector<std::string> parts = {},
                     MicroResult::How how = MicroResult::How::bytes);
  /// One that is changed.
  MicroMaker& changed(const Tensor& before, const Tensor& want,
                      std::vector<std::string> parts = {});
  /// A tensor map, the next of args.maps.
  MicroMaker& map(size_t arg, int swizzle, std::vector<int> box);
  MicroMaker& cluster(int blocks);
  MicroMaker& shared(int64_t bytes);
  /// Launches that may begin before the one before them has ended.
  MicroMaker& early(int launches);
  /// What stands in front of the kernel.
  MicroMaker& before(const std::string& text);
  MicroKernel make(int64_t blocks, int threads, const std::string& body);

 private:
  size_t argument(const Tensor& t, bool read, bool written);
  MicroKernel k_;
  std::string before_;
};

/// A tensor whose element i is f(i).
Tensor tensor_of(DType t, const std::vector<int64_t>& dims,
                 const std::function<double(int64_t)>& f);
/// The same of bits.
Tensor tensor_of_bits(DType t, const std::vector<int64_t>& dims,
                      const std::function<uint64_t(int64_t)>& f);
/// A tensor of zeros, which the caller fills.
Tensor zeros(DType t, const std::vector<int64_t>& dims);

/// The groups.
std::vector<MicroKernel> thread_micros();
std::vector<MicroKernel> warp_micros();
std::vector<MicroKernel> matrix_micros();
std::vector<MicroKernel> atomic_micros();
std::vector<MicroKernel> barrier_micros();
std::vector<MicroKernel> cluster_micros();
std::vector<MicroKernel> box_micros();
std::vector<MicroKernel> number_micros();
std::vector<MicroKernel> function_micros();
/// Of first, first + 8, .. last columns.
std::vector<MicroKernel> product_micros(const std::string& group, int first, int last);

}  // namespace tw::test
