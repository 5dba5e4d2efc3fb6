#pragma once

#include <string>
#include <utility>
#include <vector>

#include "tw/emu/emulator.h"
#include "tw/tensor/tensor.h"

#include "tests/emu/kernels.h"

namespace tw::test {

/// A program text with its launch and data.
struct Case {
  std::string program;
  LaunchSpec spec;
  std::vector<Tensor> tensors;  ///< as the launch finds them
  std::vector<int64_t> dims;
};

/// The text with all functions of the prelude that it names.
std::string with_prelude(const std::string& program);

/// A launch of `blocks` blocks. `uses` has a letter an argument: r(ead), w(ritten), b(oth).
Case make_case(const std::string& program, int64_t blocks, int threads, int64_t shared_bytes,
               std::vector<Tensor> tensors, const std::string& uses, std::vector<int64_t> dims);

Case softmax_case(int64_t rows, int64_t n);
Case transpose_case(int64_t m, int64_t n);
Case matmul_case(int64_t m, int64_t n, int64_t k);
Case histogram_case(int64_t n, int64_t bins);
Case chain_case(int64_t n);

/// Runs on copies of the tensors, which become `out`.
EmuReport run(const Case& c, const EmuOptions& options, std::vector<Tensor>* out = nullptr);

/// The case with a part of its program replaced; the part must stand there once.
Case changed(Case c, const std::string& part, const std::string& by);

/// The number of the line of the whole text that has this part.
int line_with(const Case& c, const std::string& part);

}  // namespace tw::test
