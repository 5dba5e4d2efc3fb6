#pragma once

#include <optional>
#include <type_traits>
#include <utility>
#include <variant>

#include "tw/lang/index.h"

namespace tw {

/// A number of the user's program; it takes the dtype of the tile beside it.
class Constant {
 public:
  template <class C>
  requires std::is_arithmetic_v<C> Constant(C c)
      : value_{std::is_integral_v<C>, 0, static_cast<double>(c)} {
    if constexpr (std::is_integral_v<C>) {
      value_.i = static_cast<int64_t>(c);
      above_int64_ = !std::in_range<int64_t>(+c);
    }
  }
  /// The element of t that it becomes: floats round to nearest; nothing when an integer type cannot
  /// hold it exactly, or a float type only as infinity.
  std::optional<Number> as(DType t) const;
  std::string text() const;

 private:
  Number value_;  ///< f is set for integers too
  bool above_int64_ = false;
};

/// A variable that holds a tile of data: a dtype and extents, fixed when it is made. Copying makes
/// a new variable, assigning rebinds this one and keeps its type. Rank 0 is a scalar. A Tile may
/// outlive its Trace; using it then is an error like any other.
class Tile {
 public:
  Tile(std::shared_ptr<TraceState> trace, ValueId value);
  Tile(const Tile& other, SourceLoc at = SourceLoc::here());
  /// Moves the variable itself, so that a container may move its Tiles inside a loop.
  Tile(Tile&& other) noexcept;
  Tile& operator=(const Tile& other);
  ~Tile();

  Type type(SourceLoc at = SourceLoc::here()) const;
  DType dtype(SourceLoc at = SourceLoc::here()) const { return type(at).dtype; }
  int64_t extent(int axis, SourceLoc at = SourceLoc::here()) const;
  /// Calls the value `name` (an identifier) in printouts; nothing depends on it.
  Tile named(const std::string& name, SourceLoc at = SourceLoc::here()) const;

  ValueId read(SourceLoc at) const;
  const std::shared_ptr<TraceState>& trace() const { return trace_; }

  template <class B>
  requires std::same_as<B, bool>
  explicit operator B() const {
    static_assert(sizeof(B) == 0,
                  "tilewright: a Tile has no truth value while tracing; use where(mask, a, b) per "
                  "element, k.when(cond, ...) for a branch, & | ~ for masks");
    return false;
  }

 private:
  std::shared_ptr<TraceState> trace_;
  uint64_t slot_;
};

/// What operators on tiles take: a Tile, a number or an Index, and the line where the user wrote it
/// (operators cannot have default arguments, so the conversion has one).
class Arg {
 public:
  Arg(const Tile& t, SourceLoc at = SourceLoc::here())
      : what_(Value{t.trace(), t.read(at)}), at_(at) {}
  Arg(const Index& i, SourceLoc at = SourceLoc::here()) : what_(i), at_(at) {}
  template <class C>
  requires std::is_arithmetic_v<C> Arg(C c, SourceLoc at = SourceLoc::here())
      : what_(Constant(c)), at_(at) {}

  struct Value {
    std::shared_ptr<TraceState> trace;
    ValueId id;
  };
  const Value* value() const { return std::get_if<Value>(&what_); }
  const Index* index() const { return std::get_if<Index>(&what_); }
  const Constant* constant() const { return std::get_if<Constant>(&what_); }
  SourceLoc at() const { return at_; }

 private:
  std::variant<Value, Index, Constant> what_;
  SourceLoc at_;
};

/// The op on two operands, at least one of them a tile; ranks must be equal, extents equal or 1.
/// Numbers and Index values take the tile's dtype.
Tile elementwise(Opcode code, const Arg& a, const Arg& b);
Tile elementwise(Opcode code, const Arg& a);

inline Tile operator+(const Arg& a, const Arg& b) { return elementwise(Opcode::add, a, b); }
inline Tile operator-(const Arg& a, const Arg& b) { return elementwise(Opcode::sub, a, b); }
inline Tile operator*(const Arg& a, const Arg& b) { return elementwise(Opcode::mul, a, b); }
/// Integers truncate toward zero; x / 0 and x % 0 are 0.
inline Tile operator/(const Arg& a, const Arg& b) { return elementwise(Opcode::div, a, b); }
inline Tile operator%(const Arg& a, const Arg& b) { return elementwise(Opcode::rem, a, b); }
inline Tile operator<<(const Arg& a, const Arg& b) { return elementwise(Opcode::shl, a, b); }
inline Tile operator>>(const Arg& a, const Arg& b) { return elementwise(Opcode::shr, a, b); }
inline Tile operator&(const Arg& a, const Arg& b) { return elementwise(Opcode::and_, a, b); }
inline Tile operator|(const Arg& a, const Arg& b) { return elementwise(Opcode::or_, a, b); }
inline Tile operator^(const Arg& a, const Arg& b) { return elementwise(Opcode::xor_, a, b); }
inline Tile operator~(const Arg& a) { return elementwise(Opcode::not_, a); }
inline Tile operator-(const Arg& a) { return elementwise(Opcode::neg, a); }
inline Tile operator<(const Arg& a, const Arg& b) { return elementwise(Opcode::lt, a, b); }
inline Tile operator<=(const Arg& a, const Arg& b) { return elementwise(Opcode::le, a, b); }
inline Tile operator>(const Arg& a, const Arg& b) { return elementwise(Opcode::lt, b, a); }
inline Tile operator>=(const Arg& a, const Arg& b) { return elementwise(Opcode::le, b, a); }
inline Tile eq(const Arg& a, const Arg& b) { return elementwise(Opcode::eq, a, b); }
inline Tile ne(const Arg& a, const Arg& b) { return elementwise(Opcode::ne, a, b); }

inline Tile& operator+=(Tile& a, const Arg& b) { return a = Arg(a, b.at()) + b; }
inline Tile& operator-=(Tile& a, const Arg& b) { return a = Arg(a, b.at()) - b; }
inline Tile& operator*=(Tile& a, const Arg& b) { return a = Arg(a, b.at()) * b; }
inline Tile& operator/=(Tile& a, const Arg& b) { return a = Arg(a, b.at()) / b; }
inline Tile& operator%=(Tile& a, const Arg& b) { return a = Arg(a, b.at()) % b; }
inline Tile& operator<<=(Tile& a, const Arg& b) { return a = Arg(a, b.at()) << b; }
inline Tile& operator>>=(Tile& a, const Arg& b) { return a = Arg(a, b.at()) >> b; }
inline Tile& operator&=(Tile& a, const Arg& b) { return a = Arg(a, b.at()) & b; }
inline Tile& operator|=(Tile& a, const Arg& b) { return a = Arg(a, b.at()) | b; }
inline Tile& operator^=(Tile& a, const Arg& b) { return a = Arg(a, b.at()) ^ b; }

}  // namespace tw
