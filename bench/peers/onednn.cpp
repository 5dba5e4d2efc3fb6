#include <chrono>
#include <functional>
#include <oneapi/dnnl/dnnl.hpp>

#include "bench/peers/peer_support.h"

namespace peers {
namespace {

using dnnl::memory;
using Dims = memory::dims;
using Arguments = std::unordered_map<int, memory>;

std::string version() {
  const dnnl_version_t* v = dnnl_version();
  return "oneDNN " + std::to_string(v->major) + "." + std::to_string(v->minor) + "." +
         std::to_string(v->patch) + ", ";
}

memory::data_type type_of(const TwPeerTensor& t) {
  const std::string name = t.dtype;
  if (name == "f32") return memory::data_type::f32;
  if (name == "bf16") return memory::data_type::bf16;
  refuse("no " + name);
}

/// The tensor as it lies: any strides.
memory::desc describe(const TwPeerTensor& t) {
  return {Dims(t.dims, t.dims + t.rank), type_of(t), Dims(t.strides, t.strides + t.rank)};
}

memory::desc describe_row(const TwPeerTensor& t) {
  return {{1, t.dims[0]}, type_of(t), Dims{t.dims[0], 1}};
}

/// One primitive and its arguments for every set.
class Primitive : public Job {
 public:
  using Bind = std::function<Arguments(const TwPeerSet&, const dnnl::engine&)>;

  template <class Description, class Op>
  static std::unique_ptr<Primitive> of(const Request& r, const Description& d, Op op,
                                       const dnnl::engine& e, const Bind& bind) {
    auto made = std::make_unique<Primitive>();
    made->engine_ = e;
    made->stream_ = dnnl::stream(e);
    made->op_ = op;
    made->about_ = version() + d.impl_info_str();
    const memory scratch(d.scratchpad_desc(), e);
    for (int s = 0; s < r.count; ++s) {
      Arguments& arguments = made->arguments_.emplace_back(bind(r.sets[s], e));
      arguments.insert({DNNL_ARG_SCRATCHPAD, scratch});
    }
    return made;
  }

  void run(int set) override {
    op_.execute(stream_, arguments_[set]);
    stream_.wait();
  }
  std::string about() const override { return about_; }

