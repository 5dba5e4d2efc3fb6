#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "tests/emu/run.h"

namespace tw::test {

/// Numbers by name, of which a kernel's text is made: "st=4 cm=2".
class Config {
 public:
  explicit Config(const std::string& text);
  int operator()(const std::string& name, int otherwise) const;

 private:
  std::map<std::string, int> values_;
};

/// A kernel of texts/ with its launch, and what is wrong with its outputs: empty when all is right.
struct Pipeline {
  Case launch;
  std::function<std::string(const std::vector<Tensor>&)> wrong;
};

/// What shared memory needs more than the kernels use, who round its first byte up to 1024: that is
/// a multiple of 16.
constexpr int64_t kSlack = 1024 - 16;

std::string kernel_text(const std::string& name);

/// Kernels by the name of their text: rows, gemv, ring, gemm, fa. `config` says what the text is
/// made for and how large the problem is.
Pipeline pipeline(const std::string& name, const std::string& text, const Config& config);

/// The text that NVRTC compiles for a GPU.
std::string cuda_text(const Pipeline& p);

/// What came of a launch.
struct Verdict {
  enum class Kind : uint8_t {
    clean,    ///< no report, and right
    report,   ///< of the emulator
    numbers,  ///< wrong ones
    refused,  ///< the launch is no legal one
    killed,   ///< the text ended the process by a signal
    late,     ///< or did not end in time
    no_text,  ///< it does not compile
    failed,   ///< what nobody expects
  } kind = Kind::clean;
  std::string text = {};
};

/// The verdict on the first of `seeds` seeds that is not clean, and which that is.
Verdict first_fault(const Pipeline& p, uint64_t seeds, uint64_t* seed = nullptr);

Pipeline rows_pipeline(const std::string& text, const Config& c);
Pipeline gemv_pipeline(const std::string& text, const Config& c);
Pipeline ring_pipeline(const std::string& text, const Config& c);
Pipeline gemm_pipeline(const std::string& text, const Config& c);
Pipeline fa_pipeline(const std::string& text, const Config& c);

/// Compares with a reference element by element; `reference` gives value and bound.
struct Expected {
  double value, bound;
};
std::string first_wrong(const Tensor& got, const std::vector<Expected>& want);

}  // namespace tw::test
