#include "tests/emu/pipelines.h"

#include <fmt/format.h>
#include <fstream>
#include <set>
#include <sstream>
#include <stdexcept>

#include "tw/base/error.h"
#include "tw/check/bound.h"
#include "tw/emit/cuda/prelude_cuda.h"

#include "tests/support/normal.h"

namespace tw::test {

Config::Config(const std::string& text) {
  std::istringstream words(text);
  for (std::string w; words >> w;) {
    const size_t at = w.find('=');
    values_[w.substr(0, at)] = std::stoi(w.substr(at + 1));
  }
}

int Config::operator()(const std::string& name, int otherwise) const {
  const auto it = values_.find(name);
  return it == values_.end() ? otherwise : it->second;
}

std::string kernel_text(const std::string& name) {
  std::ifstream in(TW_TEST_DIR "/texts/" + name + ".cu");
  std::stringstream text;
  text << in.rdbuf();
  if (text.str().empty()) throw std::runtime_error("no text " + name);
  return text.str();
}

Pipeline pipeline(const std::string& name, const std::string& text, const Config& config) {
  return name == "rows"   ? rows_pipeline(text, config)
         : name == "gemv" ? gemv_pipeline(text, config)
         : name == "ring" ? ring_pipeline(text, config)
         : name == "gemm" ? gemm_pipeline(text, config)
                          : fa_pipeline(text, config);
}

std::string cuda_text(const Pipeline& p) {
  const std::string& program = p.launch.program;
  std::set<std::string> used;
  for (const std::string& name : cuda::thread_function_names()) {
    if (program.find(name) != std::string::npos) used.insert(name);
  }
  return cuda::thread_prelude(used, cpu::Thread::cuda) + program;
}

Verdict first_fault(const Pipeline& p, uint64_t seeds, uint64_t* seed) {
  for (uint64_t s = 0; s < seeds; ++s) {
    if (seed) *seed = s;
    Verdict v;
    try {
      std::vector<Tensor> out;
      const EmuReport r = run(p.launch, {.seed = s}, &out);
      v.text = r.clean() ? p.wrong(out) : r.text;
      if (!v.text.empty()) v.kind = r.clean() ? Verdict::Kind::numbers : Verdict::Kind::report;
    } catch (const UserError& e) {
      v = {Verdict::Kind::refused, e.what()};
    }
    if (v.kind != Verdict::Kind::clean) return {v.kind, fmt::format("seed {}: {}", s, v.text)};
  }
  return {};
}

std::string first_wrong(const Tensor& got, const std::vector<Expected>& want) {
  for (size_t i = 0; i < want.size(); ++i) {
    const double value = get(got, static_cast<int64_t>(i));
    const double ratio = check::error_ratio(got.dtype(), value, want[i].value, want[i].bound);
    if (!(ratio <= 1))
      return fmt::format("numbers: element {} is {}, {} bounds from {}", i, value, ratio,
                         want[i].value);
  }
  return "";
}

// ---- kernels without roles

/// Of three rows one stays as it is. One has an element far above the others, without which the
/// maximum is too small. One is close to zero, where it matters what is added to the sum of
/// squares; that of a softmax has infinities in words whose other half is arbitrary.
static void make_odd_rows(const Tensor& x, bool norm) {
  const int64_t rows = x.view().dims[0], cols = x.view().dims[1];
  for (int64_t r = 0; r < rows; ++r) {
    if (r % 3 == 1) set(x, r * cols + (r * 37 + 5) % cols, 200);
    for (int64_t i = r * cols; r % 3 == 2 && i < (r + 1) * cols; ++i) {
      if (norm) set(x, i, get(x, i) * 0x1p-10);
      if (!norm && i % 4 == 1) set(x, i, -INFINITY);
    }
  }
}

Pipeline rows_pipeline(const std::string& text, const Config& c) {
  const int cols = c("cols", 1024), rows = c("rows", 5), per_row = c("tpr", 64), n = c("rpb", 2);
  const bool norm = c("rms", 0) != 0;
  Tensor x = host_tensor(bf16, {rows, cols}), y = host_tensor(bf16, {rows, cols}),
         w = host_tensor(bf16, {cols});
  fill_normal(x, 1);
  fill_normal(w, 2);
  if (c("odd", 0) != 0) make_odd_rows(x, norm);
  check::Accuracy a{.family = norm ? check::Family::norm : check::Family::softmax, .out = bf16};
  a.terms = cols;
  std::vector<Expected> want;
  for (int64_t r = 0; r < rows; ++r) {
    double sum = 0;
    for (int64_t i = 0; i < cols; ++i) {
      const double v = get(x, r * cols + i);
      sum += norm ? v * v : std::exp(v);
    }
    for (int64_t i = 0; i < cols; ++i) {
      const double v = get(x, r * cols + i);
      const double y0 = norm ? v / std::sqrt(sum / cols + 1e-5) * get(w, i) : std::exp(v) / sum;
      want.push_back({y0, check::bound(a, y0, std::abs(y0))});
    }
  }
  Pipeline p;
  p.launch = make_case(
      fmt::format("#define COLS {}\n#define TPR {}\n#define RPB {}\n{}", cols, per_row, n, text),
      c("grid", 2), per_row * n, per_row > 32 ? 4 * n * (per_row / 32) : 0, {x, y, w}, "rwr",
      {rows, cols});
  p.launch.spec.entry = norm ? "tw_rmsnorm" : "tw_softmax";
  p.wrong = [want](const std::vector<Tensor>& out) { return first_wrong(out[1], want); };
  return p;
}

Pipeline gemv_pipeline(const std::string& text, const Config& c) {
  const int64_t n = c("n", 32), k = c("k", 256), batch = c("nb", 3), warps = c("wpb", 2);
  Tensor q = host_tensor(u32, {n / 16, k / 64, 32, 4}), s = host_tensor(bf16, {n, k / 128}),
         x = host_tensor(bf16, {batch, k}), y = host_tensor(bf16, {batch, n});
  fill_normal(s, 1);
  fill_normal(x, 2);
  // Where x is zero, or the weight, the sum must be zero, whatever stands beside it in the word.
  for (int64_t i = 0; batch > 1 && i < k; i += 2) set(x, i, 0);
  std::vector<int> weights(static_cast<size_t>(n * k));
  std::vector<uint32_t> words(static_cast<size_t>(q.count()));
  for (int64_t row = 0; row < n; ++row) {
    for (int64_t i = 0; i < k; ++i) {
      const int64_t any = (row * 7 + i * 5 + i / 9) % 16;
      const auto value = static_cast<int>(row % 16 != 5 ? any : i % 2 != 0 ? 8 : any | 1);
      weights[static_cast<size_t>(row * k + i)] = value;
      const int64_t lane = row % 8 * 4 + i % 64 / 16, word = i % 16 / 4, e = i % 4;
      const int64_t nibble = e / 2 * 2 + row % 16 / 8 + e % 2 * 4;
      words[static_cast<size_t>(((row / 16 * (k / 64) + i / 64) * 32 + lane) * 4 + word)] |=
          static_cast<uint32_t>(value) << (4 * nibble);
    }
  }
  for (int64_t i = 0; i < q.count(); ++i) set(q, i, words[static_cast<size_t>(i)]);
  std::vector<Expected> want;
  check::Accuracy a{.family = check::Family::gemm, .out = bf16};
  a.terms = k;
  for (int64_t b = 0; b < batch; ++b) {
    for (int64_t row = 0; row < n; ++row) {
      double sum = 0, all = 0;
      for (int64_t i = 0; i < k; ++i) {
        const double term = get(x, b * k + i) * (weights[static_cast<size_t>(row * k + i)] - 8) *
                            get(s, row * (k / 128) + i / 128);
        sum += term;
        all += std::abs(term);
      }
      want.push_back({sum, check::bound(a, sum, all)});
    }
  }
  Pipeline p;
  p.launch = make_case(
      fmt::format("#define K {}\n#define WPB {}\n#define NB {}\n{}", k, warps, batch, text), n / 16,
      static_cast<int>(warps) * 32, warps * 16 * batch * 4, {q, s, x, y}, "rrrw", {batch, n, k});
  p.launch.spec.entry = "tw_gemv";
  p.wrong = [want](const std::vector<Tensor>& out) { return first_wrong(out[3], want); };
  return p;
}

// ---- a ring of boxes

Pipeline ring_pipeline(const std::string& text, const Config& c) {
  const int rows = c("rows", 8), cols = c("cols", 32), stages = c("st", 2), blocks = c("cl", 1);
  const int64_t m = c("m", 24), n = c("n", 64);
  Tensor x = host_tensor(f32, {m, n}), y = host_tensor(f32, {m, n});
  fill_normal(x, 1);
  std::vector<Expected> want;
  for (int64_t i = 0; i < x.count(); ++i) want.push_back({2 * get(x, i), 0});
  std::string defines;
  for (const auto& [name, value] : std::vector<std::pair<const char*, int>>{{"ROWS", rows},
                                                                            {"COLS", cols},
                                                                            {"STAGES", stages},
                                                                            {"CL", blocks},
                                                                            {"RANK", c("rank", 2)}})
    defines += fmt::format("#define {} {}\n", name, value);
  defines += blocks > 1 ? fmt::format("#define CLUSTER __cluster_dims__({}, 1, 1)\n", blocks)
                        : "#define CLUSTER\n";
  Pipeline p;
  p.launch = make_case(defines + text, c("grid", 2), 160, kSlack + stages * (rows * cols * 4 + 16),
                       {x, y}, "rw", {m, n});
  p.launch.spec.entry = "tw_ring";
  p.launch.spec.cluster = blocks;
  for (const size_t arg : {size_t{0}, size_t{1}})
    p.launch.spec.tensor_maps.push_back({arg, 0, {cols, rows / blocks}});
  p.wrong = [want](const std::vector<Tensor>& out) { return first_wrong(out[1], want); };
  return p;
}

}  // namespace tw::test
