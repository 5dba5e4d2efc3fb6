#include <algorithm>
#include <fmt/format.h>

#include "tw/base/error.h"
#include "tw/kernels/attention/attention.h"
#include "tw/kernels/attention/merge.h"
#include "tw/kernels/block_tile.h"

namespace tw::kernels {
namespace {

struct Sizes {
  int64_t batch, heads, kv_heads, sq, skv, head;
};

Problem heads_problem(const Sizes& s, DType t, const char* mask = "none", const char* bias = "no",
                      const char* softcap = "none") {
  return {{{"batch", s.batch},
           {"heads", s.heads},
           {"kv_heads", s.kv_heads},
           {"sq", s.sq},
           {"skv", s.skv},
           {"head", s.head}},
          t,
          {{"mask", mask}, {"bias", bias}, {"softcap", softcap}}};
}

std::vector<Argument> attention_arguments(const Problem& p) {
  require_shared_heads(p);
  const int64_t batch = p.extent("batch"), heads = p.extent("heads"), shared = p.extent("kv_heads");
  const std::vector<int64_t> queries{batch, heads, p.extent("sq"), p.extent("head")};
  const std::vector<int64_t> keys{batch, shared, p.extent("skv"), p.extent("head")};
  const bool causal = p.option("mask") == "causal";
  std::vector<Argument> all{
      {"Q", p.dtype, queries, false},
      {"K", p.dtype, keys, false},
      {"V", p.dtype, keys, false, causal ? check::Domain::finite : check::Domain::any}};
  if (p.option("bias") == "yes")
    all.push_back({"bias", p.dtype, {batch, heads, p.extent("sq"), p.extent("skv")}, false});
  all.push_back({"O", p.dtype, queries, true});
  all.push_back({"L", f32, {batch, heads, p.extent("sq")}, true});
  return all;
}

Program attention_trace(const Problem& p, const Target& target) {
  const AttentionForm form{.dtype = p.dtype,
                           .head = p.extent("head"),
                           .causal = p.option("mask") == "causal",
                           .bias = p.option("bias") == "yes",
                           .softcap = attention_softcap(p)};
  return attention(form, attention_tiling(form, target));
}

/// Fewer, as many and more queries than keys; ragged blocks; grouped heads; heads of odd size; no
/// key at all.
std::vector<Problem> attention_sweep() {
  std::vector<Problem> all;
  for (const Sizes& s : {Sizes{1, 1, 1, 1, 1, 1}, {1, 2, 1, 65, 130, 24}, {1, 1, 1, 3, 200, 40}})
    all.push_back(heads_problem(s, f32));
  for (const Sizes& s :
       {Sizes{2, 2, 2, 5, 7, 16}, {1, 4, 2, 70, 33, 8}, {1, 1, 1, 64, 64, 64}, {1, 1, 1, 4, 0, 5}})
    all.push_back(heads_problem(s, f32, "causal"));
  all.push_back(heads_problem({1, 2, 1, 20, 90, 33}, bf16, "causal"));
  all.push_back(heads_problem({1, 2, 1, 3, 4, 5}, bf16));
  all.push_back(heads_problem({1, 1, 1, 9, 70, 12}, f16));
  all.push_back(heads_problem({1, 2, 2, 33, 70, 16}, f32, "causal", "yes"));
  all.push_back(heads_problem({3, 6, 3, 7, 9, 11}, f32, "none", "yes"));
  all.push_back(heads_problem({1, 2, 1, 35, 67, 9}, f32, "causal", "no", "30"));
  all.push_back(heads_problem({2, 2, 2, 4, 5, 6}, f32, "none", "yes", "50"));
  all.push_back(heads_problem({1, 1, 1, 9, 65, 72}, f16, "causal", "no", "50"));
  return all;
}

/// One state, several blocks of rows, odd heads, none at all.
std::vector<Problem> merge_sweep() {
  std::vector<Problem> all;
  const auto add = [&](DType t, int64_t batch, int64_t heads, int64_t sq, int64_t head) {
    all.push_back({{{"batch", batch}, {"heads", heads}, {"sq", sq}, {"head", head}}, t, {}});
  };
  add(f32, 1, 1, 1, 1);
  add(f32, 2, 3, 17, 64);
  add(f32, 1, 2, 0, 64);
  for (const DType t : {f32, bf16, f16}) {
    add(t, 1, 2, 40, 33);
    add(t, 3, 3, 5, 33);
  }
  return all;
}

std::vector<Problem> merge_bench() {
  return {{{{"batch", 1}, {"heads", 8}, {"sq", 1024}, {"head", 64}}, f32, {}}};
}

std::vector<Argument> merge_arguments(const Problem& p) {
  const std::vector<int64_t> states{p.extent("batch"), p.extent("heads"), p.extent("sq")};
  std::vector<int64_t> elements = states;
  elements.push_back(p.extent("head"));
  return {{"O1", p.dtype, elements, false}, {"L1", f32, states, false},
          {"O2", p.dtype, elements, false}, {"L2", f32, states, false},
          {"O", p.dtype, elements, true},   {"L", f32, states, true}};
}

Program merge_trace(const Problem& p, const Target& target) {
  const int64_t head = p.extent("head");
  if (target.gpu() == nullptr) return attention_merge(p.dtype, head);
  return attention_merge(p.dtype, head,
                         std::clamp<int64_t>(2048 / extent_for(head, 1, 2048), 1, 64));
}

std::vector<Problem> attention_bench() {
  return {heads_problem({1, 8, 8, 1024, 1024, 64}, f32, "causal"),
          heads_problem({1, 8, 8, 1024, 1024, 64}, f32)};
}

KernelEntry forward_entry() {
  return {"attention",
          "O = softmax(Q K^T / sqrt(head)) V of every head, and the logarithm L of its sums",
          check::Family::softmax,
          attention_axes(),
          {{"mask", {"none", "causal"}, "causal: query i sees keys up to i + skv - sq"},
           {"bias", {"no", "yes"}, "add bias[batch, heads, sq, skv] to the scores"},
           {"softcap", {"none", "30", "50"}, "c: scores become c tanh(score / c)"}},
          {f32, bf16, f16},
          attention_arguments,
          attention_trace,
          attention_reference,
          attention_sweep,
          attention_bench};
}

KernelEntry merge_entry() {
  return {"attention_merge",
          "results of attention over two sets of keys become that over both",
          check::Family::softmax,
          {{"batch", 1, "sequences"},
           {"heads", 8, "heads of O"},
           {"sq", 1024, "queries"},
           {"head", 64, "elements of a head"}},
          {},
          {f32, bf16, f16},
          merge_arguments,
          merge_trace,
          attention_merge_reference,
          merge_sweep,
          merge_bench};
}

}  // namespace

void require_shared_heads(const Problem& p) {
  const int64_t heads = p.extent("heads"), shared = p.extent("kv_heads");
  if (shared < 1 || heads % shared != 0)
    throw UserError(
        fmt::format("attention of {} heads over {} key heads: wanted a multiple", heads, shared));
}

float attention_softcap(const Problem& p) {
  const std::string c = p.option("softcap");
  return c.empty() || c == "none" ? 0 : std::stof(c);
}

std::vector<KernelEntry::Axis> attention_axes() {
  return {{"batch", 1, "sequences"},
          {"heads", 8, "heads of Q and O"},
          {"kv_heads", 8, "heads of K and V; a divisor of heads"},
          {"sq", 1024, "queries"},
          {"skv", 1024, "keys"},
          {"head", 64, "elements of a head"}};
}

std::vector<KernelEntry> attention_entries() { return {forward_entry(), merge_entry()}; }

}  // namespace tw::kernels
