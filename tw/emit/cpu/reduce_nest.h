#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tw/emit/cpu/combine.h"
#include "tw/emit/cpu/nest.h"

namespace tw::cpu {

/// Independent accumulators, so that the latency of one step does not bound the loop.
inline constexpr int kAccumulators = 4;
/// Rows of bytes that one pass over what they share reduces: each is a stream of memory.
inline constexpr int kRowBlock = 4;

/// How one reduction is cut into loops:
///   rows     lanes run along the reduced axis and are combined at the end of it
///   columns  lanes run along an axis of the result; the reduced axis is the inner loop
///   scalar   no lanes
/// Where a reshape made the reduced axis of several, rows are cut into the groups that its last one
/// is: an outer loop, in which coordinates are linear.
class ReduceNest {
 public:
  /// Reductions of tiles of one shape along one axis (a custom one alone), and stores of such
  /// tiles, which are written on the way where the loops cover exactly what they store.
  ReduceNest(Context& c, const std::vector<const Op*>& group);

  void emit(Writer& out);

 private:
  struct Item {
    ValueId in, out;
    Combiner combiner;
  };
  /// What steps take for granted, and the loops around them see to.
  struct Granted {
    std::vector<Limit> limits;
    std::vector<std::string> guards;
    /// Whether an expression takes nothing else for granted.
    bool cover(const Expression& e) const;
  };

  DType held(size_t n) const;

  std::string type_of(size_t n, int lanes);

  /// A register that stands for accumulator `prefix`n.
  Reg accumulator(size_t n, const std::string& prefix, int lanes, uint32_t loops) const;

  Regs combine(Expression& e, const Regs& a, const Regs& b);

  Regs terms(Expression& e);

  Expression make(bool post);
  /// Lanes of r folded in halves until `lanes` are left.
  Regs folded(Expression& e, Regs r, int from, int lanes);

  /// Chooses lanes, and whether the reduced axis is cut into groups.
  void choose();
  LaneChoice survey();
  void split_groups();
  void join_groups();
  /// Whether lanes run along groups as a whole; cuts them to what a group divides into.
  bool keeps_groups(LaneChoice& lanes);
  /// Reads of one element of every step, without writing it.
  std::vector<Expression::Access> reads(std::vector<Limit>& limits);
  /// Whether several rows are reduced together; notes what their steps fetch ahead.
  bool blocks_rows();

  int k_loop() const { return static_cast<int>(axes_.size()) + (groups_ ? 1 : 0); }
  /// The loop along the reduced axis that limits cut.
  int span_loop() const { return static_cast<int>(axes_.size()); }
  const Axis& span() const { return groups_ ? *groups_ : k_; }
  /// Counters that steps take beside k.
  bool takes_row() const { return columns_ || blocked_; }

  void open(Writer& out);

  std::string counter(const Axis& a) const { return c_.symbol_text(a.counter); }

  /// The lambda that folds lanes at one place into accumulators; `edge` takes how many lanes count.
  void emit_step(Expression& e, const std::string& name, bool edge, Writer& out);

  void emit_lambda(Expression& e, const std::string& name, const std::string& parameters,
                   Writer& out);
  /// Parameters of the lambdas: counters of the loops inside the outer ones.
  std::string counters() const;

  /// The value of every element past the limit when it is one value along k; none otherwise.
  std::optional<Regs> beyond(Writer& out);
  /// Whether the loops visit exactly the elements that the stores write.
  bool covers_stores(bool folded) const;
  void store_apart(Writer& out);

  uint32_t limited() const {
    return 1u << span_loop() | 1u << k_loop() | (takes_row() ? 1u << outer_ : 0);
  }

  /// Splits what `inside` took for granted: the end of the k range, of the lane range, guards.
  void read_limits(const Expression& e);

  std::string ended(const std::string& end, int64_t extent) const;

  void declare(const std::string& prefix, int lanes, Writer& out);

  std::string arguments(const std::string& prefix) const;

  std::string prefix(int u) const { return fmt::format("{}{}_", acc_, u); }

