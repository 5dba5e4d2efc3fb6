#include <algorithm>
#include <fmt/format.h>
#include <set>

#include "tw/emit/cuda/panel_dot.h"

namespace tw::cuda {
namespace {

/// acc + a @ b in f32: each thread multiplies lines of its rows and columns, four steps of k at
/// once, and reads up to four neighbours of a panel in one access.
class MultiplyAdd {
 public:
  MultiplyAdd(State& s, const Op& op) : s_(s), dot_(s, op), rows_(places(0)), columns_(places(1)) {}

  void emit(Writer& out) {
    dot_.take_panels(true, out);
    s_.c.prelude.outside("Pack");
    Writer text;
    dot_.begin(text);
    for (size_t which = 0; which < 2; ++which) {
      names_[which] = s_.c.fresh(which == 0 ? "a_at" : "b_at");
      const std::string at = s_.c.text(s_.base(dot_.layout(), which));
      text.line(
          fmt::format("const f32* const {} = {};", names_[which], dot_.place(which, at, "0")));
    }
    const std::string k = s_.c.fresh("k");
    const int64_t whole = dot_.depth() / kSteps * kSteps;
    if (whole > 0) {
      text.line("#pragma unroll 2");
      text.open(fmt::format("for (int {0} = 0; {0} < {1}; {0} += {2}) {{", k, whole, kSteps));
      steps(k, kSteps, text);
      text.close();
    }
    if (whole < dot_.depth()) {
      text.open("{");
      steps(std::to_string(whole), dot_.depth() - whole, text);
      text.close();
    }
    dot_.finish(text, out);
  }

 private:
  static constexpr int64_t kSteps = 4;

  /// The places along an axis of the result of a thread's registers, less the first's.
  std::vector<int64_t> places(size_t axis) const {
    std::set<int64_t> all;
    const layout::ThreadValue& l = dot_.layout();
    for (int64_t v = 0; v < l.registers(); ++v) all.insert(l.coordinate(axis, 0, v));
    return {all.begin(), all.end()};
  }

  /// Registers of an operand: [steps of k][places].
  std::string read(size_t which, const std::vector<int64_t>& at, const std::string& k,
                   int64_t steps, Writer& text) {
    const std::string name = s_.c.fresh(which == 0 ? "a" : "b");
    const int64_t pitch = dot_.form(which).pitch;
    text.line(fmt::format("alignas(16) f32 {}[{}][{}];", name, steps, at.size()));
    if (dot_.along_k(which)) {
      for (size_t p = 0; p < at.size(); ++p) {
        const std::string from = fmt::format("{} + {} + {}", names_[which], at[p] * pitch, k);
        if (steps < kSteps) {
          for (int64_t j = 0; j < steps; ++j)
            text.line(fmt::format("{}[{}][{}] = *({} + {});", name, j, p, from, j));
          continue;
        }
        text.line(fmt::format("{{ const Pack<f32, 4> x = *(const Pack<f32, 4>*)({});", from));
        text.line(fmt::format("  for (int j = 0; j < 4; ++j) {}[j][{}] = x.v[j]; }}", name, p));
      }
      return name;
    }
    for (size_t p = 0; p < at.size();) {
      const int64_t run = run_at(which, at, p);
      for (int64_t j = 0; j < steps; ++j) {
        const std::string from =
            fmt::format("{} + ({} + {}) * {} + {}", names_[which], k, j, pitch, at[p]);
        if (run == 1) {
          text.line(fmt::format("{}[{}][{}] = *({});", name, j, p, from));
          continue;
        }
        text.line(fmt::format("*(Pack<f32, 4>*)&{}[{}][{}] = *(const Pack<f32, 4>*)({});", name, j,
                              p, from));
      }
      p += static_cast<size_t>(run);
    }
    return name;
  }

  /// How many places are neighbours that one access reads: 1 or 4.
  int64_t run_at(size_t which, const std::vector<int64_t>& at, size_t p) const {
    const int64_t first = divisor(s_.base(dot_.layout(), which), s_.c.facts);
    const bool four = at.size() % 4 == 0 && p % 4 == 0 && p + 4 <= at.size() &&
                      at[p + 3] == at[p] + 3 && at[p] % 4 == 0 && first % 4 == 0;
    return four ? 4 : 1;
  }

  void steps(const std::string& k, int64_t count, Writer& text) {
    const std::string a = read(0, rows_, k, count, text), b = read(1, columns_, k, count, text);
    const layout::ThreadValue& l = dot_.layout();
    text.line("#pragma unroll");
    text.open(fmt::format("for (int j = 0; j < {}; ++j) {{", count));
    for (int64_t v = 0; v < l.registers(); ++v) {
      const auto index = [&](const std::vector<int64_t>& at, size_t axis) {
        return std::ranges::find(at, l.coordinate(axis, 0, v)) - at.begin();
      };
      text.line(fmt::format("{0}[{1}] = {0}[{1}] + {2}[j][{3}] * {4}[j][{5}];", dot_.sums(), v, a,
                            index(rows_, 0), b, index(columns_, 1)));
    }
    text.close();
  }

  State& s_;
  PanelDot dot_;
  const std::vector<int64_t> rows_, columns_;
  std::string names_[2];
};

}  // namespace

void emit_multiply_add(State& s, const Op& op, Writer& out) { MultiplyAdd(s, op).emit(out); }

}  // namespace tw::cuda
