#pragma once

#include "tw/cli/verb.h"

namespace tw::cli {

/// Whether TARGET is a model file, not the name of a kernel. UserError for other files.
bool is_model(const std::string& target);

/// The verbs run and explain for a model.
int run_model(const Arguments& a);
int explain_model(const Arguments& a);

}  // namespace tw::cli
