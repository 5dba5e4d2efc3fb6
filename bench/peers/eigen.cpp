#include <Eigen/Core>
#include <omp.h>

#include "bench/peers/peer_support.h"

namespace peers {
namespace {

using Row = Eigen::Map<Eigen::ArrayXf>;
using ConstRow = Eigen::Map<const Eigen::ArrayXf>;

std::string version() {
  return "Eigen " + std::to_string(EIGEN_WORLD_VERSION) + "." +
         std::to_string(EIGEN_MAJOR_VERSION) + "." + std::to_string(EIGEN_MINOR_VERSION) + ", " +
         Eigen::SimdInstructionSetsInUse();
}

/// A function of every row of contiguous f32 matrices, rows split over threads.
template <class F>
class Rows : public Job {
 public:
  Rows(const Request& r, F f) : sets_(r.sets, r.sets + r.count), threads_(r.threads), f_(f) {
    for (const TwPeerSet& s : sets_) {
      require_dtype(s, "f32");
      require_contiguous(s);
    }
  }
  void run(int set) override {
    const TwPeerSet& s = sets_[set];
    const int64_t rows = s.inputs[0].dims[0];
#pragma omp parallel for num_threads(threads_) schedule(static)
    for (int64_t i = 0; i < rows; ++i) f_(s, i);
  }
  std::string about() const override { return version(); }

 private:
  std::vector<TwPeerSet> sets_;
  int threads_;
  F f_;
};

template <class F>
std::unique_ptr<Job> rows(const Request& r, F f) {
  return std::make_unique<Rows<F>>(r, f);
}

ConstRow in(const TwPeerTensor& t, int64_t row) {
  const int64_t n = t.dims[t.rank - 1];
  return {floats(t) + (t.rank == 1 ? 0 : row * n), n};
}

Row out(const TwPeerTensor& t, int64_t row) {
  const int64_t n = t.dims[t.rank - 1];
  return {floats(t) + row * n, n};
}

void rmsnorm(const TwPeerSet& s, int64_t i) {
  const ConstRow x = in(s.inputs[0], i), gamma = in(s.inputs[1], 0);
  const float scale = 1.0f / std::sqrt(x.square().mean() + 1e-5f);
  out(s.outputs[0], i) = x * scale * gamma;
}

void layernorm(const TwPeerSet& s, int64_t i) {
  const ConstRow x = in(s.inputs[0], i), gamma = in(s.inputs[1], 0), beta = in(s.inputs[2], 0);
  const float mean = x.mean();
  const float scale = 1.0f / std::sqrt((x - mean).square().mean() + 1e-5f);
  out(s.outputs[0], i) = (x - mean) * scale * gamma + beta;
}

void softmax(const TwPeerSet& s, int64_t i) {
  const ConstRow x = in(s.inputs[0], i);
  Row y = out(s.outputs[0], i);
  y = (x - x.maxCoeff()).exp();
  y *= 1.0f / y.sum();
}

std::unique_ptr<Job> row_reduce(const Request& r) {
  const std::string op = r.option("op", "sum");
  if (op == "sum")
    return rows(r, [](const TwPeerSet& s, int64_t i) {
      floats(s.outputs[0])[i] = in(s.inputs[0], i).sum();
    });
  if (op == "max")
    return rows(r, [](const TwPeerSet& s, int64_t i) {
      floats(s.outputs[0])[i] = in(s.inputs[0], i).maxCoeff();
    });
  if (op == "mean")
    return rows(r, [](const TwPeerSet& s, int64_t i) {
      floats(s.outputs[0])[i] = in(s.inputs[0], i).mean();
    });
  refuse("no reduction " + op);
}

template <class F>
std::unique_ptr<Job> binary(const Request& r, F f) {
  if (r.option("b", "full") != "full") refuse("no broadcast");
  return rows(r, [f](const TwPeerSet& s, int64_t i) {
    out(s.outputs[0], i) = f(in(s.inputs[0], i), in(s.inputs[1], i));
  });
}

template <class F>
std::unique_ptr<Job> unary(const Request& r, F f) {
  return rows(r,
              [f](const TwPeerSet& s, int64_t i) { out(s.outputs[0], i) = f(in(s.inputs[0], i)); });
}

std::unique_ptr<Job> elementwise(const Request& r) {
  const std::string op = r.option("op", "add");
  if (op == "add") return binary(r, [](const ConstRow& a, const ConstRow& b) { return a + b; });
  if (op == "sub") return binary(r, [](const ConstRow& a, const ConstRow& b) { return a - b; });
  if (op == "mul") return binary(r, [](const ConstRow& a, const ConstRow& b) { return a * b; });
  if (op == "div") return binary(r, [](const ConstRow& a, const ConstRow& b) { return a / b; });
  if (op == "relu") return unary(r, [](const ConstRow& a) { return a.max(0.0f); });
  if (op == "exp") return unary(r, [](const ConstRow& a) { return a.exp(); });
  if (op == "log") return unary(r, [](const ConstRow& a) { return a.log(); });
  if (op == "sqrt") return unary(r, [](const ConstRow& a) { return a.sqrt(); });
  if (op == "tanh") return unary(r, [](const ConstRow& a) { return a.tanh(); });
  if (op == "silu") return unary(r, [](const ConstRow& a) { return a / (1.0f + (-a).exp()); });
  refuse("no elementwise " + op);
}

class EigenGemm : public Job {
 public:
  explicit EigenGemm(const Request& r) : gemms_(gemms(r, false)) { Eigen::setNbThreads(r.threads); }
  void run(int set) override {
    const Gemm& g = gemms_[set];
    Eigen::Map<RowMajor, 0, Eigen::OuterStride<>> c(g.c.data, g.c.rows, g.c.columns,
                                                    Eigen::OuterStride<>(g.c.leading));
    with(g.a, [&](const auto& a) { with(g.b, [&](const auto& b) { c.noalias() = a * b; }); });
  }
  std::string about() const override { return version(); }

 private:
  using RowMajor = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

  template <class F>
  static void with(const Matrix& m, const F& f) {
    const Eigen::OuterStride<> step(m.leading);
    if (m.transposed)
      f(Eigen::Map<const Eigen::MatrixXf, 0, Eigen::OuterStride<>>(m.data, m.rows, m.columns,
                                                                   step));
    else
      f(Eigen::Map<const RowMajor, 0, Eigen::OuterStride<>>(m.data, m.rows, m.columns, step));
  }

  std::vector<Gemm> gemms_;
};

std::unique_ptr<Job> make(const Request& r) {
  if (r.op == "gemm" && plain(r)) return std::make_unique<EigenGemm>(r);
  if (r.op == "rmsnorm") return rows(r, rmsnorm);
  if (r.op == "layernorm") return rows(r, layernorm);
  if (r.op == "softmax") return rows(r, softmax);
  if (r.op == "row_reduce") return row_reduce(r);
  if (r.op == "elementwise") return elementwise(r);
  refuse("not in this peer");
}

}  // namespace
}  // namespace peers

const TwPeer* tw_peer() { return peers::peer<peers::make>("eigen"); }
