#include "tw/emit/cpu/contract_thin.h"

#include <fmt/format.h>

#include "tw/emit/cpu/writer.h"

namespace tw::cpu {
namespace {

/// Text of `depth` rows of B times as many columns of A, added to `rows` rows.
class ThinStep {
 public:
  ThinStep(Prelude& prelude, const ContractShape& s, int rows, int depth)
      : scalar_(name(s.type)),
        vector_(prelude.type(s.type, s.lanes)),
        memory_(prelude.unaligned(s.type, s.lanes)),
        lanes_(s.lanes),
        rows_(rows),
        depth_(depth),
        ahead_(s.stream_ahead / bytes(s.type)) {}

  void emit(Writer& out) const {
    out.open(fmt::format("for (; k + {0} <= depth; k += {0}) {{", depth_));
    for (int d = 0; d < depth_; ++d) {
      out.line(fmt::format("const {0}* const b{1} = b + (k + {1}) * b_k;", scalar_, d));
      for (int i = 0; i < rows_; ++i) {
        out.line(
            fmt::format("const {0} a{1}_{2} = a[{1} * a_row + (k + {2}) * a_k];", scalar_, i, d));
      }
    }
    out.line("i64 j = 0;");
    out.open(fmt::format("for (; j + {0} <= n; j += {0}) {{", lanes_));
    sums(vector_, fmt::format("*({}*)", memory_), fmt::format("*(const {}*)", memory_), out);
    out.close();
    out.open("for (; j < n; ++j) {");
    sums(scalar_, "*", "*", out);
    out.close();
    out.close();
  }

 private:
  void sums(const std::string& type, const std::string& to, const std::string& from,
            Writer& out) const {
    for (int i = 0; i < rows_; ++i) {
      out.line(fmt::format("{0} c{1} = {2}(to + {1} * to_row + j);", type, i, to));
    }
    for (int d = 0; d < depth_; ++d) {
      std::string line;
      if (ahead_ > 0 && type == vector_)
        line = fmt::format("__builtin_prefetch(b{} + j + {}); ", d, ahead_);
      line += fmt::format("const {0} x{1} = {2}(b{1} + j);", type, d, from);
      for (int i = 0; i < rows_; ++i) line += fmt::format(" c{0} += a{0}_{1} * x{1};", i, d);
      out.line(line);
    }
    for (int i = 0; i < rows_; ++i) {
      out.line(fmt::format("{0}(to + {1} * to_row + j) = c{1};", to, i));
    }
  }

  std::string scalar_, vector_, memory_;
  int lanes_, rows_, depth_;
  int64_t ahead_;
};

}  // namespace

std::string use_thin(Prelude& prelude, const ContractShape& s) {
  const std::string type = name(s.type), function = "tw_thin_" + type;
  for (int rows = 1; rows <= kThinRows; ++rows) {
    Writer out;
    out.open(fmt::format(
        "static __attribute__((noinline)) void {0}_{1}(i64 n, i64 depth, const {2}* a, i64 a_row, "
        "i64 a_k,\n    const {2}* __restrict b, i64 b_k, {2}* __restrict to, i64 to_row, bool "
        "fresh) {{",
        function, rows, type));
    out.line("if (fresh)");
    out.line(fmt::format("  for (i64 i = 0; i < {}; ++i)", rows));
    out.line("    for (i64 j = 0; j < n; ++j) to[i * to_row + j] = 0;");
    out.line("i64 k = 0;");
    constexpr int kStreams = 4;  // more where nothing is fetched ahead and registers allow
    const bool more = rows == 1 && s.stream_ahead == 0;
    ThinStep(prelude, s, rows, more ? 2 * kStreams : kStreams).emit(out);
    ThinStep(prelude, s, rows, 1).emit(out);
    out.close();
    prelude.add(fmt::format("{} {}", function, rows), out.text());
  }
  Writer out;
  out.open(
      fmt::format("TW_INLINE void {0}(i64 m, i64 n, i64 depth, const {1}* a, i64 a_row, i64 "
                  "a_k, const {1}* b, i64 b_k,\n    {1}* to, i64 to_row, bool fresh) {{",
                  function, type));
  for (int rows = 1; rows <= kThinRows; ++rows) {
    out.line(
        fmt::format("if (m == {1}) {0}_{1}(n, depth, a, a_row, a_k, b, b_k, to, to_row, "
                    "fresh);",
                    function, rows));
  }
  out.close();
  prelude.add(function, out.text());
  return function;
}

}  // namespace tw::cpu
