#pragma once

#include <cstdio>
#include <cstring>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "tw/measure/peer.h"

namespace peers {

/// A task made ready: what TwPeer::prepare returns.
class Job {
 public:
  virtual ~Job() = default;
  virtual void run(int set) = 0;
  virtual std::string about() const = 0;
};

struct Request {
  std::string op;
  std::string options;
  int threads;
  const TwPeerSet* sets;
  int count;

  /// The value of an option; `usual` when the task does not say.
  std::string option(const std::string& key, const std::string& usual) const {
    const std::string text = " " + options + " ";
    const size_t at = text.find(" " + key + "=");
    if (at == std::string::npos) return usual;
    const size_t value = at + key.size() + 2;
    return text.substr(value, text.find(' ', value) - value);
  }
};

/// Says that this peer does not do the task.
[[noreturn]] inline void refuse(const std::string& why) { throw std::runtime_error(why); }

inline void require_dtype(const TwPeerSet& set, const char* dtype) {
  for (int i = 0; i < set.input_count; ++i)
    if (std::strcmp(set.inputs[i].dtype, dtype) != 0) refuse(std::string("only ") + dtype);
  for (int i = 0; i < set.output_count; ++i)
    if (std::strcmp(set.outputs[i].dtype, dtype) != 0) refuse(std::string("only ") + dtype);
}

inline bool contiguous(const TwPeerTensor& t) {
  int64_t stride = 1;
  for (int axis = t.rank - 1; axis >= 0; --axis) {
    if (t.dims[axis] != 1 && t.strides[axis] != stride) return false;
    stride *= t.dims[axis];
  }
  return true;
}

inline void require_contiguous(const TwPeerSet& set) {
  for (int i = 0; i < set.input_count; ++i)
    if (!contiguous(set.inputs[i])) refuse("only contiguous tensors");
  for (int i = 0; i < set.output_count; ++i)
    if (!contiguous(set.outputs[i])) refuse("only contiguous tensors");
}

inline float* floats(const TwPeerTensor& t) { return static_cast<float*>(t.data); }

/// A matrix as BLAS sees it: row-major with a leading dimension, or its transpose.
struct Matrix {
  float* data;
  int64_t rows, columns, leading;
  bool transposed;  ///< columns are contiguous
};

inline Matrix matrix(const TwPeerTensor& t) {
  if (t.rank != 2) refuse("only matrices");
  const bool rows_contiguous = t.strides[1] == 1 || t.dims[1] == 1;
  if (!rows_contiguous && t.strides[0] != 1) refuse("only unit strides");
  const int64_t leading = rows_contiguous ? t.strides[0] : t.strides[1];
  return {floats(t), t.dims[0], t.dims[1], leading, !rows_contiguous};
}

struct Gemm {
  Matrix a, b, c;
  const float* bias = nullptr;
};

/// A product without epilogue.
inline bool plain(const Request& r) { return r.option("epilogue", "none") == "none"; }

/// The operands of the kernel "gemm": A, B, then the epilogue's tensors.
inline std::vector<Gemm> gemms(const Request& r, bool with_bias) {
  std::vector<Gemm> out;
  for (int s = 0; s < r.count; ++s) {
    const TwPeerSet& set = r.sets[s];
    require_dtype(set, "f32");
    Gemm g{matrix(set.inputs[0]), matrix(set.inputs[1]), matrix(set.outputs[0]), nullptr};
    if (g.c.transposed) refuse("only row-major results");
    if (with_bias) g.bias = floats(set.inputs[2]);
    out.push_back(g);
  }
  return out;
}

template <std::unique_ptr<Job> (*make)(const Request&)>
void* prepare(const TwPeerTask* task, const TwPeerSet* sets, int count, char* text, int size) {
  try {
    auto job = make({task->op, task->options, task->threads, sets, count});
    std::snprintf(text, size, "%s", job->about().c_str());
    return job.release();
  } catch (const std::exception& e) {
    std::snprintf(text, size, "%s", e.what());
    return nullptr;
  }
}

inline int run(void* state, int set) {
  try {
    static_cast<Job*>(state)->run(set);
    return 0;
  } catch (const std::exception& e) {
    std::fprintf(stderr, "%s\n", e.what());
    return 1;
  }
}

inline void release(void* state) { delete static_cast<Job*>(state); }

template <std::unique_ptr<Job> (*make)(const Request&)>
const TwPeer* peer(const char* name) {
  static const TwPeer table = {TW_PEER_ABI, name, prepare<make>, run, release};
  return &table;
}

}  // namespace peers