 private:
  dnnl::engine engine_;
  dnnl::stream stream_;
  dnnl::primitive op_;
  std::vector<Arguments> arguments_;
  std::string about_;
};

dnnl::primitive_attr attributes(const dnnl::post_ops& after = {}) {
  dnnl::primitive_attr a;
  a.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  a.set_post_ops(after);
  return a;
}

std::unique_ptr<Job> softmax(const Request& r, const dnnl::engine& e) {
  const memory::desc x = describe(r.sets[0].inputs[0]), y = describe(r.sets[0].outputs[0]);
  const dnnl::softmax_v2_forward::primitive_desc d(
      {dnnl::prop_kind::forward_inference, dnnl::algorithm::softmax_accurate, x, y, 1},
      attributes(), e);
  return Primitive::of(r, d, dnnl::softmax_v2_forward(d), e,
                       [](const TwPeerSet& s, const dnnl::engine& e) -> Arguments {
                         const auto &x = s.inputs[0], &y = s.outputs[0];
                         return {{DNNL_ARG_SRC, memory(describe(x), e, x.data)},
                                 {DNNL_ARG_DST, memory(describe(y), e, y.data)}};
                       });
}

/// Its primitive works on one type, and in 2.6 writes where it reads or elsewhere.
std::unique_ptr<Job> layernorm(const Request& r, const dnnl::engine& e) {
  using dnnl::normalization_flags;
  const memory::desc x = describe(r.sets[0].inputs[0]);
  const dnnl::layer_normalization_forward::primitive_desc d(
      {dnnl::prop_kind::forward_inference, x, 1e-5f,
       normalization_flags::use_scale | normalization_flags::use_shift},
      attributes(), e);
  return Primitive::of(r, d, dnnl::layer_normalization_forward(d), e,
                       [](const TwPeerSet& s, const dnnl::engine& e) -> Arguments {
                         const auto &x = s.inputs[0], &y = s.outputs[0];
                         const auto &scale = s.inputs[1], &shift = s.inputs[2];
                         return {{DNNL_ARG_SRC, memory(describe(x), e, x.data)},
                                 {DNNL_ARG_SCALE, memory(describe(scale), e, scale.data)},
                                 {DNNL_ARG_SHIFT, memory(describe(shift), e, shift.data)},
                                 {DNNL_ARG_DST, memory(describe(y), e, y.data)}};
                       });
}

dnnl::post_ops epilogue(const std::string& name) {
  dnnl::post_ops after;
  if (name == "none" || name == "bias") return after;
  if (name == "bias_gelu")
    after.append_eltwise(1, dnnl::algorithm::eltwise_gelu_tanh, 0, 0);
  else if (name == "bias_relu")
    after.append_eltwise(1, dnnl::algorithm::eltwise_relu, 0, 0);
  else if (name == "bias_silu")
    after.append_eltwise(1, dnnl::algorithm::eltwise_swish, 1, 0);
  else
    refuse("no epilogue " + name);
  return after;
}

std::unique_ptr<Job> gemm(const Request& r, const dnnl::engine& e) {
  const TwPeerSet& first = r.sets[0];
  const std::string after = r.option("epilogue", "none");
  const bool with_bias = after != "none";
  const memory::desc a = describe(first.inputs[0]), b = describe(first.inputs[1]);
  const memory::desc c = describe(first.outputs[0]);
  using Matmul = dnnl::matmul;
  const Matmul::desc what =
      with_bias ? Matmul::desc(a, b, describe_row(first.inputs[2]), c) : Matmul::desc(a, b, c);
  const Matmul::primitive_desc d(what, attributes(epilogue(after)), e);
  return Primitive::of(
      r, d, Matmul(d), e, [with_bias](const TwPeerSet& s, const dnnl::engine& e) -> Arguments {
        const auto &a = s.inputs[0], &b = s.inputs[1], &c = s.outputs[0];
        Arguments out = {{DNNL_ARG_SRC, memory(describe(a), e, a.data)},
                         {DNNL_ARG_WEIGHTS, memory(describe(b), e, b.data)},
                         {DNNL_ARG_DST, memory(describe(c), e, c.data)}};
        if (with_bias)
          out.insert({DNNL_ARG_BIAS, memory(describe_row(s.inputs[2]), e, s.inputs[2].data)});
        return out;
      });
}

/// The older entry point, which takes other kernels than the matmul primitive.
class Sgemm : public Job {
 public:
  explicit Sgemm(const Request& r) : gemms_(gemms(r, false)) {}
  void run(int set) override {
    const Gemm& g = gemms_[set];
    dnnl_sgemm(g.a.transposed ? 'T' : 'N', g.b.transposed ? 'T' : 'N', g.c.rows, g.c.columns,
               g.a.columns, 1.0f, g.a.data, g.a.leading, g.b.data, g.b.leading, 0.0f, g.c.data,
               g.c.leading);
  }
  std::string about() const override { return version() + "dnnl_sgemm"; }

