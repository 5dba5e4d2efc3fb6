#pragma once

#include <string>

#include "tw/ir/program.h"
#include "tw/target/machine.h"
#include "tw/target/mapping.h"
#include "tw/target/specialisation.h"

namespace tw {

/// A kernel as source that builds alone, by g++ or clang++, and belongs to whoever asked for it.
struct Ejected {
  std::string header;  ///< of one function; its comment is the contract
  std::string source;  ///< includes the header as "<stem>.h", and <stdlib.h>
};

/// What its owner calls it.
struct EjectNames {
  std::string stem;           ///< of the files
  std::string function = "";  ///< empty: the program's name
  std::string made_for = "";  ///< what the tiles were chosen for, for a comment; empty: no comment
};

/// Source for a program lowered by cpu_passes() under `s`, whose unit and zero strides the function
/// checks. Facts of addresses and sizes (`aligned`, `fits32`) must not be among them. UserError for
/// names that C++ does not take.
Ejected eject_cpu(const Program& lowered, const Specialisation& s, const CpuMachine& machine,
                  const Mapping& mapping, const EjectNames& names);

}  // namespace tw
