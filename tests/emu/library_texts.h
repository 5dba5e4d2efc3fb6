#pragma once

#include <map>
#include <memory>
#include <span>
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

/// Of the grid.
int64_t instances_of(const LibraryText& text, const kernels::Problem& p);

/// The made-for problem, ones with longer axes and the form's others, as far as the text serves
/// them: they have its constants and its facts, and no more elements than that.
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

/// What launches of a problem show with `body` in place of the text's own; empty: clean and right.
/// Two blocks do the instances of the grid in turn; each tensor has strides of its own, and what
/// lies between its rows is poison.
std::string fault_of(const LibraryText& text, const kernels::Problem& p, const std::string& body,
                     uint64_t seed, std::span<const check::Values> values);
/// Those that a kernel is launched on: norms also have ways for squares that overflow.
std::vector<check::Values> values_of(const kernels::KernelEntry& entry);
/// The same of all problems, each with one of these values, in turn with others. A change has no
/// fault where the text as it is has one too.
std::string fault_of(const LibraryText& text, const std::string& body, uint64_t turn);

}  // namespace tw::test
