#pragma once

#include <functional>
#include <string>

#include "tw/emit/cpu/emit_cpu.h"

#include "tests/support/random_program.h"

namespace tw::test {

/// Where a compiler bug can be planted between the program and its kernel. Each hook returns
/// whether it changed anything; one that is empty does nothing.
struct Hooks {
  std::function<bool(Program&)> program;             ///< before lowering, as a pass would
  std::function<bool(Specialisation&)> assumptions;  ///< what the variant takes for granted
  std::function<bool(std::string&)> text;            ///< the emitted C++
};

/// A kernel made by passes, emitter and compiler alone: no cache, no launcher. Its instances run
/// one after the other, in ranges of uneven length, each with freshly poisoned scratch.
class NativeKernel {
 public:
  /// Lowers and emits; `changed()` then says whether a hook did something. Nothing is compiled yet.
  NativeKernel(const RandomProgram& r, const Hooks& hooks);
  bool changed() const { return changed_; }
  const std::string& text() const { return emitted_.text; }
  void compile();
  void run(const RandomProgram& r, const Arguments& a) const;

 private:
  EmittedCpu emitted_;
  bool changed_ = false;
  TwEntry entry_ = nullptr;
};

/// What may be assumed of tensors, read off them.
Specialisation assumptions_of(const Arguments& a);

}  // namespace tw::test
