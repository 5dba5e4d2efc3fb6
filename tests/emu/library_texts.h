#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "tw/kernels/entry.h"
#include "tw/runtime/launch.h"
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
  Signature signature;
  std::vector<kernels::Problem> problems;  ///< that it is launched on
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

/// Of all tensors together; -1 where one has none.
int64_t elements_of(const kernels::KernelEntry& entry, const kernels::Problem& p);

/// The text for the problem, tiled as for an H200, without problems.
LibraryText library_text(const kernels::KernelEntry& entry, const kernels::Problem& p,
                         const std::map<std::string, int64_t>& knobs = {});

/// How many instances each of two blocks does, at least.
int64_t tiles_of_a_block(const LibraryText& text, const kernels::Problem& p);

/// Of the made-for problem, of ones with longer axes and of the form's others, those that the text
/// serves: they have its constants and its facts, and no more elements than that.
std::vector<kernels::Problem> served_problems(const LibraryText& text,
                                              const std::vector<kernels::Problem>& form,
                                              int64_t most_elements);

/// Whether the program that the text is made of is right on the problem, says the interpreter: one
/// for k = 1 may rely on it where no tensor shows that.
bool is_meant_for(const LibraryText& text, const kernels::Problem& p);

/// What the problems of a text may come to: how many, how long their launches take together, how
/// many elements one has.
struct Effort {
  size_t problems;
  double seconds;
  int64_t elements;
};
/// Gives the text the first of served_problems() that are right and clean.
void find_problems(LibraryText& text, const std::vector<kernels::Problem>& form,
                   const Effort& most);

/// What a launch of every problem shows with `body` in place of the text's own; empty: clean and
/// right. Two blocks do the instances of the grid in turn; each tensor has strides of its own, and
/// what lies between its rows is poison.
std::string fault_of(const LibraryText& text, const std::string& body, uint64_t seed);
std::string fault_of(const LibraryText& text, const kernels::Problem& p, const std::string& body,
                     uint64_t seed);

}  // namespace tw::test
