#pragma once

#include <memory>
#include <optional>
#include <string>

#include "tw/emu/impl/abi.h"
#include "tw/emu/impl/memory.h"
#include "tw/jit/module.h"

namespace tw::emu {

/// Emitted text, compiled and loaded.
struct LoadedText {
  std::shared_ptr<const Module> module;
  TextTable* table = nullptr;
  void (*start)(const void* parameter) = nullptr;  ///< runs the entry in the calling thread
  uintptr_t base = 0;                              ///< where the object lies in memory
  std::string path;                                ///< of the object
  std::string file = {};  ///< whose lines the text has by #line; empty: they are the text's own
};

/// Text with what starts its entry: the form that is compiled.
std::string with_starter(const std::string& text, const std::string& entry);
/// What local variables hold that nothing has written: a pattern that is no zero, or zeros.
enum class Unset : uint8_t { pattern, zeros };
/// Lines of cache keys: compiler and flags.
std::string compiler_identity(Unset unset = Unset::pattern);
/// The shared object of text with a starter.
std::string compile_text(const std::string& text, Unset unset = Unset::pattern);
LoadedText loaded_text(std::shared_ptr<const Module> module);
/// Compiles text, or finds it compiled, for the entry of that name.
LoadedText load_text(const std::string& text, const std::string& entry,
                     Unset unset = Unset::pattern);

/// The line of a place in the text; nothing where the compiler left no word of it.
std::optional<int> line_of(const LoadedText& text, Place place);

}  // namespace tw::emu
