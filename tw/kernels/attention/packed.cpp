#include "tw/kernels/attention/packed.h"

#include <fmt/format.h>

#include "tw/base/error.h"
#include "tw/jit/kernel.h"
#include "tw/kernels/attention/backward.h"

namespace tw::kernels {
namespace {

/// Throws unless they ascend from 0 to `all`.
std::vector<int64_t> offsets_of(const TensorView& t, const char* name, const char* of,
                                int64_t all) {
  if (t.rank() != 1 || t.count() < 1 || (t.dtype != i32 && t.dtype != i64))
    throw UserError(fmt::format("{} is {}: wanted i32 or i64 [sequences + 1]", name, to_string(t)));
  std::vector<int64_t> at;
  for (double offset : to_doubles(t)) at.push_back(static_cast<int64_t>(offset));
  if (at[0] != 0) throw UserError(fmt::format("{}[0] is {}, wanted 0", name, at[0]));
  for (size_t s = 1; s < at.size(); ++s) {
    if (at[s] < at[s - 1])
      throw UserError(
          fmt::format("{0}[{1}] is {2}, less than {0}[{3}], which is {4}: wanted "
                      "offsets that ascend",
                      name, s, at[s], s - 1, at[s - 1]));
    if (at[s] > all)
      throw UserError(fmt::format("{}[{}] is {}, past the end: wanted at most the {} {}", name, s,
                                  at[s], all, of));
  }
  if (at.back() != all)
    throw UserError(fmt::format("{} ends at {}, wanted the {} {}", name, at.back(), all, of),
                    "give the rest to a sequence, or a slice of the tensors");
  return at;
}

/// Throws unless the tensors fit each other.
void check_heads(const PackedSequences& x) {
  const bool typed = x.Q.dtype == f32 || x.Q.dtype == bf16 || x.Q.dtype == f16;
  const bool ranks = x.Q.rank() == 3 && x.K.rank() == 3 && x.K.dims == x.V.dims;
  if (!typed || !ranks || x.Q.dims[2] != x.K.dims[2] || x.K.dtype != x.Q.dtype ||
      x.V.dtype != x.Q.dtype)
    throw UserError(
        fmt::format("attention of packed Q {}, K {} and V {}: wanted [queries,H,head] "
                    "and twice [keys,Hkv,head] of one type of f32, bf16 and f16",
                    to_string(x.Q), to_string(x.K), to_string(x.V)));
  if (x.Q.dims[2] < 1)
    throw UserError(fmt::format("attention of packed Q {}: wanted heads of at least 1 element",
                                to_string(x.Q)));
  const int64_t heads = x.Q.dims[1], shared = x.K.dims[1];
  if (shared < 1 || heads % shared != 0)
    throw UserError(
        fmt::format("attention of {} heads over {} key heads: wanted a multiple", heads, shared));
}

void check_like(const char* name, const TensorView& t, DType dtype,
                const std::vector<int64_t>& dims) {
  if (t.dtype == dtype && t.dims == dims) return;
  const TensorView wanted{nullptr, dtype, dims, contiguous_strides(dims)};
  throw UserError(fmt::format("{} is {}, wanted {}", name, to_string(t), to_string(wanted)));
}

struct Range {
  int64_t begin, end;
};

/// Rows of [rows, heads, head] as [1, heads, rows, head].
TensorView sequence(const TensorView& t, const Range& r) {
  return {static_cast<char*>(t.data) + r.begin * t.strides[0] * bytes(t.dtype),
          t.dtype,
          {1, t.dims[1], r.end - r.begin, t.dims[2]},
          {t.strides[0], t.strides[1], t.strides[0], t.strides[2]}};
}

/// Columns of [heads, rows] as [1, heads, rows].
TensorView sequence_states(const TensorView& t, const Range& r) {
  return {static_cast<char*>(t.data) + r.begin * t.strides[1] * bytes(t.dtype),
          t.dtype,
          {1, t.dims[0], r.end - r.begin},
          {t.strides[0], t.strides[0], t.strides[1]}};
}

/// The checked arguments of a call, sequence by sequence.
struct Packing {
  Packing(const PackedSequences& x, const PackedOptions& options)
      : device(options.device ? *options.device : Device::open("cpu:0")) {
    check_heads(x);
    queries = offsets_of(x.query_offsets, "query_offsets", "queries", x.Q.dims[0]);
    keys = offsets_of(x.key_offsets, "key_offsets", "keys", x.K.dims[0]);
    if (queries.size() != keys.size())
      throw UserError(
          fmt::format("query_offsets has {} entries and key_offsets {}: wanted one more "
                      "than there are sequences in both",
                      queries.size(), keys.size()));
  }

  /// Calls run(queries, keys) for every sequence.
  template <class F>
  void each(F&& run) const {
    for (size_t s = 1; s < queries.size(); ++s)
      run(Range{queries[s - 1], queries[s]}, Range{keys[s - 1], keys[s]});
  }

  Device device;
  std::vector<int64_t> queries, keys;
};

}  // namespace

PackedAttention attention_packed(const PackedSequences& x, const PackedOptions& options) {
  const Packing packing(x, options);
  const PackedAttention y{empty(packing.device, x.Q.dtype, x.Q.dims),
                          empty(packing.device, f32, {x.Q.dims[1], x.Q.dims[0]})};
  const AttentionForm form{.dtype = x.Q.dtype,
                           .head = x.Q.dims[2],
                           .causal = options.causal,
                           .softcap = options.softcap};
  const Kernel kernel =
      compile(attention(form, attention_tiling(form, packing.device.target())), packing.device);
  packing.each([&](const Range& q, const Range& k) {
    kernel({sequence(x.Q, q), sequence(x.K, k), sequence(x.V, k)},
           {sequence(y.O, q), sequence_states(y.L, q)});
  });
  return y;
}

PackedGradients attention_packed_backward(const PackedSequences& x, const PackedAttention& results,
                                          const TensorView& dO, const PackedOptions& options) {
  const Packing packing(x, options);
  if (options.softcap > 0)
    throw UserError(fmt::format("gradients of attention with a soft cap of {}: there are none",
                                options.softcap),
                    "leave the cap out");
  check_like("O", results.O, x.Q.dtype, x.Q.dims);
  check_like("L", results.L, f32, {x.Q.dims[1], x.Q.dims[0]});
  check_like("dO", dO, x.Q.dtype, x.Q.dims);
  const PackedGradients y{empty(packing.device, x.Q.dtype, x.Q.dims),
                          empty(packing.device, x.Q.dtype, x.K.dims),
                          empty(packing.device, x.Q.dtype, x.K.dims)};
  const AttentionBackwardForm form{x.Q.dtype, x.Q.dims[2], options.causal};
  const Kernel for_queries = compile(attention_backward_queries(form), packing.device);
  const Kernel for_keys = compile(attention_backward_keys(form), packing.device);
  packing.each([&](const Range& q, const Range& k) {
    const std::vector<TensorView> inputs{sequence(x.Q, q), sequence(x.K, k),
                                         sequence(x.V, k), sequence(results.O, q),
                                         sequence(dO, q),  sequence_states(results.L, q)};
    for_queries(inputs, {sequence(y.dQ, q)});
    for_keys(inputs, {sequence(y.dK, k), sequence(y.dV, k)});
  });
  return y;
}

}  // namespace tw::kernels
