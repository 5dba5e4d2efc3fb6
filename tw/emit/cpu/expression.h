#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "tw/emit/cpu/context.h"

namespace tw::cpu {

/// A value in emitted text at one element, or at `lanes` neighbours: a name or a literal without
/// side effects.
struct Reg {
  std::string text;
  DType dtype = f32;  ///< of the ir value; floats narrower than f32 are held as f32
  int lanes = 1;
  uint32_t loops = 0;  ///< bit k: the text changes with loop k of the nest
  /// Vectors of b1 are lanes of 0 and -1, this many bytes each.
  int mask_bytes = 0;
};

/// One coordinate per axis of a value's type.
using Coords = std::vector<Expr>;

/// Lanes in which elements lie inside a view: [lo, hi) of the counter, as expressions.
struct Limit {
  int loop = 0;
  Expr lo, hi;
  std::optional<Expr> past = {};  ///< from where all are outside; hi when it does not say
  const Expr& end() const { return past ? *past : hi; }
  bool operator==(const Limit&) const = default;
};

/// Bounds of one coordinate of an access against its tensor axis.
struct Bound {
  Expr at, dim;
  bool low = true, high = true;  ///< whether 0 <= at, at < dim need a check
};
/// What a loop body may take for granted.
enum class Assume : uint8_t {
  nothing,  ///< loads of lanes check each lane
  inside,   ///< every load of lanes lies inside its view (the nest sees to it; see limits())
  outside,  ///< every load limited along loop `outside_loop` lies outside: it is its pad
};

/// Writes the statements that compute elements of values inside a nest of loops. Each statement
/// stands in the outermost loop whose counter it needs; equal statements are written once.
class Expression {
 public:
  explicit Expression(Context& context) : c_(context) { bodies_.emplace_back(); }

  /// Adds an inner loop; its number is the count of loops before.
  int add_loop(Symbol counter);
  /// Computes `lanes` neighbours along a loop (the innermost) at once.
  void set_lanes(int loop, int lanes);

  /// Goes on with the lanes of `count` neighbours along loop `outer`, each of which gives as many
  /// lanes as were set. What cannot be done so makes joinable() false: its text is of no use.
  void join(int outer, int count);
  bool joinable() const { return joinable_; }

  /// The element of v at the coordinates, as a register.
  Reg value(ValueId v, const Coords& at);
  /// Gives v a meaning of the caller's: registers that exist already.
  void bind(ValueId v, std::function<Reg(const Coords&)> meaning) {
    bound_[v] = std::move(meaning);
  }
  void unbind(ValueId v) { bound_.erase(v); }

  /// Registers of a survey are not written; this says what each would be.
  bool surveying() const { return survey != nullptr && lane_loop_ < 0; }
  /// A named constant for a C++ expression; returns the old name when an equal one is in scope.
  Reg define(DType t, int lanes, uint32_t loops, const std::string& text, int mask_bytes = 0,
             const std::string& wish = "x");
  /// The same for text of one lane `l`, written for every lane.
  Reg define_lanes(DType t, uint32_t loops, const std::string& text);
  std::string define_text(const std::string& type, uint32_t loops, const std::string& text,
                          const std::string& wish);
  /// Statements inside loop `loop` (0: outside all; k: in the body of loop k-1).
  Writer& body(int depth) { return bodies_[static_cast<size_t>(depth)].text; }
  int depth() const { return static_cast<int>(bodies_.size()) - 1; }
  /// Forgets the text and the names of the bodies from this depth on, to write them again under
  /// another assumption; returns the texts.
  std::vector<Writer> take_from(int depth);

  void assume(Assume a, const Limit& outside = {});
  /// Loops whose range the nest cuts to limits(): bits of loop numbers.
  void set_limited(uint32_t loops) { limited_ = loops; }
  /// Limits that `inside` took for granted so far, and conditions that must hold beside them.
  const std::vector<Limit>& limits() const { return limits_; }
  const std::vector<std::string>& guards() const { return guards_; }
  /// Whether every load (and mask) that `inside` took for granted needs all the guards.
  bool guarded_alike() const { return guard_sets_.size() <= 1; }
  /// C++ text of how many lanes of the current vector exist, where not all may.
  void set_active(const std::string& count) { active_ = count; }
  const std::string& active() const { return active_; }

  Context& context() { return c_; }
  const Context& context() const { return c_; }
  Symbol counter(int loop) const { return loops_[loop]; }
  int loop_count() const { return static_cast<int>(loops_.size()); }
  int lane_loop() const { return lane_loop_; }
  int lanes() const { return lanes_; }
  uint32_t loops_of(const Expr& e) const;
  bool in_lanes(uint32_t loops) const {
    return lane_loop_ >= 0 && (loops >> lane_loop_ & 1 || (joined_ > 1 && loops >> outer_ & 1));
  }

