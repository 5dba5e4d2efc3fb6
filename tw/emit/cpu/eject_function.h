#pragma once

#include <set>
#include <string>
#include <vector>

#include "tw/emit/cpu/writer.h"
#include "tw/ir/program.h"
#include "tw/target/specialisation.h"

/// What ejected functions for all devices have in common: names, arguments, checks, contract.
namespace tw::ejected {

using cpu::Writer;

/// The program with tensors and dims named so that a parameter may be called the same.
Program with_untaken_names(Program p);

/// The names of the program as the function has them.
struct Names {
  /// `chosen`: by its owner; empty: the program's name. `own`: parameters that are no argument of
  /// the program. Throws UserError for what is no name of a function.
  Names(const Program& p, const std::string& chosen, std::set<std::string> own = {});

  std::string function;
  std::vector<std::string> tensors, dims, strides;
  std::vector<std::string> values;  ///< of every dim that is not chosen
  std::vector<std::string> given;   ///< dims that no tensor determines

 private:
  std::string take(std::string name);
  std::string value_of(const Program& p, int dim);
  std::set<std::string> used_;
};

/// "int name(arguments,\n    last)"
std::string signature(const std::string& result, const Program& p, const Names& names,
                      const std::string& last);

void refuse(const std::string& fault, const std::string& code, Writer& out);
void check_extents(const Program& p, const Names& names, const std::string& code, Writer& out);
void check_strides(const Specialisation& s, const Names& names, const std::string& code,
                   Writer& out);

/// The tensors' addresses as they go into arrays, and strides, those of a tensor in one item.
std::vector<std::string> addresses(const Program& p, const Names& names);
std::vector<std::string> all_strides(const Program& p, const Names& names);

std::string dim_text(const Program& p, const Expr& e);
/// The comment of what the function computes, with every argument.
void describe_arguments(const Program& p, const Specialisation& s, const Names& names, Writer& out);
/// "M * cdiv(N, 64)"
std::string grid_text(const Program& p);

/// The first line of both files.
std::string title(const Program& p, const std::string& machine, const std::string& mapping);

}  // namespace tw::ejected
