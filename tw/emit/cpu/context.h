#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "tw/emit/cpu/prelude.h"
#include "tw/emit/cpu/writer.h"
#include "tw/ir/program.h"
#include "tw/target/machine.h"
#include "tw/target/mapping.h"
#include "tw/target/specialisation.h"

namespace tw::cpu {

/// Alignment of everything in the instance's scratch, in bytes: a line of the caches.
constexpr int64_t kAlign = 64;

/// Where a value lives: a C++ variable when it has one element, else a row-major array of its
/// register type in the instance's scratch.
struct Storage {
  std::string name;
  Type type;
  bool variable() const { return count(type.shape) == 1; }
};

/// What the parts of one emission share.
struct Context {
  const Program& program;
  const Specialisation specialisation;  ///< of arguments, then of scratch
  const CpuMachine& machine;
  const Mapping& mapping;
  bool debug_lines = true;
  Facts facts;
  Prelude prelude;
  std::vector<const Op*> def;    ///< by value; null for arguments of regions
  std::set<ValueId> few_digits;  ///< values of which only bf16 is seen
  std::map<ValueId, Storage> storage;
  std::map<int, std::string> loop_names;
  std::map<std::string, int> names;  ///< how often each name was given
  int64_t scratch = 0, scratch_most = 0;
  std::map<int, int64_t> scratch_at;  ///< of scratch parameters: where they lie in the instance's

  Context(const Program& p, const Specialisation& s, const CpuMachine& m, const Mapping& map);
  /// A C++ name that is not used yet: `wish` or `wish_2`.
  std::string fresh(const std::string& wish);
  /// What the user called the value, or a name made of its op.
  std::string name_of(ValueId v);
  /// A new loop counter running over [0, extent).
  Symbol new_loop(const std::string& name, int64_t extent);
  /// A symbol whose text is that C++ expression.
  Symbol new_symbol(const std::string& text, const SymbolFact& fact);
  std::string symbol_text(Symbol s) const;
  std::string text(const Expr& e) const;
  /// Whether stores to the tensor go around the caches: it is large and never read here.
  bool streams(int param) const;
  /// The nest over the elements of a value that also fetches, for the next instance, what that one
  /// reads at the elements that `view` stores: the last store of an instance, or a kept tile of
  /// that shape before it that takes long to compute.
  struct Prefetch {
    const View* view = nullptr;
    ValueId value = 0;
    bool kept = false;
  };
  Prefetch prefetch;
  /// Reserves scratch for the value and makes it its storage; `out` gets the declaration.
  const Storage& reserve(ValueId v, Writer& out);
};

/// Text that may be thrown away: names and functions of the prelude that it asked for are forgotten
/// again, unless it is kept.
class Draft {
 public:
  explicit Draft(Context& c) : c_(c), prelude_(c.prelude), names_(c.names) {}
  ~Draft() {
    if (kept_) return;
    c_.prelude = std::move(prelude_);
    c_.names = std::move(names_);
  }
  Draft(const Draft&) = delete;
  Draft& operator=(const Draft&) = delete;
  void keep() { kept_ = true; }

 private:
  Context& c_;
  Prelude prelude_;
  std::map<std::string, int> names_;
  bool kept_ = false;
};

/// The slope of e along s: how much e grows when s grows by 1, when that is one number everywhere.
std::optional<int64_t> slope(const Expr& e, Symbol s, const Facts& facts);
/// e where s is 0.
Expr without(const Expr& e, Symbol s);

}  // namespace tw::cpu
