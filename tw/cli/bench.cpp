#include "tw/base/error.h"
#include "tw/cli/verbs.h"

namespace tw::cli {
int run_bench(const Arguments&) { throw UserError("bench"); }
}  // namespace tw::cli
