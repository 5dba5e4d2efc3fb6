#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "tw/kernels/entry.h"
#include "tw/target/launch_spec.h"
#include "tw/target/specialisation.h"

namespace tw::test {

/// Emulated text of a kernel of the library, with launches that come to all of it.
struct LibraryText {
  const kernels::KernelEntry* entry;
  kernels::Problem made_for;  ///< whose tiles it has
  Specialisation facts;
  std::string prelude, body;  ///< behind the struct of the arguments
  std::string cuda_prelude;   ///< what stands in front of the body on a GPU
  LaunchSpec launch;
  std::vector<kernels::Problem> problems;  ///< that it serves
  std::string label() const;
};

/// A kernel of the library and a type of its sweep.
struct LibraryForm {
  const kernels::KernelEntry* entry;
  DType dtype;
};
std::vector<LibraryForm> library_forms();

/// The problems of the form's sweep that are not empty and small enough for the emulator.
std::vector<kernels::Problem> small_problems(const LibraryForm& form);

/// The text for the problem, tiled as for an H200, without problems that it serves.
LibraryText library_text(const kernels::KernelEntry& entry, const kernels::Problem& p,
                         const std::map<std::string, int64_t>& knobs = {});

/// How many instances each of two blocks does, at least.
int64_t tiles_of_a_block(const LibraryText& text, const kernels::Problem& p);

/// What a search for problems may come to: how many, how long their launches take together, how
/// many elements one has.
struct Effort {
  size_t problems;
  double seconds;
  int64_t elements;
};
/// Of the made-for problem, of ones with longer axes and of the form's others, the first ones that
/// the text serves: they have the same facts and are clean.
void find_problems(LibraryText& text, const std::vector<kernels::Problem>& form,
                   const Effort& most);

/// What a launch of every problem shows with `body` in place of the text's own; empty: clean and
/// right. Two blocks do the instances of the grid in turn; each tensor has strides of its own, and
/// what lies between its rows is poison.
std::string fault_of(const LibraryText& text, const std::string& body, uint64_t seed);
std::string fault_of(const LibraryText& text, const kernels::Problem& p, const std::string& body,
                     uint64_t seed);

}  // namespace tw::test
