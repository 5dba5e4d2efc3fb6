#include <algorithm>

#include "tw/kernels/attention/backward.h"

namespace tw::kernels {
namespace {

struct BackwardSizes {
  int64_t batch, heads, kv_heads, sq, skv, head;
};

Problem backward_problem(const BackwardSizes& s, DType t, const char* mask = "none") {
  return {{{"batch", s.batch},
           {"heads", s.heads},
           {"kv_heads", s.kv_heads},
           {"sq", s.sq},
           {"skv", s.skv},
           {"head", s.head}},
          t,
          {{"mask", mask}}};
}

/// Q, K and L stay small: whatever they are, weights are exp(S - L).
std::vector<Argument> backward_inputs(const Problem& p) {
  using check::Domain;
  require_shared_heads(p);
  const std::vector<int64_t> states{p.extent("batch"), p.extent("heads"), p.extent("sq")};
  std::vector<int64_t> queries = states;
  queries.push_back(p.extent("head"));
  const std::vector<int64_t> keys{p.extent("batch"), p.extent("kv_heads"), p.extent("skv"),
                                  p.extent("head")};
  const Domain values = p.option("mask") == "causal" ? Domain::finite : Domain::any;
  return {{"Q", p.dtype, queries, false, Domain::small}, {"K", p.dtype, keys, false, Domain::small},
          {"V", p.dtype, keys, false, values},           {"O", p.dtype, queries, false, values},
          {"dO", p.dtype, queries, false, values},       {"L", f32, states, false, Domain::small}};
}

std::vector<Argument> queries_arguments(const Problem& p) {
  std::vector<Argument> all = backward_inputs(p);
  all.push_back({"dQ", p.dtype, all[0].dims, true});
  return all;
}

std::vector<Argument> keys_arguments(const Problem& p) {
  std::vector<Argument> all = backward_inputs(p);
  all.push_back({"dK", p.dtype, all[1].dims, true});
  all.push_back({"dV", p.dtype, all[1].dims, true});
  return all;
}

AttentionBackwardForm backward_form(const Problem& p) {
  return {.dtype = p.dtype, .head = p.extent("head"), .causal = p.option("mask") == "causal"};
}
/// Blocks whose operands, products and sums fit the memory of a GPU's block.
AttentionTiling backward_tiling(const Problem& p, const Target& target) {
  const int64_t head = p.extent("head");
  if (target.gpu() == nullptr || head <= 64) return {};
  const int64_t extent = head <= 128 ? 32 : 16;
  return {extent, extent};
}
Program queries_trace(const Problem& p, const Target& target) {
  return attention_backward_queries(backward_form(p), backward_tiling(p, target));
}
Program keys_trace(const Problem& p, const Target& target) {
  return attention_backward_keys(backward_form(p), backward_tiling(p, target));
}

/// Fewer, as many and more queries than keys; ragged blocks; grouped heads; heads of odd size and
/// of 256; no key and no query at all.
std::vector<Problem> backward_sweep() {
  std::vector<Problem> all;
  for (const BackwardSizes& s : {BackwardSizes{1, 1, 1, 1, 1, 1},
                                 {1, 2, 1, 65, 130, 24},
                                 {2, 3, 3, 130, 5, 24},
                                 {1, 2, 1, 0, 6, 24},
                                 {2, 2, 2, 4, 0, 24},
                                 {3, 6, 3, 7, 9, 24}})
    all.push_back(backward_problem(s, f32));
  for (const BackwardSizes& s : {BackwardSizes{2, 2, 2, 5, 7, 8},
                                 {1, 4, 2, 150, 70, 8},
                                 {1, 1, 1, 70, 150, 8},
                                 {1, 2, 1, 9, 12, 256}})
    all.push_back(backward_problem(s, f32, "causal"));
  all.push_back(backward_problem({1, 4, 1, 20, 90, 33}, bf16, "causal"));
  all.push_back(backward_problem({1, 2, 1, 3, 4, 5}, bf16));
  all.push_back(backward_problem({1, 1, 1, 9, 70, 136}, f16));
  return all;
}

std::vector<Problem> backward_bench() {
  return {backward_problem({1, 8, 8, 512, 512, 64}, f32, "causal")};
}

KernelEntry backward_entry(const char* name, const char* sentence,
                           decltype(KernelEntry::arguments) arguments,
                           decltype(KernelEntry::trace) trace,
                           decltype(KernelEntry::reference) reference) {
  return {name,
          sentence,
          check::Family::softmax,
          attention_axes(),
          {{"mask", {"none", "causal"}, "causal: query i sees keys up to i + skv - sq"}},
          {f32, bf16, f16},
          arguments,
          trace,
          reference,
          backward_sweep,
          backward_bench};
}

}  // namespace

std::vector<KernelEntry> attention_backward_entries() {
  return {
      backward_entry("attention_backward_queries",
                     "gradient of attention for its queries, from Q, K, V, O, dO and L",
                     queries_arguments, queries_trace, attention_backward_queries_reference),
      backward_entry("attention_backward_keys",
                     "gradients of attention for its keys and values, from Q, K, V, O, dO and L",
                     keys_arguments, keys_trace, attention_backward_keys_reference)};
}

}  // namespace tw::kernels
