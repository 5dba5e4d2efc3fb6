#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "tw/check/contestant.h"
#include "tw/runtime/cuda/cuda.h"

/// Callables on a GPU for the judge: each computes C = A B of f32 and differs from a right one in
/// one way, or in none.
namespace tw::zoo {

/// As kernels of text() take it.
struct Matrix {
  float* data;
  int64_t rows, columns, row, column;  ///< sizes, then strides
  int64_t count() const { return rows * columns; }
};

struct Product {
  Matrix a, b, c;
};

/// How terms are added, and from which numbers.
enum class How : int64_t {
  in_order,
  backwards,
  four_sums,  ///< of every fourth term
  in_double,  ///< sums
  in_bf16,    ///< operands
  in_tf32,    ///< operands
  fixed,      ///< operands are multiples of 2^-24 in (-1, 1)
  nan_to_zero,
  by_clock,  ///< in order or backwards, as the clock says
};

/// The CUDA text of all kernels of the zoo, for sm_90a.
std::string text();

/// What callables do on a GPU.
class Hand {
 public:
  /// Of the compiled text.
  Hand(const Device& d, const std::string& cubin);

  /// Rows [first, last) of C, without the terms from `terms` on, beginning with term `start`.
  struct Part {
    int64_t first = 0, last = INT64_MAX, terms = INT64_MAX, start = 0;
  };
  void multiply(const Product& x, const cuda::Stream& s, How how = How::in_order,
                Part part = {0, INT64_MAX, INT64_MAX, 0}) const;
  void fill(const Matrix& m, float value, const cuda::Stream& s) const;
  void copy(const Matrix& to, const Matrix& from, const cuda::Stream& s) const;
  /// Keeps one multiprocessor busy for so long.
  void spin(double seconds, const cuda::Stream& s) const;
  /// Reads, or writes, one number.
  void peek(const float* at, const cuda::Stream& s) const;
  void poke(float* at, const cuda::Stream& s) const;

  const Device& device() const { return device_; }
  /// Memory for as many numbers, contiguous; it stays.
  Matrix like(const Matrix& m);
  cuda::Stream& stream() { return stream_; }  ///< of its own

 private:
  void start(const cuda::Function& f, const std::vector<uint64_t>& words, int64_t threads,
             const cuda::Stream& s) const;

  Device device_;
  std::shared_ptr<const cuda::Function> multiply_, fill_, copy_, spin_, peek_, poke_;
  std::vector<Tensor> memory_;
  cuda::Stream stream_;
};

class Callable {
 public:
  virtual ~Callable() = default;
  virtual void prepared() {}
  virtual void run(const Product& x, int set, const cuda::Stream& s) = 0;

  std::vector<Product> sets;
  Hand* hand = nullptr;
};

struct Species {
  const char *name, *what;
  const char* verdict;  ///< part of what the judge says, "this or that"; "accepted"
  std::unique_ptr<Callable> (*make)();
};

template <class T>
std::unique_ptr<Callable> made() {
  return std::make_unique<T>();
}

std::vector<Species> honest(), wrong_values(), early_or_late(), of_memory(), rude();
/// All of them.
std::vector<Species> species();

/// For a worker: one of kind "zoo", whose source is "NAME\nFILE" with the compiled text.
std::unique_ptr<measure::Contestant> make_contestant(const measure::ContestantSpec& spec,
                                                     const measure::Task& task);

}  // namespace tw::zoo
