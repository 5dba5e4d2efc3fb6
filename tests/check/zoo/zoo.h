#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "tw/measure/peer.h"

/// What the callables of the zoo share. Each is a plug-in that computes the library's "gemm" of f32
/// and differs from a right one in one way, which its comment tells.
namespace zoo {

struct Matrix {
  float* data;
  int64_t rows, columns, row, column;  // sizes, then strides
  float& at(int64_t i, int64_t j) const { return data[i * row + j * column]; }
};

struct Product {
  Matrix a, b, c;
};

inline Matrix matrix(const TwPeerTensor& t) {
  if (t.rank != 2 || std::strcmp(t.dtype, "f32") != 0)
    throw std::runtime_error("only matrices of f32");
  return {static_cast<float*>(t.data), t.dims[0], t.dims[1], t.strides[0], t.strides[1]};
}

/// Rows [first, last) of C = A B, terms added in order.
inline void multiply(const Product& x, int64_t first, int64_t last) {
  std::vector<float> row(static_cast<size_t>(x.b.columns));
  for (int64_t i = first; i < last; ++i) {
    std::fill(row.begin(), row.end(), 0.0f);
    for (int64_t k = 0; k < x.b.rows; ++k) {
      const float a = x.a.at(i, k), *b = &x.b.at(k, 0);
      if (x.b.column == 1)
        for (int64_t j = 0; j < x.b.columns; ++j) row[j] += a * b[j];
      else
        for (int64_t j = 0; j < x.b.columns; ++j) row[j] += a * b[j * x.b.column];
    }
    for (int64_t j = 0; j < x.b.columns; ++j) x.c.at(i, j) = row[j];
  }
}
inline void multiply(const Product& x) { multiply(x, 0, x.a.rows); }

/// A product of its own, for a callable that changes the operands of another.
struct Copy {
  std::vector<float> a, b;
  Product x;
  explicit Copy(const Product& from) : x(from) {
    x.a = own(from.a, a);
    x.b = own(from.b, b);
  }

 private:
  static Matrix own(const Matrix& m, std::vector<float>& to) {
    to.reserve(static_cast<size_t>(m.rows * m.columns) + 1);
    for (int64_t i = 0; i < m.rows; ++i)
      for (int64_t j = 0; j < m.columns; ++j) to.push_back(m.at(i, j));
    return {to.data(), m.rows, m.columns, m.columns, 1};
  }
};

inline std::vector<float> contents(const Matrix& m) {
  std::vector<float> out;
  for (int64_t i = 0; i < m.rows; ++i)
    for (int64_t j = 0; j < m.columns; ++j) out.push_back(m.at(i, j));
  return out;
}

inline void write(const Matrix& m, const std::vector<float>& from) {
  for (int64_t i = 0; i < m.rows; ++i)
    for (int64_t j = 0; j < m.columns; ++j) m.at(i, j) = from[i * m.columns + j];
}

class Callable {
 public:
  virtual ~Callable() = default;
  virtual void prepared() {}
  virtual void run(const Product& x, int set) = 0;

  std::vector<Product> sets;
  int threads = 1;
};

template <class T>
void* prepare(const TwPeerTask* task, const TwPeerSet* sets, int count, char* text, int size) {
  try {
    if (std::strcmp(task->op, "gemm") != 0) throw std::runtime_error("only gemm");
    auto made = std::make_unique<T>();
    made->threads = task->threads;
    for (int s = 0; s < count; ++s) {
      if (sets[s].input_count != 2) throw std::runtime_error("no epilogue");
      made->sets.push_back(
          {matrix(sets[s].inputs[0]), matrix(sets[s].inputs[1]), matrix(sets[s].outputs[0])});
    }
    made->prepared();
    std::snprintf(text, static_cast<size_t>(size), "zoo");
    return static_cast<Callable*>(made.release());
  } catch (const std::exception& e) {
    std::snprintf(text, static_cast<size_t>(size), "%s", e.what());
    return nullptr;
  }
}

inline int run(void* state, int set) {
  auto* callable = static_cast<Callable*>(state);
  callable->run(callable->sets[static_cast<size_t>(set)], set);
  return 0;
}

inline void release(void* state) { delete static_cast<Callable*>(state); }

template <class T>
const TwPeer* peer() {
  static const TwPeer table = {TW_PEER_ABI, "zoo", prepare<T>, run, release};
  return &table;
}

}  // namespace zoo