 private:
  std::vector<Gemm> gemms_;
};

double seconds_of(Job& job) {
  using Clock = std::chrono::steady_clock;
  job.run(0);
  double best = 1e9;
  for (int i = 0; i < 5; ++i) {
    const auto start = Clock::now();
    job.run(0);
    best = std::min(best, std::chrono::duration<double>(Clock::now() - start).count());
  }
  return best;
}

std::unique_ptr<Job> faster(std::unique_ptr<Job> a, std::unique_ptr<Job> b) {
  return seconds_of(*a) <= seconds_of(*b) ? std::move(a) : std::move(b);
}

dnnl::algorithm elementwise_algorithm(const std::string& op) {
  if (op == "add") return dnnl::algorithm::binary_add;
  if (op == "sub") return dnnl::algorithm::binary_sub;
  if (op == "mul") return dnnl::algorithm::binary_mul;
  if (op == "div") return dnnl::algorithm::binary_div;
  if (op == "max") return dnnl::algorithm::binary_max;
  if (op == "min") return dnnl::algorithm::binary_min;
  if (op == "relu") return dnnl::algorithm::eltwise_relu;
  if (op == "exp") return dnnl::algorithm::eltwise_exp;
  if (op == "log") return dnnl::algorithm::eltwise_log;
  if (op == "sqrt") return dnnl::algorithm::eltwise_sqrt;
  if (op == "tanh") return dnnl::algorithm::eltwise_tanh;
  if (op == "silu") return dnnl::algorithm::eltwise_swish;
  if (op == "gelu") return dnnl::algorithm::eltwise_gelu_erf;
  if (op == "gelu_tanh") return dnnl::algorithm::eltwise_gelu_tanh;
  refuse("no elementwise " + op);
}

std::unique_ptr<Job> elementwise(const Request& r, const dnnl::engine& e) {
  const TwPeerSet& first = r.sets[0];
  const dnnl::algorithm op = elementwise_algorithm(r.option("op", "add"));
  const memory::desc a = describe(first.inputs[0]), y = describe(first.outputs[0]);
  if (first.input_count == 2) {
    const dnnl::binary::primitive_desc d({op, a, describe(first.inputs[1]), y}, attributes(), e);
    return Primitive::of(r, d, dnnl::binary(d), e,
                         [](const TwPeerSet& s, const dnnl::engine& e) -> Arguments {
                           const auto &a = s.inputs[0], &b = s.inputs[1], &y = s.outputs[0];
                           return {{DNNL_ARG_SRC_0, memory(describe(a), e, a.data)},
                                   {DNNL_ARG_SRC_1, memory(describe(b), e, b.data)},
                                   {DNNL_ARG_DST, memory(describe(y), e, y.data)}};
                         });
  }
  const float alpha = op == dnnl::algorithm::eltwise_swish ? 1 : 0;
  const dnnl::eltwise_forward::primitive_desc d(
      {dnnl::prop_kind::forward_inference, op, a, alpha, 0}, attributes(), e);
  return Primitive::of(r, d, dnnl::eltwise_forward(d), e,
                       [](const TwPeerSet& s, const dnnl::engine& e) -> Arguments {
                         const auto &a = s.inputs[0], &y = s.outputs[0];
                         return {{DNNL_ARG_SRC, memory(describe(a), e, a.data)},
                                 {DNNL_ARG_DST, memory(describe(y), e, y.data)}};
                       });
}

memory::desc describe_reduced(const TwPeerTensor& y, int axis) {
  const Dims dims = axis == 1 ? Dims{y.dims[0], 1} : Dims{1, y.dims[0]};
  return {dims, type_of(y), axis == 1 ? Dims{1, 1} : Dims{y.dims[0], 1}};
}

std::unique_ptr<Job> reduce(const Request& r, const dnnl::engine& e, int axis) {
  const std::string op = r.option("op", "sum");
  if (op != "sum" && op != "max" && op != "mean") refuse("no reduction " + op);
  const dnnl::algorithm algorithm = op == "sum"   ? dnnl::algorithm::reduction_sum
                                    : op == "max" ? dnnl::algorithm::reduction_max
                                                  : dnnl::algorithm::reduction_mean;
  const TwPeerSet& first = r.sets[0];
  const dnnl::reduction::primitive_desc d(
      {algorithm, describe(first.inputs[0]), describe_reduced(first.outputs[0], axis), 0.0f, 0.0f},
      attributes(), e);
  return Primitive::of(r, d, dnnl::reduction(d), e,
                       [axis](const TwPeerSet& s, const dnnl::engine& e) -> Arguments {
                         const auto &x = s.inputs[0], &y = s.outputs[0];
                         return {{DNNL_ARG_SRC, memory(describe(x), e, x.data)},
                                 {DNNL_ARG_DST, memory(describe_reduced(y, axis), e, y.data)}};
                       });
}

std::unique_ptr<Job> make(const Request& r) {
  const dnnl::engine engine(dnnl::engine::kind::cpu, 0);
  const bool single = std::string(r.sets[0].inputs[0].dtype) == "f32";
  if (r.op == "gemm" && plain(r) && single)
    return faster(gemm(r, engine), std::make_unique<Sgemm>(r));
  if (r.op == "gemm") return gemm(r, engine);
  if (r.op == "softmax") return softmax(r, engine);
  if (r.op == "layernorm") return layernorm(r, engine);
  if (r.op == "elementwise") return elementwise(r, engine);
  if (r.op == "row_reduce") return reduce(r, engine, 1);
  if (r.op == "column_reduce") return reduce(r, engine, 0);
  refuse("not in this peer");
}

}  // namespace
}  // namespace peers

const TwPeer* tw_peer() { return peers::peer<peers::make>("onednn"); }
