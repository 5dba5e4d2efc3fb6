#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tw/num/dtype.h"
#include "tw/target/machine.h"

namespace tw::cpu {

/// A function that emitted text may call. Its text is a pattern:
///   $D  the dtype's name     $L  the number of lanes     $Z  0, 1, .. L-1
///   $V  $E  values in registers, one lane of them (f32 for narrower floats; b1: i32 lanes, bool)
///   $I  $U  signed and unsigned integers as wide as $V
///   $f64  f64, as many lanes as $V
///   $N  $H  bits of a lane of $V, and its largest signed integer
///   $S  $Q  one stored element, lanes of stored elements
///   $P  lanes of stored elements at an address aligned to one element only
///   $B  unsigned integers as wide as $Q
///   $A  $M  $W  $R  u8 and i8 in fours, i16 and u16 in twos, for each lane
///   $J  $O  bits of $Q (empty for 128), and f32 lanes of as many bits
///   $inline  what stands before a function that may be inlined
///   $fma  of one thread of a GPU: a * b + c in f32 rounded once
struct PreludeFunction {
  std::string name;    ///< emitted as tw_<name>, or as tw_<name>_$Dx$L when its text says so
  std::string uses;    ///< functions that it calls at the same dtype and lanes; "name:dtype" at
                       ///< another dtype, "name/1" at one lane
  std::string scalar;  ///< text for one lane; empty: lane 0 of the vector form with 4 lanes
  std::string vector;  ///< text for several lanes; empty: the text for one lane fits
};

/// Text that stands before the kernel: types and functions, only those that were asked for.
class Prelude {
 public:
  explicit Prelude(const CpuMachine& machine) : machine_(&machine) {}

  /// The type of `lanes` elements, e.g. "f32", "f32x16", "u8x16".
  std::string type(DType t, int lanes = 1);
  /// The same, for loads and stores at addresses aligned to elements only.
  std::string unaligned(DType t, int lanes);
  /// Asks for a function; returns the name by which text calls it (overloaded on types).
  std::string use(const std::string& function, DType t, int lanes);
  /// Text that only one kind of kernel needs, once per key.
  void add(const std::string& key, const std::string& text);
  /// A function that text for a thread calls and that stands elsewhere; returns its name.
  const std::string& outside(const std::string& name) { return *outside_.insert(name).first; }
  const std::set<std::string>& outside() const { return outside_; }
  /// All of it, with `abi` after the types of numbers.
  std::string text(std::string_view abi) const;
  /// Whether the machine's table has stores around the caches, and whether one was asked for.
  bool has_stream() const { return machine_->isa == "avx2" || machine_->isa == "avx512"; }
  bool streamed() const { return streamed_; }
  /// Whether the machine looks up one of sixteen f32 in one instruction, for as many lanes.
  bool has_lookup(int lanes) const { return machine_->isa == "avx512" && lanes == 16; }
  /// Whether the machine has a text of its own for a function.
  bool has_own(const std::string& function, DType t, int lanes) const;
  /// Whether a function uses AVX512-VNNI.
  bool vnni() const { return vnni_; }
  const CpuMachine& machine() const { return *machine_; }
  /// Whether the text is for one thread of a GPU, or of its emulator: of one lane.
  bool for_thread() const { return machine_->isa == "cuda" || machine_->isa == "emu"; }
  /// What stands before a function or a table in text for a GPU.
  std::string placed() const { return machine_->isa == "cuda" ? "__device__ " : ""; }

 private:
  std::string call_name(const std::string& function, DType t, int lanes) const;
  void use_all(std::string_view uses, DType t, int lanes);
  std::string instance(const std::string& function, const std::string& pattern, DType t, int lanes);

  const CpuMachine* machine_;
  std::set<std::pair<DType, int>> types_, unaligned_;
  bool streamed_ = false, vnni_ = false;
  std::set<std::string> used_, outside_;
  std::vector<std::string> functions_;
};

/// The type in which an element is kept in a register: f32 for narrower floats, bytes for packed
/// integers.
DType register_type(DType t);
DType signed_of_bytes(int64_t bytes);
DType unsigned_of_bytes(int64_t bytes);

/// The text of a function, for one and for several lanes, that suits the machine better than the
/// portable form, if there is one.
std::optional<PreludeFunction> builtin_function(const CpuMachine& machine, const std::string& name,
                                                DType t, int lanes);

/// Of text for one thread.
enum class Thread : uint8_t { cuda, emulated };
/// The machine of such text: isa "cuda" for NVRTC, or "emu" for a C++ compiler. One lane.
const CpuMachine& thread_machine(Thread kind);
/// The same as builtin_function for text of one thread.
std::optional<PreludeFunction> thread_function(const CpuMachine& machine, const std::string& name,
                                               DType t);
/// Functions, with their type, that have a text of their own for a GPU.
std::vector<std::pair<std::string, DType>> thread_texts();

/// A load or store of packed elements, which lie at a TwBits: memory and a number of elements.
std::optional<PreludeFunction> packed_function(Prelude& prelude, const std::string& name, DType t,
                                               int lanes);
/// The type of what points to elements of a tensor, as its variables have it.
std::string pointer_type(Prelude& prelude, DType t, bool written);

/// Tables of functions, one a file: arithmetic, math, memory, casts.
std::vector<PreludeFunction> arithmetic_functions();
std::vector<PreludeFunction> math_functions();
std::vector<PreludeFunction> memory_functions();
std::vector<PreludeFunction> format_functions();

}  // namespace tw::cpu