  void emit_row(Writer& out);
  /// The lambdas of emit_row: a step, and one under a mask where some lanes may be outside.
  void emit_row_steps(Writer& out);
  /// The lambda that takes a step in several groups at once, where one is less than a register.
  void emit_wide(Writer& out);
  /// Whole strides of groups, and what they add to the accumulators of their rows.
  void pass_wide(int rows, int chains, Writer& out);
  int wide_lanes() const { return lanes_ * wide_; }
  std::string wide_prefix(int row) const { return fmt::format("{}{}_", wide_acc_, row); }

  /// Blocks of rows, then the rows that are left.
  void emit_blocks(Writer& out);
  /// The lambda that asks for memory ahead of the steps.
  void emit_fetch(Writer& out);
  /// Reduces `rows` rows; unless `inside`, every step is under a mask.
  void emit_pass(int rows, bool inside, Writer& out);
  void declare_span(bool inside, Writer& out);
  void pass_flat(int rows, int chains, Writer& out);
  void pass_groups(int rows, int chains, Writer& out);
  void pass_edge(int rows, int chains, bool inside, Writer& out);
  std::string span_end(bool inside) const;
  /// `count` steps of each row from `at` on, each row on `chains` accumulators in turn.
  void steps(int rows, int chains, int count, const std::string& at, Writer& out);
  void fetches(const std::string& at, Writer& out);
  /// Row r of a block.
  std::string row(int r) const;

  void emit_edge(const std::string& edge, Writer& out);

  /// A combiner without neutral element starts from the first lanes, which always exist.
  void start_custom(const std::string&, Writer& out);

  Regs read(const std::string& prefix, int lanes) const;
  uint32_t outer_mask() const { return (1u << axes_.size()) - 1; }

  /// Combines accumulators first, first + 1, .. and writes the result.
  void finish_row(int first, int chains, bool folds_pad, Writer& out);

  Reg half(Expression& e, const Reg& r, int lanes, int which);

  /// total = total combined `times` times with one value.
  void fold_pad(size_t n, const std::string& total, const Reg& pad, int lanes,
                const std::string& times, Writer& out);

  void write(Expression& e, const Regs& r, const std::string& active, Writer& out);

  void emit_scalar(Writer& out);

  void emit_columns(Writer& out);

  void start_columns(int blocks, const std::string& edge, Writer& out);

  std::string extent_text() const { return std::to_string(axes_[outer_].extent); }

  /// Blocks of whole vectors of columns.
  void column_block(int blocks, const std::string& step, const std::string& edge, Writer& out);

  void column_edge(const std::string& edge, int64_t extent, Writer& out);

  void finish_column(int u, const std::optional<Regs>& pad, const std::string& active, Writer& out);

  Context& c_;
  std::vector<Item> items_;
  std::vector<const Op*> stores_;
  const Op* custom_ = nullptr;  ///< the reduction when its combiner is a region
  int axis_ = 0;
  bool writes_ = false;  ///< steps write the stores
  Coords at_, out_at_;
  std::vector<Axis> axes_;  ///< of the result; the lane axis last when columns_
  Axis k_, whole_;          ///< the reduced axis; before it was cut into groups
  bool folds_ = false, columns_ = false;
  std::optional<Axis> groups_;  ///< the reduced axis is that many times k_
  int wide_ = 1;                ///< groups that one wide step takes
  bool blocked_ = false;        ///< rows are reduced in blocks of kRowBlock
  int lanes_ = 1, outer_ = 0;
  std::string acc_, step_, edge_, fetch_, wide_step_, wide_acc_, k_full_, j_full_, guard_;
  bool k_limited_ = false, uniform_ = true, exact_ = false;
  bool one_limit_ = true;  ///< all loads end at one place
  Limit k_limit_;          ///< from `hi` on all of them are outside
  Granted granted_;
  std::vector<Expression::Access> fetched_;
  int64_t fetch_step_ = 1;  ///< bytes for each element along k
  Writer beyond_text_;
  std::optional<Regs> pad_;
};

}  // namespace tw::cpu
