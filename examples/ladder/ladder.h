#pragma once

#include <cmath>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "tw/lang/lang.h"
#include "tw/tensor/tensor.h"

namespace ladder {

/// What an example is given: a device, and what goes around a program on it.
class Bench {
 public:
  Bench(std::string device, std::string eject);
  ~Bench();
  Bench(const Bench&) = delete;
  Bench& operator=(const Bench&) = delete;

  bool on_gpu() const;
  /// One of two numbers: the emulator does what others do, thousands of times slower.
  int64_t size(int64_t usual, int64_t emulated) const;

  /// Host memory: f32 from -1 to 1, or i32 from 0 to below.
  tw::Tensor numbers(const std::vector<int64_t>& dims);
  tw::Tensor integers(const std::vector<int64_t>& dims, int32_t below);
  tw::Tensor zeros(tw::DType t, const std::vector<int64_t>& dims) const;

  /// Compiles the program for the device and runs it there; the outputs come back to `out`. Prints
  /// how long a call takes, as a rate of `work`, which is counted in `unit` ("byte", "operation").
  void run(const tw::Program& p, const std::vector<tw::Tensor>& in,
           const std::vector<tw::Tensor>& out, double work, const std::string& unit);
  /// Compares each element with what plain code says of it; `bound` is how far it may be from that.
  /// Prints the largest share of the bound. Returns an exit status.
  int check(const tw::Tensor& got, const std::function<double(int64_t)>& wanted,
            const std::function<double(int64_t)>& bound);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// The unit in the last place of f32, relative to numbers just above a power of two.
inline constexpr double kUlp = 1.1920928955078125e-07;

int vector_add(Bench& b);
int softmax(Bench& b);
int transpose(Bench& b);
int matmul(Bench& b);
int attention(Bench& b);
int histogram(Bench& b);

}  // namespace ladder