  /// The same value in lanes.
  Reg widen(const Reg& r);
  /// Elements of a tile of bytes, kBytes for each lane, where `at` gives the first of a lane and
  /// they are neighbours along the axis. One register when all are one value.
  Reg bytes_in_lanes(ValueId v, Coords at, int axis);
  static constexpr int kBytes = 4;
  /// The lanes of a mask with another width.
  Reg mask_of(const Reg& r, int bytes);
  /// An integer expression as a register.
  Reg index(const Expr& e, DType t);
  /// Calls a function of the prelude on registers of one type; scalars widen when one is in lanes.
  Reg call(const std::string& function, DType result, std::vector<Reg> operands);
  /// "a $op b" and the like: $0, $1, $2 are operands.
  Reg combine(const std::string& pattern, DType result, std::vector<Reg> operands);
  Reg literal(DType t, const Number& n);
  /// Rounds an f32 register to a narrower format's values.
  Reg rounded(const Reg& r);
  /// Drops what is known of the values that a region defines: its arguments changed.
  void forget(const Region& r);
  /// The condition e >= 1 per element.
  Reg positive(const Expr& e);
  /// Reads elements of a tensor at coordinates given for each of its axes, pad outside and where
  /// `guard` (one b1) is false.
  Reg load(int param, const Coords& at, const Number& pad, const Reg* guard = nullptr);
  /// Whether an access may be made without a check: it lies inside, or that is taken for granted.
  bool grant(int param, const Coords& at);
  /// A register of one integer, known to lie in [0, dim), as a symbol.
  Expr symbol_of(const Reg& r, const Expr& dim);
  Reg load_stored(const Storage& s, const Coords& at);
  /// The pointer and stride of elements of a tensor, or of a stored value, along the lanes.
  struct Address {
    std::string pointer;
    std::optional<int64_t> step;  ///< elements from lane to lane, when that is a number
    std::string step_text;        ///< C++ text of it, when it is one number at run time
    uint32_t loops = 0;           ///< of the pointer
    bool regular() const { return step || !step_text.empty(); }
  };
  Address address(int param, const Coords& at);
  Address address(const Storage& s, const Coords& at);

  /// What a survey records: how each access moves along each loop, and register sizes.
  struct Access {
    int param = -1;  ///< -1: a stored value
    Coords at;
    const Storage* stored = nullptr;
    uint32_t irregular = 0;  ///< loops along which it moves as data says
    bool loaded = false;     ///< where it lies depends on data
  };
  std::vector<Access>* survey = nullptr;
  std::vector<std::pair<int64_t, uint32_t>> sizes;  ///< bytes of registers and their loops
  const std::map<ValueId, std::function<Reg(const Coords&)>>& bindings() const { return bound_; }

 private:
  struct Body {
    Writer text;
    std::map<std::string, Reg> named;
    std::map<std::pair<ValueId, std::string>, Reg> values;  ///< by value and coordinates
  };
  struct Term {
    Expr coordinate;
    std::string stride;  ///< empty: 1
  };
  Address address_of(const std::string& base, const std::string& pointer_type,
                     const std::vector<Term>& terms);
  Reg load_scalar(int param, const Coords& at, const Number& pad, const std::vector<Bound>& open,
                  const Reg* guard);
  Reg load_inside(int param, const Coords& at, const Number& pad, const Reg* guard);
  Reg load_part(int param, const Coords& at, const Number& pad, const std::vector<Bound>& open,
                const Reg* guard);
  Reg load_by_lane(int param, const Coords& at, const Number& pad, const Storage* stored,
                   const Reg* guard);
  bool is_outside(const Bound& b) const;
  /// Where, along the outermost limited loop that it mentions, the bound holds.
  std::optional<Limit> limit_of(const Bound& b) const;
  /// What of a scalar load's bounds the nest does not see to: all of them or none.
  std::vector<Bound> left_open(const std::vector<Bound>& open);
  Coords in_lanes_of_loop(Coords at) const;
  /// What `compute` gives for lanes of one loop only, without those joined to it.
  template <class F>
  auto apart(int loop, int lanes, const F& compute) {
    const int loop_before = lane_loop_, lanes_before = lanes_, joined_before = joined_;
    lane_loop_ = loop;
    lanes_ = lanes;
    joined_ = 1;
    auto r = compute();
    lane_loop_ = loop_before;
    lanes_ = lanes_before;
    joined_ = joined_before;
    return r;
  }
  /// v in joined lanes when it changes along one of the two loops only: the outer one.
  std::optional<Reg> value_of_one_loop(ValueId v, const Coords& at, uint32_t loops);
  /// Lanes of the neighbours along the outer loop, one after the other, read from addresses that
  /// lie inside; `stored`: the type in memory.
  Reg join_loads(DType t, DType stored, const Coords& at, const std::function<Address()>& address);
  bool take_for_granted(const Bound& b, std::vector<std::string>& guards);
  void add_limit(const Limit& l);
  int depth_of(uint32_t loops) const;

  Context& c_;
  std::vector<Symbol> loops_;
  std::vector<Body> bodies_;
  int lane_loop_ = -1, lanes_ = 1;
  int outer_ = -1, joined_ = 1;
  bool joinable_ = true;
  std::map<ValueId, std::function<Reg(const Coords&)>> bound_;
  Assume assume_ = Assume::nothing;
  uint32_t limited_ = 0;
  Limit outside_;
  std::vector<Limit> limits_;
  std::vector<std::string> guards_;
  std::set<std::vector<std::string>> guard_sets_;
  std::string active_;
  std::map<std::string, Symbol> symbols_;      ///< of registers, by text
  std::map<Symbol, uint32_t> symbol_loops_;    ///< what those registers change with
  std::optional<Symbol> byte_counter_, byte_;  ///< what stands for the lanes' loop, and now does
  Symbol lane_counter_;
};

/// The checks that facts leave open.
std::vector<Bound> open_bounds(const Context& c, int param, const Coords& at);
std::optional<Bound> open_bound(const Context& c, const Expr& at, const Expr& dim);
/// The C++ type of an element as it lies in memory, and an element.
std::string stored_type(Context& c, DType t);
std::string stored_literal(Expression& e, DType t, const Number& n);
/// C++ text of a check.
std::string condition(Context& c, const Bound& b);

}  // namespace tw::cpu
